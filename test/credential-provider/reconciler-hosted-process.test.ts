// deadline: 240 s
// needs: control plane
/**
 * The reconciler as a process for a hosted cluster, with the rights of the charts and the real definitions: the ConfigMap, the
 * NodePools that do not refer to it, their rollout, the version gate by NodePool, and the removal.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { hostedClustersAccess } from '../../charts/credential-provider/access.ts';
import { may, READ, secretsByName } from '../../runtime/core/kubernetes/objects.ts';
import type { EntryStatus } from '../../runtime/core/kubernetes/pull-status.ts';
import { credentialProviderCrd } from '../../runtime/credential-provider/kind.ts';
import { installCrd } from '../control-plane/crds.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { rightsOf } from '../control-plane/users.ts';
import { FaultServer } from '../reconcile/fault-server.ts';
import { discovering } from '../reconcile/process.ts';
import { eventsAbout, hostedControlPlane } from '../reconcile/scene.ts';
import { kubeconfigSecret } from '../support/hypershift.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { CR, furnishPools, workerNode } from './support/machine-config-operator.ts';
import { SLOW, soon } from './support/reconciler-cluster.ts';

const CONFIG_MAP: TestObject = meta('v1 ConfigMap', {
  name: 'east-crio-credential-provider',
  namespace: 'clusters',
});

function nodePool(name: string, configs: readonly string[]): TestObject {
  return {
    ...meta('hypershift.openshift.io/v1beta1 NodePool', { name, namespace: 'clusters' }),
    spec: {
      clusterName: 'east',
      replicas: 1,
      management: { upgradeType: 'InPlace' },
      platform: { type: 'AWS', aws: { instanceType: 'm6i.large', subnet: { id: 'subnet-1' } } },
      release: { image: 'quay.io/openshift-release-dev/ocp-release:4.21.0-x86_64' },
      config: configs.map((one) => ({ name: one })),
    },
  };
}

const plane = await controlPlane({
  crds: [
    'hostedclusters.hypershift.openshift.io',
    'hostedcontrolplanes.hypershift.openshift.io',
    'infrastructures.config.openshift.io',
    'machineconfigpools.machineconfiguration.openshift.io',
    'nodepools.hypershift.openshift.io',
    'pullstatuses.pullwright.dev',
  ],
});
await installCrd(plane.client, credentialProviderCrd());
for (const name of ['clusters', 'clusters-east'])
  await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name } });
await furnishPools(plane, 'AWS');
const access = hostedClustersAccess([
  {
    cluster: {
      name: 'east',
      hostedCluster: { namespace: 'clusters', name: 'east' },
      controlPlaneNamespace: 'clusters-east',
      delivery: 'gitops',
      image: 'registry.example.com/pullwright:1',
      namespace: 'pullwright-system',
    },
  },
]);
const user = await plane.user({
  name: 'hosted-provider',
  ...rightsOf([
    { rules: [may(READ, 'hypershift.openshift.io', ['hostedcontrolplanes', 'hostedclusters'])] },
    { namespace: 'clusters-east', rules: [secretsByName(['pullwright-kubeconfig'], ['get'])] },
    ...access,
  ]),
});
const face = new FaultServer(plane, 'east');
await face.start('east');
await plane.apply(kubeconfigSecret('east', face.kubeconfig));
const config = `${plane.folder}/config.yaml`;
writeFileSync(
  config,
  'systems: { credential-provider: { only: [clusters/east], clusters: { clusters/east: { secretAnnotation: true } } } }\n',
);
const process = discovering(user.kubeconfig, config);
const verdict = async (subject: string): Promise<string> => {
  const status = await plane.get(
    meta('pullwright.dev/v1alpha1 PullStatus', {
      name: 'criocredentialproviderconfig-cluster',
      namespace: 'clusters-east',
    }),
  );
  const verdicts = (status?.['status']?.verdicts ?? []) as readonly EntryStatus[];
  const found = verdicts.find((one) => one.subject === subject);
  return found === undefined ? 'absent' : `${found.verdict} ${found.reason}`;
};
const file = async (): Promise<string> => {
  const text = (await plane.get(CONFIG_MAP))?.['data']?.config as string | undefined;
  if (text === undefined) return '';
  const [one] = JSON.parse(text).spec.config.storage.files ?? [];
  return Buffer.from(one?.contents.source.split(',')[1] ?? '', 'base64').toString();
};

test('brings the ConfigMap with the options of this cluster, and names the NodePools without it', async () => {
  await plane.apply(nodePool('workers', ['chrony']));
  await plane.apply({ ...CR, spec: { matchImages: ['docker.io'] } });
  await plane.apply(hostedControlPlane('east'));
  await soon(() => file(), /- docker\.io/);
  assert.match(await file(), /pullwright\.dev\/image-pull-secrets/);
  await soon(() => verdict('NodePool clusters/workers'), 'Pending NotReferenced');
  await eventually(async () => {
    const notes = (await eventsAbout(plane, 'workers')).map((event) => `${event['reason']} ${event['note']}`);
    assert.match(
      notes.join('\n'),
      /NodePoolNotConfigured .*\nspec:\n {2}config:\n {2}- name: chrony\n {2}- name: east-crio/,
    );
  }, SLOW);
});

test('a NodePool that refers is followed until HyperShift says that all nodes have it', async () => {
  await plane.apply(nodePool('workers', ['chrony', 'east-crio-credential-provider']));
  await soon(() => verdict('NodePool clusters/workers'), 'Pending Progressing');
  const generation = (await plane.get(nodePool('workers', [])))?.metadata['generation'] as number;
  const said = await plane.client.request(
    'PATCH',
    '/apis/hypershift.openshift.io/v1beta1/namespaces/clusters/nodepools/workers/status',
    {
      status: {
        conditions: ['False'].map((status) => ({
          type: 'UpdatingConfig',
          status,
          observedGeneration: generation,
          lastTransitionTime: '2026-01-01T00:00:00Z',
        })),
      },
    },
    'application/merge-patch+json',
  );
  assert.equal(said.status, 200, JSON.stringify(said.body));
  await soon(() => verdict('NodePool clusters/workers'), 'Accepted RolledOut');
});

test('an older NodePool holds back only what it would take itself', async () => {
  const old = { 'hypershift.openshift.io/nodePool': 'old' };
  await plane.apply(nodePool('old', []));
  await workerNode(plane, 'old-0', 33, old);
  await soon(() => verdict('NodePool clusters/old'), 'Pending UnsupportedVersion');
  await plane.apply({ ...CR, spec: { matchImages: ['docker.io', 'quay.io'] } });
  await soon(() => file(), /- quay\.io/);
  await plane.apply(nodePool('old', ['east-crio-credential-provider']));
  await soon(() => verdict('pool worker'), 'Pending UnsupportedVersion');
  await plane.apply({ ...CR, spec: { matchImages: ['example.io'] } });
  await soon(() => verdict('example.io'), 'Accepted Rendered');
  assert.match(await file(), /- quay\.io/, 'what is rendered stays');
  await workerNode(plane, 'old-0', 34, old);
  await soon(() => file(), /- example\.io/);
});

test('with the object the ConfigMap goes, and nothing was forbidden', async () => {
  await plane.remove(CR);
  await eventually(async () => assert.equal(await plane.get(CONFIG_MAP), undefined), SLOW);
  assert.equal(await process.stop(), 0);
  assert.doesNotMatch(process.log, /forbidden/i);
});

test.lastly('the rest stops', () => face.stop());
