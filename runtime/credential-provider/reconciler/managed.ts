/** Whether another program looks after the object or what is rendered from it. Pure, from what the API server keeps of writers. */

import type { Condition, ConditionInput } from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { isRecord } from '../../core/record.ts';
import { OWNER_LABEL, type Reader } from '../../engine/contract.ts';
import { pullStatusRef } from '../../engine/pull-status.ts';
import { managersOf } from '../../kube/drift.ts';
import { NO_POOL } from './conditions.ts';
import { fileText } from './targets.ts';

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
  if (conditionsOf(object).some(({ reason }) => reason === NO_POOL)) return false;
  return !rendered.some((one) => one?.metadata.labels?.[OWNER_LABEL] !== undefined);
}

function conditionsOf({ status }: KubeObject): readonly Readonly<Record<string, unknown>>[] {
  const list: unknown = isRecord(status) ? status['conditions'] : undefined;
  return Array.isArray(list) ? list.filter(isRecord) : [];
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
  return paths.join() === pathsOf(b).join() && paths.every((path) => fileText(a, path) === fileText(b, path));
}

function pathsOf({ spec }: KubeObject): readonly string[] {
  const { config } = (spec ?? {}) as {
    readonly config?: { readonly storage?: { readonly files?: readonly { readonly path?: string }[] } };
  };
  return (config?.storage?.files ?? []).map(({ path }) => path ?? '').sort();
}

// When to stop writing beside another program: as soon as it has taken the files over, for as long as the entries stay the same.
// A surrendered object is recorded in the PullStatus, so that the decision depends on cluster state alone.
// Beside another writer there is one try for each of its changes: the Machine Config Operator writes the whole MachineConfig
// anew, and each correction would restart kubelets.

const TYPE = 'Contested';

/** The generation for which the PullStatus records a surrendered object. */
export function contestedIn(reader: Reader, object: KubeObject): number | undefined {
  const { kind, metadata } = object;
  const about = { kind, namespace: reader.scope.controlPlaneNamespace, name: metadata.name };
  const status = reader.get(pullStatusRef('management', about))?.status as
    | { readonly conditions?: readonly Condition[] }
    | undefined;
  const found = status?.conditions?.find(({ type, status: value }) => type === TYPE && value === 'True');
  return found === undefined ? undefined : (found.observedGeneration ?? 0);
}

/** The program to which the files are left; undefined when they are ours to write. Newer entries are tried once. */
export function contestedOf({
  object,
  present,
  wanted,
  contested,
}: {
  readonly object: KubeObject;
  readonly present: KubeObject | undefined;
  readonly wanted: KubeObject;
  readonly contested: number | undefined;
}): string | undefined {
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
