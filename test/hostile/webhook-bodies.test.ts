/** Who reaches the webhook's port may send what they like: it costs the webhook a bounded amount, and the API server its answers never. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { createLogger } from '../../runtime/telemetry/logger.ts';
import type { AdmissionRequest } from '../../runtime/webhook/admission-review.ts';
import { serveWebhook } from '../../runtime/webhook/server.ts';
import { Authority } from '../control-plane/x509.ts';
import { suite, table } from '../support/suite.ts';

const test = suite('bodies of the webhook');
const MIB = 2 ** 20;
const work = mkdtempSync(join(tmpdir(), 'pullwright-webhook-bodies-'));
const { certificate, key } = new Authority('bodies').issue({ commonName: 'x', hosts: ['127.0.0.1'] });
const files = { certificate: join(work, 'tls.crt'), key: join(work, 'tls.key') };
writeFileSync(files.certificate, certificate);
writeFileSync(files.key, key);
const admitted: AdmissionRequest[] = [];
const server = await serveWebhook({
  port: 0,
  host: '127.0.0.1',
  files,
  handlers: {
    '/inject': (asked) => {
      admitted.push(asked);
      return { outcome: 'unchanged' };
    },
  },
  log: createLogger({ write: () => undefined }),
  metrics: { admitted: () => undefined },
});
const { port } = server;
test.lastly('the server ends', async () => {
  await server.close();
  rmSync(work, { recursive: true });
});

interface Answer {
  readonly status: number;
  readonly text: string;
}

function ask(body: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', path: '/inject', method: 'POST' };
    const asking = request({ ...options, rejectUnauthorized: false, agent: false }, (answer) => {
      let text = '';
      answer.on('data', (part: Buffer) => (text += part.toString()));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    asking.on('error', reject);
    asking.end(body);
  });
}

const review = (spec: string): string =>
  `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","resource":{"resource":"pods"},"object":{"spec":${spec}}}}`;

/** A request that is begun, with what the server says to it. */
class Begun {
  readonly socket: TLSSocket;
  /** What the server has said when it ends the connection. */
  readonly answered: Promise<string>;

  constructor(socket: TLSSocket) {
    this.socket = socket;
    let said = '';
    socket.on('error', () => undefined);
    socket.on('data', (part: Buffer) => (said += part.toString()));
    this.answered = once(socket, 'close').then(() => said);
  }

  static async with(length: string, bytes: Buffer): Promise<Begun> {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const begun = new Begun(socket);
    socket.write(`POST /inject HTTP/1.1\r\nhost: x\r\n${length}\r\n\r\n`);
    socket.write(bytes);
    return begun;
  }
}

table(
  test,
  [
    {
      name: 'an object of a megabyte',
      reason: 'there are such',
      spec: `"${'a'.repeat(MIB)}"`,
      status: 200,
      says: /"allowed":true/,
    },
    {
      name: 'ten megabytes',
      reason: 'no object has as many',
      spec: `"${'a'.repeat(10 * MIB)}"`,
      status: 413,
      says: /at most 8388608 bytes are read/,
    },
    {
      name: 'a spec that is no end of lists',
      reason: 'what reads it must not fall over it',
      spec: `${'['.repeat(MIB)}${']'.repeat(MIB)}`,
      status: 200,
      says: /"allowed":true/,
    },
    {
      name: 'a spec of 400,000 fields',
      reason: 'each costs more than it weighs',
      spec: `{${Array.from({ length: 400_000 }, (_, at) => `"k${at}":1`).join()}}`,
      status: 200,
      says: /"allowed":true/,
    },
    {
      name: 'no JSON',
      reason: 'it is somebody else',
      spec: '{',
      status: 400,
      says: /expected an AdmissionReview/,
    },
  ],
  async ({ spec, status, says }) => {
    const answer = await ask(review(spec));
    assert.equal(answer.status, status);
    assert.match(answer.text, says);
  },
);

test('chunks without end are read to the bound, and then the connection ends', async () => {
  const chunk = Buffer.from(`10000\r\n${'a'.repeat(65_536)}\r\n`);
  const { socket } = await Begun.with('transfer-encoding: chunked', chunk);
  let sent = 1;
  for (; !socket.destroyed && sent < 4000; sent += 1)
    if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
  assert.ok(sent < 4000, 'it was read on and on');
});

test('of many that are begun and not ended, those with most are sent away, and the API server is answered', async () => {
  const part = Buffer.alloc(7 * MIB, 97);
  const many: Begun[] = [];
  for (let at = 0; at < 40; at += 1) {
    many.push(await Begun.with(`content-length: ${8 * MIB}`, part));
    // A small one among them, as each comes.
    assert.equal((await ask(review(`{"nodeName":"n${at}"}`))).status, 200);
  }
  // 64 MiB are nine of seven, and no more.
  const away = await firstOf(
    many.map(({ answered }) => answered),
    31,
  );
  for (const said of away) {
    assert.match(said, /^HTTP\/1\.1 503 /);
    assert.match(said, /at most 67108864 bytes are held, and this request has the most/);
  }
  for (const { socket } of many) socket.destroy();
});

/** The first `count` that settle. */
function firstOf(all: readonly Promise<string>[], count: number): Promise<readonly string[]> {
  const found: string[] = [];
  return new Promise((resolve) => {
    const take = async (one: Promise<string>): Promise<void> => {
      found.push(await one);
      if (found.length === count) resolve(found);
    };
    for (const one of all) void take(one);
  });
}

test.run();
