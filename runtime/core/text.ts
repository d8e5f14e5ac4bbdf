/**
 * Text that reaches a terminal holds names, keys and messages that others chose. A control character among them can move the
 * cursor, write into the clipboard, or turn the reading direction, so that a person reads something else than what is there
 * (compare CVE-2021-25743 of kubectl).
 */

/** A word of a POSIX shell that stands for exactly `text`: for every command that is printed. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Control characters but newline and tab; bidirectional and zero-width marks, invisible tags; separators of lines. */
const UNSAFE = /(?![\n\t])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * `text` with each terminal control or invisible character as `\u001b`: also a JSON escape, so that
 * JSON stays the same value. Newlines and tabs stay.
 */
export function printable(text: string): string {
  return text.replace(UNSAFE, escaped);
}

/**
 * As {@link printable}, on one line: for a value inside a sentence or a table, where a newline could pass for a line of ours.
 */
export function onOneLine(text: string): string {
  return printable(withoutUserInfo(text)).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** Before the host of a URL, or of a registry's name in quotes; a digest or a port is none. Bounded, so that each text is read once. */
const USER_INFO =
  /(:\/\/|(?:^|")\s{0,9})(?:(?<=:\/\/)[^\s"'<>/@:]{0,256}@|[^\s"'<>/@:]{0,256}:(?!\/\/|\d+\/)[^\s"'<>]{0,256}@)(?!sha\d+:)/g;

/**
 * A registry key, a URL or a sentence with them, without user info, which may hold a password: for whatever shows one.
 */
export function withoutUserInfo(text: string): string {
  return text.includes('@') ? text.replace(USER_INFO, '$1') : text;
}

/**
 * The same with `***` in its place, for the name of an image: one with user info cannot be pulled, and has to stay one that cannot be read.
 */
export function maskedUserInfo(text: string): string {
  return text.replace(USER_INFO, '$1***@');
}

/**
 * `value` with every text in it on one line: for what is rendered as text for people, where a newline from outside would
 * begin a line. Only arrays and plain objects are gone through; keys stay, since programs ask for them.
 */
export function oneLined<T>(value: T): T {
  return copied(value) as T;
}

function copied(value: unknown): unknown {
  if (typeof value === 'string') return onOneLine(value);
  if (Array.isArray(value)) return value.map(copied);
  if (!isPlain(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, copied(part)]));
}

/** What has a class, as a `Redacted`, shows itself as it wants. */
function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * `::error::` where a line begins (GitHub trims it first), and `##[error]` and `##vso[...]`, which are found anywhere in one. The blanks
 * before a command hold nothing that begins a line, so that each is looked at once.
 */
const COMMAND = /^(?<blanks>[^\S\n\r\u2028\u2029]*):(?=:)|#(?=#\w*\[)/gmu;

/**
 * `text` without what CI systems that read a log take for a command to them (GitHub Actions, Azure Pipelines): its first sign stands as an
 * escape, which is one of JSON and of YAML between double quotes, too.
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

// Numbers before nouns: one thing is not "1 things".

/**
 * The number and the noun in the form that goes with it; a verb may stand behind both forms.
 *
 * @param many the form for every other number
 * @default many {one with an s}
 */
export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/**
 * Some of all: the noun goes with all of them, the verb with those that it speaks of.
 *
 * @param nouns of one, and of many
 * @param verbs of one, and of many
 */
export function countedOf(
  some: number,
  all: number,
  nouns: readonly [one: string, many: string],
  verbs: readonly [one: string, many: string],
): string {
  return `${some} of ${counted(all, ...nouns)} ${verbs[some === 1 ? 0 : 1]}`;
}

/** The first `most` of `names`, and how many more there are: `a, b and 4 more`. */
export function someOf(names: readonly string[], most: number): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

// JSON for people and for programs that read what is printed: indented by two, with a line end.

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

// Suggestions for mistyped words.

/**
 * The word of `known` that is nearest to `word`, at most two letters away (added, missing, changed, or two that changed places
 * count as one); undefined when none is near.
 */
export function nearWord(word: string, known: readonly string[]): string | undefined {
  // A word of that length is a misplaced value and no typo, and the comparison is quadratic.
  if (word.length > LONGEST) return undefined;
  // Of a short word two letters are all of it.
  const most = word.length < 4 ? 1 : 2;
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = distanceOf(word.toLowerCase(), candidate.toLowerCase());
    if (distance <= most && distance < (best?.distance ?? Infinity)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** Longer than any word that is known here. */
const LONGEST = 128;

/** Optimal string alignment distance, cut off at 3. */
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

// Lines and columns of a text, both counted from 1, columns in UTF-16 units.

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/**
 * Makes a function from offsets to positions; many look-ups cost one pass over the text.
 */
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

// Characters taken off the ends of a text, in time linear in its length.
// A pattern such as `/\/+$/` looks harmless and is quadratic: it tries anew from every slash of a long run that does not stand
// at the end.

/**
 * `text` without the characters of `chars` at its end.
 */
export function trimEndOf(text: string, chars: string): string {
  let end = text.length;
  while (end > 0 && chars.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/**
 * `text` without the characters of `chars` at its start.
 */
export function trimStartOf(text: string, chars: string): string {
  let start = 0;
  while (start < text.length && chars.includes(text.charAt(start))) start++;
  return text.slice(start);
}

// Long lines for narrow terminals.

/** Narrower than this nothing is wrapped: words would stand alone. */
const MIN_WIDTH = 16;

/** Continuation lines stand so much further in. */
const HANGING = 3;

/**
 * Cuts `text` at blanks into lines of at most `width` characters, colours not counted; a word that is longer, such as the name
 * of an image, stays whole, so that it can be copied.
 *
 * @param width undefined: one line. The second line and all after it are three characters shorter.
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

/** Colours take no room, nor does what marks them as ours. */
const COLOUR = /\p{Cc}(?:\[[\d;]*m|\][^\p{Cc}]*\p{Cc})/gu;

function seen(text: string): number {
  return text.replace(COLOUR, '').length;
}
