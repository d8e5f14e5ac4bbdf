/** A name that somebody else chose leads to no metadata service of a cloud: not as an address, not by a name, not in other forms. */
import assert from 'node:assert/strict';
import { isForbiddenAddress, isMetadataAddress } from '../../runtime/http/addresses.ts';
import { serverAddresses } from '../../runtime/kube/guarded-server.ts';
import { connectionFromSecret } from '../../runtime/kube/kubeconfig-from-secret.ts';
import { parseYaml } from '../../runtime/kube/yaml.ts';
import { redact } from '../../runtime/rules/redacted.ts';
import { suite } from '../support/suite.ts';

const test = suite('addresses');

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
  ['::ffff:169.254.169.254', 'an IPv4 address in IPv6'],
  ['::ffff:a9fe:a9fe', 'the same in hexadecimal'],
  ['64:ff9b::a9fe:a9fe', 'through NAT64'],
  ['2002:a83f:8110::1', "Azure's through 6to4"],
];

for (const [address, whose] of METADATA)
  test(`${address} is a metadata service: ${whose}`, () => {
    assert.equal(isMetadataAddress(address), true);
    assert.equal(isForbiddenAddress(address), true);
  });

for (const address of ['10.0.0.1', '172.30.0.1', '192.168.1.1', '8.8.8.8', 'fd00::1', '2001:db8::1'])
  test(`${address} is where registries and API servers are`, () => {
    assert.equal(isForbiddenAddress(address), false);
  });

function kubeconfig(server: string): string {
  return JSON.stringify({
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
    clusters: [{ name: 'x', cluster: { server } }],
    users: [{ name: 'x', user: { token: 'not-a-token' } }],
  });
}

for (const server of [
  'https://169.254.169.254',
  'https://168.63.129.16:80',
  'https://[fd20:ce::254]',
  'https://0xa9fea9fe',
  'https://2852039166',
  'https://[::ffff:a9fe:a9fe]:443/x',
])
  test(`a kubeconfig out of a Secret with ${server} is refused`, () => {
    const subject = 'Secret/clusters/admin-kubeconfig';
    const text = redact(kubeconfig(server));
    assert.throws(() => connectionFromSecret({ subject, text, parse: parseYaml }), {
      code: 'KubeconfigRefused',
      message: /cluster\.server is link-local or the metadata service of a cloud/,
    });
  });

test('a name that leads to a metadata service is refused when it is contacted, whatever it said before', async () => {
  const subject = 'Secret/clusters/admin-kubeconfig';
  const text = redact(kubeconfig('https://api.example.com:6443'));
  assert.equal(connectionFromSecret({ subject, text, parse: parseYaml }).guarded, true);
  const url = new URL('https://api.example.com:6443');
  assert.deepEqual(await serverAddresses(url, async () => ['10.0.0.7']), ['10.0.0.7']);
  await assert.rejects(
    serverAddresses(url, async () => ['10.0.0.7', '169.254.169.254']),
    { code: 'KubeconfigRefused', message: /its address 169\.254\.169\.254/ },
  );
});

test.run();
