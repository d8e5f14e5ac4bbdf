// deadline: 300 s
// needs: control plane
/** Shards of a management cluster as the fleet renders them: each process looks after the HostedClusters with its label, and no other. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { HostedStub } from '../../bench/hosted-stub.ts';
import { readFleet, renderFleet } from '../../charts/mod.ts';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { resourcePath, type TestObject } from '../control-plane/resource-path.ts';
import { controlPlaneNamespace, HYPERSHIFT_CRDS, hostedCluster } from '../support/hypershift.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { NODE, ReconcilerProcess } from './process.ts';
import { declare, makeNamespaces, pullSecret } from './scene.ts';

/** The stub answers for clusters of these names. */
const [PLAIN, LABELLED] = ['hosted-0', 'hosted-1'] as const;
const NAMESPACE = 'pullwright-system';
const RENDERED = ['Namespace', 'ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'];

const [management, stub] = await Promise.all([
  startControlPlane({
    crds: [...HYPERSHIFT_CRDS, 'pullstatuses.pullwright.dev'],
  }),
  HostedStub.start(),
]);
const objects = rendered();
for (const object of objects.filter(({ kind }) => RENDERED.includes(kind))) await management.apply(object);
const config = `${management.folder}/config.yaml`;
const configMap = objects.find(
  ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-config'),
);
writeFileSync(config, String(configMap?.['data']?.['config.yaml']));

const label = (name: string, shard: string): Promise<unknown> =>
  management.client.request(
    'PATCH',
    resourcePath(hostedCluster(name)),
    { metadata: { labels: { 'pullwright.dev/shard': shard } } },
    'application/merge-patch+json',
  );
const rotate = (name: string, registry: string): Promise<unknown> =>
  management.apply(pullSecret('pull-secret', controlPlaneNamespace(name), ['quay.io', registry]));
await makeNamespaces(management, 'clusters');
for (const name of [PLAIN, LABELLED]) {
  await management.apply(hostedCluster(name));
  if (name === LABELLED) await label(name, 'eu');
  await declare(management, name, stub.kubeconfigOf(name));
}

/** Runs as the Deployment says, with its account. */
const start = async (name: string): Promise<ReconcilerProcess> => {
  const deployment = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name);
  const { serviceAccountName, containers } = deployment?.['spec'].template.spec ?? assert.fail(name);
  const args = (containers[0].args as readonly string[]).filter(
    (arg) => !/^--(?:config|health-port|metrics-port)=/.test(arg),
  );
  const kubeconfig = await management.account(NAMESPACE, serviceAccountName);
  return new ReconcilerProcess(
    NODE,
    [`--kubeconfig=${kubeconfig}`, `--config=${config}`, '--metrics-port=0', ...args],
    { HOSTNAME: name },
  );
};
const unnamed = await start('pullwright-reconciler');
const eu = await start('pullwright-reconciler-eu');
const logs = (): string => `${unnamed.log.slice(-1500)}\n${eu.log.slice(-1500)}`;
/** Pods that wrote to the hosted cluster, in order, each once in a row. */
const writers = (cluster: string): readonly string[] =>
  (stub.writers.get(cluster) ?? [])
    .map((agent) => /\((.*)\)$/.exec(agent)?.[1] ?? agent)
    .filter((writer, at, all) => writer !== all[at - 1]);
const said = (lease: string, expected: string): Promise<void> =>
  eventually(async () => {
    const report = await management.get(
      meta('pullwright.dev/v1alpha1 PullStatus', { name: `lease-${lease}`, namespace: NAMESPACE }),
    );
    const [ready] = report?.['status']?.conditions ?? [];
    assert.equal(ready?.message, expected, logs());
  });

test('each writes to the clusters of its shard, leads by its own Lease, and reports on them alone', async () => {
  await eventually(() => {
    assert.deepEqual(writers(PLAIN), ['pullwright-reconciler'], logs());
    assert.deepEqual(writers(LABELLED), ['pullwright-reconciler-eu'], logs());
  });
  for (const name of ['pullwright-reconciler', 'pullwright-reconciler-eu']) {
    const metadata = { name, namespace: NAMESPACE };
    const lease = await management.get({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata });
    assert.match(String(lease?.['spec']?.holderIdentity), new RegExp(`^${name}_`));
    await said(name, '1 of 1 hosted cluster is reconciled');
  }
});

test('a HostedCluster whose label changes moves to the other process', async () => {
  await label(PLAIN, 'eu');
  await unnamed.says('hosted cluster deleted, or in another shard');
  await said('pullwright-reconciler', 'No hosted clusters to reconcile');
  await said('pullwright-reconciler-eu', '2 of 2 hosted clusters are reconciled');
  await rotate(PLAIN, 'second.example.com');
  await eventually(() =>
    assert.deepEqual(writers(PLAIN), ['pullwright-reconciler', 'pullwright-reconciler-eu'], logs()),
  );
});

test('a shard that no reconciler has is reconciled by none', async () => {
  await label(LABELLED, 'us');
  await eu.says('hosted cluster deleted, or in another shard');
  await said('pullwright-reconciler-eu', '1 of 1 hosted cluster is reconciled');
  await said('pullwright-reconciler', 'No hosted clusters to reconcile');
});

test.lastly('everything stops', async () => {
  assert.deepEqual(await Promise.all([unnamed.stop(), eu.stop()]), [0, 0]);
  await stub.stop();
  await management.stop();
});

function rendered(): readonly TestObject[] {
  const fleet = readFleet({
    image: 'registry.example.com/pullwright:1',
    clusters: [
      {
        name: 'hub',
        kind: 'management',
        discovery: true,
        reconciler: { shards: ['eu'], allowAddresses: ['127.0.0.0/8'] },
        systems: { 'global-pull-secret': {} },
      },
    ],
  });
  return [...renderFleet(fleet).tree].flatMap(([path, text]) =>
    path.endsWith('kustomization.yaml') ? [] : [parse(text) as TestObject],
  );
}
