/**
 * The test runner: `node test/run.ts [FILTER...]`.
 *
 * Runs the static checks, then each `*.test.ts` file as a process of its own, two at a time, and sums what they report. A
 * file fails when a test fails, when it has no test, when its totals do not add up (a hook that threw), when it overruns its
 * deadline, or when it prints a planted secret. The last line is `N passed, N failed[, N skipped]`.
 *
 * A filter is a part of a path; with one, the static checks are left out. `PULLWRIGHT_NO_SKIP=1` turns a skip into a failure.
 */
import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { controlPlaneBinaries, missingControlPlane } from './control-plane/build.ts';
import { findPlanted } from './support/canary.ts';
import { killRunning, type ProcessResult, runProcess } from './support/process.ts';

interface FileResult {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skips: readonly string[];
  readonly problem?: string;
  readonly output: string;
  readonly seconds: number;
}

interface Job {
  readonly file: string;
  readonly command: readonly string[];
  readonly deadlineMs: number;
  /** A check without uvu totals: its exit code is the one test. */
  readonly check: boolean;
}

const DEFAULT_DEADLINE_S = 120;
const WORKERS = 2;
const root = new URL('..', import.meta.url).pathname;

const CHECKS: readonly Job[] = [
  check('types', ['tsc']),
  check('lint', ['oxlint', '--type-aware', '--quiet']),
  check('format', ['biome', 'check', '--error-on-warnings', '.']),
];

function check(file: string, [tool = '', ...args]: readonly string[]): Job {
  return {
    file: `check: ${file}`,
    command: [`${root}node_modules/.bin/${tool}`, ...args],
    deadlineMs: 300_000,
    check: true,
  };
}

async function main(filters: readonly string[]): Promise<number> {
  const files = (await Array.fromAsync(glob(['test/**/*.test.ts', 'examples/**/*.test.ts'], { cwd: root })))
    .filter(
      (file) =>
        !file.includes('node_modules') &&
        (filters.length === 0 || filters.some((part) => file.includes(part))),
    )
    .sort();
  if (files.length === 0) return failEarly(`No test file matches ${filters.join(', ')}`);
  const jobs = [
    ...(filters.length === 0 ? CHECKS : []),
    ...files.map(testJob).sort((a, b) => b.deadlineMs - a.deadlineMs),
  ];
  await prepareControlPlane(files);
  const results = await runAll(jobs);
  return summarize(results);
}

/** Built here, once, because no test file's deadline allows for it. A build that fails, fails the tests that need it. */
async function prepareControlPlane(files: readonly string[]): Promise<void> {
  const needed = files.some((file) => readFileSync(`${root}${file}`, 'utf8').includes('/control-plane.ts'));
  if (!needed || missingControlPlane() !== undefined) return;
  const progress = (line: string): boolean => process.stdout.write(`${line}\n`);
  await controlPlaneBinaries(progress).catch((error: unknown) => {
    progress(error instanceof Error ? error.message : 'control plane: the build failed');
  });
}

function failEarly(message: string): number {
  process.stdout.write(`${message}\n0 passed, 1 failed\n`);
  return 1;
}

/** Long suites go first, so that the two workers end together. */
function testJob(file: string): Job {
  const head = readFileSync(`${root}${file}`, 'utf8').slice(0, 2000);
  const seconds = Number(/^\/\/ deadline: (\d+) s$/m.exec(head)?.[1] ?? DEFAULT_DEADLINE_S);
  return { file, command: [process.execPath, file], deadlineMs: seconds * 1000, check: false };
}

async function runAll(jobs: readonly Job[]): Promise<FileResult[]> {
  const results: FileResult[] = [];
  const queue = [...jobs];
  const worker = async (): Promise<void> => {
    for (let job = queue.shift(); job !== undefined; job = queue.shift()) {
      const result = await runJob(job);
      results.push(result);
      report(result, results.length, jobs.length);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
  return results;
}

async function runJob(job: Job): Promise<FileResult> {
  const ran = await runProcess(job.command, {
    cwd: root,
    deadlineMs: job.deadlineMs,
    env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1', NODE_DISABLE_COMPILE_CACHE: '1' },
  });
  return judge(job, ran);
}

function judge(job: Job, ran: ProcessResult): FileResult {
  const output = ran.stdout + ran.stderr;
  const skips = [...output.matchAll(/^skip: (.*)$/gm)].map((match) => match[1] ?? '');
  const counted = job.check ? { total: 1, passed: ran.code === 0 ? 1 : 0 } : totals(output);
  const failed = counted.total - counted.passed;
  const problem = problemOf(job, ran, { ...counted, failed });
  const base = { file: job.file, skips, output, seconds: ran.seconds, passed: counted.passed };
  return problem === undefined ? { ...base, failed } : { ...base, failed: Math.max(1, failed), problem };
}

function totals(output: string): { total: number; passed: number } {
  const pick = (word: string): number =>
    Number(new RegExp(`^ {2}${word}: +(\\d+)$`, 'm').exec(output)?.[1] ?? 0);
  return { total: pick('Total'), passed: pick('Passed') };
}

function problemOf(
  job: Job,
  ran: ProcessResult,
  counts: { total: number; failed: number },
): string | undefined {
  if (ran.timedOut) return `overran its deadline of ${job.deadlineMs / 1000} s`;
  const planted = findPlanted(ran.stdout + ran.stderr);
  if (planted !== undefined) return 'printed a planted secret';
  if (counts.failed > 0) return `${counts.failed} failed`;
  if (counts.total === 0) return 'has no test';
  if (ran.code !== 0) return `exit code ${ran.code}`;
  if (!job.check && /\.only\(/.test(readFileSync(`${root}${job.file}`, 'utf8'))) return 'uses .only';
  return undefined;
}

function report(result: FileResult, done: number, of: number): void {
  const mark = result.problem === undefined ? 'ok  ' : 'FAIL';
  const place = `[${String(done).padStart(String(of).length)}/${of}]`;
  process.stdout.write(
    `${place} ${mark} ${result.file}  ${result.passed} passed  ${result.seconds.toFixed(1)} s\n`,
  );
  if (result.problem === undefined) return;
  const shown =
    findPlanted(result.output) === undefined ? result.output : '(output withheld: it holds a planted secret)';
  process.stdout.write(`--- ${result.file}: ${result.problem}\n${shown.trimEnd()}\n---\n`);
}

function summarize(results: readonly FileResult[]): number {
  const sum = (pick: (result: FileResult) => number): number =>
    results.reduce((total, result) => total + pick(result), 0);
  const skips = results.flatMap((result) => result.skips);
  for (const skip of skips) process.stdout.write(`skipped: ${skip}\n`);
  const strict = process.env['PULLWRIGHT_NO_SKIP'] === '1';
  for (const result of results)
    if (result.problem !== undefined) process.stdout.write(`failed: ${result.file}: ${result.problem}\n`);
  const failed = sum((result) => result.failed) + (strict ? skips.length : 0);
  const tail = skips.length === 0 ? '' : `, ${skips.length} skipped`;
  process.stdout.write(`${sum((result) => result.passed)} passed, ${failed} failed${tail}\n`);
  return failed === 0 ? 0 : 1;
}

// The test files are process groups of their own: a signal to the runner does not reach them.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)
  process.once(signal, () => {
    killRunning();
    process.exit(code);
  });

process.exitCode = await main(process.argv.slice(2));
