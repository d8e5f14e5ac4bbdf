/**
 * Time in which this process attended to what came. Where it has too little processor, a turn of its event loop may take seconds: what was answered
 * meanwhile lies there unread, and whoever counted those seconds would take a good server for a silent one, ask it again, and have less time still.
 */

/** A turn of the event loop counts as one step, however long it took. */
const STEPS = 10;

/**
 * Calls `run` after `ms`, and after ten turns of the event loop at least. Gives the way to cancel.
 *
 * @example
 * ```ts
 * import { afterAttended } from './attended.ts';
 * import assert from 'node:assert/strict';
 *
 * let ran = false;
 * afterAttended(20, () => (ran = true));
 * const until = performance.now() + 50;
 * while (performance.now() < until);
 * await new Promise((resolve) => setImmediate(resolve));
 * assert.equal(ran, false);
 * ```
 */
export function afterAttended(ms: number, run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const step = (left: number): void => {
    timer = setTimeout(() => (left > 1 ? step(left - 1) : run()), ms / STEPS);
  };
  step(STEPS);
  return () => clearTimeout(timer);
}
