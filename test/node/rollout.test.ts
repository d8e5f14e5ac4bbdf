/** The rollout machine, step by step. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  ABSENT,
  type Breakers,
  type Checkpoint,
  EMPTY_CHECKPOINT,
  isOpen,
  MAX_BREAKERS,
  opened,
  parseCheckpoint,
  retryInMs,
  withoutBreaker,
} from '../../runtime/node/checkpoint.ts';
import { after, decide, type Ended, type Policy, type Seen, type Step } from '../../runtime/node/rollout.ts';
import { forAll } from '../support/for-all.ts';
import { test } from '../support/suite.ts';
import { agentStep, NOW, policy, restingNode, seen } from './rollout-model.ts';

/** Takes steps until a rest or a wait, with the results of `end`. */
function steps(
  start: Checkpoint,
  reader: Seen,
  end: (step: Step) => Ended,
): { steps: string[]; checkpoint: Checkpoint; last: Step } {
  let checkpoint = start;
  let present = reader.present;
  const taken: string[] = [];
  for (let round = 0; round < 50; round += 1) {
    const decision = decide(checkpoint, { ...reader, present }, policy);
    const { step } = decision;
    if (step.do === 'rest' || step.do === 'wait')
      return { steps: taken, checkpoint: decision.checkpoint, last: step };
    taken.push(step.do);
    const ended = end(step);
    if (ended.ok && step.do === 'write') present = decision.checkpoint.change?.wanted ?? present;
    checkpoint = after(decision.checkpoint, ended, reader.now, policy);
  }
  throw new Error(`no rest after ${taken.join(', ')}`);
}

const works = (step: Step): Ended =>
  step.do === 'write' ? { step: 'write', ok: true, invocation: 'i' } : ({ step: step.do, ok: true } as Ended);

test('the file has the desired content: nothing is done, and the node is ready', () => {
  const { step } = decide(EMPTY_CHECKPOINT, seen('a', 'a'), policy);
  assert.deepEqual(step, { do: 'rest', ready: true, reason: 'Settled' });
});

test('a change is written, then restarted, then settled', () => {
  const done = steps(EMPTY_CHECKPOINT, seen('b', 'a'), works);
  assert.deepEqual(done.steps, ['write', 'restart']);
  assert.deepEqual(done.last, { do: 'rest', ready: true, reason: 'Settled' });
  assert.deepEqual(done.checkpoint.restarts, [NOW]);
});

test('no source: nothing is done, and the node is not ready', () => {
  assert.deepEqual(decide(EMPTY_CHECKPOINT, seen(undefined, 'a'), policy).step, {
    do: 'rest',
    ready: false,
    reason: 'NoSource',
  });
});

test('restart never: the file is written and nothing else', () => {
  const never: Policy = { ...policy, restart: 'never' };
  const first = decide(EMPTY_CHECKPOINT, seen('b', 'a'), never);
  assert.deepEqual(first.step, { do: 'write', save: false });
  const then = after(first.checkpoint, { step: 'write', ok: true, invocation: '' }, NOW, never);
  assert.deepEqual(decide(then, seen('b', 'b'), never).step, {
    do: 'rest',
    ready: true,
    reason: 'Settled',
  });
});

test('restart on removal: an added entry does not restart, a removed one does', () => {
  const onRemoval: Policy = { ...policy, restart: 'on-removal' };
  for (const removes of [true, false]) {
    const reader = { now: NOW, present: 'a', wanted: { digest: 'b', source: 'b', removes } };
    assert.equal(decide(EMPTY_CHECKPOINT, reader, onRemoval).checkpoint.change?.restart, removes);
  }
});

