/** Reporter.report(): when a key is due again, by what its pass came to. */
import assert from 'node:assert/strict';
import { createLogger } from '../../runtime/core/logger.ts';
import type { Cluster } from '../../runtime/engine/cluster.ts';
import type { ReconcileError } from '../../runtime/engine/contract.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { type Next, Reporter } from '../../runtime/engine/reporter.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly problems: readonly ReconcileError[];
  readonly requeueAfterMs?: number;
  readonly next: Next;
}

function problem(retryPolicy: ReconcileError['retryPolicy'], afterMs?: number): ReconcileError {
  return { code: 'Tried', message: 'a problem', retryPolicy, ...(afterMs === undefined ? {} : { afterMs }) };
}

const rows: readonly Row[] = [
  { name: 'nothing', reason: 'only a change brings it back', problems: [], next: 'idle' },
  {
    name: 'a time that the pass names',
    reason: 'a grace period ends by itself',
    problems: [],
    requeueAfterMs: 500,
    next: { afterMs: 500 },
  },
  {
    name: 'a failure',
    reason: 'the back-off decides, whatever else waits',
    problems: [problem('waiting', 20), problem('retry')],
    requeueAfterMs: 10,
    next: 'retry',
  },
  {
    name: 'waiting, with a time',
    problems: [problem('waiting', 4000), problem('waiting', 3000)],
    requeueAfterMs: 5000,
    next: { afterMs: 3000 },
  },
  {
    name: 'waiting, without a time',
    problems: [problem('waiting')],
    next: { afterMs: 30_000 },
  },
  {
    name: 'refused for good',
    reason: 'the same again would be refused again',
    problems: [problem('terminal')],
    next: 'idle',
  },
  {
    name: 'refused a moment ago, and not sent again',
    reason: 'what has changed since must not wait for the next resync',
    problems: [problem('terminal', 7000)],
    next: { afterMs: 7000 },
  },
];

table(test, rows, ({ problems, requeueAfterMs, next }) => {
  const unused = undefined as unknown as Cluster;
  const reporter = new Reporter({
    log: createLogger({ level: () => 'error', write: () => undefined }),
    metrics: createMetrics(),
    clusters: { hosted: unused, management: unused },
  });
  const key = { scope: 'local', name: 'a', namespace: 'web' };
  const result = requeueAfterMs === undefined ? {} : { requeueAfterMs };
  const author = { reconciler: 'test', key };
  assert.deepEqual(reporter.report({ author, result, committed: [], problems, seconds: 0 }), next);
});

test('no log line shows user info of a registry or a URL', () => {
  const text = 'held: "robot:canary@quay.io" stays; GET https://robot:canary@quay.io/v2/';
  for (const format of ['json', 'logfmt'] as const) {
    const lines: string[] = [];
    const fields = { message: text, key: 'robot:canary@quay.io', keys: ['robot:canary@quay.io'] };
    createLogger({ format, write: (line) => lines.push(line) }).info(text, fields);
    assert.match(lines.join(), /quay\.io/);
    assert.doesNotMatch(lines.join(), /canary/);
  }
});
