/** Result of a test file's run: its counts, its skips, and its problem in words that one can act on. */
import { findPlanted } from './canary.ts';
import type { ProcessResult } from './process.ts';

/** A test file, or a check of the whole tree whose exit code is its one test. */
export interface Job {
  readonly file: string;
  readonly command: readonly string[];
  readonly deadlineMs: number;
  readonly check: boolean;
  /** Why this machine cannot run it. */
  readonly missing?: string;
}

export interface FileResult {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skips: readonly string[];
  readonly problem?: string;
  /** Printed output; withheld when it contains a planted secret. */
  readonly output: string;
  readonly seconds: number;
  /** First failure, when a second run on its own passed. */
  readonly flaky?: string;
}

/** A file that was not started, because of `reason`. */
export function skipped(file: string, reason: string): FileResult {
  return { file, passed: 0, failed: 0, skips: [`${file}: ${reason}`], output: '', seconds: 0 };
}

/** Judges what a job printed and how it ended. `source` is the text of the test file. */
export function judge(job: Job, ran: ProcessResult, source = ''): FileResult {
  const output = ran.stdout + ran.stderr;
  const { total, passed } = job.check ? { total: 1, passed: ran.code === 0 ? 1 : 0 } : totals(output);
  const planted = findPlanted(output) !== undefined;
  const problem = planted ? 'printed a planted secret' : problemOf(job, ran, { total, passed, source });
  const failed = problem === undefined ? total - passed : Math.max(1, total - passed);
  return {
    file: job.file,
    skips: [...output.matchAll(/^skip: (.*)$/gm)].map((match) => match[1] ?? ''),
    output: planted ? '(output withheld: it holds a planted secret)' : output,
    seconds: ran.seconds,
    passed,
    failed,
    ...(problem === undefined ? {} : { problem }),
  };
}

/** Totals that uvu prints at the end; zero when it printed none. */
function totals(output: string): { total: number; passed: number } {
  const pick = (word: string): number =>
    Number(new RegExp(`^ {2}${word}: +(\\d+)$`, 'm').exec(output)?.[1] ?? 0);
  return { total: pick('Total'), passed: pick('Passed') };
}

interface Counted {
  readonly total: number;
  readonly passed: number;
  readonly source: string;
}

function problemOf(job: Job, ran: ProcessResult, { total, passed, source }: Counted): string | undefined {
  const output = ran.stdout + ran.stderr;
  // Lines of running-test.ts.
  const said = (word: string): string | undefined => new RegExp(`^${word} (.*)$`, 'm').exec(output)?.[1];
  const before = [...output.matchAll(/^failed before: "(.*)"$/gm)].map(
    (match) => `\n    failed before: ${match[1]}`,
  );
  if (ran.timedOut)
    return (
      [`overran its deadline of ${job.deadlineMs / 1000} s`, said('stopped')].filter(Boolean).join(' ') +
      before.join('')
    );
  if (passed < total) return [`${total - passed} failed`, ...failedTests(output)].join('\n    ');
  const left = said('does not end after its last test:');
  if (left !== undefined) return `does not end after its last test: ${left}`;
  if (total === 0 && ran.code !== 0) return brokeOff(ran.code, said('ended')) + before.join('');
  // A machine that lacks what all of a file needs skips all of it: that is counted as skipped, and is no fault.
  if (total === 0 && !/^skip: /m.test(output)) return 'has no test';
  if (ran.code !== 0) return `exit code ${ran.code}`;
  if (/\.only\(/.test(source)) return 'uses .only';
  return undefined;
}

function brokeOff(code: number, where: string | undefined): string {
  const how = code === -1 ? 'was killed by a signal' : `ended with exit code ${code}`;
  return where === undefined ? `${how} before its first test` : `${how} ${where}`;
}

/** `suite > test` of each failure. */
function failedTests(output: string): readonly string[] {
  return [...output.matchAll(/^ +FAIL +(.*?) {2}"(.*)"$/gm)].map((match) => `${match[1]} > ${match[2]}`);
}

/** Name, first lines of the error, and position in the test files, for each failed test. */
export function failureDetails({ output, problem = '' }: FileResult): readonly string[] {
  const blocks = [...output.matchAll(/^ +FAIL +(.*?) {2}"(.*)"\n([^]*?)(?=^ +FAIL |^ {2}Total: |(?![^]))/gm)];
  if (blocks.length === 0) return problem.split('\n').map((line) => `    ${line.trim()}`);
  return blocks.flatMap(([, suite, test, text = '']) => {
    const lines = text.split('\n').map((line) => line.trim());
    const at = lines.find((line) => /^at .*\btest\/(?!support\/)[^)]*:\d+:\d+/.test(line));
    const words = lines.filter((line) => line !== '' && !line.startsWith('at ')).slice(0, 4);
    return [
      `    ${suite} > ${test}`,
      ...[...words, ...(at === undefined ? [] : [at])].map((line) => `      ${line}`),
    ];
  });
}
