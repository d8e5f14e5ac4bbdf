/**
 * The test runner; `node test/run.ts --help` says how it is called.
 *
 * Runs the static checks, then each `*.test.ts` file as a process of its own, two at a time, and sums what they report. A
 * file fails when a test fails, when it has no test, when its totals do not add up (a hook that threw), when it overruns its
 * deadline, when it does not end, or when it prints a planted secret. The last line is `N passed, N failed[, N skipped]`.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { basePackages } from '../build/image/base.ts';
import { installPackages } from '../site/build.ts';
import { controlPlaneBinaries, missingControlPlane } from './control-plane/build.ts';
import {
  argoDefinitions,
  argoPrograms,
  fluxDefinition,
  fluxProgram,
  missingArgo,
  missingFlux,
} from './gitops/build.ts';
import { helmProgram, missingHelm } from './helm/build.ts';
import { missingNode, nodeBinaries } from './node/machine/build.ts';
import { executable } from './support/executable.ts';
import { type FileResult, type Job, judge } from './support/judge.ts';
import { killRunning, runProcess } from './support/process.ts';
import { pureOf, reachedBy } from './support/reach.ts';

const USAGE = `node test/run.ts [--repeat N] [--pure | --changed [REF]] [FILTER...]

Without a filter: the static checks and every test file. With filters: the test files whose path has one of them as a part.

  --repeat N   run each file N times: for a test that may not hold every time
  --pure       the static checks, and the tests that start no process: for daily work (npm run check)
  --changed    the static checks, and the tests that a change since REF can reach; without REF: since HEAD, what is not
               committed included (npm test -- --changed main)
  --help       this text

PULLWRIGHT_NO_SKIP=1 turns a skip into a failure. UPDATE_GOLDEN=1 writes golden files again. A file that needs longer than
120 s says so in a first line "// deadline: N s".

Exit code: 0 all passed, 1 something failed or nothing ran, 2 wrong usage.
`;
const DEFAULT_DEADLINE_S = 120;
const WORKERS = 2;
/** In which a file at its deadline says in which test it is, and cleans up. */
const GRACE_MS = 5000;
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

async function main(args: readonly string[]): Promise<number> {
  const asked = readArguments(args);
  if (typeof asked === 'number') return asked;
  const { repeat, only } = asked;
  const filters = only === 'changed' ? [] : asked.filters;
  const found = (await Array.fromAsync(glob('test/**/*.test.ts', { cwd: root })))
    .filter(
      (file) =>
        !file.includes('node_modules') &&
        (filters.length === 0 || filters.some((part) => file.includes(part))),
    )
    .sort();
  const files =
    only === 'pure'
      ? pureOf(found)
      : only === 'changed'
        ? reachedBy(found, changedSince(asked.filters))
        : found;
  if (files.length === 0 && only === 'all')
    return failEarly(`No test file has ${filters.join(' or ')} in its path`);
  const jobs = [
    ...(filters.length === 0 ? CHECKS : []),
    ...files.flatMap((file) => Array.from({ length: repeat }, () => testJob(file))).sort(longestFirst),
  ];
  await prepare(files);
  return summarize(await runAll(jobs));
}

interface Asked {
  /** With `changed`: the revision, if any. */
  readonly filters: readonly string[];
  readonly repeat: number;
  readonly only: 'all' | 'pure' | 'changed';
}

/** Paths that differ from a revision, and those that git does not know yet. */
function changedSince([revision = 'HEAD']: readonly string[]): readonly string[] {
  const git = (...words: string[]): string[] =>
    execFileSync('git', words, { cwd: root, encoding: 'utf8' })
      .split('\n')
      .filter((line) => line !== '');
  return [
    ...git('diff', '--name-only', revision, '--'),
    ...git('ls-files', '--others', '--exclude-standard'),
  ];
}

/** What is asked for, or the exit code when that is answered already. */
function readArguments(args: readonly string[]): Asked | number {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: 'boolean', short: 'h' },
        repeat: { type: 'string', default: '1' },
        pure: { type: 'boolean', default: false },
        changed: { type: 'boolean', default: false },
      },
    });
    if (values.help === true) {
      process.stdout.write(USAGE);
      return 0;
    }
    if (!/^[1-9]\d{0,3}$/.test(values.repeat))
      throw new Error(`--repeat is "${values.repeat}": expected a whole number from 1 to 9999`);
    if (values.pure && values.changed) throw new Error('--pure and --changed exclude each other');
    if (values.changed && positionals.length > 1)
      throw new Error(`--changed takes one revision, not ${positionals.length}`);
    const only = values.pure ? 'pure' : values.changed ? 'changed' : 'all';
    return { filters: positionals, repeat: Number(values.repeat), only };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
}

