/** Who gets new content first, and who waits for whom. */
import assert from 'node:assert/strict';
import {
  CANARY_WITHIN_MS,
  type Canary,
  type CanaryNode,
  imagesToProbe,
  planCanary,
  readCanary,
  waitsForFirst,
  writeCanary,
} from '../../runtime/rules/rollout/canary.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('the first node of a pool');

/** `name[/pool] [down] content`. */
function node(text: string): CanaryNode {
  const [at = '', ...words] = text.split(' ');
  const [name = '', pool = ''] = at.split('/');
  const content = words.at(-1) as CanaryNode['content'];
  return { name, pool, up: !words.includes('down'), content, why: `it is ${content}` };
}

interface Row extends Case {
  readonly nodes: readonly string[];
  readonly before?: Partial<Canary>;
  readonly released?: boolean;
  readonly first: Readonly<Record<string, string>>;
  readonly go: readonly string[];
  /** Pools that a person must look at: `pool why`. */
  readonly held?: readonly string[];
  /** Minutes since the first was told. */
  readonly minutes?: number;
}

const ROWS: readonly Row[] = [
  { name: 'no node', reason: 'nobody waits', nodes: [], first: {}, go: [] },
  {
    name: 'new content',
    reason: 'the first by name',
    nodes: ['b older', 'a older'],
    first: { '': 'a' },
    go: [],
  },
  {
    name: 'one that is down',
    reason: 'it cannot show anything',
    nodes: ['a down older', 'b older'],
    first: { '': 'b' },
    go: [],
  },
  {
    name: 'all are down',
    reason: 'one is told all the same',
    nodes: ['a down older', 'b down older'],
    first: { '': 'a' },
    go: [],
  },
  {
    name: 'one has it already',
    reason: 'nothing has to be shown again',
    nodes: ['a older', 'b in-place'],
    first: { '': 'b' },
    go: [''],
  },
  {
    name: 'under way',
    reason: 'the others wait',
    nodes: ['a under-way', 'b older'],
    before: { first: { '': 'a' } },
    first: { '': 'a' },
    go: [],
  },
  {
    name: 'in place',
    reason: 'the others follow',
    nodes: ['a in-place', 'b older'],
    before: { first: { '': 'a' } },
    first: { '': 'a' },
    go: [''],
  },
  {
    name: 'in place on a node that is not Ready',
    reason: 'its kubelet did not come back',
    nodes: ['a down in-place', 'b older'],
    before: { first: { '': 'a' } },
    first: { '': 'a' },
    go: [],
  },
  {
    name: 'failed',
    reason: 'the others keep what they have, and somebody must look',
    nodes: ['a failed', 'b older'],
    before: { first: { '': 'a' } },
    first: { '': 'a' },
    go: [],
    held: [' failed'],
  },
  {
    name: 'under way for ten minutes',
    reason: 'somebody must look: it could be under way for ever',
    nodes: ['a under-way', 'b older'],
    before: { first: { '': 'a' } },
    minutes: 10,
    first: { '': 'a' },
    go: [],
    held: [' late'],
  },
  {
    name: 'in place on a node that has not been Ready for ten minutes',
    reason: 'the same',
    nodes: ['a down in-place', 'b older'],
    before: { first: { '': 'a' } },
    minutes: 11,
    first: { '': 'a' },
    go: [],
    held: [' late'],
  },
  {
    name: 'in place after an hour',
    reason: 'late is better than never',
    nodes: ['a in-place', 'b older'],
    before: { first: { '': 'a' } },
    minutes: 60,
    first: { '': 'a' },
    go: [''],
  },
  {
    name: 'another took the place of one that was late',
    reason: 'it has its own time',
    nodes: ['b older'],
    before: { first: { '': 'a' } },
    minutes: 60,
    first: { '': 'b' },
    go: [],
  },
  {
    name: 'a clock that was set back by an hour',
    reason: 'the time begins again, and nobody waits the longer',
    nodes: ['a under-way', 'b older'],
    before: { first: { '': 'a' } },
    minutes: -60,
    first: { '': 'a' },
    go: [],
  },
  {
    name: 'told by a version that wrote no time',
    reason: 'the time begins now',
    nodes: ['a under-way', 'b older'],
    before: { first: { '': 'a' }, since: {} },
    first: { '': 'a' },
    go: [],
  },
  {
    name: 'failed and released',
    reason: 'a person has said so',
    nodes: ['a failed', 'b older'],
    before: { first: { '': 'a' } },
    released: true,
    first: { '': 'a' },
    go: [''],
  },
  {
    name: 'the first is gone',
    reason: 'another takes its place',
    nodes: ['b older'],
    before: { first: { '': 'a' } },
    first: { '': 'b' },
    go: [],
  },
  {
    name: 'the first went down before it began',
    reason: 'another takes its place',
    nodes: ['a down older', 'b older'],
    before: { first: { '': 'a' } },
    first: { '': 'b' },
    go: [],
  },
  {
    name: 'the first went down with it',
    reason: 'that may be its fault',
    nodes: ['a down under-way', 'b older'],
    before: { first: { '': 'a' } },
    first: { '': 'a' },
    go: [],
  },
  {
    name: 'a pool that goes on',
    reason: 'what became of the first later is another matter',
    nodes: ['a failed', 'b older'],
    before: { first: { '': 'a' }, go: [''] },
    first: { '': 'a' },
    go: [''],
  },
  {
    name: 'two pools',
    reason: 'one of each',
    nodes: ['a/x in-place', 'b/x older', 'c/y older', 'd/y older'],
    before: { first: { x: 'a', y: 'c' } },
    first: { x: 'a', y: 'c' },
    go: ['x'],
  },
  {
    name: 'other content',
    reason: 'all begins anew',
    nodes: ['a older', 'b older'],
    before: { of: 'old', first: { '': 'b' }, go: [''] },
    first: { '': 'a' },
    go: [],
  },
  {
    name: 'pools by another label',
    reason: 'all begins anew',
    nodes: ['a older', 'b older'],
    before: { by: 'zone', first: { '': 'b' }, go: [''] },
    first: { '': 'a' },
    go: [],
  },
];

