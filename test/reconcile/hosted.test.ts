// deadline: 600 s
// needs: control plane
/** Discovery of hosted clusters: each by its own kubeconfig Secret, each isolated. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { GLOBAL_PULL_SECRET } from '../../runtime/core/kubernetes/hypershift.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import type { Rule } from '../control-plane/users.ts';
import { meta, refOf } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { FaultServer } from './fault-server.ts';
import { discovering } from './process.ts';
import {
  additional,
  declare,
  GLOBAL,
  hostedControlPlane,
  inKubeSystem,
  makeNamespaces,
  pullSecret,
  registriesOf,
} from './scene.ts';
import { startTwoPlanes } from './two-planes.ts';

const { management, hosted } = await startTwoPlanes();
const silent = new FaultServer(hosted);
await silent.start('silent');
silent.mode = 'silence';

const rules: readonly Rule[] = [
  { apiGroups: ['hypershift.openshift.io'], resources: ['*'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['cluster.x-k8s.io'], resources: ['machines'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [''], resources: ['secrets'], resourceNames: ['pullwright-kubeconfig'], verbs: ['get'] },
  {
    apiGroups: [''],
    resources: ['secrets'],
    resourceNames: ['pull-secret'],
    verbs: ['get', 'list', 'watch'],
  },
];
const rights = await management.user({ name: 'discovery', cluster: rules });
const config = `${management.folder}/config.yaml`;
writeFileSync(
  config,
  'systems: { global-pull-secret: {}, pull-secret-injection: false, registry-overrides: false, credential-provider: false }\n',
);
const process = discovering(rights.kubeconfig, config, ['--health-port=0', '--metrics-port=0']);
const good = readFileSync(hosted.kubeconfig, 'utf8');
/** A Machine says which node is its own. */
const claim = (machineName: string, name: string): Promise<unknown> =>
  management.client.request(
    'PATCH',
    `/apis/cluster.x-k8s.io/v1beta1/namespaces/clusters-good/machines/${machineName}/status`,
    { status: { nodeRef: { apiVersion: 'v1', kind: 'Node', name } } },
    'application/merge-patch+json',
  );

test('a hosted cluster that never answers harms no other, and the process is ready', async () => {
  await declare(management, 'silent', silent.kubeconfig);
  await declare(management, 'good', good);
  await hosted.apply(additional('tenant.example.com'));
  await eventually(async () =>
    assert.deepEqual(registriesOf(await hosted.get(GLOBAL)), ['quay.io', 'tenant.example.com']),
  );
  const ready = await fetch(`http://127.0.0.1:${await process.port('health')}/readyz`);
  assert.equal(ready.status, 200);
});

test('rotation of one platform pull secret reaches its hosted cluster', async () => {
  await management.apply(pullSecret('pull-secret', 'clusters-good', ['quay.io', 'registry.redhat.io']));
  await eventually(async () =>
    assert.deepEqual(registriesOf(await hosted.get(GLOBAL)), [
      'quay.io',
      'registry.redhat.io',
      'tenant.example.com',
    ]),
  );
});

test('node labels follow Machines and NodePools in both directions, and only ours come off', async () => {
  const LABEL = 'hypershift.openshift.io/nodepool-globalps-enabled';
  const label = async (name: string): Promise<unknown> =>
    (await hosted.get({ apiVersion: 'v1', kind: 'Node', metadata: { name } }))?.metadata['labels']?.[LABEL];
  await makeNamespaces(management, 'clusters');
  await hosted.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } });
  await hosted.apply(meta('v1 Node', { name: 'by-hand', labels: { [LABEL]: 'true' } }));
  await management.apply(nodePool('Replace'));
  await management.apply(machine());
  await claim('worker', 'worker');
  await eventually(async () => assert.equal(await label('worker'), 'true'));
  // The upgrade type of a NodePool cannot be changed: it is another one by now.
  await management.remove(nodePool('Replace'));
  await management.apply(nodePool('InPlace'));
  await eventually(async () => assert.equal(await label('worker'), undefined));
  assert.equal(await label('by-hand'), 'true');
});

