import assert from 'node:assert/strict';
import {
  type Breakers,
  isOpen,
  MAX_BREAKERS,
  opened,
  retryInMs,
  withoutBreaker,
} from '../../runtime/node/checkpoint.ts';
import { test } from '../support/suite.ts';

const MINUTE = 60_000;
const fails = (before: Breakers, source: string, now = 0): Breakers =>
  opened(before, { source, kind: 'unit', now });

test('a content that brought the unit down is tried again after 5 minutes, after 30, and then never', () => {
  const first = fails({}, 'a');
  assert.equal(retryInMs(first, 'a', 0), 5 * MINUTE);
  const second = fails(first, 'a');
  assert.equal(retryInMs(second, 'a', 0), 30 * MINUTE);
  const third = fails(second, 'a');
  assert.equal(retryInMs(third, 'a', 1e15), undefined);
  assert.ok(isOpen(third, 'a', 1e15));
});

test('a bus that cannot be reached is tried for ever, ever more slowly', () => {
  let breakers: Breakers = {};
  const waits: (number | undefined)[] = [];
  for (let round = 0; round < 6; round += 1) {
    breakers = opened(breakers, { source: 'a', kind: 'bus', now: 0 });
    waits.push(retryInMs(breakers, 'a', 0));
  }
  assert.deepEqual(
    waits,
    [1, 2, 4, 8, 10, 10].map((minutes) => minutes * MINUTE),
  );
});

test('another kind of failure counts anew', () => {
  const bus = opened(fails(fails({}, 'a'), 'a'), { source: 'a', kind: 'bus', now: 0 });
  assert.deepEqual([bus['a']?.rounds, retryInMs(bus, 'a', 0)], [1, MINUTE]);
});

test('a clock that is set back makes no wait longer', () => {
  assert.equal(retryInMs(fails({}, 'a', 1e12), 'a', 0), 5 * MINUTE);
});

test('it is closed from the instant at which it may be tried again', () => {
  const breakers = fails({}, 'a');
  assert.deepEqual([isOpen(breakers, 'a', 5 * MINUTE - 1), isOpen(breakers, 'a', 5 * MINUTE)], [true, false]);
});

test('what worked is forgotten, and nothing else', () => {
  const both = fails(fails({}, 'a'), 'b');
  assert.deepEqual(Object.keys(withoutBreaker(both, 'a')), ['b']);
  assert.deepEqual(withoutBreaker(both, 'c'), both);
});

test('the newest are remembered, and one that fails again is new', () => {
  let breakers: Breakers = {};
  for (let index = 0; index < MAX_BREAKERS; index += 1) breakers = fails(breakers, `s${index}`);
  breakers = fails(fails(breakers, 's0'), 'one more');
  assert.equal(Object.keys(breakers).length, MAX_BREAKERS);
  assert.deepEqual([isOpen(breakers, 's0', 0), isOpen(breakers, 's1', 0)], [true, false]);
});

test('a source named like a member of Object has no breaker of its own', () => {
  assert.deepEqual([retryInMs({}, 'constructor', 0), isOpen({}, 'constructor', 0)], [0, false]);
});
