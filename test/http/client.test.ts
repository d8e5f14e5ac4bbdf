/** The one HTTP client against servers that answer byte by byte what they like. On Bun both engines are asked. */
import assert from 'node:assert/strict';
import type { TLSSocket } from 'node:tls';
import { HttpClient } from '../../runtime/http/client.ts';
import { HttpsEngine } from '../../runtime/http/engine.ts';
import { fetchEngine } from '../../runtime/http/fetch-engine.ts';
import { HttpError, type HttpFailure } from '../../runtime/http/http-error.ts';
import type { HttpEngine, Route } from '../../runtime/http/request.ts';
import { eventually } from '../control-plane/eventually.ts';
import { makeCertificates } from '../support/certificates.ts';
import { test as add, type Case, type TestBody, table } from '../support/suite.ts';
import { certificates, rawServer } from './raw-server.ts';

const engines: Readonly<Record<string, (route: Route) => HttpEngine>> = {
  'node:https': (route) => new HttpsEngine(route),
  ...(process.versions['bun'] === undefined ? {} : { fetch: (route: Route) => fetchEngine(route) }),
};

async function failureOf(asked: Promise<unknown>): Promise<HttpError> {
  const error = await asked.then(
    () => assert.fail('there was an answer'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof HttpError, String(error));
  return error;
}

const OK = 'HTTP/1.1 200 OK\r\n';
interface Row extends Case {
  readonly pieces: readonly string[];
  /** The text; absent: there is none. */
  readonly text?: string;
  /** Why there is no text. @default {'AnswerUnreadable'} */
  readonly failure?: HttpFailure;
}

const rows: readonly Row[] = [
  { name: 'by length', pieces: [`${OK}content-length: 2\r\n\r\n{}`], text: '{}' },
  { name: 'no body', pieces: ['HTTP/1.1 304 Not Modified\r\n\r\n'], text: '' },
  {
    name: '103 before the answer',
    reason: 'a server may send hints first',
    pieces: ['HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n', `${OK}content-length: 2\r\n\r\n{}`],
    text: '{}',
  },
  {
    name: '100 in one piece with the answer',
    reason: 'RFC 9110, 15.2: any number of 1xx may come first',
    pieces: [`HTTP/1.1 100 Continue\r\n\r\n${OK}content-length: 2\r\n\r\n{}`],
    text: '{}',
  },
  {
    name: 'chunks that look like headers',
    reason: 'what is in a chunk is data',
    pieces: [
      `${OK}transfer-encoding: chunked\r\n\r\n`,
      ...Array<string>(200).fill('4\r\n\r\n\r\n\r\n'),
      '2\r\n{}\r\n0\r\nx: y\r\n\r\n',
    ],
    text: `${'\r\n\r\n'.repeat(200)}{}`,
  },
  {
    name: 'until the end of the connection',
    reason: 'as HTTP/1.0 does',
    pieces: ['HTTP/1.0 200 OK\r\n\r\n{}', 'END'],
    text: '{}',
  },
  {
    name: 'gzip, chunked',
    reason: 'packed bytes are no text, and nobody asked for them',
    pieces: [`${OK}transfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
  },
  {
    name: 'content-encoding',
    reason: 'a bomb unpacks to any size',
    pieces: [`${OK}content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}`],
  },
  {
    name: 'two lengths that differ',
    reason: 'two readers would see two answers',
    pieces: [`${OK}content-length: 2\r\ncontent-length: 3\r\n\r\n{} `],
  },
  {
    name: 'byte by byte',
    reason: 'a record of TLS may end anywhere',
    pieces: `${OK}transfer-encoding: chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nx: y\r\n\r\n`.split(''),
    text: '{}',
  },
  {
    name: 'no HTTP at all',
    reason: 'another program listens there',
    pieces: ['SSH-2.0-OpenSSH_9.6\r\n\r\n'],
  },
  {
    name: 'a length that is none',
    reason: 'the frame is broken',
    pieces: [`${OK}content-length: -1\r\n\r\n{}`],
  },
  {
    name: 'fewer bytes than promised',
    reason: 'half a list is no list',
    pieces: [`${OK}content-length: 20\r\n\r\n{}`, 'END'],
    failure: 'ConnectionLost',
  },
  {
    name: 'no last chunk',
    reason: 'half a list is no list',
    pieces: [`${OK}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n`, 'END'],
    failure: 'ConnectionLost',
  },
  { name: 'nothing', reason: 'the server hangs up', pieces: ['END'], failure: 'ConnectionLost' },
  {
    name: 'longer than allowed, with its length',
    pieces: [`${OK}content-length: 2000\r\n\r\n${'x'.repeat(2000)}`],
    failure: 'AnswerTooLarge',
  },
];

process.stdout.write(`engines: ${Object.keys(engines).join(', ')}\n`);
for (const [engineName, engine] of Object.entries(engines)) {
  const test = (name: string, body: TestBody): void => add(`${engineName}: ${name}`, body);
  const make = (route: Route = { ca: certificates.ca }): HttpClient => new HttpClient(engine(route));

  table(test, rows, async ({ pieces, text, failure = 'AnswerUnreadable' }) => {
    const server = await rawServer(async (socket) => {
      for (const piece of pieces) {
        if (piece === 'END') socket.end();
        else socket.write(Buffer.from(piece, 'latin1'));
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    const client = make();
    const asked = client.ask({ method: 'GET', url: server.url }, 1500);
    if (text !== undefined) assert.equal((await asked).text, text);
    else assert.equal((await failureOf(asked)).failure, failure);
    client.close();
    server.close();
  });

  test('an answer without end is cut off while it arrives', async () => {
    let sent = 0;
    const server = await rawServer((socket) => {
      socket.write(`${OK}transfer-encoding: chunked\r\n\r\n`);
      const piece = `10000\r\n${'x'.repeat(65_536)}\r\n`;
      const more = (): void => {
        if (socket.destroyed) return;
        sent += 65_536;
        if (socket.write(piece)) setImmediate(more);
        else socket.once('drain', more);
      };
      more();
    });
    const client = make();
    const error = await failureOf(client.ask({ method: 'GET', url: server.url }, 1_000_000));
    assert.equal(error.failure, 'AnswerTooLarge');
    assert.ok(sent < 100_000_000, `${sent} bytes were sent`);
    client.close();
    server.close();
  });

  test('a connection is kept for the next request, unless the answer ends it or more came than was asked for', async () => {
    const connections = new Set<TLSSocket>();
    const answers = ['connection: keep-alive\r\n', 'connection: close\r\n', '', ''];
    const server = await rawServer((socket) => {
      connections.add(socket);
      const header = answers.shift() ?? '';
      const surplus = answers.length === 1 ? `${OK}content-length: 6\r\n\r\nforged` : '';
      socket.write(`${OK}${header}content-length: 2\r\n\r\n{}${surplus}`);
    });
    const client = make();
    const seen: number[] = [];
    for (let count = 0; count < 4; count += 1) {
      assert.equal((await client.ask({ method: 'GET', url: server.url }, 100)).text, '{}');
      seen.push(connections.size);
    }
    assert.deepEqual(seen, [1, 1, 2, 3]);
    client.close();
    server.close();
  });

  // Bun pools connections by itself.
  if (process.versions['bun'] === undefined)
    test('of the connections of a burst, four are kept', async () => {
      const open = new Set<TLSSocket>();
      const server = await rawServer((socket) => {
        open.add(socket);
        socket.once('close', () => open.delete(socket));
        if (open.size === 12) for (const one of open) one.write(`${OK}content-length: 2\r\n\r\n{}`);
      });
      const client = make();
      const request = { method: 'GET', url: server.url };
      await Promise.all(Array.from({ length: 12 }, () => client.ask(request, 100)));
      await eventually(() => assert.equal(open.size, 4));
      client.close();
      server.close();
    });

  test('a kept connection that the server has closed costs a look nothing, and a write one error', async () => {
    const server = await rawServer((socket, head) => {
      // The second request on a connection is read and never answered.
      if (server.heads.length % 2 === 0) socket.destroy();
      else socket.write(`${OK}content-length: 2\r\n\r\n{}`);
      assert.ok(head.length > 0);
    });
    const client = make();
    const get = { method: 'GET', url: server.url };
    await client.ask(get, 100);
    assert.equal((await client.ask(get, 100)).text, '{}');
    const post = { method: 'POST', url: server.url, body: '{}' };
    assert.equal((await failureOf(client.ask(post, 100))).failure, 'ConnectionLost');
    assert.equal((await client.ask(post, 100)).text, '{}');
    client.close();
    server.close();
  });

  test('the deadline is for the whole answer that is asked for, and for the head of one that is opened', async () => {
    const server = await rawServer((socket) => socket.write(`${OK}content-length: 9\r\n\r\n{}`));
    const client = make();
    const request = { method: 'GET', url: server.url, timeoutMs: 200 };
    const error = await failureOf(client.ask(request, 100));
    assert.deepEqual([error.failure, error.message], ['Timeout', 'no response within 200 ms']);
    const answer = await client.open({ ...request, timeoutMs: 60_000 });
    assert.equal(answer.status, 200);
    answer.discard();
    client.close();
    server.close();
  });

  test('a signal ends what is under way, and so does closing', async () => {
    const server = await rawServer(() => undefined);
    const client = make();
    const stop = new AbortController();
    const first = failureOf(client.ask({ method: 'GET', url: server.url, signal: stop.signal }, 100));
    const second = failureOf(client.ask({ method: 'GET', url: server.url }, 100));
    stop.abort();
    assert.equal((await first).failure, 'Aborted');
    client.close();
    assert.equal((await second).failure, 'Aborted');
    server.close();
  });

  test('a redirect is an answer, unless it is to be followed; another origin gets no credential', async () => {
    const target = await rawServer((socket) => socket.write(`${OK}content-length: 2\r\n\r\n{}`));
    const server = await rawServer((socket) =>
      socket.write(`HTTP/1.1 302 Found\r\nlocation: ${target.url}\r\ncontent-length: 0\r\n\r\n`),
    );
    const client = make();
    const request = { method: 'GET', url: server.url, headers: { authorization: 'Bearer planted' } };
    assert.equal((await client.ask(request, 100)).status, 302);
    assert.equal((await client.ask({ ...request, redirects: 1 }, 100)).status, 200);
    const refused = await failureOf(client.ask({ ...request, redirects: 0 }, 100));
    assert.equal(refused.failure, 'RedirectRefused');
    assert.ok(server.heads.every((head) => head.includes('authorization')));
    assert.deepEqual(
      target.heads.map((head) => head.includes('authorization')),
      [false],
    );
    client.close();
    target.close();
    server.close();
  });

  test('without TLS nothing is sent, and nothing to a server of another authority', async () => {
    const server = await rawServer((socket) => socket.write(`${OK}content-length: 2\r\n\r\n{}`));
    const client = make({ ca: makeCertificates().ca });
    const plain = await failureOf(client.ask({ method: 'GET', url: 'http://127.0.0.1:1/' }, 100));
    assert.equal(plain.failure, 'TlsWanted');
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      const error = await failureOf(client.ask({ method: 'GET', url: server.url }, 100));
      assert.equal(error.failure, 'CertificateNotTrusted', error.message);
    } finally {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    }
    assert.deepEqual(server.heads, []);
    client.close();
    server.close();
  });
}
