/**
 * The test runner; `node test/run.ts --help` says how it is called.
 *
 * Runs the static checks, then each `*.test.ts` file as a process of its own, about one per core, and sums what they report. A
 * file fails when a test fails, when it has no test, when its totals do not add up (a hook that threw), when it overruns its
 * deadline, when it does not end, or when it prints a planted secret. The last line is `N passed, N failed[, N skipped]`.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { availableParallelism, tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type FileResult, failureDetails, type Job, judge, skipped } from './support/judge.ts';
import { missingOf, realOf, startBuilds } from './support/parts.ts';
import { killRunning, runProcess } from './support/process.ts';
import { pureOf, reachedBy } from './support/reach.ts';

const USAGE = `node test/run.ts [--rest | --all | --pure | --changed [REF]] [--repeat N] [--no-retry] [FILTER...]

Without an option: the static checks, and every test that needs nothing but Node and what npm ci brings. With filters: the test
files whose path has one of them as a part, whatever they need.

  --rest       the other tests, which run real programs: a control plane, nodes, brokers, registries, browsers
  --all        all of them, and the static checks
  --pure       the static checks, and the tests that start no process: for daily work (npm run check)
  --changed    the static checks, and the tests that a change since REF can reach; without REF: since HEAD, what is not
               committed included (npm test -- --changed main)
  --repeat N   run each file N times: for a test that may not hold every time
  --no-retry   a file that fails is not run once more
  --help       this text

A file that fails is run once more, alone, at the end; if it passes then, it is listed as flaky and does not fail the run, unless more
than two files are. PULLWRIGHT_NO_SKIP=1 turns a skip into a failure. UPDATE_GOLDEN=1 writes golden files again. A file that needs longer
than 240 s says so in a first line "// deadline: N s"; one that cannot run without some real program in a line "// needs: PART, PART"
(test/support/parts.ts), and is skipped where there is none.

Exit code: 0 all passed, 1 something failed or nothing ran, 2 wrong usage.
`;
const DEFAULT_DEADLINE_S = 240;
const MOST_FLAKY = 2;
/** A failure of these is a failure: another run would try other things. */
const NO_SECOND_RUN = /chaos|fuzz|soak|conformance/;
const WORKERS = Math.max(2, availableParallelism());
/** Tests against real programs wait for most of their time: for a back-off, a lease, a start. */
const WORKERS_OF_REST = Math.ceil(WORKERS * 1.5);
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
    deadlineMs: 600_000,
    check: true,
  };
}

async function main(args: readonly string[]): Promise<number> {
  const asked = readArguments(args);
  if (typeof asked === 'number') return asked;
  const { repeat, which, filters } = asked;
  const found = (await Array.fromAsync(glob('test/**/*.test.ts', { cwd: root })))
    .filter((file) => !file.includes('node_modules'))
    .sort();
  const real = realOf(found);
  const files = selected(asked, found, real);
  if (files.length === 0 && which === 'named')
    return failEarly(`No test file has ${filters.join(' or ')} in its path`);
  const jobs = [
    ...(which === 'named' || which === 'rest' ? [] : CHECKS),
    ...files.flatMap((file) => Array.from({ length: repeat }, () => testJob(file))).sort(longestFirst),
  ];
  const progress = (line: string): boolean => process.stdout.write(`${line}\n`);
  const workers = which === 'rest' ? WORKERS_OF_REST : WORKERS;
  const results = await runAll(jobs, workers, startBuilds(files, progress));
  const final = asked.retry ? await secondRuns(jobs, results) : results;
  if (which === 'plain') {
    const suites = [...new Set(real.values())].sort().join(', ');
    progress(`not run: ${real.size} files against real programs (${suites}): npm run test:all runs them`);
  }
  return summarize(final);
}

type Which = 'plain' | 'rest' | 'all' | 'pure' | 'changed' | 'named';

interface Asked {
  /** With `changed`: the revision, if any. */
  readonly filters: readonly string[];
  readonly repeat: number;
  readonly retry: boolean;
  readonly which: Which;
}

function selected(
  { which, filters }: Asked,
  found: readonly string[],
  real: ReadonlyMap<string, string>,
): readonly string[] {
  if (which === 'pure') return pureOf(found);
  if (which === 'changed') return reachedBy(found, changedSince(filters));
  if (which === 'named') return found.filter((file) => filters.some((part) => file.includes(part)));
  return which === 'all' ? found : found.filter((file) => real.has(file) === (which === 'rest'));
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

/** The requested run, or the exit code when there is nothing to run. */
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
        rest: { type: 'boolean', default: false },
        all: { type: 'boolean', default: false },
        'no-retry': { type: 'boolean', default: false },
      },
    });
    if (values.help === true) {
      process.stdout.write(USAGE);
      return 0;
    }
    if (!/^[1-9]\d{0,3}$/.test(values.repeat))
      throw new Error(`--repeat is "${values.repeat}": expected a whole number from 1 to 9999`);
    const named: Which[] = (['pure', 'changed', 'rest', 'all'] as const).filter((name) => values[name]);
    // `npm run test:all -- --rest` is `--all --rest`.
    const which = named.includes('rest') ? 'rest' : (named[0] ?? 'plain');
    if (named.length > 1 && which !== 'rest')
      throw new Error(`${named.map((name) => `--${name}`).join(' and ')} exclude each other`);
    if (which === 'changed' && positionals.length > 1)
      throw new Error(`--changed takes one revision, not ${positionals.length}`);
    return {
      filters: positionals,
      repeat: Number(values.repeat),
      retry: !values['no-retry'],
      which: positionals.length > 0 && which !== 'changed' ? 'named' : which,
    };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
}

