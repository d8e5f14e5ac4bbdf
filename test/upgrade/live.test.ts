// deadline: 180 s
/**
 * What a reconciler of 0.1.0 left in a hosted cluster, under the reconciler of today, on real API servers: it takes its objects over
 * as they are, and nothing that nodes or tenants have is removed or made anew.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { missingControlPlane } from '../control-plane/build.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import { GLOBAL, inKubeSystem, ORIGINAL, SYNCER } from '../reconcile/scene.ts';
import { startTwoPlanes } from '../reconcile/two-planes.ts';
import { hostedCluster, hostedControlPlane } from '../support/hypershift.ts';
import { suite } from '../support/suite.ts';

const test = suite('objects of 0.1.0, live');
const missing = missingControlPlane();
const MANAGER = 'pullwright-global-pull-secret';
const LABEL = 'hypershift.openshift.io/nodepool-globalps-enabled';

/** Objects of the dump as 0.1.0 applied them. */
function fixture(role: 'hosted' | 'management'): readonly TestObject[] {
  const path = new URL(`./fixtures/0.1.0/cluster/${role}/objects.yaml`, import.meta.url).pathname;
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
    const { status: _status, ...object } = document.toJS() as TestObject;
    const { name, namespace, labels, annotations } = object.metadata as TestObject['metadata'] &
      Readonly<Record<string, unknown>>;
    const metadata = {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
    };
    return { ...object, metadata };
  });
}

if (missing !== undefined) test.skip('all of it', missing);
else {
  const { management, hosted } = await startTwoPlanes();
  for (const name of ['clusters', 'clusters-prod'])
    await management.client.request('POST', '/api/v1/namespaces', { metadata: { name } });
  const kinds = ['ServiceAccount', 'Role', 'RoleBinding', 'DaemonSet', 'Secret', 'Node'];
  const old = fixture('hosted').filter(
    ({ kind, metadata: { namespace } }) =>
      kinds.includes(kind) &&
      (namespace === undefined || ['kube-system', 'openshift-config'].includes(namespace)),
  );
  /** Of a node only its label was ours. */
  const applyNode = async ({ apiVersion, kind, metadata, ...rest }: TestObject): Promise<void> => {
    const { [LABEL]: label, ...labels } = metadata.labels ?? {};
    await hosted.apply({ apiVersion, kind, metadata: { ...metadata, labels }, ...rest }, 'kubectl');
    if (label === undefined) return;
    const marked = { name: metadata.name, labels: { [LABEL]: label } };
    await hosted.apply({ apiVersion, kind, metadata: marked }, MANAGER);
  };
  for (const object of old) {
    const theirs =
      object.metadata.name === 'additional-pull-secret' || object.metadata.name === 'pull-secret';
    if (object.kind === 'Node') await applyNode(object);
    else await hosted.apply(object, theirs ? 'kubectl' : MANAGER);
  }
  for (const object of fixture('management'))
    if (object.kind === 'Secret' && object.metadata.namespace === 'clusters-prod')
      await management.apply(object);
  await management.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'pullwright-kubeconfig', namespace: 'clusters-prod' },
    data: { kubeconfig: Buffer.from(readFileSync(hosted.kubeconfig)).toString('base64') },
  });
  await management.apply(hostedCluster('prod'));
  await management.apply(hostedControlPlane('prod'));

  /** What must be the same before and after: whose object it is, and what nodes and tenants read. */
  const kept = (): Promise<readonly unknown[]> =>
    Promise.all(
      old.map(async (ref) => {
        const object = await hosted.get(ref);
        const value: unknown = object?.['data']?.['.dockerconfigjson'];
        return [
          ref.kind,
          ref.metadata.name,
          object?.metadata['uid'],
          value,
          object?.metadata['labels']?.[LABEL],
        ];
      }),
    );
  const before = await kept();
  const process = new ReconcilerProcess(NODE, [
    `--kubeconfig=${management.kubeconfig}`,
    '--discover',
    '--allow-address=127.0.0.0/8',
    '--metrics-port=0',
  ]);

  test('its objects become those of today, and each is the same object with the same content', async () => {
    await eventually(
      async () => {
        for (const ref of [GLOBAL, ORIGINAL])
          assert.ok('pullwright-judged' in ((await hosted.get(ref))?.['data'] ?? {}), ref.metadata.name);
        assert.match(JSON.stringify((await hosted.get(SYNCER))?.['spec']), /"--report"/);
      },
      { withinMs: 60_000 },
    );
    assert.deepEqual(await kept(), before);
  });

  test('nothing is said to be in order before its nodes have reported, and then all is at rest', async () => {
    const status = inKubeSystem('PullStatus', 'secret-original-pull-secret', 'pullwright.dev/v1alpha1');
    await eventually(
      async () => assert.match(JSON.stringify((await hosted.get(status))?.['status'] ?? {}), /"NodesBehind"/),
      { withinMs: 60_000 },
    );
    const look = (value: string): Promise<unknown> =>
      hosted.client.request(
        'PATCH',
        '/api/v1/namespaces/kube-system/secrets/additional-pull-secret',
        { metadata: { annotations: { 'example.com/touched': value } } },
        'application/merge-patch+json',
      );
    let value = 0;
    await eventually(
      async () => {
        const writes = await process.writes();
        value += 1;
        await process.looksAfter(() => look(String(value)));
        assert.equal(await process.writes(), writes, 'it writes although nothing has changed');
      },
      { withinMs: 60_000 },
    );
    assert.deepEqual(await kept(), before);
  });

  test.lastly('it stops with exit code 0', async () => {
    assert.equal(await process.stop(), 0);
    await Promise.all([management.stop(), hosted.stop()]);
  });
}

test.run();
