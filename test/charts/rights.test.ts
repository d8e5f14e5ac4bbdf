// deadline: 1500 s
// needs: control plane
/** The rights that are rendered suffice: the program runs as the ServiceAccount of its Deployment, and nothing is refused. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { readFleet, renderFleet, writeTree } from '../../charts/mod.ts';
import { startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import {
  additional,
  declare,
  GLOBAL,
  inKubeSystem,
  ORIGINAL,
  platform,
  registriesOf,
  SYNCER,
} from '../reconcile/scene.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const fleet = readFleet({
  image: 'registry.example.com/pullwright:0.1.0',
  clusters: [
    {
      name: 'a',
      path: '.',
      delivery: 'reconciler',
      systems: {
        'global-pull-secret': {
          createConfigNamespace: true,
          enforce: 'deny',
          agent: { report: true },
        },
      },
    },
  ],
});

test('with delivery "reconciler", git holds no DaemonSet, and every policy: no account of ours writes one', () => {
  const files = [...renderFleet(fleet).tree.keys()];
  assert.deepEqual(
    files.filter((file) => file.includes('daemonset')),
    [],
  );
  for (const name of [
    'additional-pull-secret.pullwright.dev-deny',
    'global-pull-secret-syncer.pullwright.dev',
  ])
    assert.ok(files.includes(`_cluster/validatingadmissionpolicy-${name}.yaml`), name);
});

// Every definition is there: a kind that is served has to be readable.
const plane = await controlPlane({ crds: 'all' });
const folder = tempFolder();
let process: ReconcilerProcess | undefined;

test('it makes the whole system with what it was granted', async () => {
  const { tree } = renderFleet(fleet);
  writeTree(folder, tree);
  const applied = await plane.kubectl('apply', '--server-side', '--force-conflicts', '-k', folder);
  assert.equal(applied.code, 0, applied.stderr);
  await plane.apply(platform('quay.io'));
  await plane.apply(additional('tenant.example.com'));
  const config = join(plane.folder, 'config.yaml');
  const map = parse(tree.get('pullwright-system/configmap-pullwright-reconciler-config.yaml') ?? '');
  writeFileSync(config, map.data['config.yaml']);
  const kubeconfig = await plane.account('pullwright-system', 'pullwright-reconciler');
  process = new ReconcilerProcess(NODE, [
    `--kubeconfig=${kubeconfig}`,
    `--config=${config}`,
    '--lease-namespace=pullwright-system',
  ]);
  const wanted = [
    SYNCER,
    inKubeSystem('Role', 'global-pull-secret-syncer', 'rbac.authorization.k8s.io/v1'),
    meta('rbac.authorization.k8s.io/v1 ClusterRoleBinding', { name: 'global-pull-secret-syncer' }),
    inKubeSystem('Lease', 'global-pull-secret-syncer-turns', 'coordination.k8s.io/v1'),
    meta('admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding', {
      name: 'additional-pull-secret.pullwright.dev-deny',
    }),
  ];
  await eventually(async () => {
    assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['quay.io', 'tenant.example.com']);
    for (const ref of wanted)
      assert.ok((await plane.get(ref)) !== undefined, `${ref.kind} ${ref.metadata.name}`);
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${process?.log.slice(-3000)}`);
  });
  assert.doesNotMatch(process.log, /Forbidden/);
});

test('in a management cluster, for the hosted clusters of the fleet and their systems', async () => {
  const [one, two] = await Promise.all([
    startControlPlane({ crds: 'all' }),
    startControlPlane({ crds: 'all' }),
  ]);
  const serviceAccount = { namespace: 'pullwright-system', name: 'pullwright-reconciler' };
  const served = { kind: 'hosted', management: 'hub', hostedCluster: { serviceAccount } } as const;
  const hub = readFleet({
    image: 'registry.example.com/pullwright:0.1.0',
    clusters: [
      { name: 'hub', kind: 'management', reconciler: { kubeconfigSecret: 'pullwright-kubeconfig' } },
      { name: 'one', ...served, systems: { 'global-pull-secret': {}, 'registry-overrides': {} } },
      {
        name: 'two',
        ...served,
        delivery: 'reconciler',
        systems: { 'global-pull-secret': {}, 'credential-provider': {} },
      },
    ],
  });
  const { tree } = renderFleet(hub);
  writeTree(folder, tree);
  await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name: 'clusters' } });
  for (const [name, hosted] of Object.entries({ one, two })) {
    for (const namespace of ['openshift-config', 'openshift-marketplace'])
      await hosted.client.request('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    const there = await hosted.kubectl('apply', '--server-side', '-k', join(folder, name));
    assert.equal(there.code, 0, there.stderr);
    const account = await hosted.account(serviceAccount.namespace, serviceAccount.name);
    await declare(plane, name, readFileSync(account, 'utf8'));
  }
  const applied = await plane.kubectl(
    'apply',
    '--server-side',
    '--force-conflicts',
    '-k',
    join(folder, 'hub'),
  );
  assert.equal(applied.code, 0, applied.stderr);
  const config = join(one.folder, 'config.yaml');
  const map = parse(tree.get('hub/pullwright-system/configmap-pullwright-reconciler-config.yaml') ?? '');
  writeFileSync(config, map.data['config.yaml']);
  await process?.stop();
  process = new ReconcilerProcess(NODE, [
    `--kubeconfig=${await plane.account('pullwright-system', 'pullwright-reconciler')}`,
    '--discover',
    '--allow-address=127.0.0.0/8',
    '--kubeconfig-secret=pullwright-kubeconfig',
    `--config=${config}`,
    '--lease-namespace=pullwright-system',
  ]);
  await eventually(async () => {
    for (const hosted of [one, two]) assert.deepEqual(registriesOf(await hosted.get(ORIGINAL)), ['quay.io']);
    // The reconciler always applies the agent: git cannot see whether HyperShift has one in the cluster.
    for (const hosted of [one, two]) assert.ok((await hosted.get(SYNCER)) !== undefined);
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${process?.log.slice(-3000)}`);
  });
  const refused = process.lines.filter((line) => JSON.stringify(line).includes('Forbidden'));
  assert.deepEqual(refused, []);
  await process.stop();
  await Promise.all([one.stop(), two.stop()]);
});

test.lastly('the reconciler stops', async () => void (await process?.stop()));
