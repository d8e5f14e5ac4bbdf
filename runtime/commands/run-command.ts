import type { Command, CommandIo, ExitCode } from '../cli/command.ts';
import { describeError, errnoOf, PullwrightError, UsageError } from '../core/errors.ts';
import { onOneLine } from '../core/text.ts';

// Runs one command with its arguments: prints help, and converts errors to text and exit codes.

/** Runs `command` and returns its exit code. Writes an error to stderr as one sentence. */
export async function runCommand(
  command: Command,
  args: readonly string[],
  io: CommandIo,
): Promise<ExitCode> {
  if (asksForHelp(args)) {
    const { helpText } = await import('../cli/help.ts');
    io.stdout.write(`${helpText(await command.spec())}\n`);
    return 0;
  }
  try {
    return await command.run(args, io);
  } catch (error) {
    return await reportFailure(error, command, io);
  }
}

/** Whether `--help` is a flag. After `--` it is an argument. */
export function asksForHelp(args: readonly string[]): boolean {
  const own = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length);
  return own.includes('--help') || own.includes('-h');
}

async function reportFailure(error: unknown, command: Command, io: CommandIo): Promise<ExitCode> {
  // The reader closed the pipe, which is not a failure.
  if (errnoOf(error) === 'EPIPE') return 0;
  const text = deniedAccess(error) ?? describeError(error);
  io.stderr.write(
    `${error instanceof PullwrightError && error.details !== undefined ? text : onOneLine(text)}\n`,
  );
  if (!(error instanceof UsageError)) return 1;
  const { program = `pullwright ${command.name}` } = await command.spec();
  io.stderr.write(`Run "${program} --help" for usage\n`);
  return 2;
}

/** Node's permission model reports the denied access in fields, not in the message. */
function deniedAccess(error: unknown): string | undefined {
  const denied = [error, error instanceof Error ? error.cause : undefined].find(
    (one) => errnoOf(one) === 'ERR_ACCESS_DENIED',
  ) as (Error & { readonly permission?: string; readonly resource?: string }) | undefined;
  if (denied === undefined) return undefined;
  return `Access to "${denied.resource ?? ''}" (${denied.permission ?? 'unknown'}) is not granted to this process: grant the permissions that docs/reference/cli.md lists`;
}
