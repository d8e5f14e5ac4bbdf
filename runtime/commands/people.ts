/** The one place through which text goes to people. */
import { printable, withoutCommands } from '../rules/text/printable.ts';
import type { CommandIo } from './command.ts';

/**
 * Stands before each sequence that is ours. Nobody outside can know it, and terminals and measures of width pass over it: it has
 * the form of an operating system command.
 */
const MARK = `\u001b]${globalThis.crypto.randomUUID()}\u0007`;

/** Moves of the cursor and colours, at the start of a text. */
const SEQUENCES = /^(?:\r|\p{Cc}\[[0-9;]*[A-Za-z])+/u;

/** A sequence of control characters that this program means, e.g. `\r\u001b[K`. */
export function control(sequence: string): string {
  return `${MARK}${sequence}`;
}

/**
 * The same places to write to, where no character of somebody else's choice is obeyed: only sequences made by {@link control}
 * stay, and nothing passes for a command to the CI system that keeps the log. What is JSON or our YAML stays the same value, since the
 * escapes are those of both.
 *
 * @example
 * ```ts
 * import { forPeople } from './people.ts';
 * import assert from 'node:assert/strict';
 *
 * let seen = '';
 * const stream = { write: (text: string) => (seen += text) };
 * const io = { stdin: process.stdin, stdout: stream, stderr: stream, env: {}, cwd: '/', signal: AbortSignal.abort() };
 * forPeople(io).stdout.write('pod "\u001b[2J"\n');
 * assert.equal(seen, 'pod "\\u001b[2J"\n');
 * ```
 */
export function forPeople(io: CommandIo): CommandIo {
  return {
    ...(io.writeNow === undefined ? {} : { writeNow: io.writeNow }),
    ...(io.exitNow === undefined ? {} : { exitNow: io.exitNow }),
    ...(io.program === undefined ? {} : { program: io.program }),
    ...(io.platform === undefined ? {} : { platform: io.platform }),
    env: io.env,
    cwd: io.cwd,
    signal: io.signal,
    // Streams are made when they are first asked for, which costs the provider's start-up.
    get stdin() {
      return io.stdin;
    },
    get stdout() {
      return escaping(io.stdout);
    },
    get stderr() {
      return escaping(io.stderr);
    },
  };
}

function escaping(stream: CommandIo['stdout']): CommandIo['stdout'] {
  return {
    write: (text) => stream.write(shown(text)),
    ...(stream.isTTY === undefined ? {} : { isTTY: stream.isTTY }),
    get columns() {
      return stream.columns as number;
    },
  };
}

function shown(text: string): string {
  const [first = '', ...marked] = text.split(MARK);
  const rest = marked.map((part) => {
    const own = SEQUENCES.exec(part)?.[0] ?? '';
    return own + harmless(part.slice(own.length));
  });
  return harmless(first) + rest.join('');
}

/** For terminals, and for CI systems, which read a log for commands. */
function harmless(text: string): string {
  return withoutCommands(printable(text));
}
