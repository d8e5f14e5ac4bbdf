/**
 * uvu without its silent greens. There are no hooks (set-up goes into the test body, clean-up into `lastly`, which counts
 * like a test), no `only`, a skip carries its reason, and a suite that was never run fails the file. `test/run.ts` reads
 * the totals that uvu prints and the `skip:` lines.
 *
 * @example
 * ```ts
 * const test = suite('mergeImagePullSecrets');
 * test('keeps the order of the pod', () => { ... });
 * test.run();
 * ```
 */
import { suite as uvuSuite } from 'uvu';
import { runningAs, suiteEnded, suiteOpened } from './running-test.ts';

export type TestBody = () => void | Promise<void>;

export interface TestSuite {
  (name: string, body: TestBody): void;
  /** Counts as skipped in the summary, with its reason. In `.ci/run` a skip is a failure. */
  skip(name: string, reason: string): void;
  /** What only root can do: skipped for anybody else. Root of a machine, which may mount and change owners. */
  asRoot(name: string, body: TestBody): void;
  /** Runs after all tests of the suite, in reverse order of registration, and counts like one of them. */
  lastly(name: string, body: TestBody): void;
  run(): void;
}

/** Makes a suite named after the symbol under test. Ends with `.run()`. */
export function suite(name: string): TestSuite {
  const inner = uvuSuite(name);
  const last: (() => void)[] = [];
  let state: 'open' | 'run' = 'open';
  let left = 0;
  suiteOpened();
  process.on('exit', () => {
    if (state === 'run') return;
    process.stdout.write(`suite "${name}" was never run: add test.run()\n`);
    process.exitCode = 1;
  });
  const add = (title: string, body: TestBody): void => {
    left += 1;
    inner(title, async () => {
      try {
        await runningAs(`"${name} > ${title}"`, body);
      } finally {
        left -= 1;
        if (left === 0) suiteEnded();
      }
    });
  };
  const test = ((title: string, body: TestBody) => {
    if (state === 'run') throw new Error(`test "${title}" was added to suite "${name}" after it ran`);
    add(title, body);
  }) as TestSuite;
  test.skip = (title, reason) => {
    process.stdout.write(`skip: ${name} > ${title}: ${reason}\n`);
    inner.skip(title);
  };
  test.asRoot = (title, body) => {
    if (process.platform === 'linux' && process.geteuid?.() === 0) test(title, body);
    else test.skip(title, 'needs root on Linux');
  };
  test.lastly = (title, body) => last.unshift(() => add(title, body));
  test.run = () => {
    for (const register of last) register();
    state = 'run';
    if (left === 0) suiteEnded();
    inner.run();
  };
  return test;
}

/** A row of a table test: what it is called, why it matters, and its data. */
export interface Case {
  readonly name: string;
  /** Printed when the case fails. */
  readonly reason: string;
}

/** One test per row; a failure prints the row's reason. */
export function table<C extends Case>(
  test: TestSuite,
  rows: readonly C[],
  body: (row: C) => void | Promise<void>,
): void {
  for (const row of rows) {
    test(row.name, async () => {
      try {
        await body(row);
      } catch (error) {
        if (error instanceof Error) error.message = `${error.message}\n  reason: ${row.reason}`;
        throw error;
      }
    });
  }
}
