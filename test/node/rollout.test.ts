/** The rollout machine: tables for what it does, and a model that kills it between any two steps. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { after, decide, type Ended, type Policy, type Seen, type Step } from '../../runtime/rules/rollout.ts';
import { ABSENT, EMPTY_JOURNAL, type Journal, parseJournal } from '../../runtime/rules/rollout-journal.ts';
import { suite } from '../support/suite.ts';

const test = suite('rollout');
const NOW = 1_700_000_000_000;
const policy: Policy = { restart: 'on-change', delayMs: () => 0 };

function seen(wanted: string | undefined, present: string, now = NOW): Seen {
  return {
    now,
    present,
    wanted: wanted === undefined ? undefined : { digest: wanted, source: wanted, removes: true },
  };
}

/** Steps until a rest or a wait; every step ends as `end` says. */
function steps(
  start: Journal,
  world: Seen,
  end: (step: Step) => Ended,
): { steps: string[]; journal: Journal; last: Step } {
  let journal = start;
  let present = world.present;
  const taken: string[] = [];
  for (let round = 0; round < 50; round += 1) {
    const decision = decide(journal, { ...world, present }, policy);
    const { step } = decision;
    if (step.do === 'rest' || step.do === 'wait')
      return { steps: taken, journal: decision.journal, last: step };
    taken.push(step.do);
    const ended = end(step);
    if (ended.ok && step.do === 'write') present = decision.journal.change?.wanted ?? present;
    journal = after(decision.journal, ended, world.now, policy);
  }
  throw new Error(`no rest after ${taken.join(', ')}`);
}

const works = (step: Step): Ended =>
  step.do === 'write' ? { step: 'write', ok: true, invocation: 'i' } : ({ step: step.do, ok: true } as Ended);

test('the file is as wanted: nothing is done, and the node is ready', () => {
  const { step } = decide(EMPTY_JOURNAL, seen('a', 'a'), policy);
  assert.deepEqual(step, { do: 'rest', ready: true, reason: 'Settled' });
});

test('a change is written, then restarted, then settled', () => {
  const done = steps(EMPTY_JOURNAL, seen('b', 'a'), works);
  assert.deepEqual(done.steps, ['write', 'restart']);
  assert.deepEqual(done.last, { do: 'rest', ready: true, reason: 'Settled' });
  assert.deepEqual(done.journal.restarts, [NOW]);
});

test('no source: nothing is done, and the node is not ready', () => {
  assert.deepEqual(decide(EMPTY_JOURNAL, seen(undefined, 'a'), policy).step, {
    do: 'rest',
    ready: false,
    reason: 'NoSource',
  });
});

test('restart never: the file is written and nothing else', () => {
  const never: Policy = { ...policy, restart: 'never' };
  const first = decide(EMPTY_JOURNAL, seen('b', 'a'), never);
  assert.deepEqual(first.step, { do: 'write', save: false });
  const then = after(first.journal, { step: 'write', ok: true, invocation: '' }, NOW, never);
  assert.deepEqual(decide(then, seen('b', 'b'), never).step, { do: 'rest', ready: true, reason: 'Settled' });
});

test('restart on removal: an added entry does not restart, a removed one does', () => {
  const onRemoval: Policy = { ...policy, restart: 'on-removal' };
  for (const removes of [true, false]) {
    const world = { now: NOW, present: 'a', wanted: { digest: 'b', source: 'b', removes } };
    assert.equal(decide(EMPTY_JOURNAL, world, onRemoval).journal.change?.restart, removes);
  }
});

test('the window delays the restart, not the write', () => {
  const spread: Policy = { ...policy, delayMs: () => 90_000 };
  const first = decide(EMPTY_JOURNAL, seen('b', 'a'), spread);
  assert.equal(first.step.do, 'write');
  const then = after(first.journal, { step: 'write', ok: true, invocation: 'i' }, NOW, spread);
  assert.deepEqual(decide(then, seen('b', 'b'), spread).step, { do: 'wait', ms: 90_000, reason: 'Spread' });
  assert.equal(decide(then, seen('b', 'b', NOW + 90_000), spread).step.do, 'restart');
  // Newer content on the way keeps the place in the window.
  const newer = decide(then, seen('c', 'b', NOW + 60_000), spread);
  const written = after(newer.journal, { step: 'write', ok: true, invocation: 'i' }, NOW + 60_000, spread);
  assert.deepEqual(decide(written, seen('c', 'c', NOW + 60_000), spread).step, {
    do: 'wait',
    ms: 30_000,
    reason: 'Spread',
  });
});

