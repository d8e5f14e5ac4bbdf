/**
 * Whether a broker answers, asked again and again: a client that reconnects by itself in silence says nothing of a connection that is
 * dead.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { within } from './bounded.ts';

export interface PulseOptions {
  /** Resolves when the broker has answered; rejects with why it cannot be used. */
  readonly ask: () => Promise<void>;
  /** Told when the answer becomes another one; `fault` is undefined when it can be used. */
  readonly changed: (fault: unknown) => void;
  /** Pause between two questions. @default {10000} */
  readonly everyMs?: number;
  /** A question without an answer for so long has none. @default {10000} */
  readonly timeoutMs?: number;
}

export interface Pulse {
  /** False until the first answer. */
  connected(): boolean;
  /** Something has failed: it is asked at once what is the case. */
  doubt(): void;
  stop(): void;
}

/** Starts to ask, at once. */
export function feelPulse({ ask, changed, everyMs = 10_000, timeoutMs = 10_000 }: PulseOptions): Pulse {
  const over = new AbortController();
  let doubted = new AbortController();
  let alive: boolean | undefined;
  const see = (isAlive: boolean, fault: unknown): void => {
    if (over.signal.aborted || alive === isAlive) return;
    alive = isAlive;
    changed(fault);
  };
  const run = async (): Promise<void> => {
    while (!over.signal.aborted) {
      doubted = new AbortController();
      try {
        await within(timeoutMs, ask());
        see(true, undefined);
      } catch (error) {
        see(false, error);
      }
      const signal = AbortSignal.any([over.signal, doubted.signal]);
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  };
  void run();
  return {
    connected: () => alive === true,
    doubt: () => doubted.abort(),
    stop: () => over.abort(),
  };
}
