/** Runs the commands of the command line, on files from memory, apart from the page. */
import './jitless.ts';
import type { Command } from '../../runtime/cli/command.ts';
import { forPeople } from '../../runtime/cli/terminal.ts';
import { command as reconcile } from '../../runtime/commands/reconcile/command.ts';
import { runCommand } from '../../runtime/commands/run-command.ts';
import { command as doctor } from '../../runtime/diagnose/commands/doctor.ts';
import { command as explain } from '../../runtime/diagnose/commands/explain.ts';
import { command as mirrors } from '../../runtime/diagnose/commands/mirrors.ts';
import { command as report } from '../../runtime/diagnose/commands/report.ts';
import { command as validate } from '../../runtime/diagnose/commands/validate.ts';
import type { Answer, Question } from './messages.ts';
import { holdFiles, readFile } from './node/fs.ts';

const COMMANDS: Readonly<Record<string, Command>> = { doctor, explain, mirrors, reconcile, report, validate };

/** Answers as the program would. */
async function answer({ id, args, colours, columns, read }: Question): Promise<Answer> {
  const [name = '', ...rest] = args;
  const command = COMMANDS[name];
  let stdout = '';
  let stderr = '';
  if (command === undefined) return { id, code: 2, stdout, stderr: `There is no command "${name}" here\n` };
  const code = await runCommand(
    command,
    rest,
    forPeople({
      // No question of the page reads it.
      stdin: undefined as never,
      stdout: {
        write: (text: string) => (stdout += text),
        isTTY: colours,
        ...(columns === undefined ? {} : { columns }),
      },
      stderr: { write: (text: string) => (stderr += text) },
      env: {},
      cwd: '/',
      signal: new AbortController().signal,
    }),
  );
  const file = read === undefined ? undefined : await readFile(read).catch(() => undefined);
  return { id, code, stdout, stderr, ...(file === undefined ? {} : { file }) };
}

globalThis.addEventListener('message', ({ data }: MessageEvent<Question>) => {
  if (data.files !== undefined) holdFiles(data.files);
  void answer(data).then((said) =>
    (globalThis as unknown as { postMessage(said: Answer, transfer: readonly object[]): void }).postMessage(
      said,
      [],
    ),
  );
});
