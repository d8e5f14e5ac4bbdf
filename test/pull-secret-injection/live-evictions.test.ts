// deadline: 240 s
/** Pods that cannot pull, on a real control plane: reported, evicted when both sides opted in, and left where nothing would help. */
import assert from 'node:assert/strict';
import { missingControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { suite } from '../support/suite.ts';
import {
  namespaceObject,
  podObject,
  readyNamespace,
  reconcilerUser,
  startPlane,
  startReconciler,
} from './live.ts';
import { applySource, teamProfile, waiter } from './live-scene.ts';

const test = suite('evictions in a cluster');
const missing = missingControlPlane();

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startPlane();
  await applySource(plane);
  const reconciler = startReconciler(plane, await reconcilerUser(plane), { evict: true });
  const soon = waiter(reconciler);
  const podsIn = async (namespace: string): Promise<readonly TestObject[]> =>
    (await plane.client.request('GET', `/api/v1/namespaces/${namespace}/pods`)).body
      .items as readonly TestObject[];
  /** One pod of a ReplicaSet in a namespace that no profile selects yet, waiting for its image. Gives its name. */
  const stuckPod = async (namespace: string): Promise<string> => {
    await readyNamespace(plane, namespace);
    await plane.apply({
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'web', namespace },
      spec: {
        replicas: 1,
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: podObject({ name: '', namespace: '' })['spec'] },
      },
    });
    await soon(async () => assert.equal((await podsIn(namespace)).length, 1));
    const { name } = (await podsIn(namespace))[0]?.metadata ?? { name: '' };
    const waiting = { name: 'c', image: 'x', imageID: '', ready: false, restartCount: 0 };
    const stuck = { ...waiting, state: { waiting: { reason: 'ImagePullBackOff' } } };
    await plane.client.request(
      'PATCH',
      `/api/v1/namespaces/${namespace}/pods/${name}/status`,
      { status: { phase: 'Pending', containerStatuses: [stuck] } },
      'application/merge-patch+json',
    );
    return name;
  };
  const reportIn = (namespace: string): TestObject => ({
    apiVersion: 'pullwright.dev/v1alpha1',
    kind: 'PullStatus',
    metadata: { name: `podlist-${namespace}`, namespace },
  });
  const isReported = async (namespace: string): Promise<void> => {
    const report = await plane.get(reportIn(namespace));
    assert.equal(report?.['status']?.verdicts[0]?.reason, 'StuckUninjected');
  };

  test('a pod that cannot pull is reported, and evicted when both sides opted in', async () => {
    await plane.apply(teamProfile());
    const name = await stuckPod('late');
    await plane.apply(namespaceObject('late', { team: 'a' }));
    await soon(() => isReported('late'));
    assert.equal((await podsIn('late'))[0]?.metadata.name, name, 'reporting evicts nobody');
    // Asked before the API server took the policy, it says that an eviction would not help, and is asked again much later.
    await soon(async () => {
      const conditions = (await plane.get(teamProfile()))?.['status']?.conditions ?? [];
      const found = conditions.find(({ type }: { type: string }) => type === 'Injecting');
      assert.equal(found?.status, 'True');
    });
    await plane.apply(teamProfile({ repair: 'Evict' }));
    await soon(async () => {
      const [next, ...others] = await podsIn('late');
      assert.deepEqual([others.length, next?.['spec']?.imagePullSecrets], [0, [{ name: 'reg' }]]);
    });
    await soon(async () => assert.equal(await plane.get(reportIn('late')), undefined));
  });

  test('a stuck pod whose successor would be refused is left where it is', async () => {
    const name = await stuckPod('refusing');
    // What no pod of the workload meets is asked for after it was made.
    await plane.apply(
      namespaceObject('refusing', { team: 'a', 'pod-security.kubernetes.io/enforce': 'restricted' }),
    );
    await soon(async () => assert.match(reconciler.log(), /WouldNotHelp.*its successor would be refused/));
    assert.deepEqual(
      (await podsIn('refusing')).map(({ metadata }) => [metadata.name, metadata['deletionTimestamp']]),
      [[name, undefined]],
    );
    await soon(() => isReported('refusing'));
  });

  test.lastly('the reconciler stops in order', async () => {
    await reconciler.stop();
    assert.doesNotMatch(reconciler.log(), /ReconcilerThrew/);
    await plane.stop();
  });
}

test.run();
