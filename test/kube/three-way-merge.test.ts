import assert from 'node:assert/strict';
import { mergeThreeWays, ownedAlso } from '../../runtime/global-pull-secret/agent/document.ts';
import { suite } from '../support/suite.ts';

const test = suite('mergeThreeWays');
const digest = (value: string): string => value;

/** The merge of a file with these entries, when we want `wanted` and wrote `owned` before. */
function merge(
  present: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
  owned: Readonly<Record<string, readonly string[]>> = {},
): { readonly entries: Readonly<Record<string, string>>; readonly foreign: readonly string[] } {
  const merged = mergeThreeWays({
    present: new Map(Object.entries(present)),
    wanted: new Map(Object.entries(wanted)),
    owned,
    digest,
  });
  return { entries: Object.fromEntries(merged.entries), foreign: merged.foreign };
}

test('what others wrote stays, and is named in order', () => {
  assert.deepEqual(merge({ z: '1', b: '2' }, { m: '3' }), {
    entries: { b: '2', m: '3', z: '1' },
    foreign: ['b', 'z'],
  });
});

test('a key that both want is ours, and nobody else is named for it', () => {
  assert.deepEqual(merge({ a: 'theirs' }, { a: 'ours' }), { entries: { a: 'ours' }, foreign: [] });
});

test('what we wrote and want no more goes, unless somebody has changed it since', () => {
  assert.deepEqual(merge({ a: 'x' }, {}, { a: ['x'] }), { entries: {}, foreign: [] });
  assert.deepEqual(merge({ a: 'y' }, {}, { a: ['x'] }), { entries: { a: 'y' }, foreign: ['a'] });
  assert.deepEqual(merge({ a: 'y' }, {}, { a: ['x', 'y'] }), { entries: {}, foreign: [] });
});

test('a key named like a member of Object is nobody else than a key', () => {
  assert.deepEqual(merge({ constructor: 'x' }, {}).foreign, ['constructor']);
});

test('the ledger remembers what was written before, each once, by key', () => {
  assert.deepEqual(
    ownedAlso(
      { b: ['1'] },
      new Map([
        ['b', '2'],
        ['a', '3'],
      ]),
      digest,
    ),
    {
      a: ['3'],
      b: ['1', '2'],
    },
  );
  assert.deepEqual(ownedAlso({ b: ['1'] }, new Map([['b', '1']]), digest), { b: ['1'] });
});

test.run();
