/** Faults of the platform's pull secret: the usable rest goes on, and its owner is told, never the tenant. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { ClusterPair } from '../../runtime/engine/contract.ts';
import { runOffline } from '../../runtime/engine/offline/offline.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { reconcilers } from '../../runtime/global-pull-secret/reconciler/reconcile.ts';
import { plantedPassword } from '../support/canary.ts';
import { meta, refOf } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { additional, auth, config, eligibleNode, type Fleet, fleet, NOW, platform, secret } from './fleet.ts';

const planted = plantedPassword('platform-fault');

const BEFORE = config({ 'quay.io': auth('quay'), 'registry.example.com': auth('example') });
const TENANT = config({ 'tenant.example.com': auth('tenant') });

interface Fault extends Case {
  readonly text: string;
  readonly subject: string;
}

table(
  test,
  [
    {
      name: 'an auth that is no base64',
      reason: 'the kubelet of 1.36 discards the whole file',
      text: config({ 'quay.io': auth('quay-2'), 'registry.example.com': { auth: `-${planted}` } }),
      subject: 'registry.example.com Rejected',
    },
    {
      name: 'a number as "Auth"',
      reason: 'Go reads names of fields whatever their case',
      text: config({ 'quay.io': auth('quay-2'), 'registry.example.com': { Auth: 5 } }),
      subject: 'registry.example.com Rejected',
    },
    {
      name: 'credHelpers as a list',
      reason: 'CRI-O discards the whole file',
      text: JSON.stringify({
        auths: { 'quay.io': auth('quay-2'), 'registry.example.com': auth('example') },
        credHelpers: [],
      }),
      subject: '"credHelpers" Rejected',
    },
  ] satisfies Fault[],
  ({ text, subject }) => {
    for (const tenant of [undefined, TENANT]) {
      const one = fleet(BEFORE, tenant);
      one.reconcile();
      one.management.set(platform(text));
      const { reports } = one.reconcile();
      assert.deepEqual(one.auths('original-pull-secret'), {
        'quay.io': auth('quay-2'),
        'registry.example.com': auth('example'),
      });
      assert.deepEqual(one.verdicts('original'), [subject]);
      assert.equal(one.condition('original'), 'False PlatformEntriesRejected');
      const events = reports.flatMap((report) => report.events);
      assert.deepEqual(
        [...new Set(events.map(({ regarding }) => regarding.kind))],
        ['HostedCluster'],
        'who can fix it is told, and nobody else',
      );
      assert.ok(!JSON.stringify([events, one.status('original')]).includes(planted));
      if (tenant === undefined) continue;
      assert.equal(one.condition('additional'), 'True Merged');
      assert.deepEqual(one.verdicts('additional'), ['tenant.example.com Accepted']);
      assert.deepEqual(one.auths('global-pull-secret')?.['registry.example.com'], auth('example'));
    }
  },
);

test('a platform secret that cannot be used at all is said without an additional one, and is not copied', () => {
  const one = fleet(BEFORE);
  one.reconcile();
  for (const text of ['{"auths":', '{"auths":[]}', '{"auths":null}', '{}']) {
    one.management.set(platform(text));
    one.reconcile();
    assert.equal(one.condition('original'), 'False OriginalInvalid', text);
    assert.deepEqual(Object.keys(one.auths('original-pull-secret') ?? {}).length, 2, text);
  }
});

test('a tenant whose entries are good is not Stalled by what the platform did', () => {
  const one = fleet('{', TENANT);
  one.reconcile();
  assert.equal(one.condition('additional'), 'False OriginalInvalid');
  assert.equal(one.condition('additional', 'Stalled'), undefined);
  assert.equal(one.condition('original', 'Stalled'), 'True OriginalInvalid');
});

interface Removal extends Case {
  readonly after: string;
  readonly held: string | undefined;
  /** Keys of the copy afterwards. */
  readonly keys: readonly string[];
  readonly options?: Readonly<Record<string, unknown>>;
}

const FOUR = { 'a.io': auth('a'), 'b.io': auth('b'), 'c.io': auth('c'), 'quay.io': auth('q') };

const hostedCluster = (annotations: Readonly<Record<string, string>> = {}): KubeObject => ({
  ...meta('hypershift.openshift.io/v1beta1 HostedCluster', {
    name: 'a',
    namespace: 'clusters',
    uid: 'hc',
    annotations,
  }),
  spec: { release: { image: 'quay.io/openshift-release-dev/ocp-release:4.22.0-x86_64' } },
});

