/**
 * One forbidden address has many spellings, and many ways to be named: an image, a token service, a redirect, a kubeconfig, a name that
 * changes its mind, a proxy that looks names up. Behind each of them stands a server here that nobody may knock at.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { parseImageReference } from '../../runtime/core/image-reference.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { guardedAddresses, networksOf } from '../../runtime/http/addresses.ts';
import { connectionFromSecret } from '../../runtime/kube/kubeconfig-from-secret.ts';
import { Requester, serverGuard } from '../../runtime/kube/requester.ts';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { type RegistryError, RegistryTransport } from '../../runtime/registry/transport.ts';
import { asked, deployment, dump, tidy } from '../diagnose/verify-scene.ts';
import { certificates, startServer, type TestServer } from '../registry/https-server.ts';
import { test } from '../support/suite.ts';

/** Of this host's loopback address, each with the port of a server. */
const LOOPBACK: readonly string[] = [
  '127.0.0.1',
  '127.1',
  '127.8.8.8',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '0177.0.0.1',
  '[::1]',
  '[::ffff:7f00:1]',
  '[64:ff9b::7f00:1]',
  'localhost',
];
/** In URLs, which take still more. */
const IN_URLS: readonly string[] = [
  ...LOOPBACK,
  '[::ffff:127.0.0.1]',
  '①②⑦.0.0.1',
  '127。0。0。1',
  '127.0.0.1.',
  'LOCALHOST',
  'localhost.',
  '%31%32%37.0.0.1',
  'user@127.0.0.1',
];

/** How many requests reached a server. */
async function knocked(body: (server: TestServer, port: string) => Promise<void>): Promise<number> {
  let connections = 0;
  const server = await startServer((_request, response) => {
    connections += 1;
    response.writeHead(200).end();
  });
  await body(server, server.host.split(':')[1] ?? '');
  return connections;
}

test('verify knocks at none that pods name', async () => {
  const connections = await knocked(async (_server, port) => {
    const images = LOOPBACK.map((host) => `${host}:${port}/team/app:1`);
    const { report } = await asked(
      '--all-in-use',
      '--from',
      dump('spellings', deployment('web', 'probe', images, [])),
    );
    const verdicts = report.images.map(
      ({ image, attempts }) => `${image} ${attempts.map(({ verdict }) => verdict).join()}`,
    );
    assert.deepEqual(new Set(verdicts), new Set(images.map((image) => `${image} NotAsked`)));
  });
  assert.equal(connections, 0);
});

test('verify knocks where the platform allows it, at that alone', async () => {
  const connections = await knocked(async (_server, port) => {
    const images = ['127.0.0.1', '2130706433', '[::1]'].map((host) => `${host}:${port}/team/app:1`);
    const from = dump('allowed', deployment('web', 'probe', images, []));
    const { report } = await asked('--all-in-use', '--from', from, '--allow-address', '127.0.0.1');
    assert.deepEqual(
      report.images.map(({ attempts }) => attempts.map(({ verdict }) => verdict === 'NotAsked')),
      [[false], [false], [true]],
    );
  });
  assert.equal(connections > 0, true);
});

for (const [status, header] of [
  [401, 'www-authenticate'],
  [307, 'location'],
] as const)
  for (const host of IN_URLS)
    test(`a registry's ${header} with ${host} leads nowhere`, async () => {
      const connections = await knocked(async (_inner, port) => {
        const target = `https://${host}:${port}/token`;
        const outer = await startServer((_request, response) => {
          const value = status === 401 ? `Bearer realm="${target}"` : encodeURI(target);
          response.writeHead(status, { [header]: Buffer.from(value).toString('latin1') }).end();
        });
        const transport = new RegistryTransport({
          allowHosts: [outer.host],
          ca: [certificates.ca],
          resolve: async () => ['127.0.0.1'],
        });
        const client = new RegistryClient({
          transport,
          credentialFor: () => undefined,
          chosenBy: () => 'tenant',
        });
        const parsed = parseImageReference(`${outer.host}/team/app:1`);
        assert.ok(parsed.ok);
        await assert.rejects(client.headManifest(parsed.reference), (error: RegistryError) => {
          assert.ok(['NotAsked', 'Refused', 'Unreadable'].includes(error.failure), error.message);
          return true;
        });
        transport.close();
      });
      assert.equal(connections, 0);
    });

