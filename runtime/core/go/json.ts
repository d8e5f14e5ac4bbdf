/**
 * JSON as Go's encoding/json reads it: the same texts are accepted, the same errors are given, and nothing is lost on the
 * way. Each value has its position, and a duplicate key of an object is kept, so that the caller can
 * say so. Every consumer of a pull secret (API server, kubelet, CRI-O) is a Go program.
 *
 * Source of the rule: encoding/json of Go 1.26 (scanner.go): grammar of RFC 8259, at most 10000 levels, half a surrogate
 * pair becomes U+FFFD.
 */
import { compareBytes, quoteFirstByte } from './text.ts';

/** A JSON value with its position: `at` counts UTF-16 units from the start of the text. */
export type JsonNode =
  | { readonly kind: 'null'; readonly at: number }
  | { readonly kind: 'bool'; readonly at: number; readonly value: boolean }
  | { readonly kind: 'number'; readonly at: number; readonly literal: string }
  | { readonly kind: 'string'; readonly at: number; readonly value: string }
  | { readonly kind: 'array'; readonly at: number; readonly items: readonly JsonNode[] }
  | { readonly kind: 'object'; readonly at: number; readonly members: readonly JsonMember[] };

/** One key and its value, in the order of the text. A later member of the same key wins. */
export interface JsonMember {
  readonly key: string;
  readonly at: number;
  readonly value: JsonNode;
}

/** Why a text is not JSON. */
export interface JsonFault {
  /** The words of Go, such as `invalid character 'x' looking for beginning of value`. */
  readonly goText: string;
  /** The same without the character, so that nothing of a broken pull secret is shown. */
  readonly plainText: string;
  readonly at: number;
}

export type JsonResult =
  | { readonly ok: true; readonly value: JsonNode }
  | { readonly ok: false; readonly fault: JsonFault };

const MAX_DEPTH = 10_000;
const UNEXPECTED_END = 'unexpected end of JSON input';

interface Reader {
  readonly text: string;
  at: number;
  fault: JsonFault | undefined;
}

type Frame =
  | { readonly kind: 'array'; readonly at: number; readonly items: JsonNode[] }
  | {
      readonly kind: 'object';
      readonly at: number;
      readonly members: JsonMember[];
      key: string;
      keyAt: number;
    };

/**
 * Reads one JSON text.
 *
 * @returns the value, or the first fault as Go words it
 */
export function parseGoJson(text: string): JsonResult {
  const reader: Reader = { text, at: 0, fault: undefined };
  const value = readDocument(reader);
  if (value !== undefined) {
    skipSpace(reader);
    if (reader.at < text.length) fail(reader, 'after top-level value', false);
  }
  if (value === undefined || reader.fault !== undefined) {
    return { ok: false, fault: reader.fault ?? { goText: UNEXPECTED_END, plainText: UNEXPECTED_END, at: 0 } };
  }
  return { ok: true, value };
}

/** Reads values and closes containers until the outermost value is complete. No recursion: depth is the text's choice. */
function readDocument(reader: Reader): JsonNode | undefined {
  const stack: Frame[] = [];
  for (;;) {
    let value = readStart(reader, stack);
    if (reader.fault !== undefined) return undefined;
    while (value !== undefined) {
      const frame = stack.at(-1);
      if (frame === undefined) return value;
      value = afterValue(reader, stack, frame, value);
      if (reader.fault !== undefined) return undefined;
    }
  }
}

/** Reads a scalar, or opens a container; an empty container is complete at once. */
function readStart(reader: Reader, stack: Frame[]): JsonNode | undefined {
  skipSpace(reader);
  const at = reader.at;
  const open = reader.text[at];
  if (open !== '{' && open !== '[') return readScalar(reader);
  reader.at += 1;
  if (stack.length >= MAX_DEPTH) {
    reader.fault = { goText: 'exceeded max depth', plainText: 'exceeded max depth', at };
    return undefined;
  }
  skipSpace(reader);
  if (open === '[') {
    if (take(reader, ']')) return { kind: 'array', at, items: [] };
    stack.push({ kind: 'array', at, items: [] });
    return undefined;
  }
  if (take(reader, '}')) return { kind: 'object', at, members: [] };
  const frame: Frame = { kind: 'object', at, members: [], key: '', keyAt: 0 };
  stack.push(frame);
  readKey(reader, frame, 'looking for beginning of object key string');
  return undefined;
}

