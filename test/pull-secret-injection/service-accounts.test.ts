/** ServiceAccounts: names that are added to their lists and taken off again, and accounts whose pods are left out. */
import assert from 'node:assert/strict';
import type { Action } from '../../runtime/controller/contract.ts';
import type { InjectionOptions } from '../../runtime/pull-secret-injection/options.ts';
import { readProfile } from '../../runtime/rules/injection/profile.ts';
import { accountListFor } from '../../runtime/rules/injection/service-account-pull-secrets.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { planUninstall } from '../../runtime/uninstall/plan.ts';
import { suite } from '../support/suite.ts';
import { conditionOf, namespace, profile, ready, type Scene, scene, source } from './scene.ts';

const test = suite('service accounts');
const shop = namespace('shop', { team: 'a' });
const quay = source('platform/quay', ['quay.io']);
const secrets = [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }];
const ADDED = 'pullwright.dev/added-pull-secrets';
const STRICT = { 'kubernetes.io/enforce-mountable-secrets': 'true' };

function account(
  name: string,
  listed: readonly string[] = [],
  annotations: Record<string, string> = {},
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name,
      namespace: 'shop',
      uid: `uid-${name}`,
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    ...(listed.length === 0 ? {} : { imagePullSecrets: listed.map((one) => ({ name: one })) }),
  };
}

function actionsOf(seen: Scene): readonly Action[] {
  return seen.result.reports.flatMap(({ actions }) => actions);
}

/** The lists that patches ask for, by account: `[]` for one that is taken away. */
function patched(seen: Scene): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    actionsOf(seen).map((action) => {
      assert.ok(action.action === 'json-patch');
      const [guard, ...operations] = action.operations;
      assert.deepEqual(guard, { op: 'test', path: '/metadata/resourceVersion', value: '7' });
      const at = (path: string): unknown => {
        const found = operations.find((one) => one.path === path);
        return found === undefined ? undefined : 'value' in found ? found.value : 'removed';
      };
      return [
        action.ref.name,
        [
          at('/imagePullSecrets'),
          at('/metadata/annotations') ?? at('/metadata/annotations/pullwright.dev~1added-pull-secrets'),
        ],
      ];
    }),
  );
}

const ON: Partial<InjectionOptions> = { serviceAccounts: true };
const team = profile('team', { secrets, serviceAccounts: ['default', 'builder'] });

test('chosen accounts list the names, behind what they list; others and those of other namespaces do not', () => {
  const seen = scene(
    [
      namespace('platform'),
      shop,
      quay,
      team,
      account('default', ['theirs']),
      account('builder'),
      account('x'),
    ],
    ON,
  );
  assert.deepEqual(patched(seen), {
    default: [[{ name: 'theirs' }, { name: 'reg' }], { [ADDED]: 'reg' }],
    builder: [[{ name: 'reg' }], { [ADDED]: 'reg' }],
  });
  assert.equal(conditionOf(seen.status('PullSecretProfile', 'team'), 'AccountsListed'), 'False Listing');
});

test('what is as it should be is not written, and what somebody else wrote is theirs', () => {
  const seen = scene(
    [shop, quay, team, account('default', ['reg'], { [ADDED]: 'reg' }), account('builder', ['reg'])],
    ON,
  );
  assert.deepEqual(actionsOf(seen), []);
  assert.equal(conditionOf(seen.status('PullSecretProfile', 'team'), 'AccountsListed'), 'True Listed');
});

for (const [name, objects] of [
  ['the profile is gone', []],
  ['it no longer names the account', [profile('team', { secrets })]],
  [
    'the namespace opted out of injection',
    [team, namespace('shop', { team: 'a', 'pullwright.dev/inject': 'false' })],
  ],
  ['the namespace is not selected any more', [team, namespace('shop')]],
] as const)
  test(`a name is taken off again when ${name}; the others stay`, () => {
    const listed = account('default', ['theirs', 'reg', 'after'], { [ADDED]: 'reg', 'example.com/own': 'x' });
    const seen = scene([shop, quay, ...objects, listed], ON);
    assert.deepEqual(patched(seen), { default: [[{ name: 'theirs' }, { name: 'after' }], 'removed'] });
  });

test('the last name goes with the list, and what its profile only suspends stays', () => {
  const listed = account('default', ['reg'], { [ADDED]: 'reg' });
  assert.deepEqual(patched(scene([shop, quay, listed], ON)), { default: ['removed', 'removed'] });
  const suspended = profile('team', { secrets, serviceAccounts: ['default', 'builder'], suspend: true });
  assert.deepEqual(actionsOf(scene([shop, quay, suspended, listed, account('builder')], ON)), []);
});

test('without the operator nothing is added, and the profile says so', () => {
  const seen = scene([shop, quay, team, account('default')]);
  assert.deepEqual(actionsOf(seen), []);
  assert.equal(conditionOf(seen.status('PullSecretProfile', 'team'), 'AccountsListed'), 'False NotAllowed');
  assert.equal(ready(seen.status('PullSecretProfile', 'team')), 'False NotAllowed');
});

test('when the operator takes the option back, the names go from the accounts and others stay', () => {
  const listed = account('default', ['theirs', 'reg'], { [ADDED]: 'reg' });
  for (const admission of ['policy', 'webhook', 'none'] as const) {
    const seen = scene([shop, quay, team, listed, account('builder', ['reg'])], { admission });
    assert.deepEqual(patched(seen), { default: [[{ name: 'theirs' }], 'removed'] });
  }
});

