// deadline: 240 s
// needs: control plane
/** Injection that is switched off: in two steps it leaves nothing, at once it takes nothing from anybody, and what stays is named. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';
import {
  createPod,
  readyNamespace,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from './live.ts';
import { applySource, conditionOf, teamProfile, waiter } from './live-scene.ts';

const plane = await startPlane();
await applySource(plane);
for (const name of ['red', 'blue']) await readyNamespace(plane, name, { team: 'a' });
await plane.apply(sourceObject('red', 'theirs', ['theirs.example']));
const user = await reconcilerUser(plane);
const reconciler = startReconciler(plane, user);
const profile = teamProfile();
/** Secrets, policies, bindings and reports that the reconciler made. */
const made = async (): Promise<readonly string[]> => {
  const kinds = 'secrets,mutatingadmissionpolicies,mutatingadmissionpolicybindings,pullstatuses';
  const label = '--selector=pullwright.dev/owner=pull-secret-injection';
  const ran = await plane.kubectl('get', kinds, '--all-namespaces', label, '--output=json');
  const { items } = JSON.parse(ran.stdout) as { readonly items: readonly TestObject[] };
  const objects = items.map(({ kind, metadata: { namespace, name } }) =>
    [kind, namespace, name].filter((part) => part !== undefined).join('/'),
  );
  return objects.sort();
};
const EVERYTHING = [
  'MutatingAdmissionPolicy/pullwright-pull-secret-injection',
  'MutatingAdmissionPolicyBinding/pullwright-pull-secret-injection',
  'Secret/blue/reg',
  'Secret/red/reg',
];
const atWork = async (): Promise<void> => {
  const soon = waiter(reconciler);
  await plane.apply(profile);
  await soon(async () => assert.deepEqual(await made(), EVERYTHING));
  await soon(async () => assert.equal(await conditionOf(plane, 'team', 'Injecting'), 'True Policy'));
};
/** Secrets of a new pod. The pod is deleted at once: a later profile would report it as a pod without its name. */
const pod = async (): Promise<unknown> => {
  const name = `web-${Date.now()}`;
  const made = await createPod(plane, { name, namespace: 'red', own: ['theirs'] });
  await plane.kubectl('delete', 'pod', name, '--namespace=red', '--force', '--grace-period=0');
  return made;
};

test('profiles first: the reconciler takes everything away', async () => {
  await atWork();
  await plane.remove(profile);
  await waiter(reconciler)(async () => assert.deepEqual(await made(), []));
  await waiter(reconciler)(async () => assert.deepEqual(await pod(), { names: ['theirs'] }));
});

test('left out of the fleet at once: nothing is taken from anybody, neither with the reconciler gone nor with the definitions', async () => {
  await atWork();
  await reconciler.stop();
  for (const kind of ['pullsecretprofiles', 'pullsecretgrants'])
    assert.equal((await plane.kubectl('delete', 'crd', `${kind}.pullwright.dev`)).code, 0);
  assert.deepEqual(await made(), EVERYTHING);
  await eventually(async () => assert.deepEqual(await pod(), { names: ['theirs', 'reg'] }));
});

test('uninstall names what stayed, and what people wrote is not among it', async () => {
  const args = ['uninstall', '--dry-run', '--kubeconfig', plane.kubeconfig];
  const { code, stdout, stderr } = await runMain(args);
  assert.equal(code, 0, stderr);
  for (const one of EVERYTHING) assert.ok(stdout.includes(`remove  ${one}\n`), stdout);
  assert.doesNotMatch(stdout, /theirs|quay/);
});

test('the documented commands remove it', async () => {
  const label = '--selector=pullwright.dev/owner=pull-secret-injection';
  const policies = 'mutatingadmissionpolicybindings,mutatingadmissionpolicies';
  for (const args of [[policies], ['secrets', '--all-namespaces']])
    assert.equal((await plane.kubectl('delete', ...args, label)).code, 0);
  assert.deepEqual(await made(), []);
  assert.ok(await plane.get(sourceObject('red', 'theirs', [])));
  assert.ok(await plane.get(sourceObject('platform', 'quay', [])));
});

test.lastly('ends', () => reconciler.stop());
