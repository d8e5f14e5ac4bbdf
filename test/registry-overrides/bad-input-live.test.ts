// deadline: 240 s
// needs: control plane
/** Every bad input, on an API server: it is said in the status, and the good sets stay in place. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { FaultServer } from '../reconcile/fault-server.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import { CLUSTERS, controlPlaneNamespace, hostedCluster, hostedControlPlane } from '../support/hypershift.ts';
import { test } from '../support/suite.ts';
import { BAD_CATALOGS, GOOD_CATALOGS } from './bad-catalogs.ts';
import { BAD_INPUTS, type BadInput, GOOD_PAIRS, samePairs } from './bad-inputs.ts';
import {
  type Deployment,
  deployment,
  kubeconfigSecret,
  MANAGEMENT_CRDS,
  mirrors,
  type Status,
  statusOf,
  variableOf,
} from './live-objects.ts';

/** Whoever made the Deployments claims their images. */
const OWN = { 'pullwright.dev/registry-overrides-mode': 'own' };
const CATALOGS = ['certified-operators', 'community-operators', 'redhat-operators'];

const plane = await controlPlane({
  crds: [...MANAGEMENT_CRDS, 'imagecontentsourcepolicies.operator.openshift.io'],
});
for (const name of [CLUSTERS, controlPlaneNamespace('prod')])
  await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name } });
const face = new FaultServer(plane, 'prod');
await face.start('prod');
await plane.apply(kubeconfigSecret('prod', face.kubeconfig));
await plane.apply(deployment('prod', 'ignition-server'), 'somebody');
for (const name of CATALOGS) await plane.apply(catalogDeployment(name), 'somebody');
await plane.apply(mirrors([['quay.io/ocp', ['z.example.com/ocp', 'a.example.com/ocp']]]));
await plane.apply(hostedCluster('prod'));
await plane.apply(hostedControlPlane('prod'));
const config = `${plane.folder}/config.yaml`;
writeFileSync(config, 'systems: { registry-overrides: {} }\n');
const reconciler = new ReconcilerProcess(NODE, [
  `--kubeconfig=${plane.kubeconfig}`,
  '--discover',
  '--allow-address=127.0.0.0/8',
  `--config=${config}`,
]);

const until = (check: () => Promise<void>): Promise<void> => eventually(check, { withinMs: 60_000 });
const verdicts = async (): Promise<string> => {
  const { status } = ((await plane.get(statusOf('prod'))) ?? {}) as { status?: Status };
  return (status?.verdicts ?? []).map(({ subject, message }) => `${message}${subject}`).join('\n');
};
const untilValue = (wanted: string): Promise<void> =>
  until(async () => {
    const found = (await plane.get(deployment('prod', 'ignition-server'))) as Deployment;
    const value = variableOf(found, 'ignition-server') ?? '';
    assert.ok(
      samePairs(value, wanted),
      `not as wanted: ${value.slice(0, 1000)}${reconciler.log.slice(-1000)}`,
    );
  });
const untilReady = (): Promise<void> =>
  until(async () => assert.doesNotMatch(await verdicts(), /\busable\b|cannot be used|expected/));

for (const row of BAD_INPUTS)
  test(`${row.name}: ${row.reason}`, async () => {
    await untilValue(GOOD_PAIRS);
    try {
      if (await give(row)) {
        await until(async () => assert.match(await verdicts(), row.says));
        await untilValue(`${row.adds ?? ''}${GOOD_PAIRS}`);
      } else {
        // The definitions of OpenShift refuse some of it; ours have no schema.
        assert.ok(process.env['PULLWRIGHT_CRDS'] !== undefined, 'our own definition takes everything');
        await untilValue(GOOD_PAIRS);
      }
    } finally {
      await takeBack(row);
      await untilReady();
    }
  });

test('an image that somebody else claims is not taken, and the status says so', async () => {
  await plane.apply(hostedCluster('prod', GOOD_CATALOGS));
  await until(async () => assert.match(await verdicts(), /another manager claims the field/));
  const { status } = (await plane.get(statusOf('prod'))) as { status?: Status };
  assert.equal(status?.conditions.find(({ type }) => type === 'Ready')?.status, 'False');
  await until(() => {
    assert.ok(reconciler.log.includes(String.raw`belongs to \"somebody\"`), 'the log names the manager');
    return Promise.resolve();
  });
});

for (const row of BAD_CATALOGS)
  test(`${row.name}: ${row.reason}`, async () => {
    await plane.apply(hostedCluster('prod', { ...OWN, ...GOOD_CATALOGS }));
    await untilImages();
    await plane.apply(hostedCluster('prod', { ...OWN, ...row.annotations }));
    await until(async () => {
      const { status } = ((await plane.get(statusOf('prod'))) ?? {}) as { status?: Status };
      const condition = status?.conditions.find(({ type }) => type === 'CatalogsValid');
      assert.equal(`${condition?.status} ${condition?.reason}`, 'False CatalogImagesInvalid');
      assert.match(condition?.message ?? '', row.says);
    });
    await untilImages();
  });

test('it stops with exit code 0', async () => {
  assert.equal(await reconciler.stop(), 0);
});

/** What is in place of the catalogs. */
async function untilImages(): Promise<void> {
  await until(async () => {
    for (const name of CATALOGS) {
      const found = (await plane.get(catalogDeployment(name))) as Deployment;
      const image = found.spec.template.spec.containers.find((one) => one.name === 'registry')?.image;
      assert.equal(image, GOOD_CATALOGS[`hypershift.openshift.io/${name}-catalog-image`]);
    }
  });
}

/** Whether the API server takes it. */
async function give(row: BadInput): Promise<boolean> {
  if (row.object === undefined) {
    await plane.apply(hostedCluster('prod', row.annotations));
    return true;
  }
  try {
    await plane.apply(withoutUid(row.object));
    return true;
  } catch (error) {
    if (/: 422 |failed to create typed patch object/.test(String(error))) return false;
    throw error;
  }
}

async function takeBack(row: BadInput): Promise<void> {
  if (row.object === undefined) await plane.apply(hostedCluster('prod'));
  else await plane.remove(withoutUid(row.object));
}

test.lastly('the rest stops', () => face.stop());

function withoutUid({ apiVersion, kind, metadata, spec }: KubeObject): TestObject {
  return { apiVersion, kind, metadata: { name: metadata.name }, spec };
}

/** Both containers that read a catalog's image. */
function catalogDeployment(name: string): TestObject {
  const object = deployment('prod', `${name}-catalog`) as TestObject & {
    spec: { template: { metadata: object } };
  };
  const image = 'old';
  const template = {
    metadata: object.spec.template.metadata,
    spec: {
      initContainers: [{ name: 'extract-content', image }],
      containers: [{ name: 'registry', image }],
    },
  };
  return { ...object, spec: { ...object.spec, template } };
}