test('labels reach Machines too, and two Machines that name one node are a problem', async () => {
  const { machineLabel, nodeLabel } = GLOBAL_PULL_SECRET;
  await management.user({
    name: 'discovery',
    cluster: [
      ...rules,
      {
        apiGroups: ['cluster.x-k8s.io'],
        resources: ['machines'],
        verbs: ['get', 'list', 'watch', 'patch'],
      },
    ],
  });
  await management.remove(nodePool('InPlace'));
  await management.apply(nodePool('Replace'));
  const labelOf = async (plane: typeof hosted, ref: TestObject, label: string): Promise<unknown> =>
    (await plane.get(ref))?.metadata['labels']?.[label];
  await eventually(async () => assert.equal(await labelOf(management, machine(), machineLabel), 'true'));
  const worker: TestObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } };
  await eventually(async () => assert.equal(await labelOf(hosted, worker, nodeLabel), 'true'));
  const status = inKubeSystem('PullStatus', 'secret-original-pull-secret', 'pullwright.dev/v1alpha1');
  const says = async (): Promise<string> => JSON.stringify((await hosted.get(status))?.['status']?.verdicts);
  const twin: TestObject = { ...machine(), metadata: { ...machine().metadata, name: 'twin' } };
  await management.apply(twin);
  await claim('twin', 'worker');
  await eventually(async () =>
    assert.match(
      await says(),
      /twin and worker both name it.*"MachineAmbiguous"|"MachineAmbiguous".*twin and worker both name it/,
    ),
  );
  assert.equal(await labelOf(hosted, worker, nodeLabel), 'true', 'the label of the node stays as it is');
  await management.remove(twin);
  await eventually(async () => assert.doesNotMatch(await says(), /MachineAmbiguous/));
});

test('a kubeconfig that would run a program is refused by field name', async () => {
  await declare(
    management,
    'evil',
    good.replace(/user:\n/, "user:\n      exec: { command: /bin/touch, args: ['/tmp/evil'] }\n"),
  );
  await eventually(() =>
    assert.match(process.log, /Secret\/clusters-evil\/pullwright-kubeconfig\\": user.exec is not allowed/),
  );
});

test('metrics count hosted clusters by state', async () => {
  const url = `http://127.0.0.1:${await process.port('metrics')}/metrics`;
  await eventually(async () => {
    const text = await (await fetch(url)).text();
    assert.match(text, /pullwright_hosted_clusters\{state="ready"\} 1/);
    assert.match(text, /pullwright_hosted_clusters\{state="failing"\} 2/);
  });
});

test('a hosted cluster that goes away is left as it is', async () => {
  await management.remove(hostedControlPlane('good'));
  await process.says('hosted cluster deleted, or in another shard');
  assert.notEqual(await hosted.get(GLOBAL), undefined);
});

test('no credential of a kubeconfig is shown, and it stops with exit code 0', async () => {
  const key = /client-key-data: (\S{40})/.exec(good)?.[1] ?? 'no key';
  assert.equal(process.log.includes(key), false);
  assert.equal(await process.stop(), 0);
});

test.lastly('everything stops', async () => {
  await silent.stop();
  await Promise.all([management.stop(), hosted.stop()]);
});

function nodePool(upgradeType: string): TestObject {
  return {
    ...meta('hypershift.openshift.io/v1beta1 NodePool', { name: 'workers', namespace: 'clusters' }),
    spec: {
      clusterName: 'good',
      replicas: 1,
      management: { upgradeType },
      platform: { type: 'AWS', aws: { instanceType: 'm6i.large', subnet: { id: 'subnet-1' } } },
      release: { image: 'quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64' },
    },
  };
}

function machine(): TestObject {
  return {
    ...meta('cluster.x-k8s.io/v1beta1 Machine', {
      name: 'worker',
      namespace: 'clusters-good',
      annotations: { 'hypershift.openshift.io/nodePool': 'clusters/workers' },
    }),
    spec: {
      clusterName: 'good',
      bootstrap: { dataSecretName: 'user-data' },
      infrastructureRef: refOf(
        'infrastructure.cluster.x-k8s.io/v1beta1 AWSMachine',
        'worker',
        'clusters-good',
      ),
    },
  };
}

/** The smallest object that the real definition allows. */
