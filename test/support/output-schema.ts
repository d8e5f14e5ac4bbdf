/** What a command printed as JSON is held against its schema, by every helper that runs the program. */
import assert from 'node:assert/strict';
import { basename } from 'node:path';

/** What a run said. */
interface Ran {
  readonly code: number;
  readonly stdout: string;
}

/** A run that was asked for JSON. */
export interface JsonRun {
  readonly command: string;
  /** Of one that looks again and again, one document follows the other. */
  readonly watches: boolean;
}

const PROGRAMS = new Set(['main.ts', 'pullwright', 'kubectl-pullwright']);

/** Undefined where no JSON is asked for, or help is. */
export function jsonRunOf(args: readonly string[]): JsonRun | undefined {
  const [first = '', second] = args;
  const own = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length);
  const isJson = own.some(
    (arg, at) =>
      /^(?:--output=|-o=?)json$/.test(arg) || (/^(?:--output|-o)$/.test(arg) && own[at + 1] === 'json'),
  );
  if (!isJson || own.includes('--help') || own.includes('-h')) return undefined;
  const command =
    first === 'adapter' && (second === 'status' || second === 'import') ? `${first}-${second}` : first;
  return { command, watches: own.includes('--watch') || own.includes('-w') };
}

/**
 * Holds a run against the schema of its command. Where usage is wrong nothing is printed; where a run fails, nothing or the whole.
 *
 * @throws AssertionError that names the fields
 */
export async function assertPrinted(args: readonly string[], { code, stdout }: Ran): Promise<void> {
  const asked = jsonRunOf(args);
  if (asked === undefined) return;
  const { command, watches } = asked;
  const what = `${args.join(' ')} (exit code ${code})`;
  if (code === 2) assert.equal(stdout, '', `${what} prints to stdout`);
  if (code !== 0 && stdout === '') return;
  const texts = watches ? documentsIn(stdout) : [stdout];
  for (const text of texts) {
    assert.match(text, /\S\n$/, `${what} does not end with a line end`);
    const { index, problem } = await formOf(command, JSON.parse(text));
    assert.ok(
      index !== undefined,
      `${what} prints what its schema in runtime/commands/output does not say:\n${problem}`,
    );
  }
}

/** The same of a process that ended by itself; of another program nothing is held against anything. */
export async function assertPrintedBy(process: readonly string[], ran: Ran): Promise<void> {
  // Flags of the runtime may name the same file.
  const at = process.findIndex((part) => !part.startsWith('-') && PROGRAMS.has(basename(part)));
  if (at !== -1 && ran.code >= 0) await assertPrinted(process.slice(at + 1), ran);
}

/** Documents begin and end at the start of a line. */
function documentsIn(text: string): readonly string[] {
  return text.split(/(?<=^(?:[}\]]|\[\]|\{\})\n)/m);
}

/** Which form of a command's output a value is; without one, what stands against each. */
export async function formOf(
  command: string,
  value: unknown,
): Promise<{ readonly index?: number; readonly problem: string }> {
  // Most runs print no JSON, and then nothing of this is loaded.
  const { OUTPUTS } = await import('../../build/reference/outputs/outputs.ts');
  const { prettifyError } = await import('zod');
  const forms = OUTPUTS[command] ?? [];
  const results = forms.map(({ schema }) => schema.safeParse(value));
  const index = results.findIndex(({ success }) => success);
  const problem = results
    .map(({ error }, at) => (error === undefined ? '' : `${forms[at]?.when}: ${prettifyError(error)}`))
    .join('\n');
  return { ...(index === -1 ? {} : { index }), problem: forms.length === 0 ? 'there is none' : problem };
}
