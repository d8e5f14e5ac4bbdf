// deadline: 360 s
/** Pods that cannot pull, on a real control plane: reported, evicted when both sides opted in, and left where nothing would help. */
import assert from 'node:assert/strict';
import { missingControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { suite } from '../support/suite.ts';
import {
  createPod,
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
  let reconciler = startReconciler(plane, await reconcilerUser(plane), { evict: true });
  let soon = waiter(reconciler);
  const podsIn = async (namespace: string): Promise<readonly TestObject[]> =>
    (await plane.client.request('GET', `/api/v1/namespaces/${namespace}/pods`)).body
      .items as readonly TestObject[];
  /** One pod of a ReplicaSet in a namespace that no profile selects yet. Gives its name. */
  const madePod = async (namespace: string, workload = 'web', account?: string): Promise<string> => {
    await readyNamespace(plane, namespace);
    const own = { name: '', namespace: '', ...(account === undefined ? {} : { account }) };
    await plane.apply({
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: workload, namespace },
      spec: {
        replicas: 1,
        selector: { matchLabels: { a: workload } },
        template: { metadata: { labels: { a: workload } }, spec: podObject(own)['spec'] },
      },
    });
    const named = async (): Promise<readonly TestObject[]> =>
      (await podsIn(namespace)).filter(({ metadata }) => metadata['labels']?.a === workload);
    await eventually(async () => assert.equal((await named()).length, 1), { withinMs: 30_000 });
    return (await named())[0]?.metadata.name ?? '';
  };
  /** The pod waits for its image from now on. */
  const stick = async (namespace: string, name: string): Promise<void> => {
    const waiting = { name: 'c', image: 'x', imageID: '', ready: false, restartCount: 0 };
    const stuck = { ...waiting, state: { waiting: { reason: 'ImagePullBackOff' } } };
    const { status } = await plane.client.request(
      'PATCH',
      `/api/v1/namespaces/${namespace}/pods/${name}/status`,
      { status: { phase: 'Pending', containerStatuses: [stuck] } },
      'application/merge-patch+json',
    );
    assert.equal(status, 200);
  };
  const stuckPod = async (namespace: string): Promise<string> => {
    const name = await madePod(namespace);
    await stick(namespace, name);
    return name;
  };
  /** Names of the pods that are there, and which of them are asked to go. */
  const standing = async (namespace: string): Promise<readonly (readonly [string, boolean])[]> =>
    (await podsIn(namespace))
      .map(({ metadata }) => [metadata.name, metadata['deletionTimestamp'] !== undefined] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1));
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

  test('who was evicted, and who was not, is told in its namespace', async () => {
    await readyNamespace(plane, 'told');
    const container = podObject({ name: '', namespace: '' })['spec'];
    const job = { backoffLimit: 0, template: { spec: { ...container, restartPolicy: 'Never' } } };
    await plane.apply({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'once', namespace: 'told' },
      spec: job,
    });
    // An owner that makes no pods, as a run of a pipeline.
    const run: TestObject = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'run', namespace: 'told' },
    };
    await plane.apply(run);
    const uid = (await plane.get(run))?.metadata['uid'];
    const owners = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'run', uid, controller: true }];
    assert.deepEqual(await createPod(plane, { name: 'step', namespace: 'told', owners }), { names: [] });
    const gone = await madePod('told');
    await soon(async () => assert.equal((await podsIn('told')).length, 3));
    const left = (await podsIn('told')).map((pod) => pod.metadata.name).filter((name) => name !== gone);
    for (const name of [gone, ...left]) await stick('told', name);
    await plane.apply(namespaceObject('told', { team: 'a' }));
    await soon(async () => {
      const { body } = await plane.client.request('GET', '/apis/events.k8s.io/v1/namespaces/told/events');
      const said = (body.items as readonly TestObject[]).map(
        (event) => `${event['reason']} ${event['regarding'].name}`,
      );
      assert.ok(said.includes(`PodEvicted ${gone}`), said.join());
      const once = left.find((name) => name.startsWith('once-'));
      assert.ok(said.includes(`WouldNotHelp ${once}`), said.join());
    });
    const there = new Map(await standing('told'));
    for (const name of left) assert.equal(there.get(name), false, `${name} is nobody's to make again`);
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

  test('beside a pod that is evicted, one whose account takes no injected names is left where it is', async () => {
    await readyNamespace(plane, 'strict');
    const annotations = { 'kubernetes.io/enforce-mountable-secrets': 'true' };
    const metadata = { name: 'strict', namespace: 'strict', annotations };
    await plane.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata });
    const left = await madePod('strict', 'left', 'strict');
    const gone = await madePod('strict', 'gone');
    for (const name of [left, gone]) await stick('strict', name);
    await plane.apply(namespaceObject('strict', { team: 'a' }));
    // One pass decides about both.
    await soon(async () => {
      const names = (await standing('strict')).map(([name]) => name);
      assert.ok(!names.includes(gone), names.join());
    });
    assert.deepEqual(
      (await standing('strict')).find(([name]) => name === left),
      [left, false],
    );
  });

  for (const [what, admission] of [
    ['nothing is to inject', 'none'],
    ['the webhook is not there', 'webhook'],
  ] as const)
    test(`nobody is evicted where ${what}`, async () => {
      const namespace = `by-${admission}`;
      const first = await madePod(namespace, 'first');
      const second = await madePod(namespace, 'second');
      await stick(namespace, first);
      await reconciler.stop();
      await plane.apply(namespaceObject(namespace, { team: 'a' }));
      reconciler = startReconciler(plane, await reconcilerUser(plane, { admission }), {
        evict: true,
        admission,
      });
      soon = waiter(reconciler);
      const copy: TestObject = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'reg', namespace } };
      await soon(async () => assert.notEqual(await plane.get(copy), undefined));
      await soon(() => isReported(namespace));
      // Nobody is told to make pods again that would be no better off.
      await soon(async () => {
        const report = await plane.get(reportIn(namespace));
        assert.match(String(report?.['status']?.conditions[0]?.message), /new ones would lack them too: /);
      });
      // A pass that comes later sees the copy, and both pods stuck.
      await stick(namespace, second);
      await soon(async () => {
        const verdicts = (await plane.get(reportIn(namespace)))?.['status']?.verdicts ?? [];
        const reasons = verdicts.map(({ reason }: { reason: string }) => reason);
        assert.deepEqual(reasons, ['StuckUninjected', 'StuckUninjected']);
      });
      await soon(async () => {
        const conditions = (await plane.get(teamProfile()))?.['status']?.conditions ?? [];
        const found = conditions.find(({ type }: { type: string }) => type === 'Injecting');
        assert.notEqual(found?.status, 'True');
      });
      // What is under way ends first.
      await reconciler.stop();
      assert.deepEqual(await standing(namespace), [
        [first, false],
        [second, false],
      ]);
    });

  test.lastly('the reconciler stops in order', async () => {
    await reconciler.stop();
    assert.doesNotMatch(reconciler.log(), /ReconcilerThrew/);
    await plane.stop();
  });
}

test.run();
