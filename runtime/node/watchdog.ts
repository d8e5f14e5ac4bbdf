/**
 * Ends an agent whose loop stands still: something that it waits for will never come. Its container is started again, and goes on
 * from the journal. A probe by the kubelet would need a port, which somebody else may hold.
 */
import type { Clock } from '../host/clock.ts';
import { PullwrightError } from '../rules/errors.ts';

/** What a sign of life is. */
export interface Heart {
  /** When it last beat, by the clock that is never set back. */
  at: number;
  /** How long it may take until the next beat. Milliseconds. */
  patienceMs: number;
}

const LOOK_MS = 5000;

/** Resolves at `signal`. @throws PullwrightError with code `Hung` when the heart stands still */
export async function watchHeart(heart: Heart, clock: Clock, signal: AbortSignal): Promise<void> {
  while (await clock.sleep(LOOK_MS, signal)) {
    const still = clock.monotonic() - heart.at;
    if (still > heart.patienceMs)
      throw new PullwrightError(
        `Cannot go on: the loop has stood still for ${Math.round(still / 1000)} s, expected at most ${Math.round(heart.patienceMs / 1000)} s`,
        { code: 'Hung', hint: 'The next start goes on from the journal' },
      );
  }
}
