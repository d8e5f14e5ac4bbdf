/** The program within this process, for suites of many short runs: what `main.ts` does, without the start of a runtime. */
import { Readable } from 'node:stream';
import type { CommandIo } from '../../runtime/cli/command.ts';
import { runMain } from '../../runtime/commands/main.ts';
import { assertPrinted } from './json-output.ts';

/** Output and exit code of a run. */
export interface InProcessRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs `args` as `pullwright` would, with no terminal and an empty environment, or in the surroundings that are given, of which `isTTY` makes it a terminal. What it prints as JSON
 * is held against its schema.
 */
export async function runInProcess(
  args: readonly string[],
  { isTTY, ...given }: Partial<CommandIo> & { readonly isTTY?: boolean } = {},
): Promise<InProcessRun> {
  const seen = { stdout: '', stderr: '' };
  const stream = (name: 'stdout' | 'stderr') => ({
    ...(isTTY === undefined ? {} : { isTTY, columns: 80 }),
    write: (text: string) => {
      seen[name] += text;
    },
  });
  const code = await runMain(args, {
    stdin: Readable.from([]),
    stdout: stream('stdout'),
    stderr: stream('stderr'),
    env: { NO_COLOR: '1' },
    cwd: process.cwd(),
    signal: new AbortController().signal,
    ...given,
  });
  assertPrinted(args, { code, stdout: seen.stdout });
  return { code, ...seen };
}
