// deadline: 240 s
/** Credentials on request, on a real control plane: two tenants with accounts of their own, and the owner of the source. */
import assert from 'node:assert/strict';
import { aggregatedRoles } from '../../charts/pull-secret-injection/aggregated-roles.ts';
import { missingControlPlane } from '../control-plane/control-plane.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import {
  createPod,
  profileObject,
  readyNamespace,
  reconcilerUser,
  startPlane,
  startReconciler,
} from './live.ts';
import { applySource, waiter } from './live-scene.ts';

const test = suite('claims in a cluster');
const missing = missingControlPlane();

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startPlane();
  for (const role of aggregatedRoles()) await plane.apply(role);
  await applySource(plane, '');
  await Promise.all([
    readyNamespace(plane, 'red', { team: 'a' }),
    readyNamespace(plane, 'blue', { team: 'a' }),
  ]);
  const rules = aggregatedRoles().flatMap((role) => role['rules'] as never[]);
  const [red, blue, owner] = await Promise.all([
    plane.user({ name: 'red', by: 'token', namespaces: { red: rules } }),
    plane.user({ name: 'blue', by: 'token', namespaces: { blue: rules } }),
    plane.user({
      name: 'owner',
      by: 'token',
      namespaces: {
        platform: [...rules, { apiGroups: [''], resources: ['secrets'], verbs: ['get'] }] as never[],
      },
    }),
  ]);
  const labels = { app: 'web' };
  await plane.apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'red' },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'quay.io/red/web:1' }] } },
    },
  });
  const reconciler = startReconciler(plane, await reconcilerUser(plane));

  const soon = waiter(reconciler);
  const claimsIn = (namespace: string): string =>
    `/apis/pullwright.dev/v1alpha1/namespaces/${namespace}/pullsecretclaims`;
  const claim = (namespace: string, spec: unknown = { profile: 'quay' }): TestObject => ({
    apiVersion: 'pullwright.dev/v1alpha1',
    kind: 'PullSecretClaim',
    metadata: { name: 'quay', namespace },
    spec,
  });
  const answer = async (by: typeof red, namespace: string): Promise<string> => {
    const { status, body } = await by.client.request('GET', `${claimsIn(namespace)}/quay`);
    assert.equal(status, 200);
    const conditions = (body.status?.conditions ?? []) as Record<string, string>[];
    const ready = conditions.find(({ type }) => type === 'Ready');
    return `${ready?.['status']} ${ready?.['reason']}`;
  };
  const holds = async (namespace: string): Promise<boolean> =>
    (await plane.get({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'reg', namespace } })) !==
    undefined;
  const grant = (namespaces: readonly string[]): TestObject => ({
    apiVersion: 'pullwright.dev/v1alpha1',
    kind: 'PullSecretGrant',
    metadata: { name: 'quay', namespace: 'platform' },
    spec: { secrets: [{ name: 'quay' }], profiles: [{ name: 'quay' }], namespaces },
  });

  const main = new URL('../../main.ts', import.meta.url).pathname;
  /** What `explain` says of the Deployment, with its notes. */
  const explained = async (): Promise<{ readonly stdout: string; readonly stderr: string }> => {
    const command = [process.execPath, main, 'explain', 'deploy/web', '-n', 'red'];
    return runProcess([...command, '--kubeconfig', plane.kubeconfig]);
  };

  test('two tenants ask, each for itself alone, and see that it waits', async () => {
    const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
    await plane.apply(
      profileObject('quay', {
        namespaceSelector: { matchLabels: { team: 'a' } },
        selector: {},
        offer: 'OnRequest',
        secrets,
      }),
    );
    assert.equal((await red.client.request('POST', claimsIn('red'), claim('red'))).status, 201);
    assert.equal((await blue.client.request('POST', claimsIn('blue'), claim('blue'))).status, 201);
    assert.equal((await red.client.request('POST', claimsIn('blue'), claim('blue'))).status, 403);
    const bad = await red.client.request('POST', claimsIn('red'), {
      ...claim('red', { profile: 'No Name' }),
      metadata: { name: 'bad', namespace: 'red' },
    });
    assert.equal(bad.status, 422);
    await soon(async () => assert.equal(await answer(red, 'red'), 'False NotGranted'));
    await soon(async () => assert.equal(await answer(blue, 'blue'), 'False NotGranted'));
    assert.equal(await holds('red'), false);
    // A marker shows that the policy was compiled with both claims in sight.
    const marker = { namespaceSelector: {}, selector: {}, mode: 'Inject', secrets: [{ name: 'marker' }] };
    await plane.apply(profileObject('marker', marker));
    await soon(async () => {
      const created = await createPod(plane, { name: `waits-${Date.now()}`, namespace: 'red' });
      assert.deepEqual(created, { names: ['marker'] }, 'nobody approved it: not even the name is given');
    });
    await plane.remove(profileObject('marker', marker));
    const { stdout, stderr } = await explained();
    assert.match(stderr, /PullSecretClaim\/red\/quay: Secret "platform\/quay" does not grant itself/);
    assert.doesNotMatch(stdout, /PullSecretProfile\/quay/);
    assert.equal((await blue.client.request('GET', `${claimsIn('red')}/quay`)).status, 403);
  });

  test('no tenant answers its own claim', async () => {
    const said = { status: { conditions: [] } };
    const { status } = await red.client.request(
      'PATCH',
      `${claimsIn('red')}/quay/status`,
      said,
      'application/merge-patch+json',
    );
    assert.equal(status, 403);
  });

  test('the owner approves one of them, which gets the Secret, and the names in its pods', async () => {
    const grants = '/apis/pullwright.dev/v1alpha1/namespaces/platform/pullsecretgrants';
    const { status, body } = await owner.client.request('POST', grants, grant(['red']));
    assert.equal(status, 201, String(body.message));
    await soon(async () => assert.equal(await answer(red, 'red'), 'True Brought'));
    assert.equal(await holds('red'), true);
    assert.equal(await holds('blue'), false);
    assert.equal(await answer(blue, 'blue'), 'False NotGranted');
    await soon(async () => {
      const created = await createPod(plane, { name: `asked-${Date.now()}`, namespace: 'red' });
      assert.deepEqual(created, { names: ['reg'] });
    });
    const { stdout, stderr } = await explained();
    assert.match(stdout, /PullSecretProfile\/quay/, 'what a pod of the template will have');
    assert.doesNotMatch(stderr, /PullSecretClaim/);
    const shown = await plane.kubectl('get', 'pullsecretclaims', '--all-namespaces');
    assert.match(shown.stdout, /red\s+quay\s+quay\s+True\s+Brought/);
    await soon(async () => {
      const profile = await plane.get(profileObject('quay', {}));
      assert.deepEqual(profile?.['status']?.namespaces, { selected: 1, current: 1, pending: 1 });
    });
  });

  test('a claim that is taken back takes the Secret away, and so does the grant', async () => {
    assert.equal((await red.client.request('DELETE', `${claimsIn('red')}/quay`)).status, 200);
    await soon(async () => assert.equal(await holds('red'), false));
    await plane.apply(grant(['red', 'blue']));
    await soon(async () => assert.equal(await answer(blue, 'blue'), 'True Brought'));
    await plane.remove(grant([]));
    await soon(async () => assert.equal(await holds('blue'), false));
    await soon(async () => assert.equal(await answer(blue, 'blue'), 'False NotGranted'));
  });

  test.lastly('ends', async () => {
    await reconciler.stop();
    await plane.stop();
  });
}

test.run();
