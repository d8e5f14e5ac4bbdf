/** What was found wrong beside the answer of a command. */
import { capped } from '../rules/text/capped.ts';
import { onOneLine } from '../rules/text/printable.ts';
import type { CommandIo } from './command.ts';

/** Who reads more of them at night? Whoever wants them all has them in a file. */
const MOST_LINES = 200;

/**
 * Writes a line for each problem to stderr. On a terminal, one broken document must not fill a person's screen: the first are shown, with how
 * many more there are. Elsewhere each line may be looked for, and all are written.
 *
 * @example
 * ```ts
 * import { writeProblems } from './problems.ts';
 * import assert from 'node:assert/strict';
 *
 * let said = '';
 * const stderr = { isTTY: true, write: (text: string) => (said += text) };
 * writeProblems({ stderr }, ['a is no list', 'b is no list']);
 * assert.equal(said, 'a is no list\nb is no list\n');
 * ```
 */
export function writeProblems({ stderr }: Pick<CommandIo, 'stderr'>, problems: Iterable<string>): void {
  // What is said of an object holds its names; a newline in one must begin no line.
  const lines = [...problems].map(onOneLine);
  const shown = stderr.isTTY === true ? capped(lines, MOST_LINES, '2>FILE keeps them all') : lines;
  if (shown.length > 0) stderr.write(`${shown.join('\n')}\n`);
}
