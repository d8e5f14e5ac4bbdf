/**
 * An untrusted name never leads to a forbidden address: not in any spelling of the address, not by a DNS name, which may
 * change its answer, not by a redirect, a token service or a resolving proxy. Every input that takes an address is tested, and behind
 * each is a server that must not be contacted.
 */
import assert from 'node:assert/strict';
import { parseImageReference } from '../../runtime/core/image-reference.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { guardedAddresses, networksOf, refusedAddress } from '../../runtime/http/addresses.ts';
import { connectionFromSecret } from '../../runtime/kube/kubeconfig-from-secret.ts';
import { Requester, serverGuard } from '../../runtime/kube/requester.ts';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { type RegistryError, RegistryTransport, registryGuard } from '../../runtime/registry/transport.ts';
import { kubeconfigOf } from '../control-plane/users.ts';
import { asked, deployment, dump, tidy } from '../diagnose/verify-scene.ts';
import { certificates, startServer, type TestServer } from '../registry/https-server.ts';
import { startProxy } from '../support/connect-proxy.ts';
import { table, test } from '../support/suite.ts';

const METADATA: readonly (readonly [address: string, whose: string])[] = [
  ['169.254.169.254', 'AWS, Azure, Google, OpenStack and others'],
  ['169.254.170.2', 'AWS containers'],
  ['169.254.170.23', 'AWS pod identity'],
  ['168.63.129.16', "Azure's wire server"],
  ['100.100.100.200', 'Alibaba'],
  ['192.0.0.192', 'Oracle'],
  ['192.80.8.124', 'Equinix'],
  ['fd00:ec2::254', 'AWS over IPv6'],
  ['fd00:ec2::23', 'AWS pod identity over IPv6'],
  ['fd20:ce::254', 'Google over IPv6'],
  ['fd00:c1::a9fe:a9fe', 'Oracle over IPv6'],
  ['fd00:42::42', 'Scaleway'],
  ['fe80::a9fe:a9fe', 'OpenStack'],
  ['fe80::a9fe:a9fe%eth0', 'OpenStack, with the interface'],
  ['::ffff:169.254.169.254', 'an IPv4 address in IPv6'],
  ['::ffff:a9fe:a9fe', 'the same in hexadecimal'],
  ['::ffff:0:169.254.169.254', 'IPv4-translated'],
  ['::169.254.169.254', 'the same, compatible'],
  ['64:ff9b::a9fe:a9fe', 'through NAT64'],
  ['2002:a83f:8110::1', "Azure's through 6to4"],
  ['2001:db8::5efe:a9fe:a9fe', 'through ISATAP'],
  ['127.0.0.1', 'loopback'],
  ['127.8.8.8', 'loopback'],
  ['::1', 'loopback'],
  ['::ffff:127.0.0.1', 'loopback'],
  ['64:ff9b::7f00:1', 'loopback through NAT64'],
  ['0.0.0.0', 'this host'],
  ['::', 'this host'],
  ['224.0.0.1', 'multicast'],
  ['255.255.255.255', 'broadcast'],
  ['ff02::1', 'multicast'],
];

for (const [address, whose] of METADATA)
  test(`${address} is nobody's to name: ${whose}`, () => {
    assert.equal(refusedAddress([address], { chosenBy: 'platform' }), address);
    assert.equal(refusedAddress(['8.8.8.8', address], { chosenBy: 'tenant' }), address);
  });

const PRIVATE = [
  '10.0.0.1',
  '172.30.0.1',
  '192.168.1.1',
  '100.64.0.1',
  '198.18.0.1',
  'fd00::1',
  'fec0::1',
  '::ffff:10.0.0.1',
  '::ffff:0:10.0.0.1',
  '64:ff9b::a00:1',
  '64:ff9b:1::a00:1',
  '2002:a00:1::1',
  '2001:0:a00:1::1',
];
for (const address of PRIVATE)
  test(`${address} is where services and nodes are: the platform's to name, and no tenant's`, () => {
    assert.equal(refusedAddress([address], { chosenBy: 'platform' }), undefined);
    assert.equal(refusedAddress([address], { chosenBy: 'tenant' }), address);
  });

for (const address of ['8.8.8.8', '100.128.0.1', '172.32.0.1', '2606:4700::1111', '2600:1f18::1'])
  test(`${address} is anybody's to name`, () => {
    assert.equal(refusedAddress([address], { chosenBy: 'tenant' }), undefined);
  });

test('a network that is allowed is meant, in each of its forms, and no other is', () => {
  const allow = networksOf(['10.1.0.0/16', '127.0.0.1', 'fd00:1::/32']);
  const refused = (address: string): boolean =>
    refusedAddress([address], { chosenBy: 'tenant', allow }) !== undefined;
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '127.0.0.1', 'fd00:1::7'])
    assert.equal(refused(address), false, address);
  for (const address of ['10.2.0.1', '127.0.0.2', '::1', 'fd00:2::7', '169.254.169.254'])
    assert.equal(refused(address), true, address);
});

/** Spellings of this host's loopback address, to which the port of a server is added. */
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

function connection(server: string, allow?: readonly string[]): ReturnType<typeof connectionFromSecret> {
  return connectionFromSecret({
    subject: 'Secret/clusters-a/pullwright-kubeconfig',
    text: redact(kubeconfigOf({ server }, { token: 'not-a-token' })),
    ...(allow === undefined ? {} : { allow: networksOf(allow) }),
  });
}