const TOLD = new Date('2026-01-01T00:00:00Z');

table(test, ROWS, ({ nodes, before, released = false, first, go, held = [], minutes = 0 }) => {
  const since = Object.fromEntries(
    Object.keys(before?.first ?? {}).map((pool) => [pool, TOLD.toISOString()]),
  );
  const told = before === undefined ? undefined : { of: 'new', first: {}, go: [], since, ...before };
  const now = new Date(TOLD.getTime() + minutes * 60_000);
  const input = { of: 'new', nodes: nodes.map(node), released, now };
  const plan = planCanary({ ...input, ...(told === undefined ? {} : { before: told }) });
  const { since: written, ...rest } = plan.told;
  assert.deepEqual(rest, { of: 'new', first, go });
  assert.deepEqual(Object.keys(written), Object.keys(first));
  for (const text of Object.values(written)) assert.ok(Date.parse(text) <= now.getTime(), text);
  assert.deepEqual(
    plan.waiting.flatMap((one) => (one.held === undefined ? [] : [`${one.pool} ${one.held}`])),
    held,
  );
  // Who waits and is not held is looked at again when it would be.
  const waits = plan.waiting.some((one) => one.held === undefined);
  assert.equal(plan.lateInMs !== undefined, waits);
  assert.ok((plan.lateInMs ?? 1) > 0 && (plan.lateInMs ?? 1) <= CANARY_WITHIN_MS);
  assert.equal(plan.waiting.length, Object.keys(first).length - go.length);
  assert.deepEqual(readCanary(writeCanary(plan.told)), plan.told);
  const again = planCanary({ ...input, before: plan.told });
  assert.deepEqual(again.told, plan.told, 'a second look changes nothing');
});

test('a node waits for the first of its pool alone', () => {
  const told: Canary = { of: 'new', by: 'pool', first: { x: 'a', y: 'c' }, go: ['y'], since: {} };
  const waits = (name: string, pool: string | undefined, of = 'new') =>
    waitsForFirst(told, { of, node: name, pool });
  assert.equal(waits('a', 'x'), undefined, 'it is the first');
  assert.equal(waits('b', 'x'), 'node "a"');
  assert.equal(waits('d', 'y'), undefined, 'its pool may go on');
  assert.match(waits('e', 'z') ?? '', /not chosen yet/);
  assert.match(waits('e', 'constructor') ?? '', /not chosen yet/);
  assert.match(waits('b', undefined) ?? '', /knows the pool/);
  assert.equal(waits('b', 'x', 'older'), undefined, 'it speaks of other content');
  assert.equal(waitsForFirst(undefined, { of: 'new', node: 'b', pool: 'x' }), undefined);
});

test('images are asked for by the first node of a pool that waits, for the content in question', () => {
  const probe = ['quay.io/acme/web:1'];
  const told: Canary = { of: 'new', by: 'pool', first: { x: 'a', y: 'c' }, go: ['y'], since: {}, probe };
  const asks = (name: string, of = 'new') => imagesToProbe(told, { of, node: name }).length > 0;
  assert.deepEqual([asks('a'), asks('b'), asks('c'), asks('a', 'older')], [true, false, false, false]);
  assert.deepEqual(readCanary(writeCanary(told)), told);
  const hostile = JSON.stringify({ ...told, probe: [1, {}], since: { x: 1 } });
  assert.deepEqual(readCanary(hostile), { of: 'new', by: 'pool', first: told.first, go: ['y'], since: {} });
});

for (const text of [
  undefined,
  '',
  '{',
  '[]',
  '{"of":1}',
  '{"of":"a","first":[],"go":[]}',
  '{"of":"a","first":{},"go":1}',
])
  test(`${text ?? 'no text'} tells nobody to wait`, () => assert.equal(readCanary(text), undefined));

test.run();
