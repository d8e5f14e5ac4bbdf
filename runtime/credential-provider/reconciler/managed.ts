/** Whether another program manages the object or the rendered objects, by their managedFields. Pure. */

import { isDeepStrictEqual } from 'node:util';
import { type ConditionInput, conditionIn, conditionsIn } from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { defined } from '../../core/record.ts';
import { OWNER_LABEL, type Reader } from '../../engine/contract.ts';
import { pullStatusRef } from '../../engine/pull-status.ts';
import { managersOf } from '../../kube/drift.ts';
import { ignitionOf, ignitionText } from '../../kube/ignition.ts';
import type { ReconcilerOptions } from '../options.ts';

/** Reason for a cluster without pools of the Machine Config Operator. Only Pullwright uses it. */
export const NO_POOL = 'NoMachineConfigPool';
const GENERATED_BY = 'machineconfiguration.openshift.io/generated-by-controller-version';
const OWN_MANAGER = 'pullwright-credential-provider';
/** Field managers of users, whose changes are reverted. */
const PEOPLE = /^(kubectl|oc$|oc-|Mozilla)/;

type Rendered = readonly (KubeObject | undefined)[];
type Writers = NonNullable<KubeObject['metadata']['managedFields']>;

function writersOf(object: KubeObject): Writers {
  return object.metadata.managedFields ?? [];
}

/** The other program that writes the status of the object, if any. */
export function statusWriter(object: KubeObject): string | undefined {
  return writersOf(object).find(
    ({ subresource, manager }) =>
      subresource === 'status' && manager !== undefined && manager !== OWN_MANAGER && !PEOPLE.test(manager),
  )?.manager;
}

/** The program that manages the object instead of us: the Machine Config Operator, or an unknown one in a dump. */
export function managerElsewhere(mode: ReconcilerOptions['mode'], object: KubeObject, rendered: Rendered) {
  if (mode === 'own') return undefined;
  const isMarked = rendered.some((one) => one?.metadata.annotations?.[GENERATED_BY] !== undefined);
  const other = statusWriter(object);
  if (mode === 'observe' || isMarked) return other ?? 'machine-config-controller';
  return other ?? (isOwnershipUnknown(object, rendered) ? UNKNOWN : undefined);
}

const UNKNOWN = 'an unknown field manager (dump with kubectl get --show-managed-fields)';

/** Whether the status has an unknown writer: no managedFields, and no rendered object with our label. */
function isOwnershipUnknown(object: KubeObject, rendered: Rendered): boolean {
  if (object.metadata.managedFields !== undefined || object.status === undefined) return false;
  // Our own status: without a pool no rendered object exists that could have our label.
  if (conditionsIn(object).some(({ reason }) => reason === NO_POOL)) return false;
  return !rendered.some((one) => one?.metadata.labels?.[OWNER_LABEL] !== undefined);
}

const FILES = ['spec', 'config', 'storage', 'files'];

/**
 * The program that replaced the files of a rendered object after our write. Writing them again would start a loop that restarts
 * kubelets. Changes by users are reverted instead.
 */
export function takenBy(present: KubeObject | undefined, wanted: KubeObject): string | undefined {
  if (present === undefined || sameFiles(present, wanted)) return undefined;
  if (!writersOf(present).some(isOurs)) return undefined;
  const holders = managersOf(present, FILES);
  return holders.some(isOurs)
    ? undefined
    : holders.find(({ manager }) => manager !== undefined && !PEOPLE.test(manager))?.manager;
}

function isOurs({ manager }: Writers[number]): boolean {
  return manager === OWN_MANAGER;
}

/** Whether two MachineConfigs have the same files with the same text. */
export function sameFiles(a: KubeObject, b: KubeObject): boolean {
  return isDeepStrictEqual(textsOf(a), textsOf(b));
}

function textsOf(machineConfig: KubeObject): ReadonlyMap<string, string | undefined> {
  const files = ignitionOf(machineConfig).storage?.files ?? [];
  return new Map(files.map(({ path = '' }) => [path, ignitionText(machineConfig, path)]));
}

// Conflicts with another writer: once it has replaced the files, we do not write until the entries change. The contested object
// is recorded in the PullStatus, so that the decision depends on cluster state alone. The Machine Config Operator writes the
// whole MachineConfig again, and each correction would restart kubelets.

const TYPE = 'Contested';

/** The program whose files we leave in place; undefined when we may write. Newer entries are tried once. */
export function contestedOf(
  reader: Reader,
  { kind, metadata }: KubeObject,
  present: KubeObject | undefined,
  wanted: KubeObject,
): string | undefined {
  const about = { kind, namespace: reader.scope.controlPlaneNamespace, name: metadata.name };
  const contested = conditionIn(reader.get(pullStatusRef('management', about)), TYPE);
  const isNewer =
    contested?.status === 'True' && (metadata.generation ?? 0) > (contested.observedGeneration ?? 0);
  return isNewer ? undefined : takenBy(present, wanted);
}

/** The condition that records a contested object. */
export function contestedCondition(object: KubeObject, message: string): ConditionInput {
  const { generation: observedGeneration } = object.metadata;
  return { type: TYPE, status: 'True', reason: 'AnotherWriter', message, ...defined({ observedGeneration }) };
}
