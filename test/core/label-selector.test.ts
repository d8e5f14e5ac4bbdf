import assert from 'node:assert/strict';
import {
  isLabelKey,
  readSelector,
  selectorKeys,
  selects,
} from '../../runtime/core/kubernetes/label-selector.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly selector: unknown;
  readonly yes: readonly Record<string, string>[];
  readonly no: readonly Record<string, string>[];
}

table<Row>(
  test,
  [
    {
      name: 'an empty selector selects everything',
      reason: 'metav1.LabelSelector',
      selector: {},
      yes: [{}, { a: 'b' }],
      no: [],
    },
    {
      name: 'matchLabels must all hold',
      reason: 'requirements are a conjunction',
      selector: { matchLabels: { a: '1', b: '2' } },
      yes: [{ a: '1', b: '2', c: '3' }],
      no: [{ a: '1' }, { a: '1', b: '3' }, {}],
    },
    {
      name: 'NotIn holds where the key is missing',
      reason: 'labels.Requirement.Matches',
      selector: { matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['x'] }] },
      yes: [{}, { a: 'y' }],
      no: [{ a: 'x' }],
    },
    {
      name: 'Exists and DoesNotExist look at the key only',
      reason: 'an empty value is a value',
      selector: {
        matchExpressions: [
          { key: 'a', operator: 'Exists' },
          { key: 'b', operator: 'DoesNotExist' },
        ],
      },
      yes: [{ a: '' }],
      no: [{}, { a: '', b: '' }],
    },
    {
      name: 'a key named like a member of Object is only a key',
      reason: 'labels come from people',
      selector: { matchExpressions: [{ key: 'constructor', operator: 'Exists' }] },
      yes: [{ constructor: 'x' }],
      no: [{}],
    },
  ],
  ({ selector, yes, no }) => {
    const read = readSelector(selector);
    assert.ok(read.ok);
    for (const labels of yes) assert.equal(selects(read.requirements, labels), true, JSON.stringify(labels));
    for (const labels of no) assert.equal(selects(read.requirements, labels), false, JSON.stringify(labels));
  },
);

table(
  test,
  [
    { name: 'null', reason: 'not an object', input: null, says: /must be an object/ },
    { name: 'a list', reason: 'not an object', input: [], says: /must be an object/ },
    {
      name: 'operator in lower case',
      reason: 'the API server is case-sensitive',
      input: { matchExpressions: [{ key: 'a', operator: 'in', values: ['b'] }] },
      says: /"in" is not a valid label selector operator: expected In, NotIn/,
    },
    {
      name: 'In without values',
      reason: 'refused by the API server',
      input: { matchExpressions: [{ key: 'a', operator: 'In' }] },
      says: /In of "a" must have values/,
    },
    {
      name: 'Exists with values',
      reason: 'refused by the API server',
      input: { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] },
      says: /must not have values/,
    },
    {
      name: 'a number as value',
      reason: 'YAML without quotes',
      input: { matchLabels: { a: 1 } },
      says: /matchLabels "a" must be a string/,
    },
    { name: 'a wrong key', input: { matchLabels: { 'a b': 'c' } }, says: /"a b" is not a label key/ },
    {
      name: 'a value that is too long',
      input: { matchLabels: { a: 'x'.repeat(64) } },
      says: /is not a label value/,
    },
  ],
  ({ input, says }) => {
    const read = readSelector(input);
    assert.ok(!read.ok);
    assert.match(read.problem, says);
  },
);

test('not strict: what a stored object may hold is read', () => {
  const read = readSelector({ matchExpressions: [{ key: 'a', operator: 'In' }] }, { strict: false });
  assert.ok(read.ok && !selects(read.requirements, { a: '' }));
});

test('selectorKeys() names each key once', () => {
  const read = readSelector({
    matchLabels: { b: '1' },
    matchExpressions: [
      { key: 'a', operator: 'Exists' },
      { key: 'b', operator: 'NotIn', values: ['2'] },
    ],
  });
  assert.ok(read.ok);
  assert.deepEqual(selectorKeys(read.requirements), ['a', 'b']);
});

test('isLabelKey() follows the API server', () => {
  for (const key of ['a', 'app.kubernetes.io/name', 'A_b-c.d', 'x/9'])
    assert.equal(isLabelKey(key), true, key);
  for (const key of ['', '/', 'a/', '/a', 'a/b/c', '-a', 'a-', 'UP.io/a', 'x'.repeat(64)])
    assert.equal(isLabelKey(key), false, key);
});
