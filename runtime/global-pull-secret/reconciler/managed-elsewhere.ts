/** Whether HyperShift's own operator manages any of these objects, so that we watch and write nothing. */

import {
  isOwnershipUnknown,
  OWNERSHIP_UNKNOWN,
  type OwnershipMode,
  observedIn,
} from '../../rules/kubernetes/hypershift-operators.ts';
import { describeObject, type KubeObject } from '../../rules/kubernetes/object.ts';
import { type HeldTakeover, heldTakeover, type TakeoverContext } from './takeover.ts';

/** Who writes the objects instead of us. */
export interface Elsewhere {
  readonly reason: 'Observing' | 'OwnershipUnknown' | HeldTakeover['reason'];
  /** A sentence without its end. */
  readonly message: string;
}

/**
 * Gives who writes instead, or undefined when the objects are ours to write: they are one unit, so one is enough.
 *
 * Without managedFields, as `kubectl get -o yaml` leaves them out, an object that an operator may own tells nobody whose it is.
 */
export function managedElsewhere(
  mode: OwnershipMode,
  objects: readonly (KubeObject | undefined)[],
  takeover: TakeoverContext,
): Elsewhere | undefined {
  if (mode === 'own') return heldTakeover(objects, takeover);
  const operator = objects.map((object) => observedIn(mode, object)).find((one) => one !== undefined);
  if (operator !== undefined)
    return { reason: 'Observing', message: `${operator} manages these objects; nothing is written` };
  const unknown = objects.find((object) => isOwnershipUnknown(mode, object));
  if (unknown === undefined) return undefined;
  const { kind, metadata } = unknown;
  const name = describeObject({ kind, namespace: metadata.namespace, name: metadata.name });
  return {
    reason: 'OwnershipUnknown',
    message: `${name} ${OWNERSHIP_UNKNOWN}`,
  };
}
