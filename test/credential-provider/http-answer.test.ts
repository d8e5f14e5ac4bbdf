/** Answers of an HTTP/1.1 server, in whatever pieces they arrive. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { AnswerReader } from '../../runtime/credential-provider/plugin/http-answer.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('AnswerReader');

interface Row extends Case {
  readonly bytes: string;
  /** Undefined: more is expected. */
  readonly text: string | undefined;
  readonly isLast?: boolean;
  /** The server has closed the connection. */
  readonly isClosed?: boolean;
}

const OK = 'HTTP/1.1 200 OK\r\n';
const rows: readonly Row[] = [
  {
    name: 'by length',
    reason: 'as small answers are',
    bytes: `${OK}Content-Length: 2\r\n\r\n{}`,
    text: '{}',
  },
  {
    name: 'length zero',
    reason: 'no body is a body',
    bytes: `${OK}content-length: 0\r\n\r\n`,
    text: '',
  },
  {
    name: 'half a body',
    reason: 'the rest is on its way',
    bytes: `${OK}content-length: 3\r\n\r\n{}`,
    text: undefined,
  },
  {
    name: 'chunks',
    reason: 'as lists are sent',
    bytes: `${OK}Transfer-Encoding: Chunked\r\n\r\n1\r\n{\r\n1;name=value\r\n}\r\n0\r\n\r\n`,
    text: '{}',
  },
  {
    name: 'chunks with a trailer',
    reason: 'it is passed over',
    bytes: `${OK}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: y\r\n\r\n`,
    text: '{}',
  },
  {
    name: 'blank line within a chunk',
    reason: 'only the last chunk ends the body',
    bytes: `${OK}transfer-encoding: chunked\r\n\r\n6\r\n{}\r\n\r\n`,
    text: undefined,
  },
  {
    name: 'until the end of the connection',
    reason: 'as HTTP/1.0 does',
    bytes: 'HTTP/1.0 200 OK\r\n\r\n{}',
    isClosed: true,
    text: '{}',
    isLast: true,
  },
  {
    name: 'status without a body',
    reason: 'nothing is waited for',
    bytes: 'HTTP/1.1 304 Not Modified\r\n\r\n',
    text: '',
  },
  {
    name: 'close',
    reason: 'the connection is not used again',
    bytes: `${OK}connection: close\r\ncontent-length: 2\r\n\r\n{}`,
    text: '{}',
    isLast: true,
  },
];
table(test, rows, ({ bytes, text, isLast = false, isClosed = false }) => {
  const reader = new AnswerReader();
  const added = reader.add(Buffer.from(bytes));
  const answer = isClosed ? reader.end() : added;
  assert.equal(answer?.text, text);
  if (answer !== undefined) assert.equal(reader.isLast, isLast);
});

interface Bad extends Case {
  readonly bytes: string;
  readonly says: RegExp;
}

const bad: readonly Bad[] = [
  { name: 'another protocol', reason: 'SSH', bytes: 'SSH-2.0-x\r\n\r\n', says: /no HTTP/ },
  { name: 'HTTP/2', reason: 'was not asked for', bytes: 'HTTP/2 200\r\n\r\n', says: /no HTTP/ },
  { name: 'status 1xx', reason: 'was not asked for', bytes: 'HTTP/1.1 101 x\r\n\r\n', says: /no HTTP/ },
  {
    name: 'length with a sign',
    reason: 'two readers would differ',
    bytes: `${OK}content-length: -1\r\n\r\n`,
    says: /length/,
  },
  {
    name: 'length beyond all bounds',
    reason: 'memory of the node',
    bytes: `${OK}content-length: 99999999999\r\n\r\n`,
    says: /larger than 64 MiB/,
  },
  {
    name: 'chunk without a size',
    reason: 'the frame is broken',
    bytes: `${OK}transfer-encoding: chunked\r\n\r\nxyz\r\n\r\n`,
    says: /chunks/,
  },
  { name: 'head without an end', reason: 'memory', bytes: 'x'.repeat(70_000), says: /no HTTP/ },
];
table(test, bad, ({ bytes, says }) => {
  assert.throws(() => new AnswerReader().add(Buffer.from(bytes)), says);
});

test('a connection that ends too early is an error, not a short answer', () => {
  for (const bytes of [
    '',
    'HTTP/1.1 200',
    `${OK}content-length: 3\r\n\r\n{}`,
    `${OK}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n`,
  ]) {
    const reader = new AnswerReader();
    reader.add(Buffer.from(bytes));
    assert.throws(() => reader.end(), /connection was closed/);
  }
});

test('any text, in any chunks, in any pieces', () => {
  const pieces = fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 400 }),
      pieces,
      pieces,
      fc.boolean(),
      (text, chunks, cuts, isChunked) => {
        const body = Buffer.from(text);
        const framed = isChunked
          ? [...cut(body, chunks).filter((part) => part.length > 0), Buffer.alloc(0)].map((part) =>
              Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]),
            )
          : [body];
        const field = isChunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`;
        const whole = Buffer.concat([Buffer.from(`${OK}${field}\r\nretry-after: 7\r\n\r\n`), ...framed]);
        const reader = new AnswerReader();
        const answers = cut(whole, cuts).map((piece) => reader.add(piece));
        assert.deepEqual(answers.at(-1), { status: 200, text, retryAfter: '7' });
        // Nothing is an answer before its last byte is there.
        const early = answers.slice(0, -1).filter((answer) => answer !== undefined);
        assert.deepEqual(early, []);
      },
    ),
    { numRuns: 300 },
  );
});

/** `bytes` in pieces of the given lengths, and the rest. */
function cut(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const parts: Buffer[] = [];
  let at = 0;
  for (const length of lengths) {
    if (at + length >= bytes.length) break;
    parts.push(bytes.subarray(at, at + length));
    at += length;
  }
  return [...parts, bytes.subarray(at)];
}

test.run();
