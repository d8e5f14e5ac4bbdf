/** Whom an account may be, and what that gives it; and roles that are put together of others. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { rightsOf } from '../../runtime/rules/rights/rights.ts';
import { suite } from '../support/suite.ts';
import { granted, rule } from './rights-objects.ts';

const test = suite('rightsOf others');
const RBAC = 'rbac.authorization.k8s.io/v1';

/** Power and names of what follows from being another account. */
function acting(objects: readonly KubeObject[], account = 'x'): readonly string[] {
  return rightsOf(objects, (one) => one === `ServiceAccount a/${account}`)
    .filter(({ power }) => power.startsWith('act-as') || power === 'become-cluster-admin')
    .map(({ power, names }) => [power, ...(names ?? [])].join(' '));
}

/** The role of `granted(name)` for somebody else. */
function bound(name: string, kind: string, subject: string): readonly KubeObject[] {
  const bindings = granted(name, []).filter((one) => one.kind === 'ClusterRoleBinding');
  const metadata = { name: `${name}-${subject}` };
  return bindings.map((binding) => ({ ...binding, metadata, subjects: [{ kind, name: subject }] }));
}

const GROUP = 'rbac.authorization.k8s.io';
const READER = granted('reader', ['secrets get']);
const ADMIN = granted('admin', ['nodes/proxy create']);

for (const { reason, objects, wanted } of [
  {
    reason: 'a pod takes the account that it names',
    objects: [...granted('x', ['pods create'], 'a'), ...READER],
    wanted: ['act-as-accounts reader'],
  },
  {
    reason: 'of accounts with few rights nothing follows',
    objects: [...granted('x', ['pods create'], 'a'), ...granted('other', ['secrets get'], 'a')],
    wanted: [],
  },
  {
    reason: 'pods of another namespace take other accounts',
    objects: [...granted('x', ['pods create'], 'b'), ...READER],
    wanted: [],
  },
  {
    reason: 'tokens are asked for by name',
    objects: [...granted('x', ['serviceaccounts/token create reader'], 'a'), ...READER, ...ADMIN],
    wanted: ['act-as-accounts reader'],
  },
  {
    reason: 'somebody else is an administrator',
    objects: [...granted('x', ['pods/exec create'], 'a'), ...ADMIN],
    wanted: ['become-cluster-admin', 'act-as-administrators admin'],
  },
  {
    reason: 'somebody else may be an administrator',
    objects: [
      ...granted('x', ['serviceaccounts/token create middle'], 'a'),
      ...granted('middle', ['serviceaccounts/token create admin'], 'a'),
      ...ADMIN,
    ],
    wanted: ['become-cluster-admin', 'act-as-administrators middle'],
  },
  {
    reason: 'an account is a user by its name',
    objects: [...granted('x', ['users impersonate system:serviceaccount:a:reader']), ...READER],
    wanted: ['act-as-accounts ServiceAccount a/reader'],
  },
  {
    reason: 'a user who is bound to rights',
    objects: [...granted('x', ['users impersonate jane']), ...READER, ...bound('reader', 'User', 'jane')],
    wanted: ['act-as-accounts User jane'],
  },
  {
    reason: 'a group that administrates',
    objects: [...granted('x', ['groups impersonate ops']), ...ADMIN, ...bound('admin', 'Group', 'ops')],
    wanted: ['become-cluster-admin', 'act-as-administrators Group ops'],
  },
  {
    reason: 'the role that it may bind runs pods where another account lives',
    objects: [
      ...granted('x', [`${GROUP} clusterroles bind own`, `${GROUP} rolebindings create`], 'a'),
      ...granted('own', ['pods create']).filter(({ kind }) => kind === 'ClusterRole'),
      ...READER,
    ],
    wanted: ['act-as-accounts reader'],
  },
  {
    reason: 'two that may be each other have nothing more',
    objects: [...granted('x', ['pods create'], 'a'), ...granted('y', ['pods create'], 'a')],
    wanted: [],
  },
])
  test(`counts as ${wanted.join(' and ') || 'nobody else'}: ${reason}`, () => {
    assert.deepEqual(acting(objects), wanted);
  });

test('ends in a namespace where each of many may be all others', () => {
  const many = Array.from({ length: 40 }, (_, index) => granted(`n${index}`, ['pods create'], 'a')).flat();
  const found = acting([...granted('x', ['pods create'], 'a'), ...many, ...ADMIN]);
  assert.equal(found[0], 'become-cluster-admin');
  assert.equal(found[1]?.split(' ').length, 1 + 41);
});

/** A role that is put together of those with the label. */
function aggregated(name: string, label: string, rules: readonly string[], labels = {}): KubeObject {
  return {
    apiVersion: RBAC,
    kind: 'ClusterRole',
    metadata: { name, labels },
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { part: label } }] },
    rules: rules.map(rule),
  };
}

const binding = granted('top', []).filter(({ kind }) => kind === 'ClusterRoleBinding');
const LEAF: KubeObject = {
  apiVersion: RBAC,
  kind: 'ClusterRole',
  metadata: { name: 'leaf', labels: { part: 'two' } },
  rules: [rule('secrets get')],
};

for (const { reason, roles, by } of [
  {
    reason: 'what is chosen may be put together itself',
    roles: [aggregated('top', 'one', []), aggregated('middle', 'two', [], { part: 'one' }), LEAF],
    by: 0,
  },
  {
    reason: 'rules of its own do not hide what is still to come',
    roles: [aggregated('top', 'two', ['configmaps get']), LEAF],
    by: 1,
  },
  {
    reason: 'a cluster has filled it in already',
    roles: [aggregated('top', 'two', ['secrets get']), LEAF],
    by: 0,
  },
  {
    reason: 'two that choose each other end',
    roles: [
      aggregated('top', 'one', [], { part: 'two' }),
      aggregated('middle', 'two', [], { part: 'one' }),
      LEAF,
    ],
    by: 0,
  },
])
  test(`counts the rules of a role that is put together of others: ${reason}`, () => {
    const found = rightsOf([...roles, ...binding]).filter(({ power }) => power === 'read-secrets');
    assert.deepEqual(
      found.map((right) => right.by),
      [[`ClusterRole/top rules[${by}] through ClusterRoleBinding/top`]],
    );
  });

test.run();
