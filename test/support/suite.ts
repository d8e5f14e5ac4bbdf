/**
 * uvu without its silent greens. There are no hooks (set-up goes into the test body, clean-up into `lastly`, which counts
 * like a test), no `only`, and a skip carries its reason. The tests of a file run once the file has been evaluated.
 * `test/run.ts` reads the totals that uvu prints and the `skip:` lines.
 *
 * @example
 * ```ts
 * test('mergeImagePullSecrets() keeps the order of the pod', () => { ... });
 * ```
 */
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import { runningAs, testsEnded } from './running-test.ts';

export type TestBody = () => void | Promise<unknown>;

export interface TestSuite {
  (name: string, body: TestBody): void;
  /** Counts as skipped in the summary, with its reason. In `.ci/run` a skip is a failure. */
  skip(name: string, reason: string): void;
  /** Test that needs root on the machine, to mount and to change owners; skipped for other users. */
  asRoot(name: string, body: TestBody): void;
  /** Runs after all tests, in reverse order of registration, and counts like one of them. */
  lastly(name: string, body: TestBody): void;
}

const [, file = ''] = process.argv;
const name = basename(file, '.test.ts');
const inner = suite(name);
const last: (() => void)[] = [];
let [left, skips, isRun] = [0, 0, false];

/** Adds a test to the file that this process runs. */
export const test: TestSuite = Object.assign(add, {
  skip(title: string, reason: string): void {
    process.stdout.write(`skip: ${name} > ${title}: ${reason}\n`);
    inner.skip(title);
    skips += 1;
  },
  asRoot(title: string, body: TestBody): void {
    if (process.platform === 'linux' && process.geteuid?.() === 0) add(title, body);
    else test.skip(title, 'needs root on Linux');
  },
  lastly: (title: string, body: TestBody) => void last.unshift(() => add(title, body)),
});

function add(title: string, body: TestBody): void {
  if (isRun) throw new Error(`test "${title}" was added after the file was evaluated`);
  left += 1;
  inner(title, async () => {
    try {
      await runningAs(`"${name} > ${title}"`, body);
    } finally {
      left -= 1;
      if (left === 0) testsEnded();
    }
  });
}

function run(): void {
  for (const register of last) register();
  isRun = true;
  if (left + skips > 0) inner.run();
  if (left === 0 && skips > 0) testsEnded();
}

// Whatever ends the process before its tests have run, that is no success.
process.on('exit', (code) => {
  if (left > 0 && code === 0) process.exitCode = 1;
});
// The promise of the file that is being evaluated; Node itself reports when that fails.
if (file !== '') void import(pathToFileURL(file).href).then(run, () => undefined);

/** A row of a table test: what it is called, why it matters where that is not said by it, and its data. */
export interface Case {
  readonly name: string;
  /** Printed when the case fails. */
  readonly reason?: string;
}

/** One test per row; a failure prints the row's reason. */
export function table<C extends Case>(
  add: (name: string, body: TestBody) => void,
  rows: readonly C[],
  body: (row: C) => void | Promise<void>,
): void {
  for (const row of rows) {
    add(row.name, async () => {
      try {
        await body(row);
      } catch (error) {
        if (error instanceof Error && row.reason !== undefined)
          error.message = `${error.message}\n  reason: ${row.reason}`;
        throw error;
      }
    });
  }
}

/** Rows of {@link cases}: a name, why it matters where that is not said by it, and what the body takes. */
export type Cases<T extends readonly unknown[]> = readonly (readonly [
  name: string,
  reason: string,
  ...data: T,
])[];

/** {@link table} of short rows. */
export function cases<T extends readonly unknown[]>(
  add: (name: string, body: TestBody) => void,
  rows: Cases<T>,
  body: (...data: T) => void | Promise<void>,
): void {
  const all = rows.map(([name, reason, ...data]) => ({ name, data, ...(reason === '' ? {} : { reason }) }));
  table(add, all, ({ data }) => body(...data));
}
