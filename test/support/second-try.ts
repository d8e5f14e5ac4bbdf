/**
 * Which failed test files are run once more, alone, at the end of a whole run. Those that start an API server or a node share two
 * processors with another file, and wait for programs that are not ours; such a file may fail for want of time. It is named
 * in the summary as unsteady, with what failed first. Decision 174.
 */
import type { FileResult } from './judge.ts';

/** More at once are no accident. */
export const MOST_SECOND_TRIES = 3;

/** Programs of others that a file stands on, by what its text holds. */
const REAL_PARTS = /\/(control-plane|machine\/node)\.ts'/;
/** A kill or a draw that fails once in a hundred times is what such a file is there to find. */
const BY_CHANCE = /\/support\/(counted|random|seeded-random)\.ts'/;

/**
 * The files of `bad` that get a second try: none, when too many failed.
 *
 * @param textOf text of a test file
 *
 * @example
 * ```ts
 * import { secondTries } from './second-try.ts';
 * import assert from 'node:assert/strict';
 *
 * const bad = { file: 'test/live.test.ts', passed: 1, failed: 1, skips: [], problem: '1 failed', output: '', seconds: 1 };
 * assert.deepEqual(secondTries([bad], () => "from '../control-plane/control-plane.ts'"), ['test/live.test.ts']);
 * assert.deepEqual(secondTries([bad], () => "from '../support/suite.ts'"), []);
 * ```
 */
export function secondTries(bad: readonly FileResult[], textOf: (file: string) => string): readonly string[] {
  if (bad.length > MOST_SECOND_TRIES) return [];
  return bad
    .filter(({ file, leaked }) => file.endsWith('.test.ts') && leaked !== true)
    .map(({ file }) => file)
    .filter((file) => {
      const text = textOf(file);
      return REAL_PARTS.test(text) && !BY_CHANCE.test(text);
    });
}

/** How the files of a second try are read and run, and where it is said. */
export interface Tries {
  readonly textOf: (file: string) => string;
  readonly run: (files: readonly string[]) => Promise<readonly FileResult[]>;
  readonly say: (line: string) => void;
}

/** The results of a whole run, those of second tries in place of the first. */
export async function triedAgain(
  results: readonly FileResult[],
  { textOf, run, say }: Tries,
): Promise<readonly FileResult[]> {
  const files = secondTries(results.filter(isBad), textOf);
  if (files.length === 0) return results;
  say(`once more, one at a time: ${files.join(' ')}`);
  const again = await run(files);
  for (const { file } of again.filter((result) => !isBad(result)))
    say(`unsteady: ${file}: ${results.find((result) => result.file === file)?.problem}`);
  return [...results.filter(({ file }) => !files.includes(file)), ...again];
}

/** Whether something is wrong with a file. */
export function isBad({ problem }: FileResult): boolean {
  return problem !== undefined;
}
