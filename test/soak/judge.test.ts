/** The judgement of a soak run: what counts as flat, and what as a leak. */
import assert from 'node:assert/strict';
import { type Case, suite, table } from '../support/suite.ts';
import { judge, type Sample } from './judge.ts';

const test = suite('judge() of a soak run');

interface Row extends Case {
  readonly value: (index: number) => number;
  readonly ok: boolean;
}

/** Deterministic noise between -1 and 1. */
const noise = (index: number): number => Math.sin(index * 12.9898) * Math.cos(index * 78.233);

const rows: readonly Row[] = [
  { name: 'flat', reason: 'nothing grows', value: () => 100, ok: true },
  { name: 'noise', reason: 'memory comes and goes', value: (index) => 100 + 20 * noise(index), ok: true },
  {
    name: 'a warm-up',
    reason: 'caches fill in the first quarter',
    value: (index) => Math.min(100, 20 + index * 2),
    ok: true,
  },
  {
    name: 'a few wild samples',
    reason: 'a kill of the API server doubles the sockets for a moment',
    value: (index) => (index % 20 === 0 ? 300 : 100),
    ok: true,
  },
  { name: 'a slow leak', reason: 'a fifth in an hour', value: (index) => 100 + index / 9, ok: false },
  {
    name: 'a slow leak under noise',
    reason: 'the noise must not hide it',
    value: (index) => 100 + index / 6 + 5 * noise(index),
    ok: false,
  },
];

table(test, rows, ({ value, ok }) => {
  const samples = Array.from(
    { length: 180 },
    (_, index): Sample => ({ seconds: index * 20, values: { it: value(index) } }),
  );
  const [verdict] = judge(samples, { it: { share: 0.1 } });
  assert.equal(verdict?.ok, ok, JSON.stringify(verdict));
});

test('a value without a limit is shown and not judged', () => {
  const samples = [0, 1, 2, 3].map((index) => ({ seconds: index * 900, values: { events: index * 100 } }));
  const [verdict] = judge(samples, {});
  assert.equal(verdict?.ok, true);
  assert.equal(verdict.allowed, undefined);
  assert.equal(verdict.slope, 400);
});

test.run();