test('a clock that is set back by a year does not make a wait longer', () => {
  const spread: Policy = { ...policy, delayMs: () => 90_000 };
  const first = decide(EMPTY_JOURNAL, seen('b', 'a'), spread);
  const then = after(first.journal, { step: 'write', ok: true, invocation: 'i' }, NOW, spread);
  const { step } = decide(then, seen('b', 'b', NOW - 31_536_000_000), spread);
  assert.deepEqual(step, { do: 'wait', ms: 90_000, reason: 'Spread' });
});

const broken = (step: Step): Ended =>
  step.do === 'restart' ? { step: 'restart', ok: false, kind: 'unit' } : works(step);

/** Runs the three attempts with their waits, then the rollback. */
function failThrice(start: Journal, now: number): { journal: Journal; waits: number[] } {
  let journal = start;
  let at = now;
  let present = 'a';
  const waits: number[] = [];
  for (let round = 0; round < 50; round += 1) {
    const { journal: next, step } = decide(journal, seen('b', present, at), policy);
    journal = next;
    if (step.do === 'rest') return { journal, waits };
    if (step.do === 'wait') {
      waits.push(step.ms);
      at += step.ms;
      continue;
    }
    if (step.do === 'write') present = 'b';
    if (step.do === 'roll-back') present = 'a';
    journal = after(journal, broken(step), at, policy);
  }
  throw new Error('no rest');
}

test('three failures: waits of 1 s and 2 s, rollback, recovery, breaker', () => {
  const { journal, waits } = failThrice(EMPTY_JOURNAL, NOW);
  assert.deepEqual(waits, [1000, 2000]);
  const open = decide(journal, seen('b', 'a', NOW + 3000), policy).step;
  assert.deepEqual(open, { do: 'rest', ready: false, reason: 'BreakerOpen', wakeInMs: 300_000 });
  assert.equal(
    decide(journal, seen('c', 'a', NOW + 3000), policy).step.do,
    'write',
    'other content is tried at once',
  );
  assert.equal(decide(journal, seen('a', 'a', NOW + 3000), policy).step.do, 'rest');
});

test('the same bad content gets three rounds, then none', () => {
  let { journal } = failThrice(EMPTY_JOURNAL, NOW);
  ({ journal } = failThrice(journal, NOW + 400_000));
  assert.equal(journal.breakers['b']?.rounds, 2);
  ({ journal } = failThrice(journal, NOW + 400_000 + 1_900_000));
  const forGood = decide(journal, seen('b', 'a', NOW + 1e12), policy).step;
  assert.deepEqual(forGood, { do: 'rest', ready: false, reason: 'BreakerOpen' });
});

test('two programs that fight over the file do not restart the unit for ever', () => {
  let journal = EMPTY_JOURNAL;
  for (let round = 0; round < 6; round += 1)
    ({ journal } = steps(journal, seen('b', `theirs ${round}`), works));
  const next = steps(journal, seen('b', 'theirs 6', NOW + 60_000), works);
  assert.deepEqual(next.steps, ['write'], 'the file is kept');
  assert.deepEqual(next.last, { do: 'wait', ms: 540_000, reason: 'RateLimit' });
});

test('a journal is read back as it was stored, and anything else is no journal', () => {
  const { journal } = failThrice(EMPTY_JOURNAL, NOW);
  assert.deepEqual(parseJournal(JSON.parse(JSON.stringify(journal))), journal);
  const change = decide(EMPTY_JOURNAL, seen('b', 'a'), policy).journal;
  assert.deepEqual(parseJournal(JSON.parse(JSON.stringify(change))), change);
  for (const bad of [
    null,
    [],
    'x',
    {},
    { ...journal, version: 2 },
    { ...journal, breakers: { b: 1 } },
    { ...journal, change: { phase: 'x' } },
    { ...journal, restarts: ['x'] },
  ])
    assert.equal(parseJournal(bad), undefined, JSON.stringify(bad));
});