function removing(after: string, options?: Readonly<Record<string, unknown>>): Fleet {
  const one = fleet(config(FOUR), undefined, options);
  one.management.set(hostedCluster());
  one.reconcile();
  one.management.set(platform(after));
  one.reconcile();
  return one;
}

const copied = (one: Fleet): readonly string[] => Object.keys(one.auths('original-pull-secret') ?? {}).sort();
const ALL = Object.keys(FOUR);

table(
  test,
  [
    {
      name: 'one of four',
      reason: 'less than the share',
      after: config({ 'a.io': auth('a'), 'b.io': auth('b'), 'quay.io': auth('q') }),
      held: undefined,
      keys: ['a.io', 'b.io', 'quay.io'],
    },
    {
      name: 'everything',
      reason: 'no pod of any node could pull',
      after: '{"auths":{}}',
      held: 'True Everything',
      keys: ALL,
    },
    {
      name: 'the registry of the release payload',
      reason: 'the cluster could not upgrade or repair itself',
      after: config({ 'a.io': auth('a'), 'b.io': auth('b'), 'c.io': auth('c') }),
      held: 'True ReleaseRegistry',
      keys: ALL,
    },
    {
      name: 'the registry of the release payload in a narrower spelling',
      reason: 'it still gives the payload',
      after: config({
        'a.io': auth('a'),
        'b.io': auth('b'),
        'c.io': auth('c'),
        'quay.io/openshift-release-dev': auth('q'),
      }),
      held: undefined,
      keys: ['a.io', 'b.io', 'c.io', 'quay.io/openshift-release-dev'],
    },
    {
      name: 'three of four',
      reason: 'more than the share',
      after: config({ 'quay.io': auth('q-2'), 'new.io': auth('n') }),
      held: 'True Share',
      keys: ['a.io', 'b.io', 'c.io', 'new.io', 'quay.io'],
    },
    {
      name: 'three of four, with as many new ones',
      reason: 'what is added must not make the removal small by the next pass',
      after: config({
        'quay.io': auth('q-2'),
        'new.io': auth('n'),
        'n2.io': auth('n2'),
        'n3.io': auth('n3'),
      }),
      held: 'True Share',
      keys: ['a.io', 'b.io', 'c.io', 'n2.io', 'n3.io', 'new.io', 'quay.io'],
    },
    {
      name: 'three of four where the fleet says so',
      reason: 'the share is an option',
      after: config({ 'quay.io': auth('q') }),
      held: undefined,
      keys: ['quay.io'],
      options: { removals: { share: 0.8 } },
    },
    {
      name: 'another spelling of every key',
      reason: 'nothing is removed',
      after: config(
        Object.fromEntries(Object.entries(FOUR).map(([key, value]) => [`https://${key}/`, value])),
      ),
      held: undefined,
      keys: ALL.map((key) => `https://${key}/`).sort(),
    },
  ] satisfies Removal[],
  ({ after, held, keys, options }) => {
    const one = removing(after, options);
    assert.equal(one.condition('original', 'RemovalHeld'), held);
    assert.deepEqual(copied(one), keys);
    // A held removal does not block additions or rotations.
    if (keys.includes('new.io'))
      assert.deepEqual(one.auths('original-pull-secret')?.['quay.io'], auth('q-2'));
    if (held !== undefined) assert.equal(one.condition('original'), 'False RemovalHeld');
    const { objects } = one.reconcile();
    assert.ok(
      objects.every(({ verb }) => verb === 'unchanged'),
      'a second pass writes nothing',
    );
  },
);

test('a removal goes on with the annotation that names it, and only that one', () => {
  const one = removing('{"auths":{}}');
  const hash = one.status('original')?.summary['heldRemoval'] ?? '';
  one.management.set(hostedCluster({ 'pullwright.dev/confirm-removal': '0123456789ab' }));
  one.reconcile();
  assert.deepEqual(copied(one), ALL);
  one.management.set(hostedCluster({ 'pullwright.dev/confirm-removal': hash }));
  one.reconcile();
  assert.deepEqual(copied(one), []);
  assert.equal(one.condition('original', 'RemovalHeld'), undefined);
  // The confirmation applies to that removal only: the next one is held again.
  one.management.set(platform(config(FOUR)));
  one.reconcile();
  one.management.set(platform(config({ 'a.io': auth('a') })));
  one.reconcile();
  assert.equal(one.condition('original', 'RemovalHeld'), 'True ReleaseRegistry');
});

