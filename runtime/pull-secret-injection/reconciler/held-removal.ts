/** A removal that is held: since when, by what is said of who brings the copies, and how that is said. */
import type { World } from '../../controller/contract.ts';
import { pullStatusRef } from '../../controller/pull-status.ts';
import { PROFILE_KIND } from '../../rules/injection/profile.ts';
import { CONFIRM_ANNOTATION } from '../../rules/injection/removal-breaker.ts';
import type { Condition, ConditionInput, ConditionText } from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { counted } from '../../rules/text/counted.ts';
import type { InjectionOptions } from '../options.ts';
import { kruiseInjects } from './view.ts';

/** What one profile or SidecarSet would lose. */
export interface Removal {
  /** Copies that there are, those that go included. */
  readonly all: number;
  /** `namespace/name` of those that go. */
  readonly gone: readonly string[];
}

/** A removal that waits for a confirmation. */
export interface HeldRemoval extends Removal {
  /** Too few by themselves: others of the same change went before. */
  readonly rest: boolean;
  readonly hash: string;
  readonly confirmed: boolean;
}

/** Type of the condition that is there while a removal waits for a confirmation. */
export const REMOVAL_HELD = 'RemovalHeld';

/** Since when a removal is held: the transition of the condition, which therefore stays until the last copy is gone. */
export function heldSince(world: World, object: KubeObject, options: InjectionOptions): string | undefined {
  const { conditions } = (statusOf(world, object, options) ?? {}) as { conditions?: readonly Condition[] };
  return conditions?.find(({ type, status }) => type === REMOVAL_HELD && status === 'True')
    ?.lastTransitionTime;
}

/** What the reconciler says of it: of a SidecarSet, whose status is Kruise's where Kruise injects, beside it. */
function statusOf(world: World, object: KubeObject, { ownNamespace: namespace }: InjectionOptions): unknown {
  if (object.kind === PROFILE_KIND || !kruiseInjects(world)) return object.status;
  return world.get(pullStatusRef('hosted', { kind: object.kind, namespace, name: object.metadata.name }))
    ?.status;
}

/** Which copies stay for now, and how to say that they may go. */
export function heldCondition(
  { kind, metadata }: KubeObject,
  removal: HeldRemoval | undefined,
): readonly ConditionInput[] {
  if (removal === undefined) return [];
  const { gone, all, rest, hash, confirmed } = removal;
  const of = `${gone.length} of ${counted(all, 'copy', 'copies')}`;
  if (confirmed)
    return [{ type: REMOVAL_HELD, status: 'True', reason: 'Confirmed', message: `${of} may go` }];
  const some = gone
    .slice(0, 5)
    .map((copy) => `"${copy}"`)
    .join(', ');
  const more = gone.length > 5 ? ` and ${gone.length - 5} more` : '';
  const larger = rest ? ', the rest of a larger change' : '';
  const message = `removes ${of}${larger}: ${some}${more} ${gone.length === 1 ? 'stays' : 'stay'} until the annotation ${CONFIRM_ANNOTATION}: "${hash}" on ${kind} "${metadata.name}" confirms it`;
  return [{ type: REMOVAL_HELD, status: 'True', reason: 'Share', message }];
}

/** As `Ready` says it, while it waits. */
export function heldText(held: readonly ConditionInput[]): ConditionText | undefined {
  const waits = held.find(({ reason }) => reason !== 'Confirmed');
  return waits === undefined ? undefined : { reason: REMOVAL_HELD, message: waits.message };
}
