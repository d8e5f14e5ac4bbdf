/**
 * Parses JSON like Go's encoding/json: accepts the same texts, reports the same errors, and drops nothing. Each value keeps its
 * position. Duplicate keys of an object are kept, so that callers can report them. Every consumer of a pull secret (API server,
 * kubelet, CRI-O) is a Go program.
 *
 * Source of the rule: encoding/json of Go 1.26 (scanner.go): grammar of RFC 8259, nesting up to 10000 levels, a lone surrogate
 * becomes U+FFFD.
 */
import { compareBytes, quoteFirstByte } from './text.ts';

/** A JSON value with its position: `at` is the offset in UTF-16 units. */
export type JsonNode =
  | { readonly kind: 'null'; readonly at: number }
  | { readonly kind: 'bool'; readonly at: number; readonly value: boolean }
  | { readonly kind: 'number'; readonly at: number; readonly literal: string }
  | { readonly kind: 'string'; readonly at: number; readonly value: string }
  | { readonly kind: 'array'; readonly at: number; readonly items: readonly JsonNode[] }
  | { readonly kind: 'object'; readonly at: number; readonly members: readonly JsonMember[] };

/** A key and its value, in document order. The last member with a key wins. */
export interface JsonMember {
  readonly key: string;
  readonly at: number;
  readonly value: JsonNode;
}

/** Why a text is not valid JSON. */
export interface JsonFault {
  /** Error text of Go, such as `invalid character 'x' looking for beginning of value`. */
  readonly goText: string;
  /** The same without the character, so that no content of a broken pull secret is shown. */
  readonly plainText: string;
  readonly at: number;
}

const MAX_DEPTH = 10_000;
const UNEXPECTED_END = 'unexpected end of JSON input';

class Fault extends Error {
  readonly fault: JsonFault;

  constructor(fault: JsonFault) {
    super(fault.goText);
    this.fault = fault;
  }
}

/**
 * Parses one JSON text.
 *
 * @returns the value, or the first error in Go's wording
 */
export function parseGoJson(text: string) {
  try {
    return { ok: true as const, value: new Reader(text).document() };
  } catch (error) {
    if (error instanceof Fault) return { ok: false as const, fault: error.fault };
    throw error;
  }
}

/** A container that is not closed yet; an object also has the key of its next value. */
type Open =
  | { readonly kind: 'array'; readonly at: number; readonly items: JsonNode[] }
  | {
      readonly kind: 'object';
      readonly at: number;
      readonly members: JsonMember[];
      next: Omit<JsonMember, 'value'>;
    };

