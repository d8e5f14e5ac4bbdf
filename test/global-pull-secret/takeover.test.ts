/** `mode: own` beside objects of others: all of them or none, and the plan is said first. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { upstreamDaemonSet } from '../../runtime/global-pull-secret/daemon-set.ts';
import { meta, refOf } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { auth, config, type Fleet, fleet, PLATFORM, platform, secret } from './fleet.ts';

const OPERATOR = 'hosted-cluster-config-operator-manager';
const STALE = config({ 'quay.io': auth('stale'), 'stale.example.com': auth('stale') });
const IMAGE = { 'f:image': {} };
const CONTAINERS = { 'f:containers': { 'k:{"name":"global-pull-secret-syncer"}': IMAGE } };

function by(manager: string, made: KubeObject, resourceVersion = '7'): KubeObject {
  const fieldsV1 =
    made.kind === 'Secret'
      ? { 'f:data': { 'f:.dockerconfigjson': {} } }
      : { 'f:spec': { 'f:template': { 'f:spec': CONTAINERS } } };
  const managedFields = [{ manager, operation: 'Update', fieldsV1 }];
  const metadata = { ...made.metadata, uid: `uid-${made.metadata.name}`, resourceVersion, managedFields };
  return { ...made, metadata };
}

const theirSecret = (name: string, text: string, resourceVersion?: string): KubeObject =>
  by(OPERATOR, secret(name, 'kube-system', { '.dockerconfigjson': text }, 'Opaque'), resourceVersion);
const theirDaemonSet = by(OPERATOR, upstreamDaemonSet({ image: 'cpo:1' }, { configHash: 'a', merged: true }));

function beside(tenant?: string, platformType?: string): Fleet {
  const one = fleet(PLATFORM, tenant, { mode: 'own' });
  for (const object of [
    theirSecret('original-pull-secret', STALE),
    theirSecret('global-pull-secret', STALE),
    theirDaemonSet,
  ])
    one.hosted.set(object);
  if (platformType !== undefined)
    one.management.set({
      ...meta('hypershift.openshift.io/v1beta1 HostedCluster', { name: 'a', namespace: 'clusters' }),
      spec: { platform: { type: platformType } },
    });
  return one;
}

const readiness = (one: Fleet): string =>
  one.status('original')?.conditions.find(({ type }) => type === 'Ready')?.message ?? '';
const codesIn = (message: string): string => /confirm-takeover: "([0-9a-f,]+)"/.exec(message)?.[1] ?? '';

function confirm(one: Fleet, codes: string): void {
  const made = platform(PLATFORM);
  const annotations = { 'pullwright.dev/confirm-takeover': codes };
  one.management.set({ ...made, metadata: { ...made.metadata, annotations } });
}

const daemonSetOf = (one: Fleet): KubeObject | undefined =>
  one.hosted.get(refOf('apps/v1 DaemonSet', 'global-pull-secret-syncer', 'kube-system'));

type Started = { readonly args?: unknown; readonly command: readonly string[] };

function containersOf(daemonSet: KubeObject | undefined): readonly Started[] {
  assert.ok(daemonSet !== undefined);
  const { template } = daemonSet.spec as { template: { spec: { containers: readonly Started[] } } };
  return template.spec.containers;
}

function assertUntouched(one: Fleet): void {
  for (const name of ['original-pull-secret', 'global-pull-secret'])
    assert.deepEqual(Object.keys(one.auths(name) ?? {}), ['quay.io', 'stale.example.com'], name);
  assert.equal(daemonSetOf(one)?.metadata.uid, theirDaemonSet.metadata.uid);
}

test('nothing is taken before it is confirmed, and the plan names each object, whose it is and what becomes of it', () => {
  const one = beside(config({ 'r.io': auth('tenant') }));
  const { objects } = one.reconcile();
  assert.deepEqual([...new Set(objects.map(({ ref }) => ref.kind))], ['PullStatus']);
  assertUntouched(one);
  assert.equal(one.condition('original'), 'False TakeoverHeld');
  assert.equal(one.condition('additional'), 'False TakeoverHeld');
  for (const part of [
    /Secret\/kube-system\/original-pull-secret \(owner hosted-cluster-config-operator-manager\) gets the platform's/,
    /Secret\/kube-system\/global-pull-secret \(owner [^)]+\) gets the merge/,
    /DaemonSet\/kube-system\/global-pull-secret-syncer \(owner [^)]+\) is deleted and recreated/,
  ])
    assert.match(readiness(one), part);
  assert.equal(codesIn(readiness(one)).split(',').length, 3);
});

interface Taken extends Case {
  readonly tenant: string | undefined;
  readonly global: readonly string[] | undefined;
}

table(
  test,
  [
    {
      name: 'with something to merge',
      reason: 'both Secrets and the DaemonSet',
      tenant: config({ 'r.io': auth('tenant') }),
      global: ['quay.io', 'r.io', 'registry.example.com'],
    },
    {
      name: 'with nothing to merge',
      reason: 'agents would prefer the stale merge',
      tenant: undefined,
      global: undefined,
    },
  ] satisfies Taken[],
  ({ tenant, global }) => {
    const one = beside(tenant);
    one.reconcile();
    confirm(one, codesIn(readiness(one)));
    one.reconcile();
    one.reconcile();
    assert.deepEqual(Object.keys(one.auths('original-pull-secret') ?? {}), [
      'quay.io',
      'registry.example.com',
    ]);
    const merged = one.auths('global-pull-secret');
    assert.deepEqual(merged === undefined ? undefined : Object.keys(merged).sort(), global);
    const [container] = containersOf(daemonSetOf(one));
    assert.equal(container?.command[1], 'agent');
    assert.equal(container?.args, undefined, "what upstream's program is started with is gone");
    assert.equal(one.condition('original'), 'True Copied');
    const { objects } = one.reconcile();
    assert.deepEqual(
      objects.filter(({ verb }) => verb !== 'unchanged'),
      [],
      'it has come to rest',
    );
  },
);

test('a takeover that ended halfway goes on: what is left of the plan is confirmed already', () => {
  const one = beside(config({ 'r.io': auth('tenant') }));
  one.reconcile();
  const codes = codesIn(readiness(one));
  confirm(one, codes);
  one.reconcile();
  // State after a process was killed after its first write.
  one.hosted.set(theirSecret('global-pull-secret', STALE));
  one.reconcile();
  one.reconcile();
  assert.equal(one.condition('original'), 'True Copied');
  assert.ok('r.io' in (one.auths('global-pull-secret') ?? {}));
});

test('an object that its creator writes again has to be confirmed again, so that no writers fight', () => {
  const one = beside(config({ 'r.io': auth('tenant') }));
  one.reconcile();
  confirm(one, codesIn(readiness(one)));
  one.reconcile();
  one.hosted.set(theirSecret('original-pull-secret', STALE, '8'));
  const { objects } = one.reconcile();
  assert.deepEqual([...new Set(objects.map(({ ref }) => ref.kind))], ['PullStatus']);
  assert.ok('stale.example.com' in (one.auths('original-pull-secret') ?? {}));
  assert.equal(one.condition('original'), 'False TakeoverHeld');
});

for (const type of ['AWS', 'Azure'])
  test(`there is no way on ${type}, whatever is confirmed, and it is said what to do instead`, () => {
    const one = beside(config({ 'r.io': auth('tenant') }), type);
    one.reconcile();
    assert.equal(one.condition('original'), 'False TakeoverImpossible');
    assert.match(readiness(one), /a takeover is not possible\. Set mode to "auto" or "observe"/);
    const held = beside(config({ 'r.io': auth('tenant') }));
    held.reconcile();
    confirm(one, codesIn(readiness(held)));
    one.reconcile();
    assertUntouched(one);
  });

test('elsewhere HyperShift makes no such objects, so that what stands there can be taken', () => {
  const one = beside(undefined, 'KubeVirt');
  one.reconcile();
  assert.equal(one.condition('original'), 'False TakeoverHeld');
});

test('objects that do not say who writes them are in the plan too', () => {
  const one = beside();
  const bare = theirSecret('original-pull-secret', STALE);
  const { managedFields: _fields, ...metadata } = bare.metadata;
  one.hosted.set({ ...bare, metadata });
  one.reconcile();
  assert.match(readiness(one), /original-pull-secret \(owner unknown\)/);
});

test('with mode auto a merge of somebody else that is not wanted is said, and goes when it is given away', () => {
  const one = fleet(PLATFORM);
  const foreign = by(
    'kubectl-create',
    secret('global-pull-secret', 'kube-system', { '.dockerconfigjson': STALE }),
  );
  one.hosted.set(foreign);
  one.reconcile();
  assert.equal(one.condition('original'), 'False ForeignObject');
  assert.notEqual(one.secret('global-pull-secret'), undefined);
  const annotations = { 'pullwright.dev/adopt': 'true' };
  one.hosted.set({ ...foreign, metadata: { ...foreign.metadata, annotations } });
  one.reconcile();
  assert.equal(one.secret('global-pull-secret'), undefined);
  assert.equal(one.condition('original'), 'True Copied');
});

interface Marked extends Case {
  readonly options: Readonly<Record<string, unknown>>;
  readonly managers: readonly string[];
  readonly says: readonly string[];
}

table(
  test,
  [
    {
      name: 'a DaemonSet that git has left',
      reason: 'it would never change again',
      options: {},
      managers: ['argocd-controller'],
      says: ['LeftInGit'],
    },
    {
      name: 'one that git brings',
      reason: 'as it was said',
      options: { delivery: 'gitops' },
      managers: ['argocd-controller'],
      says: [],
    },
    {
      name: 'one that git and HyperShift make',
      reason: 'they overwrite each other',
      options: { delivery: 'gitops' },
      managers: ['argocd-controller', OPERATOR],
      says: ['GitOverwrites'],
    },
  ] satisfies Marked[],
  ({ options, managers, says }) => {
    const one = fleet(PLATFORM, undefined, options);
    const labels = { 'app.kubernetes.io/part-of': 'pullwright' };
    const managedFields = managers.map((manager) => ({ manager, operation: 'Update', fieldsV1: {} }));
    one.hosted.set({ ...theirDaemonSet, metadata: { ...theirDaemonSet.metadata, labels, managedFields } });
    one.reconcile();
    assert.deepEqual(
      (one.status('original')?.verdicts ?? []).map(({ reason }) => reason),
      says,
    );
    assert.equal(daemonSetOf(one)?.metadata.labels?.['pullwright.dev/owner'], undefined);
  },
);
