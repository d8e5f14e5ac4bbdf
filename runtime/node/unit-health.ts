/** The health answer of the unit itself, such as the kubelet's on loopback: asked only where it can be reached. */
import { request } from 'node:http';
import type { Clock } from '../host/clock.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { UnitHealth } from './restart.ts';

const ASK_MS = 1000;
const AGAIN_MS = 250;

/** Whether `url` answers 200 now. */
export function answersWell(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(url, { timeout: ASK_MS, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.on('timeout', () => asked.destroy());
    asked.on('error', () => resolve(false));
    asked.on('close', () => resolve(false));
    asked.end();
  });
}

/** Resolves when `url` answers 200; rejects when it does not within `withinMs`, or `signal` is aborted. */
export async function untilHealthy(
  url: string,
  options: { readonly withinMs: number; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const { clock, signal } = options;
  const until = clock.monotonic() + options.withinMs;
  while (!(await answersWell(url))) {
    if (signal.aborted)
      throw new PullwrightError('Cannot wait for the unit: this program is told to stop', {
        code: 'Stopped',
      });
    if (clock.monotonic() >= until) {
      throw new PullwrightError(
        `Cannot use the restarted unit: "${url}" does not answer 200 within ${options.withinMs} ms`,
        {
          code: 'UnitUnhealthy',
        },
      );
    }
    await clock.sleep(AGAIN_MS, signal);
  }
}

/** The kubelet's own answer; the address it has by default. */
export const KUBELET_HEALTHZ = 'http://127.0.0.1:10248/healthz';

/** How {@link unitHealth} asks. */
export interface UnitHealthOptions {
  readonly url: string;
  /** False: only an answer that was good before the restart must be good after it. */
  readonly required: boolean;
  readonly withinMs: number;
  readonly clock: Clock;
}

/** Health by HTTP. Not every pod can reach it, so unless `required` an answer is expected only where one was had before. */
export function unitHealth(options: UnitHealthOptions): UnitHealth {
  let expected = options.required;
  return {
    before: async () => {
      expected ||= await answersWell(options.url);
    },
    after: async (signal) => {
      if (expected) await untilHealthy(options.url, { ...options, signal });
    },
  };
}
