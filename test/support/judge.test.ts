/** Report of the runner on test files that fail, hang, crash or leave handles open; each is a real file that is run. */
import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plantedPassword } from './canary.ts';
import { type FileResult, failureDetails, judge } from './judge.ts';
import { runProcess } from './process.ts';
import { type Case, table, test } from './suite.ts';
import { tempFolder } from './temp-folder.ts';

const folder = tempFolder();
const HEAD = `import { test } from ${JSON.stringify(new URL('suite.ts', import.meta.url).pathname)};
import assert from 'node:assert/strict';
test('works', () => assert.ok(true));
`;

async function runFile(body: string, deadlineMs = 60_000, head = HEAD): Promise<FileResult> {
  const file = join(mkdtempSync(join(folder, 'case-')), 'a thing.test.ts');
  writeFileSync(file, head + body);
  const job = { file, command: [process.execPath, file], deadlineMs, check: false };
  const env = { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1' };
  return judge(job, await runProcess(job.command, { deadlineMs, graceMs: 5000, env }), head + body);
}

interface Row extends Case {
  readonly body: string;
  readonly deadlineMs?: number;
  readonly passed: number;
  /** @default {1} */
  readonly failed?: number;
  readonly problem: RegExp | undefined;
  readonly output?: RegExp;
}

const ROWS: readonly Row[] = [
  { name: 'all passes', reason: 'silence', body: '', passed: 1, failed: 0, problem: undefined },
  {
    name: 'a failing test',
    reason: 'it is named, and the reason is shown',
    body: "test('adds', () => assert.equal(1 + 1, 3));",
    passed: 1,
    problem: /^1 failed\n +a thing > adds$/,
    output: /strictly equal|Expected/,
  },
  {
    name: 'a failing test whose error has a cause',
    reason: 'a counterexample without its assertion says little',
    body: "test('wraps', () => { throw new Error('outer', { cause: new Error('inner') }); });",
    passed: 1,
    problem: /a thing > wraps/,
    output: /outer\n +caused by: inner/,
  },
  {
    name: 'a failing test that leaves a timer',
    reason: 'nobody waits for the deadline, and the failure is what is told',
    body: "test('leaves', () => { setInterval(() => undefined, 1000); assert.fail('here'); });",
    passed: 1,
    problem: /^1 failed\n +a thing > leaves$/,
  },
  {
    name: 'a test that hangs after another one has failed',
    reason: 'the one that failed is often why the other hangs, and its reason is shown',
    body: "test('adds', () => assert.equal(1 + 1, 3)); test('hangs', () => new Promise((resolve) => setTimeout(resolve, 1e6)));",
    deadlineMs: 12_000,
    passed: 0,
    problem: /^overran its deadline of 12 s in "a thing > hangs" after .*\n +failed before: a thing > adds$/,
    output: /failed before: "a thing > adds"\n.*(strictly equal|Expected)/,
  },
  {
    name: 'a test that turns in circles',
    reason: 'it does not hear that it is told to stop, and is ended all the same',
    body: "test('turns', () => { for (;;); });",
    deadlineMs: 3000,
    passed: 0,
    problem: /^overran its deadline of 3 s/,
  },
  {
    name: 'a rejection that nobody handles',
    reason: 'the test in which it happened is named, and the error shown',
    body: `test('loses it', async () => { void Promise.reject(new Error('lost')); await new Promise((resolve) => setTimeout(resolve, 1e6)); });
`,
    passed: 0,
    problem: /^ended with exit code 1 in "a thing > loses it" after /,
    output: /Error: lost/,
  },
  {
    name: 'a test that waits for nothing',
    reason: 'the process runs empty in the middle of it',
    body: "test('waits', () => new Promise(() => undefined));",
    passed: 0,
    problem: /in "a thing > waits" after /,
  },
  {
    name: 'a file that exits before its tests',
    reason: 'what it skips is not all of it',
    body: "test.skip('runs', 'needs qemu-user'); process.exit(0);",
    passed: 0,
    problem: /^ended with exit code 1 before its first test$/,
  },
  {
    name: 'a file that does not load',
    reason: 'no test was reached',
    body: "await import('./nowhere.ts');",
    passed: 0,
    problem: /^ended with exit code 1 before its first test$/,
    output: /nowhere\.ts/,
  },
  {
    name: 'a planted secret in the output',
    reason: 'it is not shown again',
    body: `test('talks', () => console.log(${JSON.stringify(plantedPassword('runner'))}));`,
    passed: 2,
    problem: /^printed a planted secret$/,
    output: /^\(output withheld/,
  },
];

table(test, ROWS, async (row) => {
  const result = await runFile(row.body, row.deadlineMs);
  assert.deepEqual([result.passed, result.failed], [row.passed, row.failed ?? 1], result.output);
  if (row.problem === undefined) assert.equal(result.problem, undefined);
  else assert.match(result.problem ?? '', row.problem);
  if (row.output !== undefined) assert.match(result.output, row.output);
});

const WITHOUT_TEST = HEAD.slice(0, HEAD.indexOf("test('works'"));

test('a file without a test fails', async () => {
  const result = await runFile('', undefined, WITHOUT_TEST);
  assert.deepEqual([result.passed, result.failed, result.problem], [0, 1, 'has no test']);
});

test('a file of which this machine can run nothing is skipped, not failed', async () => {
  const result = await runFile("test.skip('runs', 'needs qemu-user');", undefined, WITHOUT_TEST);
  assert.deepEqual([result.passed, result.failed, result.problem], [0, 0, undefined], result.output);
  assert.deepEqual(result.skips, ['a thing > runs: needs qemu-user']);
});

test('a file whose last test leaves something open is told what', async () => {
  const job = { file: 'x', command: [], deadlineMs: 60_000, check: false };
  const stdout =
    '  Total:     1\n  Passed:    1\n\ndoes not end after its last test: TCPServerWrap still open\n';
  const result = judge(job, { code: 1, stdout, stderr: '', timedOut: false, seconds: 31 });
  assert.equal(result.problem, 'does not end after its last test: TCPServerWrap still open');
});

test('a failure is told by its test, its assertion and its line', async () => {
  const result = await runFile("test('is one', () => assert.equal(1, 2));");
  const [name, ...details] = failureDetails(result).map((line) => line.trim());
  assert.equal(name, 'a thing > is one');
  assert.ok(details.includes('1 !== 2'), details.join('\n'));
});
