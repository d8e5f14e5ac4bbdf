/**
 * Shell patterns as Go's filepath.Match matches them: `*` and `?` stop at a slash, `[a-z]` and `[^a]` are classes, a
 * backslash takes the next character as it is.
 *
 * Source of the rule: path/filepath.Match of Go 1.26 on Linux. Both arguments are byte texts (see go-bytes.ts).
 */
import { firstRune } from './text.ts';

export type GlobResult =
  | { readonly ok: true; readonly match: boolean }
  /** The pattern is malformed where the matching got to. */
  | { readonly ok: false };

const BAD = Symbol('bad pattern');

/**
 * Judges whether `name` as a whole matches `pattern`.
 */
export function goGlob(pattern: string, name: string): GlobResult {
  if (!/[*?[\\]/.test(pattern)) return { ok: true, match: pattern === name };
  let rest = pattern;
  let text = name;
  while (rest !== '') {
    const { star, chunk, after } = scanChunk(rest);
    rest = after;
    if (star && chunk === '') return { ok: true, match: !text.includes('/') };
    const next = advance(star, chunk, text, rest === '');
    if (next === BAD) return { ok: false };
    if (next === undefined) return { ok: true, match: false };
    text = next;
  }
  return { ok: true, match: text === '' };
}

/** The rest of `text` after the first match, undefined when there is none. */
function advance(star: boolean, chunk: string, text: string, last: boolean): string | undefined | typeof BAD {
  const fits = (left: string): boolean => left === '' || !last;
  for (let skip = 0; ; skip += 1) {
    // Whether a chunk is malformed is the same at every position, and a chunk may be far longer than the text.
    const left = matchChunk(chunk, text.slice(skip), skip === 0);
    if (left === BAD) return BAD;
    if (left !== undefined && fits(left)) return left;
    if (!star || skip >= text.length || text[skip] === '/') return undefined;
  }
}

/** Leading stars, then all up to the next star that is not in a class. */
function scanChunk(pattern: string): { star: boolean; chunk: string; after: string } {
  const body = pattern.replace(/^\*+/, '');
  const star = body.length < pattern.length;
  let inClass = false;
  for (let at = 0; at < body.length; at += 1) {
    const character = body[at];
    if (character === '\\') at += 1;
    else if (character === '[') inClass = true;
    else if (character === ']') inClass = false;
    else if (character === '*' && !inClass) return { star, chunk: body.slice(0, at), after: body.slice(at) };
  }
  return { star, chunk: body, after: '' };
}

/** What is left of `text`. With `whole`, a malformed chunk is BAD even where the text has failed before. */
function matchChunk(chunk: string, text: string, whole: boolean): string | undefined | typeof BAD {
  let rest = chunk;
  let left = text;
  let failed = false;
  while (rest !== '') {
    failed ||= left === '';
    if (failed && !whole) return undefined;
    const step: Step | typeof BAD =
      rest[0] === '[' ? matchClass(rest, failed ? '' : left) : matchOne(rest, left);
    if (step === BAD) return BAD;
    rest = step.rest;
    failed ||= !step.match;
    if (!failed) left = left.slice(step.size);
  }
  return failed ? undefined : left;
}

interface Step {
  readonly rest: string;
  readonly match: boolean;
  /** Bytes of the text that are used up. */
  readonly size: number;
}

function matchOne(rest: string, left: string): Step | typeof BAD {
  if (rest[0] === '?') return { rest: rest.slice(1), match: left[0] !== '/', size: runeAt(left).size };
  const literal = rest[0] === '\\' ? rest.slice(1) : rest;
  if (literal === '') return BAD;
  return { rest: literal.slice(1), match: literal[0] === left[0], size: 1 };
}

/** `rest` begins with `[`. */
function matchClass(rest: string, left: string): Step | typeof BAD {
  const rune = runeAt(left);
  const negated = rest[1] === '^';
  let body = rest.slice(negated ? 2 : 1);
  let match = false;
  for (let ranges = 0; ranges === 0 || body[0] !== ']'; ranges += 1) {
    const low = classRune(body);
    if (low === BAD) return BAD;
    const high = low.rest[0] === '-' ? classRune(low.rest.slice(1)) : low;
    if (high === BAD) return BAD;
    body = high.rest;
    match ||= low.rune <= rune.rune && rune.rune <= high.rune;
  }
  return { rest: body.slice(1), match: match !== negated, size: rune.size };
}

function classRune(body: string): { readonly rune: number; readonly rest: string } | typeof BAD {
  if (body === '' || body[0] === '-' || body[0] === ']') return BAD;
  const literal = body[0] === '\\' ? body.slice(1) : body;
  if (literal === '') return BAD;
  const { rune, size } = runeAt(literal);
  const rest = literal.slice(size);
  // A class has to be closed, so something must follow.
  return (rune === 0xfffd && size === 1) || rest === '' ? BAD : { rune, rest };
}

function runeAt(bytes: string): { readonly rune: number; readonly size: number } {
  if (bytes === '') return { rune: 0, size: 0 };
  const { text, size } = firstRune(bytes);
  return { rune: text?.codePointAt(0) ?? 0xfffd, size };
}