test('the window delays the restart, not the write', () => {
  const spread: Policy = { ...policy, window: { windowMs: 300_000, delayMs: () => 90_000 } };
  const first = decide(EMPTY_CHECKPOINT, seen('b', 'a'), spread);
  assert.equal(first.step.do, 'write');
  const then = after(first.checkpoint, { step: 'write', ok: true, invocation: 'i' }, NOW, spread);
  assert.deepEqual(decide(then, seen('b', 'b'), spread).step, {
    do: 'wait',
    ms: 90_000,
    reason: 'Spread',
  });
  assert.equal(decide(then, seen('b', 'b', NOW + 90_000), spread).step.do, 'restart');
  // Newer content keeps the time in the window.
  const newer = decide(then, seen('c', 'b', NOW + 60_000), spread);
  const written = after(newer.checkpoint, { step: 'write', ok: true, invocation: 'i' }, NOW + 60_000, spread);
  assert.deepEqual(decide(written, seen('c', 'c', NOW + 60_000), spread).step, {
    do: 'wait',
    ms: 30_000,
    reason: 'Spread',
  });
});

const late: Policy = {
  ...policy,
  window: { windowMs: 3_600_000, delayMs: () => 600_000 },
  rereadMs: 300_000,
};

test('a pending restart is skipped when the unit has read the file by itself, unless something was removed', () => {
  for (const removes of [true, false]) {
    const reader = (present: string, now: number): Seen => ({
      now,
      present,
      wanted: { digest: 'b', source: 'b', removes },
    });
    const first = decide(EMPTY_CHECKPOINT, reader('a', NOW), late);
    const then = after(first.checkpoint, { step: 'write', ok: true, invocation: 'i' }, NOW, late);
    const wait = { do: 'wait', ms: removes ? 600_000 : 300_000, reason: 'Spread' };
    assert.deepEqual(decide(then, reader('b', NOW), late).step, wait);
    assert.equal(decide(then, reader('b', NOW + 300_000), late).step.do, removes ? 'wait' : 'rest');
    assert.equal(decide(then, reader('b', NOW + 600_000), late).step.do, removes ? 'restart' : 'rest');
  }
});

test('a restart that covers a removal is not skipped for newer content that only adds', () => {
  const first = decide(EMPTY_CHECKPOINT, seen('b', 'a'), late);
  const then = after(first.checkpoint, { step: 'write', ok: true, invocation: 'i' }, NOW, late);
  const adds: Seen = { now: NOW, present: 'b', wanted: { digest: 'c', source: 'c', removes: false } };
  const newer = decide(then, adds, late);
  const written = after(newer.checkpoint, { step: 'write', ok: true, invocation: 'i' }, NOW, late);
  const later: Seen = { ...adds, now: NOW + 300_000, present: 'c' };
  assert.equal(decide(written, later, late).step.do, 'wait');
});

test('a clock that is set back by a year does not make a wait longer', () => {
  const spread: Policy = { ...policy, window: { windowMs: 300_000, delayMs: () => 90_000 } };
  const first = decide(EMPTY_CHECKPOINT, seen('b', 'a'), spread);
  const then = after(first.checkpoint, { step: 'write', ok: true, invocation: 'i' }, NOW, spread);
  const { step } = decide(then, seen('b', 'b', NOW - 31_536_000_000), spread);
  assert.deepEqual(step, { do: 'wait', ms: 90_000, reason: 'Spread' });
});

for (const [now, window, waits] of [
  ['longer', { windowMs: 7_200_000, delayMs: () => 7_000_000 }, 1_800_000],
  ['the same', { windowMs: 3_600_000, delayMs: () => 1_800_000 }, 1_800_000],
  ['shorter', { windowMs: 60_000, delayMs: () => 30_000 }, 30_000],
  ['shorter, and its share is over', { windowMs: 60_000, delayMs: () => 0 }, undefined],
  ['none', { windowMs: 0, delayMs: () => 0 }, undefined],
] as const)
  test(`a restart that waits for its place in a window of an hour, and the window is ${now}`, () => {
    const hour: Policy = { ...policy, window: { windowMs: 3_600_000, delayMs: () => 1_800_000 } };
    const first = decide(EMPTY_CHECKPOINT, seen('b', 'a'), hour);
    const then = after(first.checkpoint, { step: 'write', ok: true, invocation: 'i' }, NOW, hour);
    const { checkpoint, step } = decide(then, seen('b', 'b'), { ...policy, window });
    assert.deepEqual(
      step,
      waits === undefined
        ? { do: 'restart', attempt: 1, invocation: 'i' }
        : { do: 'wait', ms: waits, reason: 'Spread' },
    );
    // The time is kept from then on.
    const again = decide(checkpoint, seen('b', 'b', NOW + 10_000), { ...policy, window });
    if (waits !== undefined)
      assert.deepEqual(again.step, { do: 'wait', ms: waits - 10_000, reason: 'Spread' });
  });

