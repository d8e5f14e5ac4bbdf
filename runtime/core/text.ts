/**
 * Text for a terminal contains names, keys and messages from other sources. A control character in them can move the cursor,
 * write to the clipboard or reverse the text direction, so that the user sees something else than the actual text (compare
 * CVE-2021-25743 of kubectl).
 */
import { mapValues } from './record.ts';

/** Quotes `text` as one word of a POSIX shell, for every printed command. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Control characters except newline and tab; bidirectional and zero-width marks, invisible tags, line separators. */
const UNSAFE = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * `text` with each terminal control or invisible character escaped as `\u001b`. That is also a JSON escape, so that JSON keeps
 * its value. Newlines and tabs stay.
 */
export function printable(text: string): string {
  return text.replace(UNSAFE, escaped);
}

/** Like {@link printable}, on one line: for a value in a sentence or table, where a newline could fake a line of output. */
export function onOneLine(text: string): string {
  return printable(withoutUserInfo(text)).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** User info before the host of a URL or of a quoted registry name; not a digest or a port. Bounded: matching is linear. */
const USER_INFO =
  /(:\/\/|(?:^|")\s{0,9})(?:(?<=:\/\/)[^\s"'<>/@:]{0,256}@|[^\s"'<>/@:]{0,256}:(?!\/\/|\d+\/)[^\s"'<>]{0,256}@)(?!sha\d+:)/g;

/** Removes user info, which may contain a password, from a registry key, a URL or a sentence with them. */
export function withoutUserInfo(text: string): string {
  return text.includes('@') ? text.replace(USER_INFO, '$1') : text;
}

/** Replaces user info in an image name with `***`. Such an image cannot be pulled, and the result must stay invalid too. */
export function maskedUserInfo(text: string): string {
  return text.replace(USER_INFO, '$1***@');
}

/**
 * Applies {@link onOneLine} to every string in `value`, for text output, where a newline from outside could fake a line.
 * Recurses only into arrays and plain objects. Keys stay, since programs look them up.
 */
export function oneLined<T>(value: T): T {
  return copied(value) as T;
}

function copied(value: unknown): unknown {
  if (typeof value === 'string') return onOneLine(value);
  if (Array.isArray(value)) return value.map(copied);
  if (!isPlain(value)) return value;
  return mapValues(value, copied);
}

/** A class instance, such as `Redacted`, controls its own output. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * `::error::` at the start of a line (GitHub trims it first); `##[error]` and `##vso[...]` anywhere in one. The blanks before a
 * command contain no line start, so that matching is linear.
 */
const COMMAND = /^(?<blanks>[^\S\n\r\u2028\u2029]*):(?=:)|#(?=#\w*\[)/gmu;

/**
 * Disables commands of CI systems that parse logs (GitHub Actions, Azure Pipelines): escapes their first character. The escape is
 * also valid in JSON and in double-quoted YAML.
 */
export function withoutCommands(text: string): string {
  return text.replace(
    COMMAND,
    (found, blanks: string = '') => `${blanks}${escaped(found.slice(blanks.length))}`,
  );
}

function escaped(found: string): string {
  return Array.from(
    { length: found.length },
    (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');
}

// Counts with the correct form of the noun.

/**
 * The number and the matching form of the noun; both forms may include a verb.
 *
 * @param many plural form
 * @default many {one with an s}
 */
export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/**
 * "2 of 5 nodes are": the noun agrees with `all`, the verb with `some`.
 *
 * @param nouns singular and plural
 * @param verbs singular and plural
 */
export function countedOf(
  some: number,
  all: number,
  nouns: readonly [one: string, many: string],
  verbs: readonly [one: string, many: string],
): string {
  return `${some} of ${counted(all, ...nouns)} ${verbs[some === 1 ? 0 : 1]}`;
}

/** The first `most` of `names`, and the number of others: `a, b and 4 more`. */
export function someOf(names: readonly string[], most: number): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

// JSON output: indented by two, with a trailing newline.

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

// Suggestions for mistyped words.

/**
 * The word in `known` nearest to `word`, within two edits (insertion, deletion, substitution, or transposition of adjacent
 * letters); undefined if none is near.
 */
export function nearWord(word: string, known: readonly string[]): string | undefined {
  // A long word is a misplaced value rather than a typo, and the comparison is quadratic.
  if (word.length > LONGEST) return undefined;
  // In a short word, two edits would replace most of it.
  const most = word.length < 4 ? 1 : 2;
  const distance = (one: string): number => distanceOf(word.toLowerCase(), one.toLowerCase());
  const near = known.map((one) => ({ one, far: distance(one) })).filter(({ far }) => far <= most);
  return near.sort((a, b) => a.far - b.far)[0]?.one;
}

/** Longer than any known word. */
const LONGEST = 128;

/** Optimal string alignment distance, capped at 3. */
function distanceOf(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  const cell = (i: number, j: number): number => rows[i]?.[j] ?? 3;
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    rows.push(next);
    for (let j = 1; j <= b.length; j++) {
      const changed = cell(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? cell(i - 2, j - 2) + 1 : 3;
      next.push(Math.min(cell(i - 1, j) + 1, (next[j - 1] ?? 0) + 1, changed, swapped));
    }
  }
  return cell(a.length, b.length);
}

// Line and column of an offset, both from 1; columns in UTF-16 units.

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/** Returns a function from offsets to positions; all calls share one pass over the text. */
export function positionsOf(text: string): (offset: number) => TextPosition {
  let starts: readonly number[] | undefined;
  return (offset) => {
    starts ??= [0, ...Array.from(text.matchAll(/\n/g), (match) => match.index + 1)];
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

// Trims characters in linear time.
// A pattern such as `/\/+$/` is quadratic: it restarts at every slash of a long run that is not at the end.

/** `text` without trailing characters from `chars`. */
export function trimEndOf(text: string, chars: string): string {
  let end = text.length;
  while (end > 0 && chars.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** `text` without leading characters from `chars`. */
export function trimStartOf(text: string, chars: string): string {
  let start = 0;
  while (start < text.length && chars.includes(text.charAt(start))) start++;
  return text.slice(start);
}

// Wraps long lines for narrow terminals.

/** Minimum width: a narrower terminal would get one word per line. */
const MIN_WIDTH = 16;

/** Indentation of continuation lines. */
const HANGING = 3;

/**
 * Wraps `text` at blanks into lines of at most `width` characters, not counting colours. A longer word, such as an image name,
 * stays whole, so that it can be copied.
 *
 * @param width undefined: one line. Lines after the first are three characters shorter, for their indentation.
 */
export function wrapped(text: string, width: number | undefined): readonly string[] {
  if (width === undefined || seen(text) <= width) return [text];
  const limit = Math.max(MIN_WIDTH, width);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const room = lines.length === 0 ? limit : limit - HANGING;
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && seen(longer) > room) {
      lines.push(line.trimEnd());
      line = word;
    } else line = longer;
  }
  return [...lines, line].filter((one) => one !== '');
}

/** Colours, and the marks around them (runtime/cli/terminal.ts), take no width. */
const COLOUR = /\p{Cc}(?:\[[\d;]*m|\][^\p{Cc}]*\p{Cc})/gu;

function seen(text: string): number {
  return text.replace(COLOUR, '').length;
}
