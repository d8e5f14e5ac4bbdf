/** Who gets new content first, and who waits for whom. */
import assert from 'node:assert/strict';
import {
  type Canary,
  type CanaryNode,
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
  /** Pools that a person must look at. */
  readonly held?: readonly string[];
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
    held: [''],
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

table(test, ROWS, ({ nodes, before, released = false, first, go, held = [] }) => {
  const told = before === undefined ? undefined : { of: 'new', first: {}, go: [], ...before };
  const plan = planCanary({ of: 'new', nodes: nodes.map(node), before: told, released });
  assert.deepEqual(plan.told, { of: 'new', first, go });
  assert.deepEqual(
    plan.waiting.filter((one) => one.held).map(({ pool }) => pool),
    held,
  );
  assert.equal(plan.waiting.length, Object.keys(first).length - go.length);
  assert.deepEqual(readCanary(writeCanary(plan.told)), plan.told);
  const again = planCanary({ of: 'new', nodes: nodes.map(node), before: plan.told, released });
  assert.deepEqual(again.told, plan.told, 'a second look changes nothing');
});

test('a node waits for the first of its pool alone', () => {
  const told: Canary = { of: 'new', by: 'pool', first: { x: 'a', y: 'c' }, go: ['y'] };
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
