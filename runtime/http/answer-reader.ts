/** One HTTP/1.1 answer out of bytes as they come (RFC 9112). What two readers could read in two ways is refused. */
import { HttpError } from './http-error.ts';

/** Of all heads of one answer, hints that come first and trailers included. */
const MOST_HEAD_BYTES = 32 * 1024;
/** Of a line that says how long a chunk is. */
const MOST_SIZE_LINE = 256;

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FORBIDDEN = /[\r\n\0]/;
const NOTHING: Buffer = Buffer.alloc(0);

/** What the head says. */
export interface AnswerHead {
  readonly status: number;
  /** By names in lower case; of a name that comes twice, both values with a comma. */
  readonly headers: ReadonlyMap<string, string>;
}

/** How the end of a body is known. */
type Framing = 'none' | 'length' | 'chunked' | 'until-end';

/**
 * Reads one answer: give it bytes by {@link AnswerReader.take} until `done`.
 *
 * @example
 * ```ts
 * import { AnswerReader } from './answer-reader.ts';
 * import assert from 'node:assert/strict';
 *
 * const reader = new AnswerReader('GET');
 * reader.take(Buffer.from('HTTP/1.1 200 OK\r\ncontent-le'));
 * reader.take(Buffer.from('ngth: 2\r\n\r\n{}'));
 * assert.deepEqual([reader.head?.status, reader.body().toString(), reader.done, reader.reusable], [200, '{}', true, true]);
 * ```
 */
export class AnswerReader {
  head: AnswerHead | undefined;
  /** All of it is there. */
  done = false;
  /** Bytes of the body so far. */
  size = 0;
  readonly #method: string;
  readonly #parts: Buffer[] = [];
  #framing: Framing = 'none';
  #isKept = false;
  #surplus = false;
  /** Bytes of a head, a trailer or a line that is not whole yet. */
  #rest: Buffer = NOTHING;
  #headBytes = 0;
  /** Bytes of the body, or of its chunk, that are still to come. */
  #left = 0;
  #chunkState: 'size' | 'data' | 'data-end' | 'trailer' = 'size';

  constructor(method: string) {
    this.#method = method;
  }

  /** Whether the connection can carry another request. */
  get reusable(): boolean {
    return this.done && this.#isKept && !this.#surplus;
  }

  /** What has come of the body. */
  body(): Buffer {
    const [first] = this.#parts;
    return this.#parts.length === 1 && first !== undefined ? first : Buffer.concat(this.#parts);
  }

  /** @throws HttpError `AnswerUnreadable` when it is no HTTP */
  take(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 && !this.done)
      rest = this.head === undefined ? this.#takeHead(rest) : this.#takeBody(rest);
    if (rest.length > 0) this.#surplus = true;
  }

  /** The connection has ended. @returns whether the answer is whole */
  end(): boolean {
    if (this.head !== undefined && this.#framing === 'until-end') this.done = true;
    return this.done;
  }

  #takeHead(bytes: Buffer): Buffer {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const end = all.indexOf('\r\n\r\n');
    if (end === -1) return this.#keep(all, MOST_HEAD_BYTES - this.#headBytes);
    this.#count(end + 4);
    this.#rest = NOTHING;
    const head = headOf(all.toString('latin1', 0, end));
    if (head.status === 101) throw broken('it changes the protocol');
    // Hints that come before the answer.
    if (head.status >= 200) this.#begin(head);
    return all.subarray(end + 4);
  }

  #begin(head: ReturnType<typeof headOf>): void {
    this.head = head;
    const [framing, length] = framingOf(head, this.#method);
    this.#framing = framing;
    this.#left = length;
    this.done = framing === 'none' || (framing === 'length' && length === 0);
    const connection = head.headers.get('connection') ?? '';
    this.#isKept = head.version === '1.1' && framing !== 'until-end' && !/close/i.test(connection);
  }

  #takeBody(bytes: Buffer): Buffer {
    if (this.#framing === 'until-end') return this.#add(bytes, bytes.length);
    if (this.#framing === 'chunked') return this.#takeChunked(bytes);
    const rest = this.#data(bytes);
    this.done = this.#left === 0;
    return rest;
  }

  #takeChunked(bytes: Buffer): Buffer {
    if (this.#chunkState === 'data') {
      const rest = this.#data(bytes);
      if (this.#left === 0) this.#chunkState = 'data-end';
      return rest;
    }
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    const end = all.indexOf('\r\n');
    if (end === -1) return this.#keep(all, MOST_SIZE_LINE);
    this.#rest = NOTHING;
    this.#takeLine(all.toString('latin1', 0, end));
    return all.subarray(end + 2);
  }

  #takeLine(line: string): void {
    if (this.#chunkState === 'data-end') {
      if (line !== '') throw broken('a chunk is longer than it says');
      this.#chunkState = 'size';
    } else if (this.#chunkState === 'trailer') {
      this.#count(line.length + 2);
      this.done = line === '';
    } else {
      this.#left = chunkLength(line);
      this.#chunkState = this.#left === 0 ? 'trailer' : 'data';
    }
  }

  #data(bytes: Buffer): Buffer {
    const taken = Math.min(this.#left, bytes.length);
    this.#left -= taken;
    return this.#add(bytes, taken);
  }

  #add(bytes: Buffer, length: number): Buffer {
    this.size += length;
    this.#parts.push(length === bytes.length ? bytes : bytes.subarray(0, length));
    return length === bytes.length ? NOTHING : bytes.subarray(length);
  }

  #keep(bytes: Buffer, most: number): Buffer {
    if (bytes.length > most) throw broken('its head is too long');
    this.#rest = bytes;
    return NOTHING;
  }

  #count(bytes: number): void {
    this.#headBytes += bytes;
    if (this.#headBytes > MOST_HEAD_BYTES) throw broken('its head is too long');
  }
}

function headOf(text: string): AnswerHead & { readonly version: string } {
  const [first = '', ...lines] = text.split('\r\n');
  const [, version, status] = /^HTTP\/(1\.[01]) (\d{3})(?: [^\r\n\0]*)?$/.exec(first) ?? [];
  if (version === undefined) throw broken('it has no status');
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (colon === -1 || !TOKEN.test(name) || FORBIDDEN.test(value)) throw broken('a header is damaged');
    const before = headers.get(name);
    if (before !== undefined && name === 'content-length') throw broken('it has two lengths');
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return { version, status: Number(status), headers };
}

function framingOf(
  { status, headers, version }: ReturnType<typeof headOf>,
  method: string,
): readonly [framing: Framing, length: number] {
  const transfer = headers.get('transfer-encoding');
  const length = headers.get('content-length');
  if (transfer !== undefined && (length !== undefined || version === '1.0'))
    throw broken('its length is said twice');
  if (length !== undefined && !/^\d{1,15}$/.test(length)) throw broken('its length is no number');
  if (method === 'HEAD' || status === 204 || status === 304) return ['none', 0];
  if (transfer !== undefined) return [/(?:^|[ ,\t])chunked$/i.test(transfer) ? 'chunked' : 'until-end', 0];
  return length === undefined ? ['until-end', 0] : ['length', Number(length)];
}

function chunkLength(line: string): number {
  const [size = ''] = line.split(';', 1);
  if (!/^[0-9a-f]{1,12}$/i.test(size.trimEnd())) throw broken('the length of a chunk is no number');
  return Number.parseInt(size, 16);
}

function broken(what: string): HttpError {
  return new HttpError('AnswerUnreadable', `the answer is no valid HTTP: ${what}`);
}
