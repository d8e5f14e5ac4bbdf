/** A clock that jumps: a sleep takes no time and moves it on. Remembers how long was slept. */
import type { Clock } from '../../runtime/node/clock.ts';

export interface FakeClock extends Clock {
  readonly slept: number[];
  /** Moves the wall clock only, as a time server does. */
  jump(ms: number): void;
}

export function fakeClock(start = 1_700_000_000_000): FakeClock {
  let passed = 0;
  let jumped = 0;
  const slept: number[] = [];
  return {
    slept,
    now: () => start + passed + jumped,
    monotonic: () => passed,
    jump: (ms) => {
      jumped += ms;
    },
    sleep: async (ms, signal) => {
      // Lets what is ready run first, as a real wait would.
      await new Promise((resolve) => setImmediate(resolve));
      if (signal?.aborted === true) return false;
      passed += Math.max(0, ms);
      if (ms > 0) slept.push(ms);
      return true;
    },
  };
}
