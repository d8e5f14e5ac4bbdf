/** The Role with the pull secrets in use: its names, and that an empty list does not grant all. */
import assert from 'node:assert/strict';
import { credentialProviderSystem } from '../../charts/credential-provider/chart.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { namespaceAccess } from '../../runtime/credential-provider/access.ts';
import { type NamespaceAccess, parseReconcilerOptions } from '../../runtime/credential-provider/options.ts';
import { reconcilers } from '../../runtime/credential-provider/reconciler/reconcile.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';
import { readerOf } from './support/reader-double.ts';

const OPTIONS = { namespaces: { 'team-a': { serviceAccounts: ['app'], readReferences: false } } };

function account(name: string, secrets: unknown, annotation?: string): KubeObject {
  const annotations = annotation === undefined ? {} : { 'pullwright.dev/image-pull-secrets': annotation };
  return {
    ...meta('v1 ServiceAccount', { name, namespace: 'team-a', annotations }),
    imagePullSecrets: secrets,
  };
}

function pod(name: string, secrets: unknown, serviceAccountName = 'app', phase = 'Pending'): KubeObject {
  return {
    ...meta('v1 Pod', { name, namespace: 'team-a' }),
    spec: { serviceAccountName, imagePullSecrets: secrets },
    status: { phase },
  };
}

function rulesFor(objects: readonly KubeObject[]): unknown {
  const reconciler = reconcilers(OPTIONS)[1];
  const result = reconciler?.reconcile(readerOf(objects), { scope: 'local', name: 'team-a' });
  const [applied] = result?.apply ?? [];
  assert.ok(applied !== undefined && 'object' in applied);
  assert.equal(applied.object.metadata.namespace, 'team-a');
  return applied.object['rules'];
}

interface Row extends Case {
  readonly objects: readonly KubeObject[];
  readonly names: readonly string[];
}

const rows: readonly Row[] = [
  {
    name: 'account and pods, each name once',
    reason: 'both are asked by the kubelet',
    objects: [account('app', [{ name: 'b' }, { name: 'a' }]), pod('one', [{ name: 'c' }, { name: 'a' }])],
    names: ['a', 'b', 'c'],
  },
  {
    name: 'the annotation',
    reason: 'the provider reads it first',
    objects: [account('app', undefined, 'x, y'), pod('one', undefined)],
    names: ['x', 'y'],
  },
  {
    name: 'other accounts, and pods that have ended',
    reason: 'they pull nothing for these accounts',
    objects: [
      account('other', [{ name: 'o' }]),
      pod('theirs', [{ name: 'p' }], 'other'),
      pod('done', [{ name: 'q' }], 'app', 'Succeeded'),
      pod('lost', [{ name: 'r' }], 'app', 'Failed'),
      pod('runs', [{ name: 's' }], 'app', 'Running'),
    ],
    names: ['s'],
  },
  {
    name: 'what is no list of names',
    reason: 'a tenant may write it in a folder',
    objects: [account('app', 'x'), pod('one', [null, {}, { name: 3 }, { name: '' }, { name: 'ok' }])],
    names: ['ok'],
  },
];
table(test, rows, ({ objects, names }) => {
  const wanted = { apiGroups: [''], resources: ['secrets'], resourceNames: names, verbs: ['get'] };
  assert.deepEqual(rulesFor(objects), [wanted]);
});

test('no secret in use: no rule, as one without names would be for every secret', () => {
  assert.deepEqual(rulesFor([account('app', undefined)]), []);
});

test('the section: git binds, the reconciler may grant no more than the secrets of that namespace', () => {
  const namespaces: NamespaceAccess[] = [
    { namespace: 'team-a', serviceAccounts: ['app'], secrets: 'inUse', readReferences: false },
  ];
  assert.deepEqual(
    namespaces.flatMap(namespaceAccess).map(({ kind }) => kind),
    ['RoleBinding'],
  );
  const cluster = { kind: 'standalone' } as never;
  const part = credentialProviderSystem.reconciler?.({ namespaces }, cluster);
  assert.deepEqual(part?.options, OPTIONS);
  const own = part?.access.filter(({ namespace }) => namespace === 'team-a') ?? [];
  assert.deepEqual(
    own.flatMap(({ rules }) => rules.filter(({ resources }) => resources.includes('secrets'))),
    [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
  );
  assert.match(
    JSON.stringify(credentialProviderSystem.check?.({ namespaces }, { kind: 'hosted' } as never)),
    /name the secrets/,
  );
});

test('options that are none are refused by their path', () => {
  for (const namespaces of ['a', { a: {} }, { a: { serviceAccounts: 'x', readReferences: true } }])
    assert.throws(
      () => parseReconcilerOptions({ namespaces }),
      /namespaces(\.a\.serviceAccounts)?: (invalid|required) value/,
    );
});
