// deadline: 240 s
/** The compiled executable with an API server that is slow, broken, not trusted, or behind a proxy. */
import assert from 'node:assert/strict';
import { createServer as createPlain } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { makeCertificates } from '../support/certificates.ts';
import { listen } from '../support/loopback.ts';
import { type Case, type Cases, cases, table, test } from '../support/suite.ts';
import type { ApiState } from './support/api-double.ts';
import { CONF, call, IMAGE, leave, MEMBER, place, serverEnv } from './support/compiled-run.ts';
import { kubeletTakes } from './support/kubelet-response.ts';
import { authFiles, makeNode, pullSecret } from './support/node-double.ts';

interface Answered extends Case {
  readonly state?: Partial<ApiState>;
  /** Address on which the server listens, and its address on the node. */
  readonly host?: string;
  readonly address?: string;
  readonly requests?: number;
}

const two = ['a', 'b'].map((name) =>
  pullSecret(name, {
    'mirror.example.com': { auth: Buffer.from(`${name}:${name}`).toString('base64') },
  }),
);
const answered: readonly Answered[] = [
  { name: 'IPv6', reason: 'an address in brackets', host: '::1', address: '::1' },
  { name: 'localhost, on IPv4 only', reason: 'a name with two addresses', address: 'localhost' },
  { name: 'localhost, on IPv6 only', reason: 'a name with two addresses', host: '::1', address: 'localhost' },
  { name: 'in small pieces', reason: 'a slow line', state: { mode: 'drip' } },
  { name: 'busy at first', reason: 'one retry', state: { mode: '429once' }, requests: 2 },
  {
    name: 'closing after each answer',
    reason: 'pod and account are asked for over new connections',
    state: { mode: 'close', secrets: two, pods: { 'web-0': ['b'] }, serviceAccounts: { app: [] } },
    requests: 3,
  },
  {
    name: 'three questions',
    reason: 'over one connection',
    state: { secrets: two, pods: { 'web-0': ['b'] }, serviceAccounts: { app: [] } },
    requests: 3,
  },
];
table(test, answered, async ({ state, host, address, requests = 1 }) => {
  const here = await place(state, {
    ...(host === undefined ? {} : { host }),
    ...(address === undefined ? {} : { address }),
  });
  const ran = await call(here.node, 'team-a');
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(kubeletTakes(ran.stdout)?.keys, 1);
  assert.equal(Object.keys(authFiles(here.node)).length, 1);
  assert.equal(here.api.requests.length, requests);
  await leave(here);
});

type Untrusted = [says: RegExp, certificates: ReturnType<typeof makeCertificates>, ca?: string];

