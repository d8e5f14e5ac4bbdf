/** Removals of a source without the reconciler's mark: held on the node, compared with the kubelet's file. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { redact } from '../../runtime/core/redacted.ts';
import { AGENT_WORDS } from '../../runtime/global-pull-secret/agent/agent.ts';
import { judgedMark } from '../../runtime/global-pull-secret/removal-guard.ts';
import { nodeStatus } from '../../runtime/node/report.ts';
import { stateOf } from '../../runtime/node/task.ts';
import { type Case, table, test } from '../support/suite.ts';
import { configOf, TaskNode } from './support/task-node.ts';

const root = mkdtempSync(join(tmpdir(), 'pullwright-removals-'));
const FOUR = ['a.io', 'b.io', 'c.io', 'd.io'];
const mark = (text: string): string => judgedMark(redact(text));
let nodes = 0;

/** A node that has all four entries from a source without the reconciler's mark. */
function nodeOf(options: ConstructorParameters<typeof TaskNode>[2] = {}): TaskNode {
  const node = new TaskNode(root, `n${(nodes += 1)}`, { removals: {}, ...options });
  node.set('global', configOf(...FOUR));
  node.settle();
  return node;
}

const hashOf = (node: TaskNode): string =>
  /confirm-removal=([0-9a-f]{12})/.exec(node.look().problem?.message ?? '')?.[1] ?? '';

interface Row extends Case {
  readonly after: string;
  /** @default {FOUR} */
  readonly keys?: readonly string[];
  /** @default {false} */
  readonly held?: boolean;
  readonly marked?: string;
  readonly options?: ConstructorParameters<typeof TaskNode>[2];
}

table(
  test,
  [
    {
      name: 'everything',
      reason: 'an emptied secret must not wipe nodes',
      after: '{"auths":{}}',
      held: true,
    },
    { name: 'null', reason: 'Go reads it as no registry', after: '{"auths":null}', held: true },
    {
      name: 'three of four, one rotated, one new',
      reason: 'what is added goes on, what is removed stays',
      after: configOf('d.io', 'new.io'),
      keys: [...FOUR, 'new.io'],
      held: true,
    },
    {
      name: 'two of four',
      reason: 'no more than the share',
      after: configOf('a.io', 'b.io'),
      keys: ['a.io', 'b.io'],
    },
    {
      name: 'three of four where the fleet says so',
      reason: 'the share is an option',
      after: configOf('a.io'),
      keys: ['a.io'],
      options: { removals: { share: 0.8 } },
    },
    {
      name: 'other spellings',
      reason: 'they mean the same registries',
      after: configOf(...FOUR.map((name) => `https://${name}/`)),
      keys: FOUR.map((name) => `https://${name}/`),
    },
    {
      name: 'everything, by the reconciler',
      reason: 'it has judged that, with the confirmation at hand',
      after: '{"auths":{}}',
      marked: mark('{"auths":{}}'),
      keys: [],
    },
    {
      name: 'everything, with the mark of another document',
      reason: 'somebody wrote over what was judged',
      after: '{"auths":{}}',
      marked: mark(configOf(...FOUR)),
      held: true,
    },
    {
      name: 'a broken entry',
      reason: 'it is not removed, and stays as it was last good',
      after: '{"auths":{"a.io":{"auth":"-"},"b.io":{"auth":"-"},"c.io":{"auth":"-"},"d.io":{"auth":"dTpw"}}}',
    },
  ] satisfies Row[],
  ({ after, keys = FOUR, held = false, marked, options }: Row) => {
    const node = nodeOf(options);
    node.set('global', after, marked);
    assert.deepEqual([...node.keys()].sort(), [...keys].sort());
    assert.equal(node.look().problem?.code === 'RemovalHeld', held);
    node.settle();
    assert.equal(node.look().wanted?.digest, node.look().present, 'it rests');
    assert.deepEqual([...node.keys()].sort(), [...keys].sort(), 'and stays so');
  },
);

test('what is added while a removal is held does not let it through, in this process or the next', () => {
  const node = nodeOf();
  node.set('global', configOf('n1.io', 'n2.io', 'n3.io', 'n4.io', 'n5.io'));
  node.settle();
  node.restart();
  assert.equal(node.look().problem?.code, 'RemovalHeld');
  assert.equal(node.keys().length, 9);
});

test('it goes on with its hash, and with no other', () => {
  const node = nodeOf();
  node.set('global', '{"auths":{}}');
  const hash = hashOf(node);
  node.settle();
  node.restart({ confirmed: ['0123456789ab'] });
  assert.deepEqual(node.keys(), FOUR);
  node.restart({ confirmed: ['0123456789ab', hash] });
  assert.deepEqual(node.keys(), []);
  node.settle();
  // No record of it is kept.
  node.set('global', configOf(...FOUR));
  node.settle();
  assert.equal(node.look().problem, undefined);
});

test('it goes on after the delay, counted from when it was first held, whatever restarts between', () => {
  const options = { removals: { delayMs: 3_600_000 } };
  const node = nodeOf(options);
  node.set('global', '{"auths":{}}');
  node.settle();
  node.now = 3_599_000;
  node.restart();
  assert.deepEqual(node.keys(), FOUR);
  node.settle();
  node.now = 3_600_000;
  assert.deepEqual(node.keys(), []);
});

test('the Secret that the agent watches confirms it by its annotation', () => {
  let confirmed: readonly string[] = [];
  let seen = configOf(...FOUR);
  const node = nodeOf({
    watched: (name) => ({
      ...(name === 'global' ? { bytes: redact(new Uint8Array(Buffer.from(seen))) } : {}),
      live: true,
      confirmed,
    }),
  });
  seen = '{"auths":{}}';
  assert.deepEqual(node.keys(), FOUR);
  confirmed = [hashOf(node)];
  assert.deepEqual(node.keys(), []);
});

test('entries of others are none of the matter with keep, and stay with the others with drop', () => {
  const kept = nodeOf({ foreign: 'keep' });
  kept.set('global', '{"auths":{}}');
  assert.deepEqual(kept.keys(), FOUR);
  const first = new TaskNode(root, 'first', { removals: {}, foreign: 'drop' });
  first.set('global', configOf('x.io', 'y.io'));
  first.settle();
  first.set('global', configOf('z.io'));
  assert.deepEqual(first.keys(), ['x.io', 'y.io', 'z.io']);
});

test('a held removal is told: ready, a condition, a warning, and no credential', () => {
  const node = nodeOf();
  node.set('global', '{"auths":{}}');
  const state = stateOf({ do: 'rest', ready: true, reason: 'Settled' }, node.look());
  assert.deepEqual([state.ready, state.reason], [true, 'RemovalHeld']);
  assert.match(
    state.message,
    /removes all 4 registries: "a\.io", "b\.io", "c\.io", "d\.io" stay on the node until/,
  );
  const { status } = nodeStatus(AGENT_WORDS, { name: 'n', uid: 'u' }, state, undefined, new Date(0));
  const types = (status['conditions'] as { type: string; status: string }[]).map(
    (one) => `${one.type} ${one.status}`,
  );
  assert.ok(types.includes('RemovalHeld True') && types.includes('Ready True'), types.join());
  assert.deepEqual(
    [AGENT_WORDS.eventOfState(state)?.type, AGENT_WORDS.eventOfState(state)?.reason],
    ['Warning', 'RemovalHeld'],
  );
});

test('clean up', () => rmSync(root, { recursive: true }));
