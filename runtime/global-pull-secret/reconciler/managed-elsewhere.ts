/** Whether HyperShift's own operator manages any of these objects, so that we watch and write nothing. */

import { type OwnershipMode, observedIn } from '../../rules/kubernetes/hypershift-operators.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';

/** Gives the one who writes instead, or undefined when the objects are ours to write: they are one unit, so one is enough. */
export function managedElsewhere(
  mode: OwnershipMode,
  objects: readonly (KubeObject | undefined)[],
): string | undefined {
  return objects.map((object) => observedIn(mode, object)).find((operator) => operator !== undefined);
}
