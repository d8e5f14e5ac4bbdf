/** The clock as an argument, and waits that an AbortSignal ends. */
import { setTimeout as delay } from 'node:timers/promises';

/** Clock that tests replace, to make it jump. */
export interface Clock {
  /** Milliseconds since 1970; may jump. For stored times. */
  now(): number;
  /** Milliseconds since an arbitrary instant; never goes back. For durations. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` is aborted; never rejects. True when the whole time passed. */
  sleep(ms: number, signal?: AbortSignal): Promise<boolean>;
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (ms, signal) => {
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
      return true;
    } catch {
      return false;
    }
  },
};
