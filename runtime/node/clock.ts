/** Time as an argument: the system's clock, and waits that end when a signal says so. */
import { setTimeout as delay } from 'node:timers/promises';

/** What needs the time takes one of these, so that tests can make it jump. */
export interface Clock {
  /** Milliseconds since 1970; may jump. For what is written down. */
  now(): number;
  /** Milliseconds since some instant; never goes back. For how long something took. */
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
