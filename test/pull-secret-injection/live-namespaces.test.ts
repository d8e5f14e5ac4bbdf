// deadline: 420 s
// needs: control plane
/** A fleet that names the namespaces: rights are Roles there, the account of the reconciler reads no Secret elsewhere, and it works all the same. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { readFleet, renderFleet, writeTree } from '../../charts/mod.ts';
import type { PullSecretInjectionInput } from '../../runtime/pull-secret-injection/options.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { stolenToken } from '../hostile/rights-live-plane.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import {
  createPod,
  grantObject,
  profileObject,
  type RunningReconciler,
  readyNamespace,
  sourceObject,
  startCommand,
} from './live.ts';
import { hostsIn } from './live-scene.ts';

const SOURCES = [process.execPath, new URL('../../main.ts', import.meta.url).pathname];
const ACCOUNT = { namespace: 'pullwright-system', name: 'pullwright-reconciler' };
const spec = {
  namespaceSelector: {},
  selector: {},
  secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
};

const plane = await controlPlane({ controllerManager: true, crds: ['pullstatuses.pullwright.dev'] });
const folder = tempFolder();
let reconciler: RunningReconciler | undefined;

/** Renders and applies; gives what the reconciler is told. */
const deploy = async (section: PullSecretInjectionInput): Promise<object> => {
  const { tree } = renderFleet(
    readFleet({
      image: 'registry.example.com/pullwright:0.1.0',
      clusters: [{ name: 'a', path: '.', systems: { 'pull-secret-injection': section } }],
    }),
  );
  writeTree(folder, tree);
  // Objects in a missing namespace are rejected, and the others are applied.
  await eventually(async () => {
    const { stderr } = await plane.kubectl('apply', '--server-side', '--force-conflicts', '-k', folder);
    const others = stderr.split('\n').filter((line) => line !== '' && !line.includes('"later" not found'));
    assert.deepEqual(others, []);
  });
  const map = parse(tree.get('pullwright-system/configmap-pullwright-reconciler-config.yaml') ?? '');
  return parse(map.data['config.yaml']).systems['pull-secret-injection'];
};
const start = async (told: object): Promise<void> => {
  await reconciler?.stop();
  reconciler = startCommand(await plane.account(ACCOUNT.namespace, ACCOUNT.name), told, SOURCES);
};
const soon = (check: () => Promise<void>): Promise<void> =>
  eventually(check).catch(async (error: unknown) => {
    const status = (await plane.get(team))?.['status'];
    throw new Error(`${String(error)}\n${JSON.stringify(status)}\n${reconciler?.log.slice(-3000)}`);
  });
const conditionOf = async (object: TestObject, type: string): Promise<string> => {
  const found = (await plane.get(object))?.['status']?.conditions?.find(
    (one: { type: string }) => one.type === type,
  );
  return `${found?.status} ${found?.reason} ${found?.message}`;
};
const team = profileObject('team', spec);

test('a profile that selects everything is served in these alone, and says so', async () => {
  for (const name of ['platform', 'shop', 'other']) await readyNamespace(plane, name);
  const told = await deploy({ namespaces: ['platform', 'shop', 'later'] });
  await start(told);
  await plane.apply(sourceObject('platform', 'quay', ['quay.io']));
  await plane.apply(grantObject('platform', ['quay']));
  await plane.apply(team);
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'shop'), ['quay.io']));
  await soon(async () => assert.match(await conditionOf(team, 'Ready'), /^True Current All 2 namespaces/));
  assert.match(
    await conditionOf(team, 'NamespacesServed'),
    /^False OutsideNamespaces Of the selected namespaces, .*"other".* ignored: .* to "platform", "shop", "later"/,
  );
  await soon(async () =>
    assert.deepEqual(await createPod(plane, { name: `a-${Date.now()}`, namespace: 'shop' }), {
      names: ['reg'],
    }),
  );
  assert.deepEqual(await createPod(plane, { name: 'a', namespace: 'other' }), { names: [] });
  assert.equal(await hostsIn(plane, 'other'), undefined);
});

