import assert from 'node:assert/strict';
import { reveal } from '../../runtime/core/redacted.ts';
import { meta, refOf } from '../support/meta.ts';
import { type Case, test } from '../support/suite.ts';
import { additional, auth, config, fleet, PLATFORM, platform, secret } from './fleet.ts';

test('copies the platform secret byte for byte and makes no merge without an additional one', () => {
  const pretty = `${JSON.stringify({ auths: { 'quay.io': auth('p') }, credHelpers: { 'x.example': 'x' } }, null, 2)}\n`;
  const one = fleet(pretty);
  one.reconcile();
  const value = one.secret('original-pull-secret')?.data?.['.dockerconfigjson'];
  assert.equal(value === undefined ? '' : Buffer.from(reveal(value), 'base64').toString(), pretty);
  assert.equal(one.secret('global-pull-secret'), undefined);
});

test('merges, the platform wins however the tenant spells its registry', () => {
  const one = fleet(
    PLATFORM,
    config({ 'https://quay.io/': auth('tenant'), 'quay.io/team': auth('team'), 'new.example': auth('new') }),
  );
  one.reconcile();
  assert.deepEqual(one.auths('global-pull-secret'), {
    'new.example': auth('new'),
    'quay.io': auth('platform'),
    'quay.io/team': auth('team'),
    'registry.example.com': auth('platform-2'),
  });
  assert.deepEqual(one.verdicts(), [
    'https://quay.io/ Shadowed',
    'quay.io/team Accepted',
    'new.example Accepted',
  ]);
});

test('an existing original-pull-secret keeps its type, because a type cannot change', () => {
  const one = fleet(PLATFORM);
  one.hosted.set(secret('original-pull-secret', 'kube-system', { '.dockerconfigjson': '{}' }, 'Opaque'));
  const { objects } = one.reconcile();
  assert.equal(one.secret('original-pull-secret')?.type, 'Opaque');
  assert.equal(objects.find((object) => object.ref.name === 'original-pull-secret')?.verb, 'configured');
});

test('removes the merge when the additional secret goes', () => {
  const one = fleet(PLATFORM, config({ 'new.example': auth('new') }));
  one.reconcile();
  one.hosted.delete(refOf('v1 Secret', 'additional-pull-secret', 'kube-system'));
  const { objects } = one.reconcile();
  assert.deepEqual(
    objects
      .filter((object) => object.verb === 'removed')
      .map((object) => object.ref.name)
      .sort(),
    ['global-pull-secret', 'secret-additional-pull-secret'],
  );
});

interface BadRow extends Case {
  readonly text: string;
  /** Keys of the merge afterwards. @default {all three} */
  readonly keys?: readonly string[];
}

const rows: readonly BadRow[] = [
  { name: 'empty', reason: 'a failed kubectl create', text: '' },
  { name: 'truncated', reason: 'a half-written file', text: '{"auths":{"new.exa' },
  { name: 'not JSON', reason: 'YAML pasted in', text: 'auths:\n  a: b\n' },
  { name: 'auths an array', reason: 'a wrong generator', text: '{"auths":[]}' },
  {
    name: 'one entry broken',
    reason: 'the good one goes on being followed',
    text: config({ 'new.example': { auth: '!' }, 'other.example': auth('rotated') }),
  },
  {
    name: 'one entry removed',
    reason: 'removed on purpose, so it goes at once',
    text: config({ 'other.example': auth('other') }),
    keys: ['other.example', 'quay.io'],
  },
];

for (const row of rows) {
  test(`a tenant secret that turns bad: ${row.name}`, () => {
    const { keys = ['new.example', 'other.example', 'quay.io'] } = row;
    const one = fleet(
      config({ 'quay.io': auth('old') }),
      config({ 'new.example': auth('new'), 'other.example': auth('other') }),
    );
    one.reconcile();
    one.hosted.set(additional(row.text));
    one.management.set(platform(config({ 'quay.io': auth('rotated-platform') })));
    one.reconcile();
    assert.deepEqual(Object.keys(one.auths('global-pull-secret') ?? {}).sort(), keys, row.reason);
    assert.deepEqual(
      one.auths('global-pull-secret')?.['quay.io'],
      auth('rotated-platform'),
      'the platform goes on rotating',
    );
    assert.deepEqual(one.auths('original-pull-secret')?.['quay.io'], auth('rotated-platform'));
  });
}

test('without a platform secret nothing is removed, and the wait is named', () => {
  const one = fleet(PLATFORM, config({ 'new.example': auth('new') }));
  one.reconcile();
  one.management.delete({ apiVersion: 'v1', kind: 'Secret', namespace: 'clusters-a', name: 'pull-secret' });
  const { objects, reports } = one.reconcile();
  assert.deepEqual(
    objects.filter((object) => object.verb === 'removed'),
    [],
  );
  assert.deepEqual(
    reports[0]?.problems.map((problem) => [problem.code, problem.retryPolicy]),
    [['OriginalMissing', 'waiting']],
  );
});

