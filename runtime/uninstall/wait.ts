/** Waiting for what a removal brings about, with an end. */
import type { Clock } from '../host/clock.ts';
import type { KubeClient } from '../kube/client.ts';
import { PullwrightError } from '../rules/errors.ts';

export interface CarryOutOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long nodes may take, and how long an object may take to go. Milliseconds. */
  readonly timeoutMs: number;
  readonly say: (line: string) => void;
  /** @default {1000} */
  readonly lookEveryMs?: number;
}

/** Looks until `look` gives no problem; throws the last one after the time. */
export async function poll(
  { clock, signal, timeoutMs, lookEveryMs = 1000 }: CarryOutOptions,
  look: () => Promise<PullwrightError | undefined>,
): Promise<void> {
  const deadline = clock.monotonic() + timeoutMs;
  for (;;) {
    const problem = await look();
    if (problem === undefined) return;
    if (clock.monotonic() > deadline) throw problem;
    if (!(await clock.sleep(lookEveryMs, signal))) throw stopped();
  }
}

/** For a run that is told to end. */
export function stopped(): PullwrightError {
  return new PullwrightError('Stopped: what was removed stays removed', {
    code: 'Stopped',
    hint: 'Run this again to go on',
  });
}
