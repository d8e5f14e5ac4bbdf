/**
 * Reads the items of a list or the lines of a watch as they arrive, and hands them out one by one, so that an answer weighs no more than
 * what is kept of it: never its bytes, its text and all its objects at once. Of an item too, texts that nobody wants are never held.
 */
import { createHash, type Hash } from 'node:crypto';
import { digestText } from './value-digest.ts';

const [QUOTE, BACKSLASH, COMMA, NEWLINE] = [0x22, 0x5c, 0x2c, 0x0a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
/** Of what is around the items: versions and the token of the next page. */
const MOST_AROUND = 1024 * 1024;
/** The list is the first level, its items the second. */
const AMONG_ITEMS = 2;
const ITEMS = /"items"\s*:\s*$/;
/** A text so long is searched for its end, a shorter one read byte by byte. */
const SEARCHED = 256;

/** A longer text is left out where that is wished: no pull secret of a person has so much. */
export const MOST_TEXT_BYTES: number = 64 * 1024;

const TEXT = new TextDecoder();

export interface JsonItemsOptions {
  /** What they are: those of the top-level member `items`, or lines. */
  readonly of: 'items' | 'lines';
  /** Gets each item, in order, and how many bytes of its texts were left out: the digest of each is in its place. */
  readonly take: (item: unknown, leftOut: number) => void;
  /** Longer texts within items are left out. @default {all is kept} */
  readonly mostText?: number | undefined;
}

/** Where the next bytes belong: before the items, among them, or after them. */
type Part = 'before' | 'items' | 'after';

/**
 * Linear, in turns of a chunk.
 *
 * @example
 * ```ts
 * import { JsonItems } from './json-items.ts';
 * import assert from 'node:assert/strict';
 *
 * const names: unknown[] = [];
 * const reader = new JsonItems({ of: 'items', take: (item) => names.push(item) });
 * for (const chunk of ['{"items":["a",', '"b"],"kind":"List"}']) reader.push(Buffer.from(chunk));
 * assert.deepEqual(reader.end(), { items: [], kind: 'List' });
 * assert.deepEqual(names, ['a', 'b']);
 * ```
 */
export class JsonItems {
  readonly #options: JsonItemsOptions;
  readonly #mostText: number;
  #part: Part;
  #depth = 0;
  #inText = false;
  #escaped = false;
  /** Bytes of the item so far, and how many. */
  #item: Uint8Array[] = [];
  #size = 0;
  #around = '';
  /** A letter may come in two chunks. */
  readonly #text = new TextDecoder();
  /** Where in the chunk the bytes begin that are put nowhere yet. */
  #from = 0;
  #count = 0;
  /** Where in the item the text begins, and whether there is a backslash in it. */
  #textFrom = 0;
  #hasEscapes = false;
  /** Of the text that is being left out. */
  #hash: Hash | undefined;
  #leftOut = 0;

  constructor(options: JsonItemsOptions) {
    this.#options = options;
    this.#mostText = options.mostText ?? Number.POSITIVE_INFINITY;
    this.#part = options.of === 'items' ? 'before' : 'items';
  }

  /** Bytes that came of the item that has not ended. */
  get read(): number {
    return this.#size + this.#leftOut;
  }

  /** Bytes that are held of it, and of what is around. */
  get held(): number {
    return this.#size + this.#around.length;
  }

  /**
   * Reads on.
   *
   * @throws SyntaxError for what is no JSON, or what `take` throws
   */
  push(chunk: Uint8Array): void {
    if (this.#options.of === 'items') return this.#scan(chunk);
    // No JSON has a line's end in a text: a damaged line takes none of the next with it.
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#scan(chunk.subarray(from, end));
      from = end + 1;
      this.#itemEnds();
      [this.#depth, this.#inText, this.#escaped, this.#hash] = [0, false, false, undefined];
    }
    this.#scan(chunk.subarray(from));
  }

  #scan(chunk: Uint8Array): void {
    this.#from = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      if (this.#inText) at = this.#throughText(chunk, at);
      else this.#look(chunk, at);
    }
    this.#put(chunk, chunk.length);
    if (this.#inText) this.#shorten();
  }

  /**
   * What is around the items of a list, with `items: []` in their place.
   *
   * @throws SyntaxError when the answer broke off, or is no JSON
   */
  end(): unknown {
    return JSON.parse(this.#around);
  }

  #look(chunk: Uint8Array, at: number): void {
    const byte = chunk[at];
    if (byte === QUOTE) this.#textBegins(at);
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) this.#opened(chunk, at);
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) this.#closed(chunk, at);
    else if (byte === COMMA && this.#isAmongItems) this.#listedEnds(chunk, at);
  }

  #textBegins(at: number): void {
    this.#inText = true;
    this.#hasEscapes = false;
    this.#textFrom = this.#size + at + 1 - this.#from;
  }

  /** The place of the quote that ends the text, or the end of the chunk. */
  #throughText(chunk: Uint8Array, from: number): number {
    let at = this.#throughLongText(chunk, from);
    for (; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (this.#escaped) this.#escaped = false;
      else if (byte === BACKSLASH) [this.#escaped, this.#hasEscapes] = [true, true];
      else if (byte === QUOTE) {
        this.#textEnds(chunk, at);
        return at;
      }
    }
    return chunk.length;
  }

  /** Of a long text the part without a backslash: found by search, which is many times as fast. */
  #throughLongText(chunk: Uint8Array, from: number): number {
    const isLong = this.#hash !== undefined || this.#size - this.#textFrom > SEARCHED;
    if (this.#escaped || !isLong) return from;
    const end = chunk.indexOf(QUOTE, from);
    const text = chunk.subarray(from, end < 0 ? chunk.length : end);
    const backslash = text.indexOf(BACKSLASH);
    return from + (backslash < 0 ? text.length : backslash);
  }

  #textEnds(chunk: Uint8Array, at: number): void {
    this.#inText = false;
    // What is around the items is kept, however long it is.
    if (this.#part !== 'items') return;
    const isLong = this.#size + at - this.#from - this.#textFrom > this.#mostText;
    if (this.#hash === undefined && !isLong) return;
    this.#put(chunk, at);
    this.#shorten();
    const digest = this.#hash?.digest('hex') ?? '';
    this.#hash = undefined;
    // What is escaped is not the value, so that its digest is nobody's.
    this.#hold(Buffer.from(digestText(this.#hasEscapes ? '' : digest)));
  }

  /** Begins to leave the text out when it has become too long. */
  #shorten(): void {
    if (this.#part !== 'items' || this.#hash !== undefined) return;
    const length = this.#size - this.#textFrom;
    if (length <= this.#mostText) return;
    const whole = Buffer.concat(this.#item);
    this.#hash = createHash('sha256').update(whole.subarray(this.#textFrom));
    this.#leftOut += length;
    // A copy: a part would keep the whole.
    this.#item = [Buffer.from(whole.subarray(0, this.#textFrom))];
    this.#size = this.#textFrom;
  }

  get #isAmongItems(): boolean {
    return this.#part === 'items' && this.#depth === AMONG_ITEMS && this.#options.of === 'items';
  }

  #opened(chunk: Uint8Array, at: number): void {
    this.#depth += 1;
    if (this.#part !== 'before' || this.#depth !== AMONG_ITEMS || chunk[at] !== OPEN_ARRAY) return;
    this.#put(chunk, at);
    if (!ITEMS.test(this.#around.slice(-20))) return;
    this.#around += '[';
    this.#from = at + 1;
    this.#part = 'items';
  }

  #closed(chunk: Uint8Array, at: number): void {
    if (this.#isAmongItems) {
      this.#listedEnds(chunk, at);
      this.#part = 'after';
      this.#from = at;
    }
    this.#depth -= 1;
  }

  #listedEnds(chunk: Uint8Array, at: number): void {
    this.#put(chunk, at);
    this.#from = at + 1;
    this.#itemEnds();
  }

  #itemEnds(): void {
    const text = TEXT.decode(this.#item.length === 1 ? this.#item[0] : Buffer.concat(this.#item));
    const leftOut = this.#leftOut;
    [this.#item, this.#size, this.#leftOut] = [[], 0, 0];
    // Between the brackets of an empty list, and an empty line.
    if (text.trim() === '' && (this.#count === 0 || this.#options.of === 'lines')) return;
    this.#count += 1;
    this.#options.take(JSON.parse(text), leftOut);
  }

  /** Puts the bytes up to `end` where they belong. */
  #put(chunk: Uint8Array, end: number): void {
    const bytes = chunk.subarray(this.#from, end);
    this.#from = end;
    if (bytes.length === 0) return;
    if (this.#part === 'items') this.#hold(bytes);
    else this.#around += this.#text.decode(bytes, { stream: true });
    if (this.#around.length > MOST_AROUND) throw new SyntaxError('too much around the items of a list');
  }

  #hold(bytes: Uint8Array): void {
    if (this.#hash !== undefined) {
      this.#hash.update(bytes);
      this.#leftOut += bytes.length;
      return;
    }
    this.#item.push(bytes);
    this.#size += bytes.length;
  }
}