const SERVERS: readonly string[] = [
  ...IN_URLS.map((host) => `https://${host}:10250`),
  'https://169.254.169.254',
  'https://[fd20:ce::254]',
  'https://0xa9fea9fe',
  'https://0251.0376.0251.0376',
  'https://169.254.43518',
  'https://①⑥⑨.254.169.254',
  'https://[::ffff:a9fe:a9fe]:443/x',
  'https://0:10250',
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
  test(`a kubeconfig out of a Secret with ${server} is refused, at the latest when it is contacted`, async () => {
    const read = (): ReturnType<typeof connection> => connection(server);
    if (!/localhost/i.test(server))
      return assert.throws(read, {
        code: 'KubeconfigRefused',
        message: /@|%/.test(server)
          ? /cluster\.server (?:is loopback, link-local or a cloud metadata service|must not contain a user name|is not a URL)/
          : /cluster\.server is loopback, link-local or a cloud metadata service/,
      });
    const { addresses } = read();
    assert.ok(addresses !== undefined);
    const resolve = async (): Promise<readonly string[]> => ['127.0.0.1'];
    const contacted = guardedAddresses(new URL(server), { ...serverGuard(addresses), resolve });
    await assert.rejects(contacted, { code: 'KubeconfigRefused' });
  });

test('a kubeconfig may name what is allowed, and a private address', () => {
  assert.equal(connection('https://127.0.0.1:6443', ['127.0.0.0/8']).server, 'https://127.0.0.1:6443');
  assert.equal(connection('https://172.30.0.1:6443').server, 'https://172.30.0.1:6443');
});

test('a name that leads elsewhere is refused when it is contacted, whatever it said before', async () => {
  const url = new URL('https://api.example.com:6443');
  const { addresses: policy } = connection(url.href);
  assert.ok(policy !== undefined);
  const found = (addresses: readonly string[]) =>
    guardedAddresses(url, { ...serverGuard(policy), resolve: async () => addresses });
  assert.deepEqual(await found(['10.0.0.7']), ['10.0.0.7']);
  for (const bad of ['169.254.169.254', '127.0.0.1', '::1'])
    await assert.rejects(found(['10.0.0.7', bad]), {
      code: 'KubeconfigRefused',
      message: new RegExp(`its address ${bad.replaceAll('.', '\\.')} is`),
    });
});

table(
  test,
  [
    { name: 'a service of the cluster', reason: 'its DNS answers', host: 'x.svc', found: ['172.30.0.10'] },
    { name: 'one of several', reason: 'the next connection', host: 'x.com', found: ['8.8.8.8', '10.0.0.1'] },
    { name: 'an address', reason: 'there is nothing to look up', host: '10.0.0.1', found: [] },
    { name: 'metadata', reason: 'as for everybody', host: 'm.example', found: ['168.63.129.16'] },
  ],
  async ({ host, found }) => {
    const resolve = async (): Promise<readonly string[]> => found;
    const url = new URL(`https://${host}`);
    for (const isProxied of [false, true]) {
      const guard = { ...registryGuard({ chosenBy: 'tenant' }), isProxied, resolve };
      await assert.rejects(guardedAddresses(url, guard), (error: Error) => {
        assert.match(error.message, /denied for names chosen by tenants/);
        // The text reaches the tenant, who could ask the cluster's DNS by it.
        for (const address of found) assert.ok(!error.message.includes(address), error.message);
        return true;
      });
    }
    const named = await guardedAddresses(url, { ...registryGuard(undefined), resolve });
    assert.equal((named ?? []).length > 0, true);
  },
);

/** Number of requests that reached a server. */
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
    const images = [...LOOPBACK, '10.255.0.1'].map((host) => `${host}:${port}/team/app:1`);
    const from = dump('spellings', deployment('web', 'probe', images, []));
    const { report } = await asked('--all-in-use', '--from', from);
    for (const { pullable, attempts } of report.images) {
      assert.equal(pullable, 'unknown');
      assert.match(attempts[0]?.message ?? '', /denied for names chosen by tenants/);
    }
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
  for (const host of [...IN_URLS, 'internal.example'])
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
          resolve: async (name) => [name === 'internal.example' ? '172.30.0.1' : '127.0.0.1'],
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
          if (host === 'internal.example')
            assert.match(error.message, /"internal\.example" has an address that is private/);
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

/** Targets of the CONNECT requests to a proxy. */
async function throughProxy(server: string, allow?: readonly string[]): Promise<readonly string[]> {
  const proxy = await startProxy(() => undefined);
  const requester = new Requester({
    connection: { ...connection(server, allow), proxy: redact(`http://${proxy.host}`) },
    userAgent: 'test',
  });
  try {
    await requester.json({ verb: 'read', subject: 'the API', method: 'GET', path: '/api', once: true });
  } catch (error) {
    if (proxy.asked.length === 0)
      assert.equal((error as { code?: string }).code, 'KubeconfigRefused', String(error));
  } finally {
    requester.close();
    proxy.stop();
  }
  return proxy.asked;
}

test('a kubeconfig whose name leads here is refused behind a proxy too, which could be asked for more', async () => {
  assert.deepEqual(await throughProxy('https://localhost:6443'), []);
  assert.equal((await throughProxy('https://localhost:6443', ['127.0.0.0/8', '::1']))[0], 'localhost:6443');
  // The proxy may resolve names that this host cannot.
  assert.equal((await throughProxy('https://api.invalid:6443'))[0], 'api.invalid:6443');
});

test.lastly('servers and folders', tidy);
