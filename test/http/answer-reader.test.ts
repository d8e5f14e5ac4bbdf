/** HTTP/1.1 answers that could be read in two ways, whole and byte by byte. */
import assert from 'node:assert/strict';
import { AnswerReader } from '../../runtime/http/answer-reader.ts';
import { HttpError } from '../../runtime/http/http-error.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('AnswerReader');
const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;

interface Row extends Case {
  readonly answer: string;
  readonly method?: string;
  /** The body, or undefined for what is refused. */
  readonly body?: string;
  /** @default {true} */
  readonly reusable?: boolean;
}

const rows: readonly Row[] = [
  { name: 'a length', reason: 'the usual', answer: `${OK}Content-Length: 2\r\n\r\n{}`, body: '{}' },
  {
    name: 'no phrase',
    reason: 'RFC 9112, 4',
    answer: 'HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n',
    body: '',
  },
  {
    name: 'HEAD',
    reason: 'the length is of what GET gives',
    method: 'HEAD',
    answer: `${OK}content-length: 9\r\n\r\n`,
    body: '',
  },
  { name: '204', reason: 'it has no body', answer: 'HTTP/1.1 204 No Content\r\n\r\n', body: '' },
  {
    name: 'close',
    reason: 'the server says so',
    answer: `${OK}connection: close\r\ncontent-length: 2\r\n\r\n{}`,
    body: '{}',
    reusable: false,
  },
  {
    name: 'HTTP/1.0',
    reason: 'it closes as a rule',
    answer: 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}',
    body: '{}',
    reusable: false,
  },
  {
    name: 'surplus',
    reason: 'it would be taken for the answer to the next request',
    answer: `${OK}content-length: 2\r\n\r\n{}x`,
    body: '{}',
    reusable: false,
  },
  {
    name: 'chunks',
    reason: 'with extension and trailer',
    answer: `${CHUNKED}1;a=b\r\n{\r\n01\r\n}\r\n0\r\na: b\r\n\r\n`,
    body: '{}',
  },
  {
    name: 'two framings',
    reason: 'RFC 9112, 6.3',
    answer: `${OK}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
  },
  {
    name: 'two lengths',
    reason: 'also when they are the same',
    answer: `${OK}content-length: 2\r\ncontent-length: 2\r\n\r\n{}`,
  },
  { name: 'a list of lengths', reason: 'no number', answer: `${OK}content-length: 2, 2\r\n\r\n{}` },
  {
    name: 'chunks in HTTP/1.0',
    reason: 'it does not know them',
    answer: 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  },
  { name: 'a negative chunk', reason: 'no number', answer: `${CHUNKED}-1\r\n` },
  {
    name: 'a chunk that is longer',
    reason: 'its end is not where it says',
    answer: `${CHUNKED}1\r\n{}\r\n0\r\n\r\n`,
  },
  { name: 'a long line of a chunk', reason: 'memory is bounded', answer: `${CHUNKED}1;${'x'.repeat(500)}` },
  { name: 'a space before the colon', reason: 'RFC 9112, 5.1', answer: `${OK}content-length : 2\r\n\r\n{}` },
  { name: 'a folded header', reason: 'RFC 9112, 5.2', answer: `${OK}a: b\r\n content-length: 2\r\n\r\n{}` },
  {
    name: 'a bare line feed',
    reason: 'another reader sees two headers',
    answer: `${OK}a: b\ncontent-length: 2\r\n\r\n{}`,
  },
  {
    name: 'another protocol',
    reason: 'nobody asked for it',
    answer: 'HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n',
  },
  { name: 'a head without end', reason: 'memory is bounded', answer: `${OK}a: ${'x'.repeat(40_000)}` },
  {
    name: 'hints without end',
    reason: 'they count as one head',
    answer: `HTTP/1.1 103 Early Hints\r\na: ${'x'.repeat(900)}\r\n\r\n`.repeat(50),
  },
];

function read(method: string, pieces: readonly Buffer[]): AnswerReader | HttpError {
  const reader = new AnswerReader(method);
  try {
    for (const piece of pieces) reader.take(piece);
    return reader;
  } catch (error) {
    assert.ok(error instanceof HttpError, String(error));
    return error;
  }
}

table(test, rows, ({ answer, method = 'GET', body, reusable = true }) => {
  const bytes = Buffer.from(answer, 'latin1');
  for (const pieces of [[bytes], [...bytes].map((byte) => Buffer.from([byte]))]) {
    const found = read(method, pieces);
    if (body === undefined) {
      assert.ok(found instanceof HttpError, 'it was read');
      assert.equal(found.failure, 'AnswerUnreadable');
    } else {
      assert.ok(found instanceof AnswerReader, 'it was not read');
      assert.deepEqual([found.done, found.body().toString(), found.reusable], [true, body, reusable]);
    }
  }
});

test.run();