test('a name is looked up for each request, and what it was before does not count', async () => {
  const answers = ['127.0.0.1', '169.254.169.254'];
  const connections = await knocked(async (_server, port) => {
    const transport = new RegistryTransport({
      allowNetworks: networksOf(['127.0.0.1']),
      ca: [certificates.ca],
      resolve: async () => [answers.shift() ?? '169.254.169.254'],
    });
    const signal = new AbortController().signal;
    const ask = () =>
      transport.send({
        method: 'GET',
        url: new URL(`https://localhost:${port}/v2/`),
        headers: {},
        signal,
        chosenBy: 'tenant',
      });
    assert.equal((await ask()).status, 200);
    await assert.rejects(ask(), { failure: 'NotAsked' });
    transport.close();
  });
  assert.equal(connections, 1);
});

function kubeconfig(server: string): string {
  return JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server } }],
    users: [{ name: 'x', user: { token: 'not-a-token' } }],
  });
}

const connection = (server: string, allow?: readonly string[]) =>
  connectionFromSecret({
    subject: 'Secret/clusters-a/pullwright-kubeconfig',
    text: redact(kubeconfig(server)),
    ...(allow === undefined ? {} : { allow: networksOf(allow) }),
  });

const SERVERS: readonly string[] = [
  ...IN_URLS.map((host) => `https://${host}:10250`),
  'https://169.254.169.254.',
  'https://2852039166',
  'https://[64:ff9b::a9fe:a9fe]',
  'https://[fd00:ec2::254]',
  'https://100.100.100.200',
  'https://168.63.129.16',
  'https://[fe80::1%25eth0]',
  'https://[fe80::1%eth0]',
];
for (const server of SERVERS)
  test(`a kubeconfig with ${server} is refused when it is read or contacted`, async () => {
    const contacted = async (): Promise<unknown> => {
      const { addresses } = connection(server);
      assert.ok(addresses !== undefined);
      const resolve = async (): Promise<readonly string[]> => ['127.0.0.1'];
      return await guardedAddresses(new URL(server), { ...serverGuard(addresses), resolve });
    };
    await assert.rejects(contacted(), { code: 'KubeconfigRefused' });
  });

/** What a proxy was asked to connect to. */
async function throughProxy(server: string, allow?: readonly string[]): Promise<readonly string[]> {
  const tunnels: string[] = [];
  const proxy = createServer();
  proxy.on('connect', (request: IncomingMessage, client: Socket) => {
    tunnels.push(request.url ?? '');
    client.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  const requester = new Requester({
    connection: { ...connection(server, allow), proxy: redact(`http://127.0.0.1:${port}`) },
    userAgent: 'test',
  });
  try {
    await requester.json({ verb: 'read', subject: 'the API', method: 'GET', path: '/api', once: true });
  } catch (error) {
    if (tunnels.length === 0)
      assert.equal((error as { code?: string }).code, 'KubeconfigRefused', String(error));
  } finally {
    requester.close();
    proxy.closeAllConnections();
    proxy.close();
  }
  return tunnels;
}

test('a kubeconfig whose name leads here is refused behind a proxy too, which could be asked for more', async () => {
  assert.deepEqual(await throughProxy('https://localhost:6443'), []);
  assert.equal((await throughProxy('https://localhost:6443', ['127.0.0.0/8', '::1']))[0], 'localhost:6443');
  // It may know names that are not known here.
  assert.equal((await throughProxy('https://api.invalid:6443'))[0], 'api.invalid:6443');
});

test.lastly('servers and folders', tidy);