/** Puts `value` into `frame`; gives the closed container, or undefined when another value follows. */
function afterValue(reader: Reader, stack: Frame[], frame: Frame, value: JsonNode): JsonNode | undefined {
  skipSpace(reader);
  if (frame.kind === 'array') {
    frame.items.push(value);
    if (take(reader, ',')) return undefined;
    if (!take(reader, ']')) return fail(reader, 'after array element', false);
    stack.pop();
    return { kind: 'array', at: frame.at, items: frame.items };
  }
  frame.members.push({ key: frame.key, at: frame.keyAt, value });
  if (take(reader, ',')) {
    readKey(reader, frame, 'looking for beginning of object key string');
    return undefined;
  }
  if (!take(reader, '}')) return fail(reader, 'after object key:value pair', false);
  stack.pop();
  return { kind: 'object', at: frame.at, members: frame.members };
}

function readKey(reader: Reader, frame: Frame & { kind: 'object' }, context: string): void {
  skipSpace(reader);
  frame.keyAt = reader.at;
  if (reader.text[reader.at] !== '"') {
    fail(reader, context, false);
    return;
  }
  const key = readString(reader);
  if (key === undefined) return;
  frame.key = key;
  skipSpace(reader);
  if (!take(reader, ':')) fail(reader, 'after object key', false);
}

function readScalar(reader: Reader): JsonNode | undefined {
  const at = reader.at;
  const first = reader.text[at];
  if (first === '"') {
    const value = readString(reader);
    return value === undefined ? undefined : { kind: 'string', at, value };
  }
  if (first === 't') return readWord(reader, 'true') ? { kind: 'bool', at, value: true } : undefined;
  if (first === 'f') return readWord(reader, 'false') ? { kind: 'bool', at, value: false } : undefined;
  if (first === 'n') return readWord(reader, 'null') ? { kind: 'null', at } : undefined;
  if (first === '-' || isDigit(first)) return readNumber(reader);
  return fail(reader, 'looking for beginning of value', false);
}

function readWord(reader: Reader, word: string): boolean {
  const start = reader.at;
  for (let index = 1; index < word.length; index += 1) {
    reader.at = start + index;
    if (reader.text[reader.at] !== word[index]) {
      fail(reader, `in literal ${word} (expecting '${word[index]}')`, true);
      return false;
    }
  }
  reader.at += 1;
  return true;
}

function readNumber(reader: Reader): JsonNode | undefined {
  const at = reader.at;
  take(reader, '-');
  if (!take(reader, '0') && !takeDigits(reader)) return fail(reader, 'in numeric literal', true);
  if (take(reader, '.') && !takeDigits(reader)) {
    return fail(reader, 'after decimal point in numeric literal', true);
  }
  if (take(reader, 'e') || take(reader, 'E')) {
    if (!take(reader, '+')) take(reader, '-');
    if (!takeDigits(reader)) return fail(reader, 'in exponent of numeric literal', true);
  }
  return { kind: 'number', at, literal: reader.text.slice(at, reader.at) };
}

