// deadline: 300 s
/** ServiceAccounts on a real control plane: lists that are kept, accounts that are left out, and what the policies refuse to us. */
import assert from 'node:assert/strict';
import { accountGuardPolicy } from '../../charts/pull-secret-injection/account-guard.ts';
import { missingControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
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
const ADDED = 'pullwright.dev/added-pull-secrets';
const INJECTED = 'pullwright.dev/injected-pull-secrets';
const STRICT = 'kubernetes.io/enforce-mountable-secrets';
const MERGE = 'application/merge-patch+json';

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startPlane();
  const serviceAccount = { namespace: 'kube-system', name: 'reconciler' };
  for (const object of accountGuardPolicy({ serviceAccount, adds: true })) await plane.apply(object);
  await applySource(plane);
  await readyNamespace(plane, 'shop', { team: 'a' });
  const user = await reconcilerUser(plane, { serviceAccounts: true });
  let reconciler = startReconciler(plane, user, { serviceAccounts: true });
  let soon = waiter(reconciler);
  const path = '/api/v1/namespaces/shop/serviceaccounts';
  const listOf = async (name: string): Promise<unknown> => {
    const { body } = await plane.client.request('GET', `${path}/${name}`);
    const references = (body.imagePullSecrets ?? []) as readonly { name: string }[];
    return [references.map((reference) => reference.name), body.metadata.annotations?.[ADDED]];
  };

  test('the chosen account lists the name beside its own, and pods of it are told apart', async () => {
    await plane.client.request('PATCH', `${path}/default`, { imagePullSecrets: [{ name: 'theirs' }] }, MERGE);
    await plane.apply(teamProfile({ serviceAccounts: ['default'] }));
    await soon(async () => assert.deepEqual(await listOf('default'), [['theirs', 'reg'], 'reg']));
    await soon(async () => assert.equal(await conditionOf(plane, 'team', 'AccountsListed'), 'True Listed'));
    // What somebody else adds meanwhile stays, and what is taken out by hand comes back.
    await plane.client.request('PATCH', `${path}/default`, { imagePullSecrets: [{ name: 'more' }] }, MERGE);
    await soon(async () => assert.deepEqual(await listOf('default'), [['more', 'reg'], 'reg']));
    await soon(async () => {
      const made = await postPod(plane, { name: `own-${Date.now()}`, namespace: 'shop', own: ['mine'] });
      assert.ok('pod' in made, JSON.stringify(made));
      assert.equal(made.pod.metadata['annotations']?.[INJECTED], 'profile/team: reg');
    });
  });

  test('the API server takes an older version that a patch writes for a conflict, and not for a wrong patch', async () => {
    const stale = [
      { op: 'replace', path: '/metadata/resourceVersion', value: '1' },
      { op: 'add', path: '/imagePullSecrets', value: [{ name: 'reg' }] },
    ];
    const json = 'application/json-patch+json';
    const { status, body } = await user.client.request('PATCH', `${path}/default`, stale, json);
    assert.equal(`${status} ${body.reason}`, '409 Conflict');
  });

  test('who sets a list back again and again is left alone, and the profile says so', async () => {
    const own = { imagePullSecrets: [{ name: 'more' }] };
    await soon(async () => {
      await plane.client.request('PATCH', `${path}/default`, own, MERGE);
      assert.equal(await conditionOf(plane, 'team', 'AccountsListed'), 'False ManagedElsewhere');
    });
    await plane.client.request(
      'PATCH',
      `${path}/default`,
      { imagePullSecrets: [{ name: 'more' }, { name: 'reg' }] },
      MERGE,
    );
    await soon(async () => assert.equal(await conditionOf(plane, 'team', 'AccountsListed'), 'True Listed'));
  });

  test('an account of a namespace that comes later is served', async () => {
    await plane.apply(namespaceObject('late', { team: 'a' }));
    await soon(async () => {
      const { body } = await plane.client.request('GET', '/api/v1/namespaces/late/serviceaccounts/default');
      assert.deepEqual(body.imagePullSecrets, [{ name: 'reg' }]);
    });
  });

  test('what is no longer asked for is taken off, and nothing else', async () => {
    await plane.apply(teamProfile({}));
    await soon(async () => assert.deepEqual(await listOf('default'), [['more'], undefined]));
  });

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

  test("the reconciler's account can do no more to an account than that", async () => {
    const guarded = async (change: object): Promise<string> => {
      const { status, body } = await user.client.request('PATCH', `${path}/default`, change, MERGE);
      return status === 200 ? '' : String(body.message);
    };
    await eventually(async () =>
      assert.match(await guarded({ metadata: { labels: { x: 'y' } } }), /only imagePullSecrets and its own/),
    );
    assert.match(await guarded({ secrets: [{ name: 'token' }] }), /only imagePullSecrets and its own/);
    assert.match(await guarded({ metadata: { annotations: { [STRICT]: 'true' } } }), /only imagePullSecrets/);
    assert.match(await guarded({ imagePullSecrets: [] }), /takes off .* only the names that it added/);
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
    const readyOf = async (name: string): Promise<string> => {
      const found = (await plane.get(set(name, '')))?.['status']?.conditions ?? [];
      const one = found.find((condition: { type: string }) => condition.type === 'Ready');
      return `${one?.status} ${one?.reason}`;
    };
    await plane.apply(set('side', 'shop'));
    await plane.apply(set('nowhere', 'not-there'));
    await soon(async () => assert.equal(await readyOf('side'), 'True Injecting'));
    await soon(async () => assert.equal(await readyOf('nowhere'), 'Unknown NothingToTry'));
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

  test('with the option gone from the fleet the names are taken off, others stay, and none can be added', async () => {
    await plane.apply(teamProfile({ serviceAccounts: ['default'] }));
    await soon(async () => assert.deepEqual(await listOf('default'), [['more', 'reg'], 'reg']));
    await reconciler.stop();
    for (const object of accountGuardPolicy({ serviceAccount, adds: false })) await plane.apply(object);
    const add = { imagePullSecrets: [{ name: 'more' }, { name: 'reg' }, { name: 'planted' }] };
    const note = { metadata: { annotations: { [ADDED]: 'reg, more' } } };
    for (const change of [add, note])
      await eventually(async () => {
        const { status, body } = await user.client.request(
          'PATCH',
          `${path}/default?dryRun=All`,
          change,
          MERGE,
        );
        assert.match(`${status} ${String(body.message)}`, /^422 .*adds no names to ServiceAccounts here/s);
      });
    reconciler = startReconciler(plane, user, { serviceAccounts: false });
    soon = waiter(reconciler);
    await soon(async () => assert.deepEqual(await listOf('default'), [['more'], undefined]));
    await soon(async () =>
      assert.equal(await conditionOf(plane, 'team', 'AccountsListed'), 'False NotAllowed'),
    );
  });

  test.lastly('ends', async () => {
    await reconciler.stop();
    assert.doesNotMatch(reconciler.log(), /ReconcilerThrew/);
    await plane.stop();
  });
}

test.run();