test('the token of the reconciler is refused the Secrets, pods and accounts of every other namespace', async () => {
  const thief = await stolenToken(plane, ACCOUNT.namespace, ACCOUNT.name);
  for (const kind of ['secrets', 'pods', 'serviceaccounts']) {
    const refused = ['', 'namespaces/other/', 'namespaces/kube-system/', 'namespaces/pullwright-system/'];
    for (const place of refused) {
      const { status } = await thief.request('GET', `/api/v1/${place}${kind}`);
      assert.equal(status, 403, `${place}${kind}`);
    }
    const own = await thief.request('GET', `/api/v1/namespaces/shop/${kind}`);
    assert.equal(own.status, 200, own.body.message);
  }
  const secret = sourceObject('other', 'mine', ['quay.io']);
  const made = await thief.request('POST', '/api/v1/namespaces/other/secrets', secret);
  assert.equal(made.status, 403, made.body.message);
  thief.close();
});

test('a source outside is named as what it is, takes no copy away, and the grant beside it says so', async () => {
  const elsewhere = {
    ...spec,
    secrets: [{ name: 'own', sources: [{ namespace: 'other', name: 'mine' }] }],
  };
  const profile = profileObject('elsewhere', elsewhere);
  await plane.apply(sourceObject('other', 'mine', ['quay.io']));
  await plane.apply(profile);
  const text = /^False SourceUnread Secret "other\/mine" is not read: .* add "other" to its namespaces/;
  await soon(async () => assert.match(await conditionOf(profile, 'Ready'), text));
  const grant = grantObject('other', ['mine'], ['shop']);
  await plane.apply(grant);
  await soon(async () => assert.match(await conditionOf(grant, 'Ready'), text));
  await plane.remove(profile);
  await plane.remove(grant);
});

test('a namespace that comes later is served once what is rendered for it is applied', async () => {
  await readyNamespace(plane, 'later');
  // Without its Role nothing is read or written there, and nothing else waits for it.
  await soon(async () => assert.match(await conditionOf(team, 'Ready'), /^False Forbidden .*later/));
  await plane.apply(sourceObject('platform', 'quay', ['quay.io', 'second.example']));
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'shop'), ['quay.io', 'second.example']));
  await deploy({ namespaces: ['platform', 'shop', 'later'] });
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'later'), ['quay.io', 'second.example']));
  await soon(async () => assert.match(await conditionOf(team, 'Ready'), /^True Current/));
});

test('with secretNames its Secrets are read by name, sources of the fleet included', async () => {
  await plane.remove(team);
  await soon(async () => assert.equal(await hostsIn(plane, 'shop'), undefined));
  const told = await deploy({
    namespaces: ['platform', 'shop'],
    secretNames: ['reg'],
    profiles: [{ name: 'team', spec }],
  });
  // It is in the overlay of our kinds.
  await plane.apply(team);
  await start(told);
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'shop'), ['quay.io', 'second.example']));
  await soon(async () => assert.match(await conditionOf(team, 'Ready'), /^True Current All 2 namespaces/));
  await plane.apply(sourceObject('platform', 'quay', ['third.example']));
  await soon(async () => assert.deepEqual(await hostsIn(plane, 'shop'), ['third.example']));
  const thief = await stolenToken(plane, ACCOUNT.namespace, ACCOUNT.name);
  for (const place of ['shop/secrets', 'platform/secrets', 'shop/secrets/quay', 'platform/secrets/other'])
    assert.equal((await thief.request('GET', `/api/v1/namespaces/${place}`)).status, 403, place);
  for (const place of ['shop/secrets/reg', 'platform/secrets/quay'])
    assert.equal((await thief.request('GET', `/api/v1/namespaces/${place}`)).status, 200, place);
  thief.close();
});

test.lastly('everything stops', () => reconciler?.stop());