/** Programs of others, each by the word that a test which needs it holds. */
const TOOLS: readonly {
  readonly word: string;
  readonly missing: () => string | undefined;
  readonly build: (progress: (line: string) => void) => Promise<unknown>;
}[] = [
  { word: 'missingHelm', missing: missingHelm, build: helmProgram },
  {
    word: 'missingFlux',
    missing: missingFlux,
    build: async (progress) => {
      await fluxProgram(progress);
      // Inside a test machine there is no network to fetch it from.
      fluxDefinition();
    },
  },
  {
    word: 'missingArgo',
    missing: missingArgo,
    build: async (progress) => {
      await argoPrograms(progress);
      argoDefinitions();
    },
  },
];

/** Built here, once, because no test file's deadline allows for it. A build that fails, fails the tests that need it. */
async function prepare(files: readonly string[]): Promise<void> {
  const texts = files.map((file) => readFileSync(`${root}${file}`, 'utf8'));
  const uses = (part: string): boolean => texts.some((text) => text.includes(part));
  const progress = (line: string): boolean => process.stdout.write(`${line}\n`);
  const builds: (() => Promise<unknown>)[] = [];
  if (uses('missingNode') && missingNode() === undefined)
    builds.push(
      () => nodeBinaries(progress),
      () => executable('x64'),
      () => executable('arm64'),
      // A machine of the tests has no network.
      async () => basePackages('x64'),
      async () => basePackages('arm64'),
    );
  else if (uses('/control-plane.ts') && missingControlPlane() === undefined)
    builds.push(() => controlPlaneBinaries(progress));
  for (const { word, missing, build } of TOOLS)
    if (uses(word) && missing() === undefined) builds.push(() => build(progress));
  // Two files that install into one folder at the same time would take each other's packages away.
  if (uses('/site/build.ts')) builds.push(async () => installPackages());
  for (const { reason } of (await Promise.allSettled(builds.map((build) => build()))).filter(isRejected))
    progress(reason instanceof Error ? reason.message : 'a build failed');
}

function isRejected(result: PromiseSettledResult<unknown>): result is PromiseRejectedResult {
  return result.status === 'rejected';
}

function failEarly(message: string): number {
  process.stdout.write(`${message}\n0 passed, 1 failed\n`);
  return 1;
}

/** So that the two workers end together. */
function longestFirst(a: Job, b: Job): number {
  return b.deadlineMs - a.deadlineMs;
}

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
    graceMs: GRACE_MS,
    env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1', NODE_DISABLE_COMPILE_CACHE: '1' },
  });
  return judge(job, ran, job.check ? '' : readFileSync(`${root}${job.file}`, 'utf8'));
}

function report(result: FileResult, done: number, of: number): void {
  const mark = result.problem === undefined ? 'ok  ' : 'FAIL';
  const place = `[${String(done).padStart(String(of).length)}/${of}]`;
  process.stdout.write(
    `${place} ${mark} ${result.file}  ${result.passed} passed  ${result.seconds.toFixed(1)} s\n`,
  );
  if (result.problem === undefined) return;
  process.stdout.write(`--- ${result.file}: ${result.problem}\n${result.output.trimEnd()}\n---\n`);
}

function summarize(results: readonly FileResult[]): number {
  const sum = (pick: (result: FileResult) => number): number =>
    results.reduce((total, result) => total + pick(result), 0);
  const skips = results.flatMap((result) => result.skips);
  for (const skip of skips) process.stdout.write(`skipped: ${skip}\n`);
  const strict = process.env['PULLWRIGHT_NO_SKIP'] === '1';
  const bad = results.filter((result) => result.problem !== undefined);
  for (const { file, problem } of bad) process.stdout.write(`failed: ${file}: ${problem}\n`);
  const again = [...new Set(bad.map(({ file }) => file).filter((file) => file.endsWith('.ts')))];
  if (again.length > 0) process.stdout.write(`again: node test/run.ts ${again.join(' ')}\n`);
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
