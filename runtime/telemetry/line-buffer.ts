/** Log lines of one turn of the event loop in one write: to a pipe each write is a system call that nothing else waits beside. */

/** Never more than this is held back. */
const MOST = 64 * 1024;

/**
 * Gives a function that takes lines. They are written together when the loop comes round, and at the latest when the process
 * exits.
 *
 * @param write takes text, as `process.stdout.write`
 * @param later calls back once, when the current work is done
 * @example
 * ```ts
 * import { lineBuffer } from './line-buffer.ts';
 * import assert from 'node:assert/strict';
 *
 * const written: string[] = [];
 * const turns: (() => void)[] = [];
 * const write = lineBuffer((text) => written.push(text), (run) => turns.push(run));
 * for (const line of ['a\n', 'b\n']) write(line);
 * assert.deepEqual(written, []);
 * for (const run of turns) run();
 * assert.deepEqual(written, ['a\nb\n']);
 * ```
 */
export function lineBuffer(
  write: (text: string) => unknown,
  later: (run: () => void) => unknown = setImmediate,
): (line: string) => void {
  let held = '';
  const flush = (): void => {
    const text = held;
    held = '';
    if (text !== '') write(text);
  };
  process.once('exit', flush);
  return (line) => {
    if (held === '') later(flush);
    held += line;
    if (held.length > MOST) flush();
  };
}
