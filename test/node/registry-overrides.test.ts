// deadline: 420 s
// needs: node
/**
 * Registry overrides on a real node: the Deployments of a hosted control plane, in their real shape, restart with the values of
 * the mirror sets, and not without a change of these.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { startControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import {
  type Deployment,
  deployment,
  MANAGEMENT_CRDS,
  mirrors,
  statusOf,
  VARIABLE,
  variableOf,
} from '../registry-overrides/live-objects.ts';
import {
  CLUSTERS,
  controlPlaneNamespace,
  hostedCluster,
  hostedControlPlane,
  kubeconfigSecret,
} from '../support/hypershift.ts';
import { test } from '../support/suite.ts';
import { ADDRESS } from './machine/joining.ts';
import { type Changed, Journey } from './machine/journey.ts';
import { grantImage, IMAGE, pullSecretOf, pushProduct } from './machine/product.ts';
import { inMachine, step } from './machine/steps.ts';

const NAMESPACE = controlPlaneNamespace('prod');
const READERS = ['control-plane-operator', 'ignition-server'] as const;
const FLEET = `
image: ${IMAGE}
imagePullSecrets: [pullwright-registry]
clusters:
  - name: mgmt
    kind: management
    reconciler: { kubeconfigSecret: pullwright-kubeconfig }
    systems: { registry-overrides: { catalogs: false } }
  - name: prod
    kind: hosted
    management: mgmt
    delivery: reconciler
    systems: { registry-overrides: { catalogs: false } }
`;

await inMachine(import.meta.filename, walk);

/** A Deployment like HyperShift's, with a program that exists. */
function running(name: string, image: string): TestObject {
  const object = deployment('prod', name) as Deployment & { readonly spec: { readonly template: object } };
  const labels = { app: name };
  const env = [{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }];
  const containers = [{ name, image, imagePullPolicy: 'IfNotPresent', env }];
  const spec = { containers, imagePullSecrets: [{ name: 'pull-secret' }], terminationGracePeriodSeconds: 1 };
  return {
    ...object,
    spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
    readonly spec: Deployment['spec']['template']['spec'];
    readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
  }[];
}

async function walk(): Promise<void> {
  const journey = await Journey.start({ crds: MANAGEMENT_CRDS.filter((name) => !/pullstatus/.test(name)) });
  const { node, plane, within, ok, becomes, inOrder } = journey;
  const hosted = await startControlPlane({ nodeAddress: ADDRESS });
  /** The running pod of each Deployment: its UID and its program's variable. */
  const pods = async (): Promise<
    Readonly<Record<string, readonly [uid: string, value: string | undefined]>>
  > => {
    const found = await Promise.all(
      READERS.map(async (name) => {
        const path = `/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=app%3D${name}`;
        const { items } = (await plane.client.request('GET', path)).body as unknown as Pods;
        const stay = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
        assert.equal(stay.length, 1, name);
        const ready = stay[0]?.status?.conditions?.find(({ type }) => type === 'Ready');
        assert.equal(ready?.status, 'True', `${name} is not ready`);
        const value = stay[0]?.spec.containers[0]?.env?.find((one) => one.name === VARIABLE)?.value;
        return [name, [stay[0]?.metadata.uid ?? '', value] as const] as const;
      }),
    );
    return Object.fromEntries(found);
  };
  const bothHave = (value: string | undefined): Promise<Awaited<ReturnType<typeof pods>>> =>
    within(async () => {
      const now = await pods();
      for (const name of READERS) assert.equal(now[name]?.[1], value);
      return now;
    });
  let changed: () => Promise<Changed>;

  step('before: a hosted control plane whose Deployments run without overrides', async () => {
    const image = node.image('registry.example.com', 'ocp/component', '1');
    for (const name of [CLUSTERS, NAMESPACE])
      await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await plane.apply(pullSecretOf(NAMESPACE, 'pull-secret', node.registry('registry.example.com').config()));
    const port = new URL(hosted.server).port;
    const kubeconfig = readFileSync(hosted.kubeconfig, 'utf8').replaceAll(
      hosted.server,
      `https://${ADDRESS}:${port}`,
    );
    const secret = kubeconfigSecret('prod', kubeconfig);
    for (const object of [secret, hostedCluster('prod'), hostedControlPlane('prod')])
      await plane.apply(object);
    await plane.apply(mirrors([['quay.io/a', ['m.example.com/a']]]));
    for (const name of READERS) await plane.apply(running(name, image), 'platform');
    await bothHave(undefined);
    changed = await journey.snapshot();
  });

  step('installed: both start anew with the mirrors of the set, and all is in order', async () => {
    await pushProduct(node);
    await grantImage(node);
    await journey.deliver(FLEET, 'mgmt');
    await ok('kubectl -n pullwright-system rollout status deployment/pullwright-reconciler --timeout=120s');
    await bothHave('quay.io/a=m.example.com/a');
    await inOrder();
  });

  step(
    'another set, and the reconciler killed meanwhile: both start anew with all of it; a look at what stands still starts nothing',
    async () => {
      await plane.apply(mirrors([['quay.io/b', ['n.example.com/b']]], 'more'));
      node.system.kill(/pullwright reconcile/);
      const now = await bothHave('quay.io/a=m.example.com/a,quay.io/b=n.example.com/b');
      node.system.kill(/pullwright reconcile/);
      await becomes(statusOf('prod'), /"Reconciled"/);
      await ok('kubectl -n pullwright-system rollout status deployment/pullwright-reconciler --timeout=120s');
      await plane.apply(mirrors([['quay.io/b', ['n.example.com/b']]], 'same'));
      await inOrder();
      assert.deepEqual(await pods(), now);
      await plane.remove(mirrors([], 'same'));
    },
  );

  step('the way out: both run without the variable, and nothing of ours is left', async () => {
    await ok('pullwright uninstall --yes');
    await plane.remove(mirrors([], 'more'));
    await bothHave(undefined);
    for (const name of READERS)
      assert.equal(variableOf((await plane.get(deployment('prod', name))) as Deployment, name), undefined);
    // The Secret of `imagePullSecrets`, created by a person, and its namespace.
    const theirs =
      /^\+ (Namespace <none> pullwright-system|Secret \S+ pullwright-registry|(ConfigMap|ServiceAccount) pullwright-system (kube-root-ca.crt|default))$/;
    const { files, objects } = await changed();
    assert.deepEqual([...files, ...objects.filter((line) => !theirs.test(line))], []);
  });

  test.lastly('the machine stops', async () => {
    await hosted.stop();
    await node.stop();
  });
}
