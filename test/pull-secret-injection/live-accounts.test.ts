// deadline: 300 s
/** What pods get on a real control plane: of accounts that enforce mountable secrets, and of SidecarSets and their revisions. */
import assert from 'node:assert/strict';
import { missingControlPlane } from '../control-plane/build.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { suite } from '../support/suite.ts';
import {
  namespaceObject,
  postPod,
  readyNamespace,
  reconcilerUser,
  startPlane,
  startReconciler,
} from './live.ts';
import { applySource, conditionOf, teamProfile, waiter } from './live-scene.ts';

const test = suite('service accounts in a cluster');
const missing = missingControlPlane();
const INJECTED = 'pullwright.dev/injected-pull-secrets';
const STRICT = 'kubernetes.io/enforce-mountable-secrets';

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startPlane();
  await applySource(plane);
  await readyNamespace(plane, 'shop', { team: 'a' });
  await plane.apply(teamProfile());
  const reconciler = startReconciler(plane, await reconcilerUser(plane));
  const soon = waiter(reconciler);
  test('an account that enforces mountable secrets is left out, until it lists the name', async () => {
    const strict = {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'strict', namespace: 'shop', annotations: { [STRICT]: 'true' } },
    };
    await plane.apply(strict);
    const report = {
      apiVersion: 'pullwright.dev/v1alpha1',
      kind: 'PullStatus',
      metadata: { name: 'serviceaccount-strict', namespace: 'shop' },
    };
    await soon(async () =>
      assert.equal(await conditionOf(plane, 'team', 'AccountsServed'), 'False MountableSecretsEnforced'),
    );
    await soon(async () => {
      const [verdict] = (await plane.get(report))?.['status']?.verdicts ?? [];
      assert.deepEqual([verdict?.subject, verdict?.reason], ['reg', 'MountableSecretsEnforced']);
    });
    const answer = async (): Promise<unknown> => {
      const made = await postPod(plane, { name: `s-${Date.now()}`, namespace: 'shop', account: 'strict' });
      return 'pod' in made ? (made.pod['spec'].imagePullSecrets ?? []) : made.refused;
    };
    await soon(async () => assert.deepEqual(await answer(), []));
    await soon(async () => assert.match(await conditionOf(plane, 'team', 'Injecting'), /^True /));
    await plane.apply({ ...strict, imagePullSecrets: [{ name: 'reg' }] });
    await soon(async () => assert.equal(await plane.get(report), undefined));
    await soon(async () => assert.deepEqual(await answer(), [{ name: 'reg' }]));
    await soon(async () =>
      assert.equal(await conditionOf(plane, 'team', 'AccountsServed'), 'undefined undefined'),
    );
  });

  test('a SidecarSet is injecting once a pod came back with its names; one that selects nobody claims nothing', async () => {
    const set = (name: string, namespace: string): TestObject => ({
      apiVersion: 'apps.kruise.io/v1beta1',
      kind: 'SidecarSet',
      metadata: { name },
      spec: {
        selector: { matchLabels: { app: name } },
        namespace,
        imagePullSecrets: [{ name: 'side-pull' }],
        containers: [{ name: 'side', image: 'registry.example.com/side:1' }],
      },
    });
    await plane.apply(set('side', 'shop'));
    await plane.apply(set('nowhere', 'not-there'));
    await soon(async () =>
      assert.equal(await conditionOf(plane, set('side', ''), 'Ready'), 'True Injecting'),
    );
    await soon(async () =>
      assert.equal(await conditionOf(plane, set('nowhere', ''), 'Ready'), 'Unknown NothingToTry'),
    );
    const made = await postPod(plane, { name: 'with-side', namespace: 'shop', labels: { app: 'side' } });
    assert.ok('pod' in made, JSON.stringify(made));
    const noted = String(made.pod.metadata['annotations']?.[INJECTED]);
    assert.equal(noted, 'profile/team: reg; sidecarset/side: side-pull');
  });

  test('pods get the revision that a SidecarSet is pinned to, all or those outside its selector, and none of a missing one', async () => {
    await plane.apply(namespaceObject('kruise-system'));
    const containers = [{ name: 'side', image: 'registry.example.com/side:1' }];
    await plane.apply({
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: {
        name: 'pinned-1',
        namespace: 'kruise-system',
        labels: { 'kruise.io/sidecarset-name': 'pinned' },
      },
      revision: 1,
      data: { spec: { imagePullSecrets: [{ name: 'old-pull' }], containers } },
    });
    const pinned = (revision: object | undefined, updateStrategy: object = {}): TestObject => ({
      apiVersion: 'apps.kruise.io/v1beta1',
      kind: 'SidecarSet',
      metadata: { name: 'pinned' },
      spec: {
        selector: { matchLabels: { app: 'pinned' } },
        namespace: 'shop',
        imagePullSecrets: [{ name: 'new-pull' }],
        containers,
        ...(revision === undefined ? {} : { injectionStrategy: { revision } }),
        updateStrategy,
      },
    });
    const given = async (track: string): Promise<unknown> => {
      const labels = { app: 'pinned', track };
      const made = await postPod(plane, {
        name: `pin-${Date.now()}-${track}`,
        namespace: 'shop',
        labels,
      });
      if (!('pod' in made)) return made.refused;
      const names = (made.pod['spec'].imagePullSecrets ?? []) as readonly { name: string }[];
      return names.map(({ name }) => name).filter((name) => name.endsWith('-pull'));
    };
    const old = { revisionName: 'pinned-1' };
    const some = { ...old, policy: 'Partial' };
    const rows: readonly (readonly [set: TestObject, stable: string[], next: string[]])[] = [
      [pinned(old), ['old-pull'], ['old-pull']],
      [pinned(undefined), ['new-pull'], ['new-pull']],
      [pinned(some, { partition: '100%' }), ['old-pull'], ['old-pull']],
      [pinned(some, { selector: { matchLabels: { track: 'next' } } }), ['old-pull'], ['new-pull']],
      [pinned({ revisionName: 'never' }), [], []],
    ];
    for (const [set, stable, next] of rows) {
      await plane.remove(set);
      await plane.apply(set);
      await soon(async () => assert.deepEqual([await given('stable'), await given('next')], [stable, next]));
    }
    await plane.remove(pinned(undefined));
  });

  test.lastly('ends', async () => {
    await reconciler.stop();
    assert.doesNotMatch(reconciler.log(), /ReconcilerThrew/);
    await plane.stop();
  });
}

test.run();