const broken = (step: Step): Ended =>
  step.do === 'restart' ? { step: 'restart', ok: false, kind: 'unit' } : works(step);

/** Runs the three attempts with their waits, then the rollback. */
function failThrice(start: Checkpoint, now: number): { checkpoint: Checkpoint; waits: number[] } {
  let checkpoint = start;
  let at = now;
  let present = 'a';
  const waits: number[] = [];
  for (let round = 0; round < 50; round += 1) {
    const { checkpoint: next, step } = decide(checkpoint, seen('b', present, at), policy);
    checkpoint = next;
    if (step.do === 'rest') return { checkpoint, waits };
    if (step.do === 'wait') {
      waits.push(step.ms);
      at += step.ms;
      continue;
    }
    if (step.do === 'write') present = 'b';
    if (step.do === 'roll-back') present = 'a';
    checkpoint = after(checkpoint, broken(step), at, policy);
  }
  throw new Error('no rest');
}

test('three failures: waits of 1 s and 2 s, rollback, recovery, breaker', () => {
  const { checkpoint, waits } = failThrice(EMPTY_CHECKPOINT, NOW);
  assert.deepEqual(waits, [1000, 2000]);
  const open = decide(checkpoint, seen('b', 'a', NOW + 3000), policy).step;
  assert.deepEqual(open, { do: 'rest', ready: false, reason: 'BreakerOpen', wakeInMs: 300_000 });
  assert.equal(
    decide(checkpoint, seen('c', 'a', NOW + 3000), policy).step.do,
    'write',
    'other content is tried at once',
  );
  assert.equal(decide(checkpoint, seen('a', 'a', NOW + 3000), policy).step.do, 'rest');
});

test('the same bad content gets three rounds, then none', () => {
  let { checkpoint } = failThrice(EMPTY_CHECKPOINT, NOW);
  ({ checkpoint } = failThrice(checkpoint, NOW + 400_000));
  assert.equal(checkpoint.breakers['b']?.rounds, 2);
  ({ checkpoint } = failThrice(checkpoint, NOW + 400_000 + 1_900_000));
  const forGood = decide(checkpoint, seen('b', 'a', NOW + 1e12), policy).step;
  assert.deepEqual(forGood, { do: 'rest', ready: false, reason: 'BreakerOpen' });
});

test('two programs that fight over the file do not restart the unit for ever', () => {
  let checkpoint = EMPTY_CHECKPOINT;
  for (let round = 0; round < 6; round += 1)
    ({ checkpoint } = steps(checkpoint, seen('b', `theirs ${round}`), works));
  const next = steps(checkpoint, seen('b', 'theirs 6', NOW + 60_000), works);
  assert.deepEqual(next.steps, ['write'], 'the file is kept');
  assert.deepEqual(next.last, { do: 'wait', ms: 540_000, reason: 'RateLimit' });
});

test('content that was never written is not blamed for the restart with the current file', () => {
  const bad = decide(EMPTY_CHECKPOINT, seen('bad', 'a'), policy).checkpoint;
  const newer = decide(bad, seen('good', 'bad'), policy);
  assert.equal(newer.step.do, 'write');
  // Killed before that write, and then without a source: the restart with the current content fails.
  let { checkpoint } = newer;
  let now = NOW;
  for (let round = 0; round < 10 && Object.keys(checkpoint.breakers).length === 0; round += 1) {
    const decision = decide(checkpoint, seen(undefined, 'bad', now), policy);
    if (decision.step.do === 'wait') now += decision.step.ms;
    checkpoint =
      decision.step.do === 'wait'
        ? decision.checkpoint
        : after(decision.checkpoint, broken(decision.step), now, policy);
  }
  assert.deepEqual(Object.keys(checkpoint.breakers), ['bad']);
});

