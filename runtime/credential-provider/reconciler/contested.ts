/**
 * When to stop writing beside another program: as soon as it has taken the files over, for as long as the entries stay the same.
 * What was given up is remembered in the PullStatus, so that the decision stays a function of the world.
 *
 * Beside another writer there is one try for each of its changes: the Machine Config Operator writes the whole MachineConfig
 * anew, and each correction would restart kubelets.
 */

import type { World } from '../../controller/contract.ts';
import { pullStatusRef } from '../../controller/pull-status.ts';
import type { Condition, ConditionInput } from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { takenBy } from './managed.ts';

const TYPE = 'Contested';

/** The generation for which the PullStatus says that a fight was given up. */
export function contestedIn(world: World, object: KubeObject): number | undefined {
  const { kind, metadata } = object;
  const about = { kind, namespace: world.scope.controlPlaneNamespace, name: metadata.name };
  const status = world.get(pullStatusRef('management', about))?.status as
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