const past = new Date(Date.now() - 60_000);
const mine = makeCertificates();
const untrusted: Cases<Untrusted> = [
  [
    'of another CA of the same name',
    'the signature counts',
    /did not sign the API server's certificate/,
    mine,
    makeCertificates().ca,
  ],
  [
    'for another host',
    'every kubelet and many pods have a certificate of this CA',
    /ALTNAME/,
    makeCertificates({ hosts: ['other.example.com', '10.0.0.1'] }),
  ],
  [
    'for the name, not the address',
    'the address is what was asked for',
    /ALTNAME/,
    makeCertificates({ hosts: ['localhost'] }),
  ],
  ['expired', 'it counts no more', /CERT_HAS_EXPIRED/, makeCertificates({ notAfter: past })],
  ['CA expired', 'what it signed counts no more', /CERT_HAS_EXPIRED/, makeCertificates({ caNotAfter: past })],
  [
    'CA file of no certificate',
    'PEM around nothing',
    /is unreachable/,
    mine,
    '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  ],
];
cases<Untrusted>(test, untrusted, async (says, certificates, ca = certificates.ca) => {
  const here = await place({}, { certificates, files: { ca } });
  // Disables verification in Node.
  const ran = await call(here.node, 'team-a', { env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, says);
  assert.deepEqual(Object.keys(JSON.parse(ran.stdout).auth), [IMAGE]);
  assert.equal(here.api.requests.length, 0);
  assert.deepEqual(authFiles(here.node), {});
  await leave(here);
});

type Broken = [mode: number | string, says: RegExp];

const broken: Cases<Broken> = [
  ['no answer', 'the budget ends it', 'hang', /request timed out/],
  ['reset', 'twice', 'reset', /is unreachable: the connection was lost/],
  ['reset within the answer', 'half a list is no list', 'torn', /closed during the response/],
  ['errors', 'the message is passed on', 500, /Internal error occurred: boom/],
];
cases<Broken>(test, broken, async (mode, says) => {
  const here = await place({ mode });
  const ran = await call(here.node, 'team-a', { flags: mode === 'hang' ? ['--budget-ms=1500'] : [] });
  assert.equal(ran.timedOut, false);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, says);
  assert.deepEqual(authFiles(here.node), {});
  await leave(here);
});

test('what is no TLS is refused, and the token is not sent to it', async () => {
  let seen = '';
  const talker = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      seen += chunk.toString('latin1');
      socket.end('220 mail.example.com ESMTP\r\n');
    });
  });
  const plain = createPlain((request, response) => {
    seen += String(request.headers.authorization);
    response.end('{"items":[]}');
  });
  for (const server of [talker, plain]) {
    const port = await listen(server);
    const node = makeNode({
      registriesConf: CONF,
      ca: mine.ca,
      apiServerEnv: serverEnv('127.0.0.1', port),
    });
    const ran = await call(node, 'team-a');
    assert.equal(ran.code, 0, ran.stderr);
    assert.match(ran.stderr, /is unreachable/);
    node.remove();
    await new Promise((resolve) => server.close(resolve));
  }
  assert.equal(seen.includes('Bearer'), false);
});

/** A proxy that records requested hosts and rejects them. */
async function refusingProxy(): Promise<{ url: string; seen: string[]; close: () => void }> {
  const seen: string[] = [];
  const proxy = createServer((socket: Socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (chunk) => {
      seen.push(chunk.toString('latin1').split('\r\n')[0] ?? '');
      socket.end('HTTP/1.1 503 no\r\ncontent-length: 0\r\n\r\n');
    });
  });
  const port = await listen(proxy);
  return { url: `http://127.0.0.1:${port}`, seen, close: () => proxy.close() };
}

test('loopback is not sent to a proxy', async () => {
  const here = await place();
  const proxy = await refusingProxy();
  const ran = await call(here.node, 'team-a', { env: { HTTPS_PROXY: proxy.url, https_proxy: proxy.url } });
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual(proxy.seen, []);
  proxy.close();
  await leave(here);
});

const ownAddress = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
const proxied = 'another host is asked for through the proxy, unless NO_PROXY names it';
if (ownAddress === undefined) test.skip(proxied, 'this machine has loopback only');
else
  test(proxied, async () => {
    const certificates = makeCertificates({ hosts: [ownAddress] });
    const here = await place({}, { certificates, host: '0.0.0.0', address: ownAddress });
    const proxy = await refusingProxy();
    const refused = await call(here.node, 'team-a', { env: { HTTPS_PROXY: proxy.url } });
    assert.equal(refused.code, 0);
    assert.equal(proxy.seen[0], `CONNECT ${ownAddress}:${here.api.port} HTTP/1.1`);
    assert.equal(here.api.requests.length, 0);
    const direct = await call(here.node, 'team-a', {
      env: { HTTPS_PROXY: proxy.url, NO_PROXY: ownAddress },
    });
    assert.equal(direct.code, 0, direct.stderr);
    assert.equal(here.api.requests.length, 1);
    proxy.close();
    await leave(here);
  });

test('no line shows a credential', async () => {
  const here = await place({ mode: 'torn' });
  const ran = await call(here.node, 'team-a', { flags: ['--verbose'] });
  assert.equal(ran.stderr.includes(MEMBER.auth), false);
  await leave(here);
});