test('a removal stays held, since when it was, although its report is deleted', () => {
  const one = removing(
    config({ 'quay.io': auth('q-2'), 'new.io': auth('n'), 'n2.io': auth('n2'), 'n3.io': auth('n3') }),
  );
  one.reconcile(new Date(NOW.getTime() + 60_000));
  const before = one.status('original')?.summary;
  one.hosted.delete(
    refOf('pullwright.dev/v1alpha1 PullStatus', 'secret-original-pull-secret', 'kube-system'),
  );
  one.reconcile(new Date(NOW.getTime() + 120_000));
  assert.equal(one.condition('original', 'RemovalHeld'), 'True Share');
  assert.deepEqual(one.status('original')?.summary, before);
  // Once nothing is held, nothing is remembered of it.
  one.management.set(
    platform(config({ ...FOUR, 'new.io': auth('n'), 'n2.io': auth('n2'), 'n3.io': auth('n3') })),
  );
  one.reconcile();
  assert.equal(
    one.secret('original-pull-secret')?.metadata.annotations?.['pullwright.dev/held-removal'],
    undefined,
  );
});

test('a removal stays held although the copy that it is held on is deleted: nodes have the merge', () => {
  const one = fleet(config(FOUR), TENANT);
  one.reconcile();
  one.management.set(platform('{"auths":{}}'));
  one.reconcile();
  const before = one.status('original')?.summary;
  one.hosted.delete(refOf('v1 Secret', 'original-pull-secret', 'kube-system'));
  one.reconcile(new Date(NOW.getTime() + 60_000));
  assert.deepEqual(copied(one), ALL);
  assert.equal(one.condition('original', 'RemovalHeld'), 'True Everything');
  assert.deepEqual(one.status('original')?.summary, before, 'held since the same time, by the same name');
  assert.deepEqual(
    Object.keys(one.auths('global-pull-secret') ?? {}).sort(),
    [...ALL, 'tenant.example.com'].sort(),
  );
});

test('a removal goes on after the delay, where the fleet has one', () => {
  const one = removing('{"auths":{}}', { removals: { delay: '24h' } });
  const at = (hours: number): Date => new Date(NOW.getTime() + hours * 3_600_000);
  one.reconcile(at(23));
  assert.deepEqual(copied(one), ALL);
  one.reconcile(at(25));
  assert.deepEqual(copied(one), []);
});

test('11,000 entries of a tenant leave the annotations small, and each is known for the last good', () => {
  const many = Object.fromEntries(
    Array.from({ length: 11_000 }, (_, at) => [`r${at}.example.com/team`, auth('x')]),
  );
  const one = fleet(BEFORE, config(many));
  one.reconcile();
  const annotations = JSON.stringify(one.secret('global-pull-secret')?.metadata.annotations);
  assert.ok(annotations.length < 8192, `${annotations.length} bytes`);
  const before = one.auths('global-pull-secret');
  assert.equal(Object.keys(before ?? {}).length, 11_002);
  one.hosted.set(additional('{'));
  one.reconcile();
  assert.deepEqual(one.auths('global-pull-secret'), before);
});

// A missing platform pull secret: a fault if it existed before, none if it never existed.

const COPY = config({ 'quay.io': auth('quay') });

test('faults are counted: none where there is nothing yet in a stand-alone cluster, one where a pull secret is missed', () => {
  const faults = (scope: ClusterPair, objects: readonly KubeObject[]): number | undefined => {
    const store = new ObjectStore();
    for (const object of [eligibleNode, ...objects]) store.set(object);
    const { reports } = runOffline({
      reconcilers: reconcilers({ agent: { report: false } }),
      scope,
      stores: { hosted: store, management: scope.hostedCluster === undefined ? store : new ObjectStore() },
      now: NOW,
    });
    const samples = reports.flatMap(({ metrics }) => metrics);
    return samples.find(({ name }) => name === 'pullwright_platform_faults')?.value;
  };
  const standalone = { name: 'local', controlPlaneNamespace: 'openshift-config' };
  const hosted = {
    name: 'clusters/a',
    controlPlaneNamespace: 'clusters-a',
    hostedCluster: { namespace: 'clusters', name: 'a' },
  };
  const copy = secret('original-pull-secret', 'kube-system', { '.dockerconfigjson': COPY });
  assert.deepEqual(
    [
      faults(standalone, []),
      faults(standalone, [additional(TENANT)]),
      faults(standalone, [copy]),
      faults(hosted, []),
    ],
    [0, 0, 1, 1],
  );
});
