/** Formats and escapes all output for people. */
import { defined } from '../core/record.ts';
import { onOneLine, printable, withoutCommands, wrapped } from '../core/text.ts';
import type { CommandIo } from './command.ts';

/**
 * Prefix of our own sequences. It is secret, and terminals and width measures skip it: it has the form of an operating system
 * command.
 */
const MARK = `\u001b]${globalThis.crypto.randomUUID()}\u0007`;

/** Moves of the cursor and colours, at the start of a text. */
const SEQUENCES = /^(?:\r|\p{Cc}\[[0-9;]*[A-Za-z])+/u;

/** Marks a sequence of control characters as our own, e.g. `\r\u001b[K`. */
export function control(sequence: string): string {
  return `${MARK}${sequence}`;
}

/**
 * The same streams, with untrusted control characters escaped: only sequences made by {@link control}
 * stay, and no text is a command for the CI system that stores the log. The values of JSON and of our YAML do not change, because
 * the escapes are valid in both.
 */
export function forPeople(io: CommandIo): CommandIo {
  return {
    ...defined({ writeNow: io.writeNow, exitNow: io.exitNow, platform: io.platform }),
    env: io.env,
    cwd: io.cwd,
    signal: io.signal,
    // Created on first use, because each stream slows the start of the credential provider.
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
    ...defined({ isTTY: stream.isTTY }),
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

/** Escapes text for terminals, and for CI systems, which run commands in a log. */
function harmless(text: string): string {
  return withoutCommands(printable(text));
}

// Long lists for people: the first lines, and the number of the others.

/**
 * The first `most` of `lines`, then one that counts the rest.
 *
 * @param hint how to see all lines, e.g. `--output json shows them`
 */
export function capped(lines: readonly string[], most: number, hint: string): readonly string[] {
  if (lines.length <= most) return lines;
  const kept = lines.slice(0, most - 1);
  return [...kept, `... and ${lines.length - kept.length} more: ${hint}`];
}

// Problems that a command reports in addition to its result.

/** Lines on a terminal; 2>FILE keeps all lines. */
const MOST_LINES = 200;

/**
 * Writes a line for each problem to stderr. A terminal shows only the first ones and the number of the others, so that one broken
 * document does not fill the screen. Files and pipes get all of them.
 */
export function writeProblems({ stderr }: Pick<CommandIo, 'stderr'>, problems: Iterable<string>): void {
  // Problems contain names of objects; a newline in a name must not start a line.
  const lines = [...problems].map(onOneLine);
  const shown = stderr.isTTY === true ? capped(lines, MOST_LINES, 'use 2>FILE to see all') : lines;
  if (shown.length > 0) stderr.write(`${shown.join('\n')}\n`);
}

/** Whether all `problems` are warnings, so that all input was read. */
export function areWarnings(problems: readonly string[]): boolean {
  return problems.every((line) => line.startsWith('warning: '));
}

/** Styles a text for a terminal; {@link plain} returns it unchanged. */
export type Paint = (style: keyof typeof STYLES, text: string) => string;

export const plain: Paint = (_style, text) => text;

// Colours and width of the terminal.

/**
 * Codes that start a style with eight colours and with 256, and end it. With red-green colour blindness, orange and yellow differ
 * in lightness, and blue in hue; red and green do not differ. Text next to a colour has the same meaning.
 */
const STYLES = {
  bold: ['1', '1', '22'],
  dim: ['2', '2', '22'],
  red: ['31', '38;5;202', '39'],
  yellow: ['33', '38;5;226', '39'],
  green: ['36', '38;5;39', '39'],
} as const;

/**
 * Colours on a terminal only, and not when NO_COLOR is set to any value or TERM is `dumb`.
 *
 * @param io `COLORTERM` and `TERM` determine the number of colours
 */
export function paintFor({ stdout, env }: CommandIo): Paint {
  const { NO_COLOR = '', TERM = '', COLORTERM = '' } = env;
  if (stdout.isTTY !== true || NO_COLOR !== '' || TERM === 'dumb') return plain;
  const hasMany = COLORTERM !== '' || TERM.includes('256color');
  return (style, text) => {
    const [few, many, close] = STYLES[style];
    return `${control(`\u001b[${hasMany ? many : few}m`)}${text}${control(`\u001b[${close}m`)}`;
  };
}

/** Width to wrap or cut at: COLUMNS, else the width of the terminal; undefined without either. */
export function columnsOf({ env, stdout }: CommandIo): number | undefined {
  const said = Number(env['COLUMNS'] ?? Number.NaN);
  if (Number.isInteger(said) && said > 0) return said;
  return stdout.isTTY === true && (stdout.columns ?? 0) > 0 ? stdout.columns : undefined;
}

// Columns of text for people.

/**
 * Aligns `cells` in columns. The first row is the header; each line is cut to `columns`. Ends with a newline.
 *
 * @param columns width of the terminal; undefined: nothing is cut
 */
export function textTable(given: readonly (readonly string[])[], columns: number | undefined): string {
  // A name with a newline could fake a row.
  const cells = given.map((line) => line.map(onOneLine));
  const widths = widthsOf(cells);
  const lines = cells.map((line) =>
    line
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.map((line) => cut(line, columns)).join('\n')}\n`;
}

/** Width of each column. */
function widthsOf(cells: readonly (readonly string[])[]): readonly number[] {
  const count = Math.max(...cells.map((line) => line.length));
  return Array.from({ length: count }, (_, index) =>
    cells.reduce((widest, line) => Math.max(widest, line[index]?.length ?? 0), 0),
  );
}

function cut(line: string, columns: number | undefined): string {
  if (columns === undefined || line.length <= columns) return line;
  return `${line.slice(0, Math.max(1, columns - 1))}…`;
}

// Rows for a terminal: a table if its last column fits, else one record below the other.

/** Minimum width of the last column, which contains sentences. */
const ROOM = 24;

/**
 * Aligns `cells` in columns; the first row is the header. On a narrow terminal each row becomes a record: its first two cells,
 * then the others on a line each, after the name of their column, the last one without a name. Ends with a newline.
 *
 * @param columns width of the terminal; undefined: a table, and nothing is cut
 */
export function textRecords(cells: readonly (readonly string[])[], columns: number | undefined): string {
  const [head = [], ...rows] = cells;
  const others = widthsOf(cells).slice(0, -1);
  const lastColumnAt = others.reduce((sum, width) => sum + width + 2, 0);
  if (columns === undefined || lastColumnAt + ROOM <= columns) return textTable(cells, columns);
  return rows.map((row) => `${recordOf(head, row, columns).join('\n')}\n`).join('');
}

function recordOf(head: readonly string[], row: readonly string[], columns: number): readonly string[] {
  const [first = '', second = '', ...rest] = row;
  const named = rest.flatMap((cell, index) => {
    if (cell === '' || cell === '-') return [];
    const name = (head[index + 2] ?? '').toLowerCase();
    return [index === rest.length - 1 ? cell : `${name}: ${cell}`];
  });
  const [title = '', ...more] = wrapped(`${first} ${second}`, columns);
  const below = [...more, ...named.flatMap((cell) => wrapped(cell, columns - 3))];
  return [title, ...below.map((line) => `   ${line}`)];
}