test('every attempt says which one it is', () => {
  const attempts: number[] = [];
  let checkpoint = EMPTY_CHECKPOINT;
  let now = NOW;
  for (let round = 0; round < 20 && attempts.length < 3; round += 1) {
    const decision = decide(checkpoint, seen('b', round === 0 ? 'a' : 'b', now), policy);
    if (decision.step.do === 'restart') attempts.push(decision.step.attempt);
    if (decision.step.do === 'wait') now += decision.step.ms;
    checkpoint =
      decision.step.do === 'wait'
        ? decision.checkpoint
        : after(decision.checkpoint, broken(decision.step), now, policy);
  }
  assert.deepEqual(attempts, [1, 2, 3]);
});

test('a change without a restart whose write did not happen is forgotten when the source goes', () => {
  const onRemoval: Policy = { ...policy, restart: 'on-removal' };
  const wanted = { digest: 'b', source: 'b', removes: false };
  const { checkpoint } = decide(EMPTY_CHECKPOINT, { now: NOW, present: 'a', wanted }, onRemoval);
  const later = decide(checkpoint, seen(undefined, 'a'), onRemoval);
  assert.deepEqual(later.step, { do: 'rest', ready: false, reason: 'NoSource' });
  assert.equal(later.checkpoint.change, undefined);
});

test('a checkpoint is read back as it was stored, and anything else is no checkpoint', () => {
  const { checkpoint } = failThrice(EMPTY_CHECKPOINT, NOW);
  assert.deepEqual(parseCheckpoint(JSON.parse(JSON.stringify(checkpoint))), checkpoint);
  const change = decide(EMPTY_CHECKPOINT, seen('b', 'a'), policy).checkpoint;
  assert.deepEqual(parseCheckpoint(JSON.parse(JSON.stringify(change))), change);
  for (const bad of [
    null,
    [],
    'x',
    {},
    { ...checkpoint, version: 2 },
    { ...checkpoint, breakers: { b: 1 } },
    { ...checkpoint, change: { phase: 'x' } },
    { ...checkpoint, restarts: ['x'] },
  ])
    assert.equal(parseCheckpoint(bad), undefined, JSON.stringify(bad));
});

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

// The rollout machine on a model of a node: killed between any two steps, and bad content for a month.

const content = fc.constantFrom('good-1', 'good-2', 'good-3', 'bad-1', 'bad-2', undefined);

test('in any order of contents and kills, the kubelet runs with the desired content or the last good one', () => {
  forAll(
    { numRuns: 5000 },
    fc.array(fc.tuple(content, fc.array(fc.nat({ max: 3 }), { maxLength: 6 })), {
      minLength: 1,
      maxLength: 8,
    }),
    (story) => {
      const node = restingNode(ABSENT);
      for (const [wanted, kills] of story) for (const dies of kills) agentStep(node, wanted, dies);
      const last = story.at(-1)?.[0];
      let rounds = 0;
      while (agentStep(node, last, 3) === 'on') assert.ok((rounds += 1) < 200, 'it never comes to rest');
      assert.notEqual(node.runsWith, undefined, 'the kubelet is down');
      assert.ok(!node.file.startsWith('bad'), 'bad content is left in the file');
      assert.equal(node.runsWith, node.file, 'the kubelet runs with other content than the file');
      if (last !== undefined && !last.startsWith('bad')) assert.equal(node.file, last);
      assert.equal(node.stored.change, undefined);
    },
  );
});

test('bad content restarts the kubelet a bounded number of times, however long it is desired', () => {
  const node = restingNode('good-1');
  for (let hour = 0; hour < 24 * 30; hour += 1) {
    while (agentStep(node, 'bad-1', 3) === 'on');
    node.now += 3_600_000;
  }
  assert.equal(node.restarts, 3 * (3 + 1), 'three rounds of three attempts and one recovery');
  assert.equal(node.runsWith, 'good-1');
});