/** A node with a kubelet that comes up with good content only, and an agent that may die at any time. */
interface Node {
  file: string;
  saved: string | undefined;
  stored: Journal;
  /** What the kubelet read when it last came up; undefined while it is down. */
  runsWith: string | undefined;
  invocation: number;
  restarts: number;
  now: number;
}

/** Stores the journal, takes one step; `dies` cuts it short: 0 before the journal, 1 after it, 2 before the step's end is stored. */
function agentStep(node: Node, wanted: string | undefined, dies: number): 'rest' | 'on' {
  const decision = decide(node.stored, seen(wanted, node.file, node.now), policy);
  const { step } = decision;
  if (step.do === 'write' && step.save) node.saved = node.file;
  if (dies === 0) return 'on';
  node.stored = JSON.parse(JSON.stringify(decision.journal)) as Journal;
  if (step.do === 'rest') return 'rest';
  if (step.do === 'wait') {
    node.now += step.ms;
    return 'on';
  }
  if (dies === 1) return 'on';
  const ended = perform(node, step, wanted);
  if (dies === 2) return 'on';
  node.stored = JSON.parse(JSON.stringify(after(node.stored, ended, node.now, policy))) as Journal;
  return 'on';
}

function perform(node: Node, step: Step, wanted: string | undefined): Ended {
  switch (step.do) {
    case 'write':
      node.file = wanted ?? node.file;
      return {
        step: 'write',
        ok: true,
        invocation: node.runsWith === undefined ? '' : String(node.invocation),
      };
    case 'roll-back':
      node.file = node.saved ?? node.file;
      return { step: 'roll-back', ok: true };
    case 'restart':
      return startedSince(node, step.invocation) || restart(node)
        ? { step: 'restart', ok: true }
        : { step: 'restart', ok: false, kind: 'unit' };
    case 'recover':
      return untouched(node, step) || restart(node)
        ? { step: 'recover', ok: true }
        : { step: 'recover', ok: false, kind: 'unit' };
    default:
      throw new Error(step.do);
  }
}

function startedSince(node: Node, before: string): boolean {
  return before !== '' && before !== String(node.invocation) && node.runsWith !== undefined;
}

function untouched(node: Node, step: Step & { do: 'recover' }): boolean {
  const asBefore = step.invocation === '' ? !step.touched : step.invocation === String(node.invocation);
  return node.runsWith !== undefined && asBefore;
}

function restart(node: Node): boolean {
  node.restarts += 1;
  node.invocation += 1;
  node.runsWith = node.file.startsWith('bad') ? undefined : node.file;
  return node.runsWith !== undefined;
}

const content = fc.constantFrom('good-1', 'good-2', 'good-3', 'bad-1', 'bad-2', undefined);

test('whatever the order of contents and kills: the kubelet runs, with the wanted content or the last good one', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(content, fc.array(fc.nat({ max: 3 }), { maxLength: 6 })), {
        minLength: 1,
        maxLength: 8,
      }),
      (story) => {
        const node: Node = {
          file: ABSENT,
          saved: undefined,
          stored: EMPTY_JOURNAL,
          runsWith: ABSENT,
          invocation: 1,
          restarts: 0,
          now: NOW,
        };
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
    ),
    { numRuns: 5000 },
  );
});

test('bad content restarts the kubelet a bounded number of times, however long it is wanted', () => {
  const node: Node = {
    file: 'good-1',
    saved: undefined,
    stored: EMPTY_JOURNAL,
    runsWith: 'good-1',
    invocation: 1,
    restarts: 0,
    now: NOW,
  };
  for (let hour = 0; hour < 24 * 30; hour += 1) {
    while (agentStep(node, 'bad-1', 3) === 'on');
    node.now += 3_600_000;
  }
  assert.equal(node.restarts, 3 * (3 + 1), 'three rounds of three attempts and one recovery');
  assert.equal(node.runsWith, 'good-1');
});

test.run();
