/**
 * A name that somebody else chose leads to no place that is not meant: not as an address, not by a name, not in other forms, not by a
 * redirect or a token service. Every place that takes an address is here.
 */
import assert from 'node:assert/strict';
import { parseImageReference } from '../../runtime/core/image-reference.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { guardedAddresses, networksOf, refusedAddress } from '../../runtime/http/addresses.ts';
import { connectionFromSecret } from '../../runtime/kube/kubeconfig-from-secret.ts';
import { serverGuard } from '../../runtime/kube/requester.ts';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { RegistryTransport, registryGuard } from '../../runtime/registry/transport.ts';
import { asked, deployment, dump, tidy } from '../diagnose/verify-scene.ts';
import { certificates, startServer } from '../registry/https-server.ts';
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

function kubeconfig(server: string): string {
  return JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server } }],
    users: [{ name: 'x', user: { token: 'not-a-token' } }],
  });
}
const subject = 'Secret/clusters/admin-kubeconfig';

for (const server of [
  'https://169.254.169.254',
  'https://168.63.129.16:80',
  'https://[fd20:ce::254]',
  'https://0xa9fea9fe',
  'https://2852039166',
  'https://0251.0376.0251.0376',
  'https://169.254.43518',
  'https://①⑥⑨.254.169.254',
  'https://[::ffff:a9fe:a9fe]:443/x',
  'https://127.0.0.1:10250',
  'https://127.1:10250',
  'https://0x7f.1:10250',
  'https://0:10250',
  'https://[::1]:10250',
  'https://[::ffff:7f00:1]:10250',
])
  test(`a kubeconfig out of a Secret with ${server} is refused`, () => {
    const text = redact(kubeconfig(server));
    assert.throws(() => connectionFromSecret({ subject, text }), {
      code: 'KubeconfigRefused',
      message: /cluster\.server is loopback, link-local or the metadata service of a cloud/,
    });
  });

test('a kubeconfig may name what is allowed, and a private address', () => {
  for (const [server, allow] of [
    ['https://127.0.0.1:6443', networksOf(['127.0.0.0/8'])],
    ['https://172.30.0.1:6443', undefined],
  ] as const) {
    const input = { subject, text: redact(kubeconfig(server)) };
    assert.equal(connectionFromSecret(allow === undefined ? input : { ...input, allow }).server, server);
  }
});

test('a name that leads elsewhere is refused when it is contacted, whatever it said before', async () => {
  const text = redact(kubeconfig('https://api.example.com:6443'));
  const { addresses: policy } = connectionFromSecret({ subject, text });
  assert.ok(policy !== undefined);
  const url = new URL('https://api.example.com:6443');
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
        assert.match(error.message, /which names of tenants may not lead to/);
        // The text reaches the tenant, who could ask the cluster's DNS by it.
        for (const address of found) assert.ok(!error.message.includes(address), error.message);
        return true;
      });
    }
    const named = await guardedAddresses(url, { ...registryGuard(undefined), resolve });
    assert.equal((named ?? []).length > 0, true);
  },
);

table(
  test,
  [
    { name: 'a token service', reason: 'the registry names it', status: 401, at: 'www-authenticate' },
    { name: 'a redirect', reason: 'the registry names it', status: 307, at: 'location' },
  ],
  async ({ status, at }) => {
    const target = 'https://internal.example/token';
    const server = await startServer((_request, response) => {
      response.writeHead(status, { [at]: status === 401 ? `Bearer realm="${target}"` : target }).end();
    });
    const transport = new RegistryTransport({
      allowHosts: [server.host],
      ca: [certificates.ca],
      resolve: async (host) => (host === 'internal.example' ? ['172.30.0.1'] : ['127.0.0.1']),
    });
    const client = new RegistryClient({
      transport,
      credentialFor: () => undefined,
      chosenBy: () => 'tenant',
    });
    const parsed = parseImageReference(`${server.host}/team/app:1`);
    assert.ok(parsed.ok);
    await assert.rejects(client.headManifest(parsed.reference), {
      failure: 'NotAsked',
      message: /"internal\.example" has an address that is private/,
    });
    transport.close();
  },
);

test('verify asks nobody inside the cluster for an image that a pod names, and says so', async () => {
  const from = dump('inside', deployment('web', 'probe', ['10.255.0.1:10250/a/b:1'], []));
  const { report } = await asked('--all-in-use', '--from', from);
  const [image] = report.images;
  assert.equal(image?.pullable, 'unknown');
  assert.deepEqual(
    image?.attempts.map(({ verdict }) => verdict),
    ['NotAsked'],
  );
  assert.match(image?.attempts[0]?.message ?? '', /which names of tenants may not lead to/);
});

test.lastly('servers and folders', tidy);
