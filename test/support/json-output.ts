/** Check of a command's JSON output, shared by every helper that runs the program. */
import assert from 'node:assert/strict';
import { basename } from 'node:path';

/** Result of a run. */
interface Ran {
  readonly code: number;
  readonly stdout: string;
}

const PROGRAMS = new Set(['main.ts', 'pullwright', 'kubectl-pullwright']);

/** Whether the arguments request JSON output, without help. */
function printsJson(args: readonly string[]): boolean {
  const own = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length);
  const isJson = own.some(
    (arg, at) =>
      /^(?:--output=|-o=?)json$/.test(arg) || (/^(?:--output|-o)$/.test(arg) && own[at + 1] === 'json'),
  );
  return isJson && !own.includes('--help') && !own.includes('-h');
}

/**
 * A usage error prints nothing; a failed run prints nothing or the whole document.
 *
 * @throws AssertionError that names the run
 */
export function assertPrinted(args: readonly string[], { code, stdout }: Ran): void {
  if (!printsJson(args)) return;
  const what = `${args.join(' ')} (exit code ${code})`;
  if (code === 2) assert.equal(stdout, '', `${what} prints to stdout`);
  if (code !== 0 && stdout === '') return;
  const watches = args.includes('--watch') || args.includes('-w');
  for (const text of watches ? documentsIn(stdout) : [stdout]) {
    assert.match(text, /\S\n$/, `${what} does not end with a line end`);
    JSON.parse(text);
  }
}

/** The same of a process that ended by itself; of another program nothing is held against anything. */
export function assertPrintedBy(process: readonly string[], ran: Ran): void {
  // Flags of the runtime may name the same file.
  const at = process.findIndex((part) => !part.startsWith('-') && PROGRAMS.has(basename(part)));
  if (at !== -1 && ran.code >= 0) assertPrinted(process.slice(at + 1), ran);
}

/** Documents begin and end at the start of a line. */
function documentsIn(text: string): readonly string[] {
  return text.split(/(?<=^(?:[}\]]|\[\]|\{\})\n)/m);
}
