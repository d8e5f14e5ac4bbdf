/** While a cluster does not answer, one of its lists tries for all. */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { PullwrightError } from '../../runtime/core/errors.ts';
import { ClusterCache } from '../../runtime/engine/cache.ts';
import type { KubeClient, WatchEvent, WatchOptions } from '../../runtime/kube/client.ts';
import { Outage } from '../../runtime/kube/requester.ts';
import { eventually } from '../control-plane/eventually.ts';
import { test } from '../support/suite.ts';

const LISTS = 45;
const LOST = new PullwrightError('Cannot list', { code: 'ConnectionLost' });
const REFUSED = new PullwrightError('Cannot list', { code: 'Forbidden' });

/** A clock that goes in steps of a tenth of a second. */
class Steps {
  now = 0;
  readonly outage: Outage = new Outage(() => this.now);
  readonly #over = new AbortController();

  constructor() {
    mock.timers.enable({ apis: ['setTimeout'] });
  }

  /** Tries again and again, with a back-off of half a second; gives how often until now. */
  tries(failure: PullwrightError, waitMs = 500): () => number {
    let count = 1;
    const go = async (): Promise<void> => {
      while (!this.#over.signal.aborted) {
        await this.outage.wait(failure.code, waitMs, this.#over.signal);
        count += 1;
      }
    };
    void go();
    return () => count;
  }

  async pass(seconds: number): Promise<void> {
    for (let step = 0; step < seconds * 10; step += 1) {
      this.now += 100;
      mock.timers.tick(100);
      await setImmediate();
    }
  }

  async end(): Promise<void> {
    this.#over.abort();
    await setImmediate();
    mock.timers.reset();
  }
}

const inSteps = (name: string, body: (steps: Steps) => Promise<void>): void =>
  test(name, async () => {
    const steps = new Steps();
    try {
      await body(steps);
    } finally {
      await steps.end();
    }
  });

const sum = (counts: readonly (() => number)[]): number => counts.reduce((all, count) => all + count(), 0);

inSteps('many lists of a cluster that is gone are tried as one, ever more rarely', async (steps) => {
  const lists = Array.from({ length: LISTS }, () => steps.tries(LOST));
  await steps.pass(60);
  const after = sum(lists);
  // Each by itself would have been tried a hundred and twenty times.
  assert.ok(after > LISTS && after <= LISTS + 40, `${after} tries in the first minute`);
  await steps.pass(60);
  const later = sum(lists) - after;
  assert.ok(later >= 5 && later <= 7, `${later} tries in the second minute`);
});

inSteps('the first answer after a long silence wakes all', async (steps) => {
  const lists = Array.from({ length: LISTS }, () => steps.tries(LOST, 30_000));
  await steps.pass(6);
  assert.equal(sum(lists), LISTS);
  steps.outage.answered();
  await setImmediate();
  assert.equal(sum(lists), 2 * LISTS);
});

inSteps('an answer to another list does not wake one whose own request fails', async (steps) => {
  const list = steps.tries(LOST, 30_000);
  for (let second = 0; second < 29; second += 1) {
    await steps.pass(1);
    steps.outage.answered();
  }
  assert.equal(list(), 1);
  await steps.pass(2);
  assert.equal(list(), 2);
});

inSteps('a cluster that answers, and refuses, is asked by each list in its own time', async (steps) => {
  const lists = Array.from({ length: LISTS }, () => steps.tries(REFUSED));
  await steps.pass(10);
  assert.equal(sum(lists), LISTS * 21);
  assert.equal(steps.outage.silentMs, 0);
});

test('a stop waits for nothing', async () => {
  const stop = new AbortController();
  const waiting = new Outage().wait(LOST.code, 60_000, stop.signal);
  stop.abort();
  await waiting;
  await new Outage().wait(LOST.code, 60_000, stop.signal);
});

async function* quietUntil(signal: AbortSignal): AsyncGenerator<WatchEvent> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  yield* [];
}

test('the lists of one cache share it, and are all there when the cluster is', async () => {
  let [asked, open, isThere] = [0, 0, false];
  const client = {
    list: () => {
      asked += 1;
      return isThere ? Promise.resolve({ items: [], resourceVersion: '1', bytes: 0 }) : Promise.reject(LOST);
    },
    watch: (_: unknown, { signal }: WatchOptions) => {
      open += 1;
      return Promise.resolve(quietUntil(signal));
    },
  } as unknown as KubeClient;
  const cache = new ClusterCache(client, { backOff: { firstMs: 1, maxMs: 5 } });
  for (let at = 0; at < LISTS; at += 1) cache.source({ apiVersion: 'v1', kind: `Kind${at}` });
  const began = performance.now();
  await eventually(() => assert.ok(performance.now() - began >= 3000));
  // One by one some forty thousand.
  assert.ok(asked >= LISTS && asked <= 3 * LISTS, `${asked} requests`);
  isThere = true;
  await eventually(() => assert.equal(open, LISTS), { withinMs: 5000 });
  cache.close();
});