function failEarly(message: string): number {
  process.stdout.write(`${message}\n0 passed, 1 failed\n`);
  return 1;
}

/** Runs the longest jobs first, so that all workers finish at about the same time. */
function longestFirst(a: Job, b: Job): number {
  return b.deadlineMs - a.deadlineMs;
}

function testJob(file: string): Job {
  const head = readFileSync(`${root}${file}`, 'utf8').slice(0, 2000);
  const seconds = Number(/^\/\/ deadline: (\d+) s$/m.exec(head)?.[1] ?? DEFAULT_DEADLINE_S);
  const missing = missingOf(file, head);
  return {
    file,
    command: [process.execPath, file],
    deadlineMs: seconds * 1000,
    check: false,
    ...(missing === undefined ? {} : { missing }),
  };
}

/** Runs `jobs`, as many at once as there are workers; a job whose programs are still being built lets others go first. */
async function runAll(
  jobs: readonly Job[],
  workers: number,
  builds: ReadonlyMap<string, Promise<void>>,
): Promise<FileResult[]> {
  const results: FileResult[] = [];
  const queue = [...jobs];
  const built = new Set<string>();
  for (const [file, build] of builds) void build.then(() => built.add(file));
  const next = async (): Promise<Job | undefined> => {
    for (;;) {
      const at = queue.findIndex(({ file }) => !builds.has(file) || built.has(file));
      if (at >= 0) return queue.splice(at, 1)[0];
      if (queue.length === 0) return undefined;
      await Promise.race(queue.flatMap(({ file }) => builds.get(file) ?? []));
    }
  };
  const worker = async (): Promise<void> => {
    for (let job = await next(); job !== undefined; job = await next()) {
      const result = await runJob(job);
      results.push(result);
      report(result, results.length, jobs.length);
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  return results;
}

/** The results with those of a second run, alone, in place of failures that it does not repeat. */
async function secondRuns(jobs: readonly Job[], results: readonly FileResult[]): Promise<FileResult[]> {
  const final: FileResult[] = [];
  for (const result of results) {
    const job = jobs.find(({ file }) => file === result.file);
    if (result.problem === undefined || job === undefined || job.check || NO_SECOND_RUN.test(job.file)) {
      final.push(result);
      continue;
    }
    process.stdout.write(`once more, alone: ${job.file}\n`);
    const again = await runJob(job);
    final.push(again.problem === undefined ? { ...again, flaky: failureDetails(result).join('\n') } : result);
  }
  return final;
}

async function runJob(job: Job): Promise<FileResult> {
  if (job.missing !== undefined) return skipped(job.file, job.missing);
  const ran = await runProcess(job.command, {
    cwd: root,
    deadlineMs: job.deadlineMs,
    graceMs: GRACE_MS,
    env: {
      ...process.env,
      FORCE_COLOR: '0',
      NO_COLOR: '1',
      NODE_COMPILE_CACHE: join(tmpdir(), `pullwright-compile-cache-${userInfo().uid}`),
    },
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
  const print = (line: string): boolean => process.stdout.write(`${line}\n`);
  const skips = results.flatMap((result) => result.skips);
  for (const skip of skips) print(`skipped: ${skip}`);
  const flaky = results.filter((result) => result.flaky !== undefined);
  for (const result of flaky) print(`flaky: ${result.file}\n${result.flaky ?? ''}`);
  const bad = results.filter((result) => result.problem !== undefined);
  for (const result of bad) {
    print(`failed: ${result.file}: ${result.problem?.split('\n')[0] ?? ''}`);
    for (const line of failureDetails(result)) print(line);
    if (result.file.endsWith('.ts')) print(`    run alone: node test/run.ts ${result.file}`);
  }
  const tooFlaky = flaky.length > MOST_FLAKY ? flaky.length : 0;
  if (tooFlaky > 0) print(`failed: ${tooFlaky} files are flaky, at most ${MOST_FLAKY} may be`);
  const strict = process.env['PULLWRIGHT_NO_SKIP'] === '1';
  const failed = sum((result) => result.failed) + (strict ? skips.length : 0) + tooFlaky;
  const tail = skips.length === 0 ? '' : `, ${skips.length} skipped`;
  print(`${sum((result) => result.passed)} passed, ${failed} failed${tail}`);
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