// Up to the first character that ends a string or needs an escape or error check.
// oxlint-disable-next-line no-control-regex -- JSON refuses exactly these
const PLAIN = /[^"\\\u0000-\u001f]*/y;

/** Its methods throw a {@link Fault}. */
class Reader {
  readonly #text: string;
  readonly #open: Open[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads values and closes containers until the outermost value is complete. Not recursive: the input decides the depth. */
  document(): JsonNode {
    for (;;) {
      let value = this.#start();
      while (value !== undefined) {
        const container = this.#open.at(-1);
        this.#skipSpace();
        if (container !== undefined) value = this.#put(container, value);
        else if (this.#at < this.#text.length) throw this.#fault('after top-level value');
        else return value;
      }
    }
  }

  /** Reads a scalar or opens a container; an empty container is complete at once. */
  #start(): JsonNode | undefined {
    this.#skipSpace();
    const at = this.#at;
    const first = this.#text[at];
    if (first !== '{' && first !== '[') return this.#scalar(at, first);
    this.#at += 1;
    const goText = 'exceeded max depth';
    if (this.#open.length >= MAX_DEPTH) throw new Fault({ goText, plainText: goText, at });
    this.#skipSpace();
    if (first === '[') {
      if (this.#take(']')) return { kind: 'array', at, items: [] };
      this.#open.push({ kind: 'array', at, items: [] });
      return undefined;
    }
    if (this.#take('}')) return { kind: 'object', at, members: [] };
    this.#open.push({ kind: 'object', at, members: [], next: this.#key() });
    return undefined;
  }

  /** Adds `value` to `container`; returns the container once closed, or undefined if another value follows. */
  #put(container: Open, value: JsonNode): JsonNode | undefined {
    if (container.kind === 'array') {
      container.items.push(value);
      if (this.#take(',')) return undefined;
      if (!this.#take(']')) throw this.#fault('after array element');
      this.#open.pop();
      return container;
    }
    const { at, members, next } = container;
    members.push({ ...next, value });
    if (this.#take(',')) {
      container.next = this.#key();
      return undefined;
    }
    if (!this.#take('}')) throw this.#fault('after object key:value pair');
    this.#open.pop();
    return { kind: 'object', at, members };
  }

  #key(): Omit<JsonMember, 'value'> {
    this.#skipSpace();
    const at = this.#at;
    if (this.#text[at] !== '"') throw this.#fault('looking for beginning of object key string');
    const key = this.#string();
    this.#skipSpace();
    if (!this.#take(':')) throw this.#fault('after object key');
    return { key, at };
  }

  #scalar(at: number, first: string | undefined): JsonNode {
    if (first === '"') return { kind: 'string', at, value: this.#string() };
    if (first === '-' || isDigit(first)) return { kind: 'number', at, literal: this.#number() };
    if (first === 'n') return this.#word('null', { kind: 'null', at });
    if (first === 't') return this.#word('true', { kind: 'bool', at, value: true });
    if (first === 'f') return this.#word('false', { kind: 'bool', at, value: false });
    throw this.#fault('looking for beginning of value');
  }

  #word(word: string, node: JsonNode): JsonNode {
    for (const letter of word)
      if (!this.#take(letter)) throw this.#fault(`in literal ${word} (expecting '${letter}')`, true);
    return node;
  }

  #number(): string {
    const start = this.#at;
    this.#take('-');
    if (!this.#take('0')) this.#digits('in numeric literal');
    if (this.#take('.')) this.#digits('after decimal point in numeric literal');
    if (this.#take('e') || this.#take('E')) {
      if (!this.#take('+')) this.#take('-');
      this.#digits('in exponent of numeric literal');
    }
    return this.#text.slice(start, this.#at);
  }

  #digits(context: string): void {
    const start = this.#at;
    while (isDigit(this.#text[this.#at])) this.#at += 1;
    if (this.#at === start) throw this.#fault(context, true);
  }

  #string(): string {
    const start = this.#at;
    let escaped = false;
    this.#at += 1;
    for (;;) {
      PLAIN.lastIndex = this.#at;
      PLAIN.test(this.#text);
      this.#at = PLAIN.lastIndex;
      if (this.#take('"')) break;
      if (!this.#take('\\')) throw this.#fault('in string literal');
      escaped = true;
      this.#escape();
    }
    const raw = this.#text.slice(start, this.#at);
    return (escaped ? (JSON.parse(raw) as string) : raw.slice(1, -1)).toWellFormed();
  }

  #escape(): void {
    const letter = this.#text[this.#at] ?? '';
    if (letter === '' || !'bfnrt\\/"u'.includes(letter)) throw this.#fault('in string escape code', true);
    this.#at += 1;
    for (let digits = letter === 'u' ? 4 : 0; digits > 0; digits -= 1) {
      if (!/[0-9a-fA-F]/.test(this.#text[this.#at] ?? ''))
        throw this.#fault('in \\u hexadecimal character escape', true);
      this.#at += 1;
    }
  }

  #skipSpace(): void {
    for (;;) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit !== 32 && unit !== 10 && unit !== 13 && unit !== 9) return;
      this.#at += 1;
    }
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  /**
   * The fault at the current position. Go ends the input by feeding a blank. If a blank is invalid there (`blankIsWrong`), the
   * error names the blank, otherwise the end of input.
   */
  #fault(context: string, blankIsWrong = false): Fault {
    const at = this.#at;
    const ended = at >= this.#text.length;
    const shown = ended ? "' '" : quoteFirstByte(this.#text, at);
    return new Fault({
      goText: ended && !blankIsWrong ? UNEXPECTED_END : `invalid character ${shown} ${context}`,
      plainText: ended ? UNEXPECTED_END : `invalid character ${context}`,
      at,
    });
  }
}

function isDigit(character: string | undefined): boolean {
  return character !== undefined && character >= '0' && character <= '9';
}

// Writes JSON like Go's json.Marshal: compact, keys sorted by bytes at every level, no trailing newline. `<`, `>`, `&`, U+2028
// and U+2029 are escaped. Numbers are float64 (verbatim if that would change them). The last of duplicate keys wins.
// Source of the rule: encoding/json of Go 1.26 for `map[string]any`, which wrote the merged pull secret of existing clusters.
// Equal content gives equal bytes, so that no node changes when Pullwright takes over.

/** Encodes `node`. An integer that a float64 cannot represent keeps its digits. */
export function encodeGoJson(node: JsonNode): string {
  const parts: string[] = [];
  const work: (JsonNode | string)[] = [node];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if (typeof next === 'string') parts.push(next);
    else if (next.kind === 'array') work.push(...bracketed('[', ']', arrayParts(next.items)));
    else if (next.kind === 'object') work.push(...bracketed('{', '}', objectParts(next.members)));
    else parts.push(encodeScalar(next));
  }
  return parts.join('');
}

/** Reversed, because the work list is popped from its end. */
function bracketed(open: string, close: string, inner: (JsonNode | string)[]): (JsonNode | string)[] {
  return [close, ...inner.reverse(), open];
}

function arrayParts(items: readonly JsonNode[]): (JsonNode | string)[] {
  return items.flatMap((item, index) => (index === 0 ? [item] : [',', item]));
}

function objectParts(members: readonly JsonMember[]): (JsonNode | string)[] {
  const unique = new Map(members.map((member) => [member.key, member.value]));
  return [...unique]
    .sort(([a], [b]) => compareBytes(a, b))
    .flatMap(([key, value], index) => [`${index === 0 ? '' : ','}${encodeGoText(key)}:`, value]);
}

function encodeScalar(node: JsonNode): string {
  if (node.kind === 'string') return encodeGoText(node.value);
  if (node.kind === 'number') return encodeNumber(node.literal);
  return node.kind === 'bool' ? String(node.value) : 'null';
}

// Printable ASCII that needs no escape.
const JSON_ENCODE_PLAIN = /^[ !#-%'-;=?-[\]-~]*$/;
const ESCAPED = /[<>&\u2028\u2029]/g;

/** A JSON string literal. */
export function encodeGoText(text: string): string {
  if (JSON_ENCODE_PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text.toWellFormed()).replace(
    ESCAPED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function encodeNumber(literal: string): string {
  const value = Number(literal);
  const lossy = !Number.isFinite(value) || (/^-?[0-9]+$/.test(literal) && !Number.isSafeInteger(value));
  if (lossy) return literal;
  return Object.is(value, -0) ? '-0' : String(value);
}

/** The first number outside the float64 range, for which Go rejects the document. */
export function firstHugeNumber(node: JsonNode): string | undefined {
  const work: JsonNode[] = [node];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if (next.kind === 'number' && !Number.isFinite(Number(next.literal))) return next.literal;
    if (next.kind === 'array') work.push(...next.items.toReversed());
    if (next.kind === 'object') work.push(...next.members.map((member) => member.value).reverse());
  }
  return undefined;
}