test('a foreign global-pull-secret is left alone until it says that it may be adopted', () => {
  const one = fleet(PLATFORM, config({ 'new.example': auth('new') }));
  const foreign = secret('global-pull-secret', 'kube-system', { '.dockerconfigjson': '{"auths":{}}' });
  one.hosted.set(foreign);
  assert.ok(one.reconcile().reports[0]?.problems.some((problem) => problem.code === 'ForeignObject'));
  assert.deepEqual(one.auths('global-pull-secret'), {});
  one.hosted.set({
    ...foreign,
    metadata: { ...foreign.metadata, annotations: { 'pullwright.dev/adopt': 'true' } },
  });
  one.reconcile();
  assert.ok('new.example' in (one.auths('global-pull-secret') ?? {}));
});

test('where HyperShift manages the objects, nothing is written but our own report', () => {
  const one = fleet(PLATFORM, config({ 'new.example': auth('new') }));
  const theirs = secret(
    'original-pull-secret',
    'kube-system',
    { '.dockerconfigjson': '{"auths":{}}' },
    'Opaque',
  );
  one.hosted.set({
    ...theirs,
    metadata: {
      ...theirs.metadata,
      managedFields: [
        { manager: 'hosted-cluster-config-operator-manager', operation: 'Update', fieldsV1: {} },
      ],
    },
  });
  const { objects } = one.reconcile();
  assert.deepEqual(
    objects.map((object) => `${object.verb} ${object.ref.kind}`),
    ['created PullStatus', 'created PullStatus'],
  );
});

test('the Roles of openshift-config are left out where there is no such namespace', () => {
  const one = fleet(PLATFORM);
  one.hosted.set({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: 'ks' } });
  const { objects } = one.reconcile();
  assert.deepEqual(
    [
      ...new Set(
        objects.filter((object) => object.ref.kind === 'Role').map((object) => object.ref.namespace),
      ),
    ],
    ['kube-system'],
  );
});

test('with delivery gitops only computed objects are written, and a missing DaemonSet is named', () => {
  const one = fleet(PLATFORM, undefined, { delivery: 'gitops' });
  const { objects, reports } = one.reconcile();
  assert.deepEqual([...new Set(objects.map((object) => object.ref.kind))].sort(), ['PullStatus', 'Secret']);
  assert.ok(reports[0]?.problems.some((problem) => problem.code === 'DaemonSetMissing'));
});

test('objects that git brought are left to git, whatever the configuration says', () => {
  const one = fleet(PLATFORM);
  const labels = { 'app.kubernetes.io/part-of': 'pullwright', 'app.kubernetes.io/managed-by': 'pullwright' };
  one.hosted.set({
    ...meta('apps/v1 DaemonSet', {
      name: 'global-pull-secret-syncer',
      namespace: 'kube-system',
      uid: 'ds',
      labels,
    }),
    spec: { template: {} },
  });
  const { objects, reports } = one.reconcile();
  assert.deepEqual(
    objects.filter((object) => object.ref.kind === 'DaemonSet'),
    [],
  );
  assert.deepEqual(reports[0]?.problems, []);
});

test('an additional secret that adds nothing is not Ready without a word', () => {
  for (const text of ['{"auths":{}}', undefined]) {
    const one = fleet(PLATFORM);
    const empty = secret('additional-pull-secret', 'kube-system', {});
    one.hosted.set(text === undefined ? empty : additional(text));
    one.reconcile();
    assert.equal(one.condition('additional'), 'False NothingAdded');
    assert.equal(one.condition('original'), 'True Copied');
  }
});

test('a merge that fills a Secret leaves room for what stands beside it', () => {
  const entries = Array.from({ length: 11_000 }, (_, index) => [
    `r${index}.example.com`,
    auth(`${'x'.repeat(30)}${index}`),
  ]);
  const full = config(Object.fromEntries(entries));
  const one = fleet(PLATFORM, full);
  one.reconcile();
  one.reconcile();
  for (const name of ['global-pull-secret', 'original-pull-secret']) {
    const data = Object.values(one.secret(name)?.data ?? {});
    const bytes = data.reduce((sum, value) => sum + Buffer.byteLength(reveal(value), 'base64'), 0);
    assert.ok(bytes <= 1_048_576, `${name} has ${bytes} bytes`);
  }
  assert.ok(Object.keys(one.auths('global-pull-secret') ?? {}).length > 9000);
  assert.equal(one.condition('additional'), 'False EntriesRejected');
});

test('a copy that fills a Secret goes without the mark', () => {
  const size = 1_048_576;
  const text = config({ 'quay.io': auth('a') });
  const one = fleet(`${text}${' '.repeat(size - text.length)}`);
  one.reconcile();
  assert.deepEqual(Object.keys(one.secret('original-pull-secret')?.data ?? {}), ['.dockerconfigjson']);
});
