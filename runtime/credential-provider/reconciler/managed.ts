/** Whether another program looks after the object or what is rendered from it. Pure, from what the API server keeps of writers. */

import { type ConditionInput, conditionIn, conditionsIn } from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { OWNER_LABEL, type Reader } from '../../engine/contract.ts';
import { pullStatusRef } from '../../engine/pull-status.ts';
import { managersOf } from '../../kube/drift.ts';
import { ignitionOf, ignitionText } from '../../kube/ignition.ts';

/** There are no nodes of the Machine Config Operator. Only Pullwright uses this reason. */
export const NO_POOL = 'NoMachineConfigPool';
const GENERATED_BY = 'machineconfiguration.openshift.io/generated-by-controller-version';
const OWN_MANAGER = 'pullwright-credential-provider';
/** Managers under which people write; their changes are reverted, not accepted. */
const PEOPLE = /^(kubectl|oc$|oc-|Mozilla)/;

type Writers = NonNullable<KubeObject['metadata']['managedFields']>;

function writersOf(object: KubeObject): Writers {
  return object.metadata.managedFields ?? [];
}

/** The program that writes the status of the object, if it is not us. */
export function statusWriter(object: KubeObject): string | undefined {
  return writersOf(object).find(
    ({ subresource, manager }) =>
      subresource === 'status' && manager !== undefined && manager !== OWN_MANAGER && !PEOPLE.test(manager),
  )?.manager;
}

/** Who manages the object instead of us: the Machine Config Operator, where its marks are seen, or a manager that a dump hides. */
export function managerElsewhere(
  mode: 'auto' | 'own' | 'observe',
  object: KubeObject,
  rendered: readonly (KubeObject | undefined)[],
): string | undefined {
  if (mode === 'own') return undefined;
  const isMarked = rendered.some((one) => one?.metadata.annotations?.[GENERATED_BY] !== undefined);
  const other = statusWriter(object);
  if (mode === 'observe' || isMarked) return other ?? 'machine-config-controller';
  return other ?? (isOwnershipUnknown(object, rendered) ? UNKNOWN : undefined);
}

const UNKNOWN = 'a program that the dump does not name (dump it with kubectl get --show-managed-fields)';

/** A status of unknown origin: the object has no managedFields. Rendered objects carry our mark instead. */
function isOwnershipUnknown(object: KubeObject, rendered: readonly (KubeObject | undefined)[]): boolean {
  if (object.metadata.managedFields !== undefined || object.status === undefined) return false;
  // Written by us a moment ago, or from a dump: without a pool nothing is rendered that has our mark.
  if (conditionsIn(object).some(({ reason }) => reason === NO_POOL)) return false;
  return !rendered.some((one) => one?.metadata.labels?.[OWNER_LABEL] !== undefined);
}

const FILES = ['spec', 'config', 'storage', 'files'];

/**
 * The program that replaced the files of a rendered object after we wrote them: writing them again would be a fight
 * that restarts kubelets. Changes of a person do not count: they are reverted.
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

/** Whether two MachineConfigs bring the same files with the same text. */
export function sameFiles(a: KubeObject, b: KubeObject): boolean {
  const paths = pathsOf(a);
  return (
    paths.join() === pathsOf(b).join() &&
    paths.every((path) => ignitionText(a, path) === ignitionText(b, path))
  );
}

function pathsOf(machineConfig: KubeObject): readonly string[] {
  return (ignitionOf(machineConfig).storage?.files ?? []).map(({ path }) => path ?? '').sort();
}

// When to stop writing beside another program: as soon as it has taken the files over, for as long as the entries stay the same.
// A surrendered object is recorded in the PullStatus, so that the decision depends on cluster state alone.
// Beside another writer there is one try for each of its changes: the Machine Config Operator writes the whole MachineConfig
// anew, and each correction would restart kubelets.

const TYPE = 'Contested';

/** The generation for which the PullStatus records a surrendered object. */
function contestedIn(reader: Reader, object: KubeObject): number | undefined {
  const { kind, metadata } = object;
  const about = { kind, namespace: reader.scope.controlPlaneNamespace, name: metadata.name };
  const found = conditionIn(reader.get(pullStatusRef('management', about)), TYPE);
  return found?.status === 'True' ? (found.observedGeneration ?? 0) : undefined;
}

/** The program to which the files are left; undefined when they are ours to write. Newer entries are tried once. */
export function contestedOf(
  reader: Reader,
  object: KubeObject,
  present: KubeObject | undefined,
  wanted: KubeObject,
): string | undefined {
  const contested = contestedIn(reader, object);
  const isNewer = contested !== undefined && (object.metadata.generation ?? 0) > contested;
  return isNewer ? undefined : takenBy(present, wanted);
}

/** The condition that remembers it. */
export function contestedCondition(object: KubeObject, message: string): ConditionInput {
  const { generation } = object.metadata;
  return {
    type: TYPE,
    status: 'True',
    reason: 'AnotherWriter',
    message,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
}
