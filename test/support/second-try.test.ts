/** Which failed files are run once more, and what is made of how that ends. */
import assert from 'node:assert/strict';
import type { FileResult } from './judge.ts';
import { MOST_SECOND_TRIES, secondTries, triedAgain } from './second-try.ts';
import { type Case, suite, table } from './suite.ts';

const test = suite('second try');

const PLANE = "import { ControlPlane } from '../control-plane/control-plane.ts';";
const NODE = "import { NodeMachine } from './machine/node.ts';";

function result(file: string, more: Partial<FileResult> = {}): FileResult {
  return { file, passed: 1, failed: 0, skips: [], output: '', seconds: 1, ...more };
}

const failed = (file: string, more: Partial<FileResult> = {}): FileResult =>
  result(file, { failed: 1, problem: '1 failed', ...more });

interface Row extends Case {
  readonly text: string;
  readonly bad: readonly FileResult[];
  readonly tried: number;
}

const ROWS: readonly Row[] = [
  { name: 'an API server', reason: 'waits', text: PLANE, bad: [failed('test/a.test.ts')], tried: 1 },
  { name: 'a node', reason: 'waits', text: NODE, bad: [failed('test/node/a.test.ts')], tried: 1 },
  { name: 'no real part', reason: 'fails as it will', text: '', bad: [failed('test/a.test.ts')], tried: 0 },
  { name: 'a check', reason: 'of the sources', text: PLANE, bad: [failed('check: lint')], tried: 0 },
  {
    name: 'a file that counts what happened by chance',
    reason: 'one failure is what it looks for',
    text: `${PLANE}\nimport { counted } from '../support/counted.ts';`,
    bad: [failed('test/a.test.ts')],
    tried: 0,
  },
  {
    name: 'a planted secret',
    reason: 'once is too often',
    text: PLANE,
    bad: [failed('test/a.test.ts', { leaked: true })],
    tried: 0,
  },
  {
    name: 'as many as may be an accident',
    reason: 'the bound',
    text: PLANE,
    bad: Array.from({ length: MOST_SECOND_TRIES }, (_, index) => failed(`test/${index}.test.ts`)),
    tried: MOST_SECOND_TRIES,
  },
  {
    name: 'one more than that',
    reason: 'no accident',
    text: PLANE,
    bad: Array.from({ length: MOST_SECOND_TRIES + 1 }, (_, index) => failed(`test/${index}.test.ts`)),
    tried: 0,
  },
];

table(test, ROWS, ({ text, bad, tried }) => {
  assert.equal(secondTries(bad, () => text).length, tried);
});

test('a file that passes then is named with what failed; one that fails again stays failed', async () => {
  const said: string[] = [];
  const ends = await triedAgain(
    [result('test/good.test.ts'), failed('test/late.test.ts'), failed('test/broken.test.ts')],
    {
      textOf: () => PLANE,
      run: async (files) =>
        files.map((file) => (file.includes('late') ? result(file, { passed: 2 }) : failed(file))),
      say: (line) => said.push(line),
    },
  );
  assert.deepEqual(
    ends.map(({ file, passed, problem }) => ({ file, passed, problem })),
    [
      { file: 'test/good.test.ts', passed: 1, problem: undefined },
      { file: 'test/late.test.ts', passed: 2, problem: undefined },
      { file: 'test/broken.test.ts', passed: 1, problem: '1 failed' },
    ],
  );
  assert.deepEqual(said, [
    'once more, one at a time: test/late.test.ts test/broken.test.ts',
    'unsteady: test/late.test.ts: 1 failed',
  ]);
});

test('nothing failed: nothing is run', async () => {
  const results = [result('test/good.test.ts')];
  const run = (): never => assert.fail('ran');
  assert.equal(await triedAgain(results, { textOf: () => PLANE, run, say: assert.fail }), results);
});

test.run();