test('the list by itself: repeated names, names without a name, an annotation by hand', () => {
  const references = [{ name: 'a' }, {}, { name: 'a' }];
  assert.equal(accountListFor({ references, ours: [] }, ['a']), undefined);
  assert.deepEqual(accountListFor({ references, ours: ['a', 'gone'] }, []), { references: [{}], ours: [] });
  assert.deepEqual(accountListFor({ references: [], ours: ['b', 'b'] }, ['b']), {
    references: [{ name: 'b' }],
    ours: ['b'],
  });
});

for (const [what, spec, problem] of [
  ['no list', { serviceAccounts: 'default' }, /^spec\.serviceAccounts: /],
  ['no name', { serviceAccounts: ['No_Name'] }, /^spec\.serviceAccounts\[0\]: "No_Name" is not the name of/],
  ['a name twice', { serviceAccounts: ['a', 'a'] }, /^spec\.serviceAccounts: "a" is there twice/],
  ['a mode that names nobody', { serviceAccounts: ['a'], mode: 'Distribute' }, /spec\.mode is Distribute/],
  ['too many', { serviceAccounts: Array.from({ length: 17 }, (_, at) => `a${at}`) }, /at most 16|17/],
] as const)
  test(`refused: ${what}`, () => {
    const read = readProfile(profile('team', { secrets, ...spec }));
    assert.ok(!read.ok);
    assert.match(read.problems.join('; '), problem);
  });

test('an account that enforces mountable secrets is left out, and its owner and the profile say so', () => {
  const plain = profile('team', { secrets });
  const seen = scene([shop, quay, plain, account('strict', [], STRICT), account('lists', ['reg'], STRICT)]);
  const policy = seen.store.list({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingAdmissionPolicy',
  });
  assert.match(JSON.stringify(policy), /shop\/lists\\+": \[\\+"reg\\+"\], \\+"shop\/strict\\+": \[\]/);
  const about = seen.status('PullSecretProfile', 'team');
  assert.equal(conditionOf(about, 'AccountsServed'), 'False MountableSecretsEnforced');
  assert.match(
    about?.conditions.find(({ type }) => type === 'AccountsServed')?.message ?? '',
    /^Pods of 1 ServiceAccount get nothing, because it enforces mountable secrets .*: "shop\/strict"; /,
  );
  const told = seen.status('PullStatus', 'serviceaccount-strict', 'shop');
  assert.equal(ready(told), 'False MountableSecretsEnforced');
  assert.deepEqual(
    told?.verdicts?.map(({ subject, verdict }) => [subject, verdict]),
    [['reg', 'Warning']],
  );
  assert.equal(seen.status('PullStatus', 'serviceaccount-lists', 'shop'), undefined);
  const later = seen.after([account('strict', ['reg'], STRICT)]);
  assert.equal(
    later.status('PullStatus', 'serviceaccount-strict', 'shop'),
    undefined,
    'it lists the name now',
  );
  assert.equal(conditionOf(later.status('PullSecretProfile', 'team'), 'AccountsServed'), undefined);
});

test('pods of an account that is left out are not reported as lacking names: a new one would lack them too', () => {
  const pod = (serviceAccountName: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: serviceAccountName, namespace: 'shop', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { serviceAccountName, containers: [] },
  });
  const seen = scene([
    shop,
    quay,
    profile('team', { secrets }),
    account('strict', [], STRICT),
    account('default'),
    pod('strict'),
    pod('default'),
  ]);
  const told = seen.status('PullStatus', 'podlist-shop', 'shop');
  assert.deepEqual(
    told?.verdicts?.map(({ subject }) => subject),
    ['pod/default'],
  );
});

test('a stored profile that is read strictly now, without a selector, keeps its copies and says why', () => {
  const before = scene([shop, quay, team, account('default', ['reg'], { [ADDED]: 'reg' })], ON);
  assert.deepEqual(before.registries('shop', 'reg'), ['quay.io']);
  const stored = { ...team, spec: { namespaceSelector: { matchLabels: { team: 'a' } }, secrets } };
  const after = before.after([stored]);
  assert.deepEqual(after.registries('shop', 'reg'), ['quay.io']);
  assert.deepEqual(actionsOf(after), [], 'names stay as long as the copies');
  const status = after.status('PullSecretProfile', 'team');
  assert.equal(ready(status), 'False Invalid');
  assert.match(
    status?.conditions.find(({ type }) => type === 'Ready')?.message ?? '',
    /^spec\.selector: required value: must be a label selector; \{\} selects all/,
  );
});

test('uninstall names an account that lists names of profiles, and leaves it', () => {
  const account = (name: string, added: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { namespace: 'shop', name, annotations: { 'pullwright.dev/added-pull-secrets': added } },
  });
  const { stages, kept } = planUninstall([account('default', 'reg, hub'), account('other', '')]);
  assert.deepEqual(stages, []);
  assert.deepEqual(
    kept.map(({ object }) => object.metadata.name),
    ['default'],
  );
  assert.match(kept[0]?.reason ?? '', /imagePullSecrets \(reg, hub\): take them out of the list/);
});

test.run();
