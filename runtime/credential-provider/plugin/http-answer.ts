/**
 * One answer of an HTTP/1.1 server, put together from the pieces in which it arrives: body by its length, in chunks, or until
 * the server closes.
 *
 * Source of the rule: RFC 9112, sections 4 to 7, for the answer to a GET with one request under way at a time.
 */
import type { RawAnswer } from './api-client.ts';

/** A namespace's secrets are a few megabytes at most; a server that never ends must not take the node's memory. */
const MOST_BYTES = 64 * 2 ** 20;
const CR = 13;
const LF = 10;

interface Head {
  readonly status: number;
  readonly retryAfter: string | null;
  /** Bytes of the body; undefined: in chunks, or until the end of the connection. */
  readonly length: number | undefined;
  readonly isChunked: boolean;
  /** The server closes the connection after it. */
  readonly isLast: boolean;
  /** Where the body begins. */
  readonly bodyAt: number;
}

/**
 * Takes the pieces of one answer.
 *
 * @example
 * ```ts
 * import { AnswerReader } from './http-answer.ts';
 * import assert from 'node:assert/strict';
 *
 * const reader = new AnswerReader();
 * assert.equal(reader.add(Buffer.from('HTTP/1.1 200 OK\r\ncontent-le')), undefined);
 * assert.deepEqual(reader.add(Buffer.from('ngth: 2\r\n\r\n{}')), { status: 200, text: '{}', retryAfter: null });
 * ```
 */
export class AnswerReader {
  #held = new Uint8Array(16_384);
  #length = 0;
  #head: Head | undefined;

  /** The answer once it is complete. Throws for bytes that are no answer, and for one of more than 64 MiB. */
  add(piece: Uint8Array): RawAnswer | undefined {
    this.#reserve(this.#length + piece.length);
    this.#held.set(piece, this.#length);
    this.#length += piece.length;
    return this.#read(false);
  }

  /** The server has closed the connection: the answer, if that was its end. Throws when something is missing. */
  end(): RawAnswer {
    const answer = this.#read(true);
    if (answer !== undefined) return answer;
    throw new Error(
      this.#length === 0 ? 'the connection was closed' : 'the connection was closed within the answer',
    );
  }

  /** Whether the connection ends with this answer. */
  get isLast(): boolean {
    return this.#head?.isLast ?? true;
  }

  #read(isClosed: boolean): RawAnswer | undefined {
    const bytes = this.#held.subarray(0, this.#length);
    if (this.#head === undefined) {
      this.#head = headOf(bytes);
      if (this.#head?.length !== undefined) this.#reserve(this.#head.bodyAt + this.#head.length);
    }
    if (this.#head === undefined) return undefined;
    const body = bodyOf(this.#head, bytes.subarray(this.#head.bodyAt), isClosed);
    if (body === undefined) return undefined;
    const { status, retryAfter } = this.#head;
    return { status, text: new TextDecoder().decode(body), retryAfter };
  }

  #reserve(length: number): void {
    if (length > MOST_BYTES) throw new Error('the answer is larger than 64 MiB');
    if (length <= this.#held.length) return;
    const larger = new Uint8Array(Math.max(length, Math.min(2 * this.#held.length, MOST_BYTES)));
    larger.set(this.#held.subarray(0, this.#length));
    this.#held = larger;
  }
}

function headOf(bytes: Uint8Array): Head | undefined {
  const end = endOfHead(bytes);
  if (end === -1) {
    if (bytes.length > 65_536) throw new Error('the answer is no HTTP');
    return undefined;
  }
  const [first = '', ...lines] = asText(bytes.subarray(0, end)).split('\r\n');
  const status = Number(/^HTTP\/1\.[01] ([2-5][0-9][0-9])(?: |$)/.exec(first)?.[1]);
  if (!Number.isInteger(status)) throw new Error('the answer is no HTTP');
  const fields = new Map(lines.map((line) => fieldOf(line)));
  return {
    status,
    retryAfter: fields.get('retry-after') ?? null,
    length: status === 204 || status === 304 ? 0 : lengthOf(fields.get('content-length')),
    isChunked: fields.get('transfer-encoding')?.toLowerCase() === 'chunked',
    isLast: first.startsWith('HTTP/1.0') || fields.get('connection')?.toLowerCase() === 'close',
    bodyAt: end + 4,
  };
}

/** Index of the blank line; -1 when it is not there yet. */
function endOfHead(bytes: Uint8Array): number {
  for (let at = bytes.indexOf(CR); at !== -1; at = bytes.indexOf(CR, at + 1))
    if (bytes[at + 1] === LF && bytes[at + 2] === CR && bytes[at + 3] === LF) return at;
  return -1;
}

/** A byte a character: what is no ASCII stays apart from what is. */
function asText(bytes: Uint8Array): string {
  return new TextDecoder('latin1').decode(bytes);
}

function lengthOf(text: string | undefined): number | undefined {
  if (text === undefined || /^[0-9]{1,15}$/.test(text)) return text === undefined ? undefined : Number(text);
  throw new Error('the answer has no valid length');
}

function fieldOf(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, Math.max(0, colon)).toLowerCase(), line.slice(colon + 1).trim()];
}

/** The body, if all of it is there. */
function bodyOf({ isChunked, length }: Head, bytes: Uint8Array, isClosed: boolean): Uint8Array | undefined {
  if (isChunked) return endsInBlankLine(bytes) ? joinedChunks(bytes) : undefined;
  if (length !== undefined) return bytes.length >= length ? bytes.subarray(0, length) : undefined;
  return isClosed ? bytes : undefined;
}

/** The last chunk and the trailer end so; it spares reading all chunks again with each piece. */
function endsInBlankLine(bytes: Uint8Array): boolean {
  const end = bytes.length;
  return bytes[end - 4] === CR && bytes[end - 3] === LF && bytes[end - 2] === CR && bytes[end - 1] === LF;
}

/** The chunks without their frames; undefined when the last one is not there yet. */
function joinedChunks(bytes: Uint8Array): Uint8Array | undefined {
  const joined = new Uint8Array(bytes.length);
  let length = 0;
  for (let at = 0; ; ) {
    const lineEnd = endOfLine(bytes, at);
    if (lineEnd === -1) return undefined;
    const size = /^[0-9a-f]{1,8}(?=[\s;]|$)/i.exec(asText(bytes.subarray(at, lineEnd)))?.[0];
    if (size === undefined) throw new Error('the answer has no valid chunks');
    const start = lineEnd + 2;
    const end = start + Number.parseInt(size, 16);
    if (end === start) return joined.subarray(0, length);
    if (end + 2 > bytes.length) return undefined;
    joined.set(bytes.subarray(start, end), length);
    length += end - start;
    at = end + 2;
  }
}

function endOfLine(bytes: Uint8Array, from: number): number {
  let at = bytes.indexOf(CR, from);
  while (at !== -1 && bytes[at + 1] !== LF) at = bytes.indexOf(CR, at + 1);
  return at;
}
