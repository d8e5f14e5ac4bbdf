/**
 * Which failed test files are run once more, alone, at the end of a whole run. Those that start an API server, a node, a broker or a browser share two
 * processors with another file, and wait for programs that are not ours; such a file may fail for want of time. It is named
 * in the summary as unsteady, with what failed first. Decision 174.
 */
import type { FileResult } from './judge.ts';
import { leansOn } from './reach.ts';

/** More at once are no accident. */
export const MOST_SECOND_TRIES = 3;

/** What starts programs of others. */
const REAL_PARTS =
  /^test\/(control-plane\/control-plane|node\/machine\/node|brokers\/[a-z]+-node|browser\/browsers)\.ts$/;
/** A kill or a draw that fails once in a hundred times is what such a file is there to find. */
const BY_CHANCE = /\/support\/(counted|random|seeded-random)\.ts'/;

/**
 * The files of `bad` that get a second try: none, when too many failed.
 *
 * @param textOf text of a test file
 * @param isReal whether a file starts programs of others, itself or by what it imports
 *
 * @example
 * ```ts
 * import { secondTries } from './second-try.ts';
 * import assert from 'node:assert/strict';
 *
 * const bad = { file: 'test/live.test.ts', passed: 1, failed: 1, skips: [], problem: '1 failed', output: '', seconds: 1 };
 * assert.deepEqual(secondTries([bad], () => '', () => true), ['test/live.test.ts']);
 * assert.deepEqual(secondTries([bad], () => "from '../support/counted.ts'", () => true), []);
 * ```
 */
export function secondTries(
  bad: readonly FileResult[],
  textOf: (file: string) => string,
  isReal: (file: string) => boolean = (file) => leansOn(file, REAL_PARTS),
): readonly string[] {
  if (bad.length > MOST_SECOND_TRIES) return [];
  return bad
    .filter(({ file, leaked }) => file.endsWith('.test.ts') && leaked !== true)
    .map(({ file }) => file)
    .filter((file) => !BY_CHANCE.test(textOf(file)) && isReal(file));
}

/** How the files of a second try are read and run, and where it is said. */
export interface Tries {
  readonly textOf: (file: string) => string;
  readonly isReal?: (file: string) => boolean;
  readonly run: (files: readonly string[]) => Promise<readonly FileResult[]>;
  readonly say: (line: string) => void;
}

/** The results of a whole run, those of second tries in place of the first. */
export async function triedAgain(
  results: readonly FileResult[],
  { textOf, isReal, run, say }: Tries,
): Promise<readonly FileResult[]> {
  const files = secondTries(results.filter(isBad), textOf, isReal);
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
