// needs: control plane
/**
 * A pod may list any text as the name of a Secret, and the API server takes it. None becomes another path of the API, and none stops what
 * is asked for others.
 */
import assert from 'node:assert/strict';
import { HttpKubeClient } from '../../runtime/kube/http-client.ts';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { certificates, startServer } from '../registry/https-server.ts';
import { meta } from '../support/meta.ts';
import { runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';

const STEPS: readonly string[] = ['', '.', '..', '../../kube-system/secrets/other', 'a%2fb', '%2e%2e', 'a/b'];
/** Unusual names that must not change the path. */
const ODD: readonly string[] = [
  'a?b=c',
  'a#b',
  'a\nb',
  'a\0b',
  'ä',
  'a b',
  'a,b=c',
  '\u202Ea',
  'x'.repeat(300),
];

/** Paths of the requests to an API server while `body` runs. */
async function paths(body: (client: HttpKubeClient) => Promise<void>): Promise<readonly string[]> {
  const server = await startServer((_request, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end('{"kind":"Status","code":404}');
  });
  const client = new HttpKubeClient({
    connection: {
      server: `https://${server.host}`,
      ca: certificates.ca,
      credentials: () => Promise.resolve({}),
    },
    userAgent: 'test',
  });
  try {
    await body(client);
  } finally {
    client.close();
    server.stop();
  }
  return server.seen.map(({ url }) => url);
}

const secret = (name: string, namespace: string) => ({ apiVersion: 'v1', kind: 'Secret', namespace, name });

for (const text of STEPS)
  test(`${JSON.stringify(text)} is asked for nowhere: as a name it is not there, as a namespace it is refused`, async () => {
    const seen = await paths(async (client) => {
      for (const ref of [secret(text, 'shop'), secret('a', text)]) {
        assert.equal(await client.get(ref), undefined);
        await client.remove(ref);
      }
      await assert.rejects(client.list({ apiVersion: 'v1', kind: 'Secret', namespace: text }), {
        code: 'UnsafeName',
      });
    });
    assert.deepEqual(seen, []);
  });

for (const text of ODD)
  test(`${JSON.stringify(text).slice(0, 30)} is the last part of the path, whatever is in it`, async () => {
    const seen = await paths(async (client) => {
      assert.equal(await client.get(secret(text, 'shop')), undefined);
    });
    assert.deepEqual(seen, [`/api/v1/namespaces/shop/secrets/${encodeURIComponent(text)}`]);
  });
test('that pods list stop no verify: each Secret is missing, and all was read', async () => {
  const plane = await startControlPlane({ crds: 'all' });
  try {
    const names = [...STEPS, ...ODD];
    for (const [index, name] of names.entries())
      await plane.apply({
        ...meta('v1 Pod', { name: `p${index}`, namespace: 'default' }),
        spec: { imagePullSecrets: [{ name }], containers: [{ name: 'a', image: '127.0.0.1:1/a/b:1' }] },
      });
    const ran = await runMain(['verify', '--all-in-use', '--kubeconfig', plane.kubeconfig]);
    assert.equal(ran.stderr, '');
    assert.match(ran.stdout, new RegExp(`\n${names.length} images: `));
  } finally {
    await plane.stop();
  }
});
