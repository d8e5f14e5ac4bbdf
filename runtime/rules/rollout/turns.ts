/**
 * Turns of a fleet at a restart: who asks gets the next one, and so many nodes restart at once as the fleet can spare.
 *
 * All that is shared is one instant, that of the next free turn. Turns lie evenly, so that in no stretch of
 * {@link RESTART_MS} more begin than the budget, however many nodes ask at once and whatever content they restart for.
 */

/** What a restart takes until the unit is believed to be up. Milliseconds. */
export const RESTART_MS = 6000;

/** How many of `nodes` may restart at once: a tenth, and at least one. */
export function restartBudget(nodes: number): number {
  return Math.max(1, Math.ceil(nodes / 10));
}

/** From one turn to the next. Milliseconds. */
function turnMs(nodes: number): number {
  return Math.ceil(RESTART_MS / restartBudget(nodes));
}

/**
 * From the first turn of `nodes` to the last: nothing for one node, under a minute for any number.
 *
 * @example
 * ```ts
 * import { restartWindowMs } from './turns.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual([1, 2, 100, 1000].map(restartWindowMs), [0, 6000, 59_400, 59_940]);
 * ```
 */
export function restartWindowMs(nodes: number): number {
  return Math.max(0, nodes - 1) * turnMs(nodes);
}

/** A turn, and when the one after it is. Milliseconds since 1970. */
export interface Turn {
  readonly at: number;
  readonly next: number;
}

/**
 * The turn of a node that asks at `now`, when the next free one is `next` (undefined: nobody has asked yet). A turn that is
 * further away than all nodes together can have pushed it was booked by a clock that differs, and is not believed.
 *
 * @param asked `own`: the turn of this node, where it was the last to book. Once that has come the restart of it is over, since
 *   the node asks again, and there is nobody to wait for
 *
 * @example
 * ```ts
 * import { bookTurn } from './turns.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(bookTurn({ now: 3000, next: 6000, nodes: 1 }), { at: 6000, next: 12_000 });
 * assert.deepEqual(bookTurn({ now: 3000, next: 6000, nodes: 1, own: 0 }), { at: 3000, next: 9000 });
 * ```
 */
export function bookTurn(asked: {
  readonly now: number;
  readonly next: number | undefined;
  readonly nodes: number;
  readonly own?: number | undefined;
}): Turn {
  const { now, nodes, own } = asked;
  const next = asked.next ?? now;
  const apart = turnMs(nodes);
  const believed = next - now <= restartWindowMs(nodes) + apart;
  const again = own !== undefined && own <= now;
  const at = believed && !again ? Math.max(now, next) : now;
  return { at, next: at + apart };
}
