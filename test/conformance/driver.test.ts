/** The driver on a case file of odd rows: each is one failed case, what nothing compares is one, and the others run. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { idleFields, ignoredFields } from './comparison.ts';
import { readCases } from './read-cases.ts';
import type { ConformanceSuite } from './suite.ts';

const here = import.meta.dirname;

interface Row {
  readonly name: string;
  readonly expected: { readonly sum: number };
}

const sums: ConformanceSuite = {
  cases: (document) =>
    (document as { rows: readonly Row[] }).rows.map(({ name, expected }) => {
      if (typeof expected.sum !== 'number') throw new Error('no sum');
      return { name, input: undefined, expected: { sum: expected.sum } };
    }),
  answer: () => ({ sum: 2 }),
  mutation: { file: '', replace: '', by: '' },
};

test('a row that the suite cannot read is reported by its name, and the others are read', () => {
  const rows = [{ name: 'a', expected: { sum: 2 } }, { name: 'b', expected: {} }, { name: 'c' }, null];
  const { cases, unreadable } = readCases(sums, { rows });
  assert.deepEqual(
    cases.map(({ name }) => name),
    ['a'],
  );
  assert.deepEqual(
    unreadable.map((line) => line.split(':')[0]),
    ['b', 'c', 'rows[3]'],
  );
});

test('a field of "expected" that the suite does not know is a failure of its row', () => {
  const { cases, unreadable } = readCases(sums, {
    rows: [{ name: 'a', expected: { sum: 2, product: 1 } }],
  });
  assert.deepEqual([cases, unreadable], [[], ['a: the suite knows no product in "expected"']]);
});

test('an expected answer that any answer meets, or a part of it that nothing compares, is a failure', () => {
  const named = { ...sums, accepts: (actual: unknown, expected: unknown) => isPart(actual, expected) };
  const one = { name: 'a', input: undefined, expected: {} };
  assert.match(idleFields(named, one) ?? '', /expects nothing/);
  assert.equal(idleFields(named, { ...one, expected: { sum: 2 } }), undefined);
  const blind = { ...sums, accepts: (actual: unknown) => (actual as { sum?: number }).sum === 2 };
  const whole = { ...one, expected: { sum: 2 } };
  assert.match(ignoredFields(blind, { sum: 2 }, whole) ?? '', /nothing compares sum/);
  assert.equal(ignoredFields({ ...blind, loosens: ['sum'] }, { sum: 2 }, whole), undefined);
});

function isPart(actual: unknown, expected: unknown): boolean {
  const got = actual as Readonly<Record<string, unknown>>;
  return Object.entries(expected as object).every(([field, value]) => got[field] === value);
}

test('a folder of any case files runs to its end, odd rows and all', async () => {
  const folder = tempFolder();
  const file = join(here, 'cases/kubelet-match/urls-match.json');
  const document = JSON.parse(readFileSync(file, 'utf8')) as { cases: unknown[] };
  mkdirSync(join(folder, 'kubelet-match'));
  writeFileSync(
    join(folder, 'kubelet-match/urls-match.json'),
    JSON.stringify({ ...document, cases: [null, ...document.cases] }),
  );
  const ran = await runProcess([process.execPath, join(here, 'run.ts'), folder]);
  assert.equal(ran.code, 1);
  assert.match(ran.stdout, new RegExp(`^${document.cases.length} passed, 1 failed$`, 'm'));
  assert.match(ran.stdout, /cases\[0\]: cannot read the case/);
});
