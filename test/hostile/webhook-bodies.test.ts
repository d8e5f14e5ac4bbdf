/** Who reaches the webhook's port may send what they like: it costs the webhook a bounded amount, and the API server its answers never. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { createLogger } from '../../runtime/core/logger.ts';
import { type AdmissionRequest, serveWebhook } from '../../runtime/pull-secret-injection/webhook/server.ts';
import { Authority } from '../control-plane/x509.ts';
import { table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MIB = 2 ** 20;
const work = tempFolder();
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
      says: /at most 3145728 bytes are allowed/,
    },
    {
      name: 'a spec that is no end of lists',
      reason: 'what reads it must not fall over it',
      spec: `${'['.repeat(MIB)}${']'.repeat(MIB)}`,
      status: 200,
      says: /"allowed":true/,
    },
    {
      name: 'a spec of 200,000 fields',
      reason: 'each costs more than it weighs',
      spec: `{${Array.from({ length: 200_000 }, (_, at) => `"k${at}":1`).join()}}`,
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
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => undefined);
  await once(socket, 'secureConnect');
  socket.write('POST /inject HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
  let sent = 0;
  for (; !socket.destroyed && sent < 4000; sent += 1)
    if (!socket.write(chunk))
      await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => undefined);
  assert.ok(sent < 4000, 'it was read on and on');
});
