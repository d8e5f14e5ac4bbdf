// deadline: 180 s
// needs: control plane
/** Many hosted clusters beside one management cluster: the watches there do not grow with them. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { overridesAccess } from '../../charts/registry-overrides/access.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import { rightsOf } from '../control-plane/users.ts';
import { FaultServer } from '../reconcile/fault-server.ts';
import { discovering } from '../reconcile/process.ts';
import { makeNamespaces } from '../reconcile/scene.ts';
import {
  CLUSTERS,
  controlPlaneNamespace,
  hostedCluster,
  hostedControlPlane,
  kubeconfigSecret,
} from '../support/hypershift.ts';
import { test } from '../support/suite.ts';
import {
  type Deployment,
  deployment,
  discovery,
  MANAGEMENT_CRDS,
  mirrors,
  variableOf,
} from './live-objects.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
const TARGETS = ['control-plane-operator', 'ignition-server'];

const plane = await controlPlane({ crds: MANAGEMENT_CRDS });
await makeNamespaces(plane, CLUSTERS, ...NAMES.map(controlPlaneNamespace));
const config = `${plane.folder}/config.yaml`;
writeFileSync(config, 'systems: { registry-overrides: { catalogs: false } }\n');
const faces = NAMES.map((name) => new FaultServer(plane, name));
for (const [index, name] of NAMES.entries()) {
  const face = faces[index] as FaultServer;
  await face.start(name);
  await plane.apply(kubeconfigSecret(name, face.kubeconfig));
  for (const target of TARGETS) await plane.apply(deployment(name, target), 'somebody');
  await plane.apply(hostedCluster(name));
  await plane.apply(hostedControlPlane(name));
}

/** Open watches on Deployments, as the API server counts them. */
const watches = async (): Promise<number> => {
  const { body } = await plane.client.request('GET', '/metrics');
  const lines = String(body).match(/^apiserver_longrunning_requests\{.*resource="deployments".*$/gm) ?? [];
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
};

const untilAllHave = async (mirror: string, log: () => string): Promise<void> => {
  await eventually(async () => {
    for (const name of NAMES)
      for (const target of TARGETS) {
        const found = (await plane.get(deployment(name, target))) as Deployment;
        assert.equal(
          variableOf(found, target),
          `quay.io/a=${mirror}`,
          `${name} ${target}\n${log().slice(-1500)}`,
        );
      }
  });
};

test('with rights for all hosted clusters, a kind is watched once for all', async () => {
  const rights = rightsOf([...discovery([undefined]), ...overridesAccess([{}])]);
  const user = await plane.user({ name: 'everywhere', ...rights });
  const before = await watches();
  await plane.apply(mirrors([['quay.io/a', ['one.example.com']]]));
  const reconciler = discovering(user.kubeconfig, config);
  await untilAllHave('one.example.com', () => reconciler.log);
  await plane.apply(mirrors([['quay.io/a', ['two.example.com']]]));
  await untilAllHave('two.example.com', () => reconciler.log);
  // Two Deployments and four of the catalogs, by name.
  assert.equal((await watches()) - before, 6);
  assert.doesNotMatch(reconciler.log, /forbidden/i);
  assert.equal(await reconciler.stop(), 0);
});

test('with rights for each hosted cluster alone, each is watched alone', async () => {
  const places = NAMES.map((name) => ({
    hostedClusterNamespace: CLUSTERS,
    controlPlaneNamespace: controlPlaneNamespace(name),
  }));
  const rights = rightsOf([...discovery(NAMES.map(controlPlaneNamespace)), ...overridesAccess(places)]);
  const user = await plane.user({ name: 'each', ...rights });
  const only = NAMES.map((name) => `${CLUSTERS}/${name}`).join(', ');
  writeFileSync(config, `systems: { registry-overrides: { only: [${only}], catalogs: false } }\n`);
  await plane.apply(mirrors([['quay.io/a', ['three.example.com']]]));
  const reconciler = discovering(user.kubeconfig, config);
  await untilAllHave('three.example.com', () => reconciler.log);
  assert.equal(reconciler.said('cannot watch').length, 0, reconciler.log.slice(-1500));
  assert.equal(await reconciler.stop(), 0);
});

test.lastly('the rest stops', async () => void (await Promise.all(faces.map((face) => face.stop()))));
