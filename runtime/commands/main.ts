/** Command line shell: version, dispatch, signals. */
import { writeSync } from 'node:fs';
import { VERSION } from '../rules/version.ts';
import type { CommandIo, ExitCode } from './command.ts';
import { forPeople } from './people.ts';
import { programName, speakingAs } from './program-name.ts';
import { asksForHelp, isBrokenPipe, runCommand } from './run-command.ts';
import { COMMANDS, type TableEntry } from './table.ts';

/** Runs `args` as the program `pullwright` would, and gives the exit code. */
export async function runMain(args: readonly string[], given: CommandIo = processIo()): Promise<ExitCode> {
  const [name, ...rest] = args;
  if (name === 'help' && rest[0] !== undefined) return runMain([...rest, '--help'], given);
  const isHelp = name === 'help' || asksForHelp(args);
  const io = forPeople(speakingAs(given, (word) => Object.hasOwn(COMMANDS, word), isHelp));
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
  return runNamed(name, rest, io);
}

async function runNamed(name: string, args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry === undefined) {
    io.stderr.write(`${(await import('./overview.ts')).unknownCommand(name)}\n`);
    return 2;
  }
  const problem = asksForHelp(args) ? undefined : wrongPlatform({ name, entry, args }, io.platform);
  if (problem === undefined) return runCommand(await entry.load(), args, io);
  io.stderr.write(`${problem}\n`);
  return 1;
}

/** What runs on a node says so on a laptop, instead of failing at the first file or socket that is not there. */
function wrongPlatform(
  { name, entry: { needsLinux }, args }: NamedRun,
  platform: NodeJS.Platform = process.platform,
): string | undefined {
  if (
    needsLinux === undefined ||
    platform === 'linux' ||
    args.some((arg) => needsLinux.unless?.includes(arg))
  )
    return undefined;
  return `Cannot run "pullwright ${name}" on ${platform === 'win32' ? 'Windows' : platform}: ${needsLinux.because}, expected Linux. ${needsLinux.instead}`;
}

interface NamedRun {
  readonly name: string;
  readonly entry: TableEntry;
  readonly args: readonly string[];
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
    program: programName(process.argv0),
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
