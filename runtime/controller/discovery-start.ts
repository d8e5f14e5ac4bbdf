/** Hosted clusters start a few at a time: hundreds that fill their caches at once would all be late. */
import { pause } from '../http/retry.ts';
import { type HeldPlace, Places } from '../kube/semaphore.ts';

/** Hosted clusters that start at the same time. */
const STARTING = 16;
/** A place is for our own work. A server that does not answer in this time is waited for without one. */
const STEP_PATIENCE_MS = 1000;
/** Its place is for the next by then, however it goes on. */
const START_PATIENCE_MS = 5000;

/** The places for clusters that start: hundreds of servers that do not answer hold each for a second. */
export function startingPlaces(): Places {
  return new Places({ count: STARTING, patienceMs: STEP_PATIENCE_MS });
}

/**
 * Resolves when the caches are filled, or take too long for it to be waited for.
 *
 * @param waitingFor what is not there yet: each change of it is a step
 */
export async function filled(
  place: HeldPlace,
  waitingFor: () => string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + START_PATIENCE_MS;
  let last: string | undefined;
  for (let now = waitingFor(); now !== undefined; now = waitingFor()) {
    if (signal.aborted || place.isLeft || performance.now() > deadline) return;
    if (now !== last) place.moved();
    last = now;
    await pause(50, signal);
  }
}