// Up to the first character that ends a string or needs a closer look.
// oxlint-disable-next-line no-control-regex -- JSON refuses exactly these
const PLAIN = /[^"\\\u0000-\u001f]*/y;

function readString(reader: Reader): string | undefined {
  const start = reader.at;
  let escaped = false;
  reader.at += 1;
  for (;;) {
    PLAIN.lastIndex = reader.at;
    PLAIN.test(reader.text);
    reader.at = PLAIN.lastIndex;
    if (take(reader, '"')) break;
    if (reader.text[reader.at] !== '\\') {
      const ended = reader.at >= reader.text.length;
      return ended ? endOfInput(reader) : fail(reader, 'in string literal', false);
    }
    escaped = true;
    if (!readEscape(reader)) return undefined;
  }
  const raw = reader.text.slice(start, reader.at);
  return (escaped ? (JSON.parse(raw) as string) : raw.slice(1, -1)).toWellFormed();
}

function readEscape(reader: Reader): boolean {
  reader.at += 1;
  const letter = reader.text[reader.at] ?? '';
  if (letter === '' || !'bfnrt\\/"u'.includes(letter)) {
    fail(reader, 'in string escape code', true);
    return false;
  }
  reader.at += 1;
  if (letter !== 'u') return true;
  for (let digits = 0; digits < 4; digits += 1) {
    if (!/[0-9a-fA-F]/.test(reader.text[reader.at] ?? '')) {
      fail(reader, 'in \\u hexadecimal character escape', true);
      return false;
    }
    reader.at += 1;
  }
  return true;
}

function skipSpace(reader: Reader): void {
  for (;;) {
    const unit = reader.text.charCodeAt(reader.at);
    if (unit !== 32 && unit !== 10 && unit !== 13 && unit !== 9) return;
    reader.at += 1;
  }
}

function take(reader: Reader, character: string): boolean {
  if (reader.text[reader.at] !== character) return false;
  reader.at += 1;
  return true;
}

function takeDigits(reader: Reader): boolean {
  const start = reader.at;
  while (isDigit(reader.text[reader.at])) reader.at += 1;
  return reader.at > start;
}

function isDigit(character: string | undefined): boolean {
  return character !== undefined && character >= '0' && character <= '9';
}

/**
 * Notes the fault at the present position. Go ends a text by feeding one blank: where a blank is wrong (`blankIsWrong`), the
 * blank is blamed, else the end of the input.
 */
function fail(reader: Reader, context: string, blankIsWrong: boolean): undefined {
  const ended = reader.at >= reader.text.length;
  if (ended && !blankIsWrong) return endOfInput(reader);
  const shown = ended ? "' '" : quoteFirstByte(reader.text, reader.at);
  reader.fault = {
    goText: `invalid character ${shown} ${context}`,
    plainText: ended ? UNEXPECTED_END : `invalid character ${context}`,
    at: reader.at,
  };
  return undefined;
}

function endOfInput(reader: Reader): undefined {
  reader.fault = { goText: UNEXPECTED_END, plainText: UNEXPECTED_END, at: reader.at };
  return undefined;
}

// JSON as Go's json.Marshal writes it: compact, keys sorted by their bytes at every level, `<`, `>`, `&`, U+2028 and U+2029
// escaped, numbers as float64, the last of equal keys, no newline at the end.
// Source of the rule: encoding/json of Go 1.26 for `map[string]any`; the merged pull secret of existing clusters has these
// bytes, so equal content gives equal bytes and no node is touched when Pullwright takes over.

/** `float64`: as Go does, with its loss. `exact`: an integer that a float64 cannot hold keeps its digits. */
export type NumberMode = 'float64' | 'exact';

/**
 * Writes `node`.
 */
export function encodeGoJson(node: JsonNode, numbers: NumberMode): string {
  const parts: string[] = [];
  const work: (JsonNode | string)[] = [node];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if (typeof next === 'string') parts.push(next);
    else if (next.kind === 'array') work.push(...bracketed('[', ']', arrayParts(next.items)));
    else if (next.kind === 'object') work.push(...bracketed('{', '}', objectParts(next.members)));
    else parts.push(encodeScalar(next, numbers));
  }
  return parts.join('');
}

/** Reversed, because the work list is taken from its end. */
function bracketed(open: string, close: string, inner: (JsonNode | string)[]): (JsonNode | string)[] {
  return [close, ...inner.reverse(), open];
}

function arrayParts(items: readonly JsonNode[]): (JsonNode | string)[] {
  return items.flatMap((item, index) => (index === 0 ? [item] : [',', item]));
}

function objectParts(members: readonly JsonMember[]): (JsonNode | string)[] {
  const [only] = members;
  if (only !== undefined && members.length === 1) return [`${encodeGoText(only.key)}:`, only.value];
  const unique = new Map(members.map((member) => [member.key, member.value]));
  return [...unique]
    .sort(([a], [b]) => compareBytes(a, b))
    .flatMap(([key, value], index) => [`${index === 0 ? '' : ','}${encodeGoText(key)}:`, value]);
}

function encodeScalar(node: JsonNode, numbers: NumberMode): string {
  if (node.kind === 'string') return encodeGoText(node.value);
  if (node.kind === 'number') return encodeNumber(node.literal, numbers);
  return node.kind === 'bool' ? String(node.value) : 'null';
}

// Printable ASCII that needs no escape.
const JSON_ENCODE_PLAIN = /^[ !#-%'-;=?-[\]-~]*$/;
const ESCAPED = /[<>&\u2028\u2029]/g;

/** A text in quotes. */
export function encodeGoText(text: string): string {
  if (JSON_ENCODE_PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text.toWellFormed()).replace(
    ESCAPED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function encodeNumber(literal: string, numbers: NumberMode): string {
  const value = Number(literal);
  const lossy = !Number.isFinite(value) || (/^-?[0-9]+$/.test(literal) && !Number.isSafeInteger(value));
  if (numbers === 'exact' && lossy) return literal;
  return Object.is(value, -0) ? '-0' : String(value);
}

/** The first number that a float64 cannot hold at all: Go refuses the document for it. */
export function firstHugeNumber(node: JsonNode): string | undefined {
  const work: JsonNode[] = [node];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if (next.kind === 'number' && !Number.isFinite(Number(next.literal))) return next.literal;
    if (next.kind === 'array') work.push(...next.items.toReversed());
    if (next.kind === 'object') work.push(...next.members.map((member) => member.value).reverse());
  }
  return undefined;
}
