import assert from 'node:assert/strict';
import { EvictionBudget, type EvictionCase } from '../../runtime/controller/eviction-budget.ts';
import { suite } from '../support/suite.ts';

const test = suite('EvictionBudget');
const START = Date.parse('2026-01-01T01:00:00Z');

function pod(name: string, more: Partial<EvictionCase> = {}): EvictionCase {
  return { pod: name, workload: 'w', cause: 'reg', createdAt: '2026-01-01T00:00:00Z', ...more };
}

function budget(): { readonly judged: EvictionBudget; readonly pass: (ms: number) => void } {
  let now = START;
  return { judged: new EvictionBudget(() => now), pass: (ms) => (now += ms) };
}

test('pods that were there are evicted a few at a time', () => {
  const { judged, pass } = budget();
  for (const name of ['a', 'b', 'c']) {
    assert.equal(judged.judge(pod(name)), 'evict');
    judged.evicted(pod(name));
  }
  assert.deepEqual(judged.judge(pod('d')), { waitMs: 60_000 });
  assert.equal(
    judged.judge(pod('d', { workload: 'other' })),
    'evict',
    'another workload has a budget of its own',
  );
  pass(60_000);
  assert.equal(judged.judge(pod('d')), 'evict');
});

test('successors that come back with the same trouble are left alone', () => {
  const { judged, pass } = budget();
  judged.evicted(pod('a'));
  const next = pod('b', { createdAt: new Date(START + 2000).toISOString() });
  assert.equal(judged.judge(next), 'again');
  assert.equal(judged.judge({ ...next, cause: 'other' }), 'evict', 'another cause is news');
  pass(3_600_001);
  assert.equal(judged.judge(next), 'evict', 'after an hour it is tried once more');
});

test('a workload of ten thousand others is forgotten, not kept', () => {
  const { judged } = budget();
  for (let at = 0; at < 10_000; at++) judged.evicted(pod('a', { workload: `w${at}` }));
  assert.equal(judged.judge(pod('a', { workload: 'w0' })), 'evict');
  assert.equal(judged.judge(pod('a', { workload: 'w9999' })), 'done');
});

test.run();
