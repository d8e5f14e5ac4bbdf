/** A fleet that names its namespaces: what is read, what is served, and what is said of the rest. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { InjectionOptions } from '../../runtime/pull-secret-injection/options.ts';
import { pullSecretInjection } from '../../runtime/pull-secret-injection/reconciler/reconcile.ts';
import { type Case, table, test } from '../support/suite.ts';
import { grant, namespace, profile, type Scene, scene, source } from './scene.ts';

interface ReadRow extends Case {
  readonly options: Partial<InjectionOptions>;
  /** Watched Secrets: `namespace/name`, `*` for all, and whether their values are read. */
  readonly secrets: readonly string[];
}

table<ReadRow>(
  test,
  [
    {
      name: 'reads without namespaces',
      reason: 'profiles may select any namespace',
      options: {},
      secrets: ['*/* on-demand', '*/* whole'],
    },
    {
      name: 'reads with namespaces',
      reason: 'a Role reaches no further than its namespace',
      options: { namespaces: ['a', 'b'] },
      secrets: ['a/* on-demand', 'a/* whole', 'b/* on-demand', 'b/* whole'],
    },
    {
      name: 'reads with namespaces and names',
      reason: 'what can be named is read by name, sources where they lie',
      options: { namespaces: ['a', 'b'], secretNames: ['reg'], sources: ['b/quay', 'b/reg'] },
      secrets: ['a/reg whole', 'b/reg whole', 'b/quay whole'],
    },
    {
      name: 'reads with names alone',
      reason: 'secretNames without namespaces narrows what is written, and sources lie anywhere',
      options: { secretNames: ['reg'] },
      secrets: ['*/* on-demand', '*/* whole'],
    },
  ],
  ({ options, secrets }) => {
    const { watches: reads } = pullSecretInjection(options);
    const found = reads.filter(({ kind }) => kind === 'Secret');
    assert.deepEqual(
      found.map(({ namespace: place = '*', name = '*', values = 'whole' }) => `${place}/${name} ${values}`),
      secrets,
    );
    const placed = reads.filter(({ namespace: place }) => place !== undefined);
    // A namespace that is missing, or whose Role is, stops no other.
    assert.deepEqual(
      placed.filter(({ dispensable }) => dispensable !== true),
      [],
    );
    for (const kind of ['Pod', 'ServiceAccount'])
      assert.deepEqual(
        reads.filter((read) => read.kind === kind).map((read) => read.namespace ?? '*'),
        options.namespaces ?? ['*'],
      );
  },
);

const spec = {
  namespaceSelector: {},
  secrets: [{ name: 'reg', sources: [{ namespace: 'hub', name: 'quay' }] }],
};
/** e.g. `True Current all well` */
const said = (
  after: Scene,
  type: string,
  [kind, name, place]: readonly [string, string, string?],
): string => {
  const { conditions = [] } = after.status(kind, name, place) ?? {};
  const found = conditions.find((condition) => condition.type === type);
  return `${found?.status} ${found?.reason} ${found?.message}`;
};
const TEAM = ['PullSecretProfile', 'team'] as const;
const reader = (): readonly KubeObject[] => [
  ...['hub', 'a', 'b', 'kube-system'].map((name) => namespace(name)),
  source('hub/quay', ['quay.io']),
  profile('team', spec),
];

test('a profile is served in these alone; one of the cluster is not served for being among them', () => {
  const after = scene(reader(), { namespaces: ['hub', 'a', 'kube-system'] });
  assert.deepEqual(after.registries('a', 'reg'), ['quay.io']);
  for (const name of ['b', 'kube-system']) assert.equal(after.registries(name, 'reg'), undefined, name);
  assert.match(
    said(after, 'NamespacesServed', TEAM),
    /^False OutsideNamespaces Of the selected namespaces, "b" is ignored/,
  );
  assert.match(said(after, 'SourcesReady', TEAM), /^True/);
});

test('a source that is not read takes nothing away, not for want of it either', () => {
  const removes = { ...spec, copies: { onSourceDeleted: 'Remove', removeAfter: '1s' } };
  const before = scene([...reader(), profile('team', removes), grant({ namespaces: ['a'] }, 'quay', 'hub')]);
  assert.deepEqual(before.registries('a', 'reg'), ['quay.io']);
  const objects = ['Namespace', 'Secret', 'PullSecretProfile', 'PullSecretGrant'].flatMap((kind) =>
    before.store.list({ apiVersion: kind.startsWith('Pull') ? 'pullwright.dev/v1alpha1' : 'v1', kind }),
  );
  const after = scene(objects, { namespaces: ['a'] }).after([]);
  assert.deepEqual(after.registries('a', 'reg'), ['quay.io']);
  for (const about of [TEAM, ['PullSecretGrant', 'quay', 'hub']] as const)
    assert.match(
      said(after, 'Ready', about),
      /^False SourceUnread Secret "hub\/quay" is not read: the fleet limits pull-secret-injection to "a"; add "hub" to its namespaces/,
    );
  const status = after.status('PullSecretProfile', 'team') as { missingSources?: unknown } | undefined;
  assert.equal(status?.missingSources, undefined);
});
