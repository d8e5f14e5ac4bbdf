// deadline: 240 s
// needs: control plane
/** The reconciler on a real API server, with the permissions of the charts, beside writers like HyperShift's. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { overridesAccess } from '../../charts/registry-overrides/access.ts';
import { installCrds } from '../control-plane/crds.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { rightsOf } from '../control-plane/users.ts';
import { FaultServer } from '../reconcile/fault-server.ts';
import { discovering, type ReconcilerProcess } from '../reconcile/process.ts';
import { makeNamespaces } from '../reconcile/scene.ts';
import {
  CLUSTERS,
  controlPlaneNamespace,
  hostedCluster,
  hostedControlPlane,
  kubeconfigSecret,
} from '../support/hypershift.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { CATALOG_NAMES, GOOD_CATALOGS } from './catalog-objects.ts';
import {
  type Deployment,
  deployment,
  discovery,
  documentOf,
  MANAGEMENT_CRDS,
  mirrors,
  type Status,
  statusOf,
  variableOf,
} from './live-objects.ts';

const NAMESPACE = controlPlaneNamespace('prod');

const plane = await controlPlane({ crds: MANAGEMENT_CRDS });
await makeNamespaces(plane, CLUSTERS, NAMESPACE);
const place = { hostedCluster: { namespace: CLUSTERS, name: 'prod' }, controlPlaneNamespace: NAMESPACE };
const rights = rightsOf([...discovery([NAMESPACE]), ...overridesAccess([place])]);
const user = await plane.user({ name: 'overrides', ...rights });
const face = new FaultServer(plane, 'prod');
await face.start('prod');
await plane.apply(kubeconfigSecret('prod', face.kubeconfig));
const config = `${plane.folder}/config.yaml`;
const BARE = 'only: [clusters/prod], catalogs: false';
const start = (options: string): ReconcilerProcess => {
  writeFileSync(config, `systems: { registry-overrides: { ${options} } }\n`);
  return discovering(user.kubeconfig, config);
};
let process = start(BARE);
async function restart(options: string): Promise<void> {
  assert.equal(await process.stop(), 0);
  process = start(options);
}

const read = async (name: string): Promise<Deployment> =>
  (await plane.get(deployment('prod', name))) as Deployment;
const value = async (name: string): Promise<string | undefined> => variableOf(await read(name), name);
const status = async (): Promise<Status> =>
  ((await plane.get(statusOf('prod'))) as { status?: Status } | undefined)?.status ?? {
    conditions: [],
    verdicts: [],
  };
const condition = async (type: string): Promise<string> => {
  const found = (await status()).conditions.find((one) => one.type === type);
  return found === undefined ? 'absent' : `${found.status} ${found.reason}`;
};

test('sets the variable on both Deployments, with exactly the rights of the charts', async () => {
  await plane.apply(deployment('prod', 'control-plane-operator'), 'somebody');
  await plane.apply(deployment('prod', 'ignition-server'), 'somebody');
  await plane.apply(
    mirrors([
      ['quay.io/b', ['m2.example.com', 'm1.example.com']],
      ['quay.io/a', ['m.example.com']],
    ]),
  );
  await plane.apply(hostedCluster('prod'));
  await plane.apply(hostedControlPlane('prod'));
  const wanted = 'quay.io/a=m.example.com,quay.io/b=m2.example.com,quay.io/b=m1.example.com';
  await eventually(async () =>
    assert.equal(await value('ignition-server'), wanted, process.log.slice(-2000)),
  );
  await eventually(async () => assert.equal(await value('control-plane-operator'), wanted));
  await eventually(async () => assert.equal(await condition('Ready'), 'True Reconciled'));
  assert.doesNotMatch(process.log, /forbidden/i);
});

test('an unchanged set of mirrors writes nothing, whatever the order it is listed in', async () => {
  const before = await Promise.all([
    read('ignition-server'),
    plane.get(documentOf('prod')),
    plane.get(statusOf('prod')),
  ]);
  await plane.apply(
    mirrors([
      ['quay.io/a', ['m.example.com']],
      ['quay.io/b', ['m2.example.com', 'm1.example.com']],
    ]),
  );
  // A visible change proves that the change above was processed.
  await plane.apply(mirrors([['quay.io/c', ['m.example.com']]], 'later'));
  await eventually(async () => assert.match((await value('ignition-server')) ?? '', /quay\.io\/c/));
  await plane.remove(mirrors([], 'later'));
  await eventually(async () => assert.doesNotMatch((await value('ignition-server')) ?? '', /quay\.io\/c/));
  const after = await plane.get(documentOf('prod'));
  assert.deepEqual((after as { data?: unknown }).data, (before[1] as { data?: unknown }).data);
});

test('a kind that is installed later is followed without a restart', async () => {
  await installCrds(plane.client, ['imagecontentsourcepolicies.operator.openshift.io']);
  await plane.apply({
    ...meta('operator.openshift.io/v1alpha1 ImageContentSourcePolicy', { name: 'legacy' }),
    spec: { repositoryDigestMirrors: [{ source: 'quay.io/old', mirrors: ['m.example.com/old'] }] },
  });
  await eventually(async () =>
    assert.match((await value('ignition-server')) ?? '', /quay\.io\/old=m\.example\.com\/old/),
  );
  await eventually(async () =>
    assert.ok((await status()).verdicts.some((one) => one.reason === 'BothKinds')),
  );
});

test('an image that another owner claims is not taken, and the status says so', async () => {
  for (const name of CATALOG_NAMES) await plane.apply(catalogDeployment(name), 'somebody');
  await plane.apply(hostedCluster('prod', GOOD_CATALOGS));
  await restart('only: [clusters/prod]');
  await eventually(async () => {
    assert.match(JSON.stringify((await status()).verdicts), /another field manager owns the field/);
    assert.match(await condition('Ready'), /^False/);
    assert.ok(process.log.includes(String.raw`is owned by \"somebody\"`), 'the log names the manager');
  });
  await restart(BARE);
});

test('own: a writer that applies its object every second and we do not fight', async () => {
  await plane.apply(hostedCluster('prod', { 'pullwright.dev/registry-overrides-mode': 'own' }));
  const stand = setInterval(
    () =>
      void plane
        .apply(deployment('prod', 'ignition-server'), 'hypershift-controlplane-manager')
        .catch(() => undefined),
    1000,
  );
  try {
    await plane.apply(mirrors([['quay.io/a', ['new.example.com']]]));
    await eventually(async () => assert.match((await value('ignition-server')) ?? '', /new\.example\.com/));
    await stands(read);
    assert.match((await value('ignition-server')) ?? '', /new\.example\.com/);
  } finally {
    clearInterval(stand);
  }
});

test('own: where a writer replaces the whole object every second, we stop and say so', async () => {
  const replace = async (): Promise<void> => {
    const now = await read('ignition-server');
    const { managedFields: _fields, resourceVersion, ...metadata } = now.metadata as Record<string, unknown>;
    const body = {
      ...now,
      ...deployment('prod', 'ignition-server'),
      metadata: { ...metadata, resourceVersion },
    };
    await plane.client.request(
      'PUT',
      `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/ignition-server`,
      body,
    );
  };
  const stand = setInterval(() => void replace().catch(() => undefined), 1000);
  try {
    await eventually(async () => assert.equal(await condition('Contested'), 'True AnotherWriter'));
    await stands(read);
    assert.equal(await value('ignition-server'), undefined);
    assert.match(
      (await value('control-plane-operator')) ?? '',
      /new\.example\.com/,
      'the other Deployment is kept',
    );
  } finally {
    clearInterval(stand);
  }
});

test('observe: what an operator of HyperShift writes is left to it', async () => {
  await plane.apply(hostedCluster('prod', { 'pullwright.dev/registry-overrides-mode': 'auto' }));
  await eventually(async () => assert.match(await condition('ManagedElsewhere'), /^True/));
  await plane.apply(mirrors([['quay.io/a', ['newest.example.com']]]));
  await eventually(async () =>
    assert.match((await value('control-plane-operator')) ?? '', /newest\.example\.com/),
  );
  assert.equal(await value('ignition-server'), undefined);
});

test('it stops with exit code 0', async () => {
  assert.equal(await process.stop(), 0);
});

test.lastly('the rest stops', () => face.stop());

/** Waits until the Deployment has not been written for five seconds. */
async function stands(read: (name: string) => Promise<Deployment>): Promise<void> {
  let version = '';
  let since = performance.now();
  await eventually(async () => {
    const now = String((await read('ignition-server')).metadata['resourceVersion']);
    if (now !== version) since = performance.now();
    version = now;
    assert.ok(performance.now() - since > 5000, 'the resourceVersion moves');
  });
}

function catalogDeployment(name: string): TestObject {
  const object = deployment('prod', `${name}-catalog`);
  const { template, ...spec } = object['spec'] as { readonly template: { readonly metadata: object } };
  const pod = {
    initContainers: [{ name: 'extract-content', image: 'old' }],
    containers: [{ name: 'registry', image: 'old' }],
  };
  return { ...object, spec: { ...spec, template: { metadata: template.metadata, spec: pod } } };
}
