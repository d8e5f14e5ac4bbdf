/** Command line shell: help, version, dispatch, signals, and one place where errors become text and exit codes. */
import { writeSync } from 'node:fs';
import { describeError, UsageError } from '../rules/errors.ts';
import { VERSION } from '../rules/version.ts';
import type { Command, CommandIo, ExitCode } from './command.ts';
import { forPeople } from './people.ts';
import { COMMANDS } from './table.ts';

/** Runs `args` as the program `pullwright` would, and gives the exit code. */
export async function runMain(args: readonly string[], given: CommandIo = processIo()): Promise<ExitCode> {
  const io = forPeople(given);
  const [name, ...rest] = joined(args);
  if (name === 'help' && rest[0] !== undefined) return runMain([...rest, '--help'], io);
  if (name === undefined || ['--help', '-h', 'help'].includes(name)) {
    // Nobody asked for it: it is no result.
    const stream = name === undefined ? io.stderr : io.stdout;
    stream.write((await import('./overview.ts')).overview());
    return name === undefined ? 2 : 0;
  }
  if (['--version', 'version'].includes(name)) {
    io.stdout.write(`pullwright ${VERSION}\n`);
    return 0;
  }
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry !== undefined) return runCommand(await entry.load(), rest, io);
  io.stderr.write(`${(await import('./overview.ts')).unknownCommand(name)}\n`);
  return 2;
}

/** `adapter status X` is `adapter-status X`: a command about another one may be written in two words. */
function joined([first, second, ...rest]: readonly string[]): readonly string[] {
  if (first === undefined || second === undefined) return first === undefined ? [] : [first];
  const both = `${first}-${second}`;
  const isCommand = Object.hasOwn(COMMANDS, first) && Object.hasOwn(COMMANDS, both);
  return isCommand ? [both, ...rest] : [first, second, ...rest];
}

async function runCommand(command: Command, args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const own = args.slice(0, args.includes('--') ? args.indexOf('--') : args.length);
  if (own.includes('--help') || own.includes('-h')) {
    const { helpText } = await import('./flags/help.ts');
    io.stdout.write(`${helpText(await command.spec())}\n`);
    return 0;
  }
  try {
    return await command.run(args, io);
  } catch (error) {
    return reportFailure(error, command, io);
  }
}

function reportFailure(error: unknown, command: Command, io: CommandIo): ExitCode {
  if (isBrokenPipe(error)) return 0;
  io.stderr.write(`${deniedAccess(error) ?? describeError(error)}\n`);
  if (!(error instanceof UsageError)) return 1;
  io.stderr.write(`Run "pullwright ${command.name} --help" for usage\n`);
  return 2;
}

/** Node's permission model says what it denied in fields, not in words. */
function deniedAccess(error: unknown): string | undefined {
  const denied = [error, error instanceof Error ? error.cause : undefined].find(
    (one) => one instanceof Error && 'code' in one && one.code === 'ERR_ACCESS_DENIED',
  ) as (Error & { readonly permission?: string; readonly resource?: string }) | undefined;
  if (denied === undefined) return undefined;
  return `Access to "${denied.resource ?? ''}" (${denied.permission ?? 'unknown'}) is not granted to this process: grant what docs/cli.md lists for this command`;
}

function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EPIPE';
}

/** Streams are made when they are first asked for: each costs a millisecond or more of start-up. */
function processIo(): CommandIo {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort(signal));
  return {
    get stdin() {
      return process.stdin;
    },
    get stdout() {
      return openStdout();
    },
    get stderr() {
      return process.stderr;
    },
    writeNow: writeWhole,
    exitNow: (code) => process.exit(code),
    env: process.env,
    cwd: process.cwd(),
    signal: controller.signal,
  };
}

let isWatched = false;

function openStdout(): NodeJS.WriteStream {
  if (!isWatched) {
    process.stdout.on('error', (error) => {
      if (isBrokenPipe(error)) process.exit(0);
    });
  }
  isWatched = true;
  return process.stdout;
}

function writeWhole(fd: 1 | 2, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}
