/** Command line shell: version, dispatch, signals. */
import { writeSync } from 'node:fs';
import type { CommandIo, ExitCode } from '../cli/command.ts';
import { forPeople } from '../cli/terminal.ts';
import { errnoOf } from '../core/errors.ts';
import { nearWord, onOneLine } from '../core/text.ts';
import { VERSION } from '../core/version.ts';
import { runCommand } from './run-command.ts';
import { COMMANDS, GROUPS } from './table.ts';

/** Runs `args` as the program `pullwright` and returns the exit code. */
export async function runMain(args: readonly string[], given: CommandIo = processIo()): Promise<ExitCode> {
  const [name, ...rest] = args;
  if (name === 'help' && rest[0] !== undefined) return runMain([...rest, '--help'], given);
  const io = forPeople(given);
  if (name === undefined || ['--help', '-h', 'help'].includes(name)) {
    // Without a command the list is an error message, not a result.
    const stream = name === undefined ? io.stderr : io.stdout;
    stream.write(overview());
    return name === undefined ? 2 : 0;
  }
  if (['--version', 'version'].includes(name)) {
    io.stdout.write(`pullwright ${VERSION}\n`);
    return 0;
  }
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry !== undefined) return runCommand(await entry.load(), rest, io);
  io.stderr.write(`${unknownCommand(name)}\n`);
  return 2;
}

/** Opens each stream on first use: each costs a millisecond or more at start-up. */
function processIo(): CommandIo {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => controller.abort(signal));
  let stdout: NodeJS.WriteStream | undefined;
  return {
    get stdin() {
      return process.stdin;
    },
    get stdout() {
      stdout ??= process.stdout.on('error', (error) => {
        if (errnoOf(error) === 'EPIPE') process.exit(0);
        process.stderr.write(`Cannot write to standard output: ${errnoOf(error) ?? 'unknown'}\n`);
        process.exit(1);
      });
      return stdout;
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

function writeWhole(fd: 1 | 2, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

// Output when no command runs: the list of commands, or the closest match for an unknown command.

const TITLES: readonly (readonly [keyof typeof GROUPS, string])[] = [
  ['ask', 'Inspect (read-only):'],
  ['change', 'Prepare and clean up:'],
  ['run', 'Run, mostly in pods and on nodes:'],
];

/** The list of commands, by group. */
export function overview(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
  const groups = TITLES.flatMap(([group, title]) => [
    title,
    ...Object.entries(GROUPS[group]).map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`),
    '',
  ]);
  return [
    'Pull credentials as code for Kubernetes and OpenShift fleets.',
    '',
    'Usage: pullwright <command> [options]',
    '',
    ...groups,
    'Run "pullwright <command> --help" for its options and an example.',
    '',
  ].join('\n');
}

/** The error message for an unknown command, with the closest match or the list of commands. */
export function unknownCommand(word: string): string {
  const known = Object.keys(COMMANDS);
  const near = nearWord(word, known);
  const wanted = near === undefined ? `expected one of ${known.join(', ')}` : `did you mean "${near}"?`;
  return onOneLine(`Unknown command "${word}": ${wanted}`);
}
