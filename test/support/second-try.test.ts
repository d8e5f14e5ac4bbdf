/** Which failed files are run once more, and what is made of how that ends. */
import assert from 'node:assert/strict';
import type { FileResult } from './judge.ts';
import { MOST_SECOND_TRIES, secondTries, triedAgain } from './second-try.ts';
import { type Case, suite, table } from './suite.ts';

const test = suite('second try');

function result(file: string, more: Partial<FileResult> = {}): FileResult {
  return { file, passed: 1, failed: 0, skips: [], output: '', seconds: 1, ...more };
}

const failed = (file: string, more: Partial<FileResult> = {}): FileResult =>
  result(file, { failed: 1, problem: '1 failed', ...more });

interface Row extends Case {
  readonly text?: string;
  /** @default {true} */
  readonly isReal?: boolean;
  readonly bad: readonly FileResult[];
  readonly tried: number;
}

const ROWS: readonly Row[] = [
  { name: 'a real part', reason: 'waits', bad: [failed('test/a.test.ts')], tried: 1 },
  {
    name: 'no real part',
    reason: 'fails as it will',
    isReal: false,
    bad: [failed('test/a.test.ts')],
    tried: 0,
  },
  { name: 'a check', reason: 'of the sources', bad: [failed('check: lint')], tried: 0 },
  {
    name: 'a file that counts what happened by chance',
    reason: 'one failure is what it looks for',
    text: "import { counted } from '../support/counted.ts';",
    bad: [failed('test/a.test.ts')],
    tried: 0,
  },
  {
    name: 'a planted secret',
    reason: 'once is too often',
    bad: [failed('test/a.test.ts', { leaked: true })],
    tried: 0,
  },
  {
    name: 'as many as may be an accident',
    reason: 'the bound',
    bad: Array.from({ length: MOST_SECOND_TRIES }, (_, index) => failed(`test/${index}.test.ts`)),
    tried: MOST_SECOND_TRIES,
  },
  {
    name: 'one more than that',
    reason: 'no accident',
    bad: Array.from({ length: MOST_SECOND_TRIES + 1 }, (_, index) => failed(`test/${index}.test.ts`)),
    tried: 0,
  },
];

table(test, ROWS, ({ text = '', isReal = true, bad, tried }) => {
  const found = secondTries(
    bad,
    () => text,
    () => isReal,
  );
  assert.equal(found.length, tried);
});

test('a file that passes then is named with what failed; one that fails again stays failed', async () => {
  const said: string[] = [];
  const ends = await triedAgain(
    [result('test/good.test.ts'), failed('test/late.test.ts'), failed('test/broken.test.ts')],
    {
      textOf: () => '',
      isReal: () => true,
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

test('files that start an API server, a node, a broker or a browser are told by what they import', () => {
  const files = [
    'test/pull-secret-adapter/end-to-end.test.ts',
    'test/node/single.test.ts',
    'test/node/faults.test.ts',
    'test/brokers/rabbitmq.test.ts',
    'test/browser/site.test.ts',
    'test/rules/shards.test.ts',
  ];
  const bad = (file: string): readonly FileResult[] => [failed(file)];
  const tried = files.filter((file) => secondTries(bad(file), () => '').length > 0);
  assert.deepEqual(
    tried,
    files.filter((file) => !/single|shards/.test(file)),
  );
});

test('nothing failed: nothing is run', async () => {
  const results = [result('test/good.test.ts')];
  const run = (): never => assert.fail('ran');
  assert.equal(await triedAgain(results, { textOf: () => '', run, say: assert.fail }), results);
});

test.run();
