import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { type PullSecretProfile, readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import {
  compileInjectionPolicy,
  INJECTION_POLICY_NAME,
  injectionPlan,
} from '../../runtime/pull-secret-injection/plan/plan.ts';
import { meta, refOf } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { KRUISE, namespace, profile, ready, type Scene, scene } from './scene.ts';

const shop = namespace('shop', { team: 'a' });
const team = profile('team', { secrets: [{ name: 'reg' }] });

function policyIn({ store }: Scene): KubeObject | undefined {
  return store.get(refOf('admissionregistration.k8s.io/v1 MutatingAdmissionPolicy', INJECTION_POLICY_NAME));
}

function pod(name: string, spec: object = {}, rest: Partial<KubeObject> = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    ...rest,
    metadata: { name, namespace: 'shop', ...rest.metadata },
    spec: { containers: [{ name: 'c', image: 'quay.io/a/b' }], ...spec },
  };
}

const CREATED = { creationTimestamp: '2026-11-20T00:00:00Z' };
const BACK_OFF = {
  phase: 'Pending',
  containerStatuses: [{ state: { waiting: { reason: 'ImagePullBackOff' } } }],
};

test('profiles are compiled to one policy, sorted by order and name', () => {
  const late = profile('a-late', { order: 7, secrets: [{ name: 'late' }] });
  const text = JSON.stringify(policyIn(scene([shop, team, late])));
  assert.ok(text.indexOf('reg') < text.indexOf('late'));
});

test('the policy goes with the last profile, and is not made when the webhook injects', () => {
  const seen = scene([shop, team]);
  assert.ok(policyIn(seen) !== undefined);
  assert.equal(policyIn(seen.after([{ gone: team }])), undefined);
  assert.equal(policyIn(scene([shop, team], { admission: 'webhook' })), undefined);
  assert.equal(policyIn(scene([shop, team], { admission: 'none' })), undefined);
});

test('a cluster that does not serve the policy is told to use the webhook; a folder is shown the policy', () => {
  const unserved = (object: KubeObject): Scene => {
    const seen = scene([shop, object]);
    seen.store.delete(refOf('admissionregistration.k8s.io/v1 MutatingAdmissionPolicy', 'of-somebody-else'));
    for (const kind of ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'])
      seen.store.delete({ apiVersion: 'admissionregistration.k8s.io/v1', kind, name: INJECTION_POLICY_NAME });
    return seen.after([]);
  };
  const created = { ...team, metadata: { ...team.metadata, creationTimestamp: '2026-11-20T00:00:00Z' } };
  assert.equal(ready(unserved(created).status('PullSecretProfile', 'team')), 'False PolicyNotServed');
  assert.ok(policyIn(unserved(team)) !== undefined);
});

test('a plan that is too large keeps the policy that is there and says what to do', () => {
  const read = readProfile(team);
  assert.ok(read.ok);
  const many = Array.from(
    { length: 1001 },
    (_, at): PullSecretProfile => ({ ...read.profile, name: `p${at}` }),
  );
  const options = { apiVersion: 'admissionregistration.k8s.io/v1', excludedNamespaces: [] };
  const compiled = compileInjectionPolicy(injectionPlan(many), options);
  assert.ok(!compiled.ok);
  assert.match(compiled.problem, /1001 profiles and SidecarSets inject, at most 1000 fit.*use the webhook/);
  const wide = {
    ...read.profile,
    selector: [{ key: 'k', operator: 'In' as const, values: ['x'.repeat(100_000)] }],
  };
  assert.equal(compileInjectionPolicy(injectionPlan([wide]), options).ok, false);
});

test('a pod of a folder shows what admission will make of it; a template is left alone', () => {
  const template: KubeObject = {
    ...meta('apps/v1 Deployment', { name: 'web', namespace: 'shop' }),
    spec: { template: { spec: { containers: [] } } },
  };
  const seen = scene([
    shop,
    team,
    template,
    pod('web', { imagePullSecrets: [{ name: 'own' }] }),
    pod('bare'),
  ]);
  const names = (name: string): unknown => {
    const found = seen.store.get({ apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name });
    return (found?.spec as { imagePullSecrets?: unknown } | undefined)?.imagePullSecrets;
  };
  assert.deepEqual(names('web'), [{ name: 'own' }, { name: 'reg' }]);
  assert.deepEqual(names('bare'), [{ name: 'reg' }]);
  const kept = seen.store.get({ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' });
  assert.deepEqual(kept?.spec, template.spec);
});

test('the preview of a pod without a list begins with that of its service account, as the API server fills it in', () => {
  const account = (name: string, ...secrets: readonly string[]): KubeObject => ({
    ...meta('v1 ServiceAccount', { name, namespace: 'shop' }),
    imagePullSecrets: secrets.map((secret) => ({ name: secret })),
  });
  const seen = scene([
    shop,
    team,
    account('default', 'of-default', 'reg'),
    account('builder', 'of-builder'),
    pod('bare'),
    pod('built', { serviceAccountName: 'builder' }),
    pod('own', { imagePullSecrets: [{ name: 'mine' }], serviceAccountName: 'builder' }),
    pod('unknown', { serviceAccountName: 'not-in-the-folder' }),
  ]);
  const names = (name: string): readonly string[] => {
    const found = seen.store.get({ apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name });
    const spec = found?.spec as { imagePullSecrets?: readonly { name: string }[] };
    return (spec.imagePullSecrets ?? []).map((secret) => secret.name);
  };
  assert.deepEqual(names('bare'), ['of-default', 'reg']);
  assert.deepEqual(names('built'), ['of-builder', 'reg']);
  assert.deepEqual(names('own'), ['mine', 'reg']);
  assert.deepEqual(names('unknown'), ['reg']);
});

test('mirror pods, pods that opted out and pods of our own namespace are not previewed nor reported', () => {
  const mirror = pod(
    'mirror',
    {},
    { metadata: { name: 'mirror', annotations: { 'kubernetes.io/config.mirror': 'x' }, ...CREATED } },
  );
  const out = pod(
    'out',
    {},
    { metadata: { name: 'out', labels: { 'pullwright.dev/inject': 'false' }, ...CREATED } },
  );
  const own = pod('own', {}, { metadata: { name: 'own', namespace: 'pullwright-system', ...CREATED } });
  const all = profile('all', { namespaceSelector: {}, secrets: [{ name: 'reg' }] });
  const seen = scene([shop, namespace('pullwright-system'), all, mirror, out, own]);
  assert.equal(seen.status('PullStatus', 'podlist-shop', 'shop'), undefined);
  assert.equal(seen.status('PullStatus', 'podlist-pullwright-system', 'pullwright-system'), undefined);
});

test('pods that were created without the names are reported until they are gone', () => {
  const old = pod('old', {}, { metadata: { name: 'old', ...CREATED } });
  const fine = pod(
    'fine',
    { imagePullSecrets: [{ name: 'reg' }] },
    { metadata: { name: 'fine', ...CREATED } },
  );
  const done = pod('done', {}, { metadata: { name: 'done', ...CREATED }, status: { phase: 'Succeeded' } });
  const seen = scene([shop, team, old, fine, done]);
  const status = seen.status('PullStatus', 'podlist-shop', 'shop');
  assert.deepEqual(
    status?.verdicts?.map(({ subject, reason }) => [subject, reason]),
    [['pod/old', 'Uninjected']],
  );
  assert.equal(ready(status), 'True PodsUninjected', 'a pod that runs is nobody’s trouble');
  const stuck = { ...old, status: BACK_OFF };
  const after = seen.after([stuck]).status('PullStatus', 'podlist-shop', 'shop');
  assert.equal(ready(after), 'False PodsUninjected');
  assert.match(JSON.stringify(after), /1 pod lacks .*, and 1 cannot pull; recreate the stuck pods/);
  const off = scene([shop, team, stuck], { admission: 'none' }).status('PullStatus', 'podlist-shop', 'shop');
  assert.match(JSON.stringify(off), /and 1 cannot pull; new ones would lack them too: Neither policy nor/);
  assert.match(
    off?.verdicts?.[0]?.message ?? '',
    /a new one would lack them too: Neither policy nor webhook/,
  );
  assert.equal(seen.after([{ gone: old }]).status('PullStatus', 'podlist-shop', 'shop'), undefined);
});

const owned = (apiVersion: string, kind: string): object => ({
  ownerReferences: [{ apiVersion, kind, name: 'o', uid: 'u-o', controller: true }],
});

for (const [who, metadata, remedy] of [
  ['nobody makes it again', {}, 'recreate it'],
  ['its controller ends with it', owned('tekton.dev/v1', 'TaskRun'), 'recreate it'],
  [
    'its controller makes another',
    owned('apps/v1', 'ReplicaSet'),
    'delete it, and its ReplicaSet creates another',
  ],
  [
    'its Job counts it',
    owned('batch/v1', 'Job'),
    'recreate its Job: a deleted pod counts against its back-off limit',
  ],
] as const)
  test(`what to do about a pod without its pull secrets: ${who}`, () => {
    const old = pod('old', {}, { metadata: { name: 'old', ...CREATED, ...metadata } });
    const status = scene([shop, team, old]).status('PullStatus', 'podlist-shop', 'shop');
    const message = status?.verdicts?.[0]?.message ?? '';
    assert.equal(message.slice(message.lastIndexOf('; ') + 2), remedy);
  });

const set = (spec: object = {}): KubeObject => ({
  ...meta('apps.kruise.io/v1alpha1 SidecarSet', { name: 'log', generation: 1 }),
  spec: {
    selector: { matchLabels: { app: 'web' } },
    containers: [{ name: 'c' }],
    imagePullSecrets: [{ name: 'log-reg' }],
    ...spec,
  },
});

function setStatus({ store }: Scene): string[] {
  const object = store.get({ apiVersion: 'apps.kruise.io/v1alpha1', kind: 'SidecarSet', name: 'log' });
  const status = object?.status as
    | { conditions?: { type: string; status: string; reason: string }[] }
    | undefined;
  return (status?.conditions ?? []).map(({ type, status: value, reason }) => `${type}=${value} ${reason}`);
}

test('a SidecarSet is compiled into the policy and told that its containers are not injected', () => {
  const seen = scene([shop, set()]);
  assert.match(JSON.stringify(policyIn(seen)), /log-reg/);
  assert.deepEqual(setStatus(seen), ['ContainersInjected=False SecretsOnly', 'Ready=True Injecting']);
});

test('a SidecarSet says why it does not inject', () => {
  const reasons: readonly (readonly [object, string])[] = [
    [{ injectionStrategy: { paused: true } }, 'Ready=False Paused'],
    [{ selector: {} }, 'Ready=False SelectorEmpty'],
    [{ containers: [] }, 'Ready=False NoContainers'],
    [{ selector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } }, 'Ready=False SelectorInvalid'],
    [{ injectionStrategy: { revision: { revisionName: 'x' } } }, 'Ready=False RevisionMissing'],
  ];
  for (const [spec, condition] of reasons)
    assert.ok(setStatus(scene([shop, set(spec)])).includes(condition), condition);
  const bare = scene([shop, set({ containers: [] })], { withoutContainers: true });
  assert.ok(setStatus(bare).includes('Ready=True Injecting'));
});

test('where the webhook of Kruise is installed, SidecarSets are left to it', () => {
  const seen = scene([shop, namespace('pullwright-system'), set(), team, KRUISE]);
  assert.doesNotMatch(JSON.stringify(policyIn(seen)), /log-reg/);
  assert.match(JSON.stringify(policyIn(seen)), /reg/);
  assert.deepEqual(setStatus(seen), []);
  assert.equal(ready(seen.status('PullStatus', 'sidecarset-log', 'pullwright-system')), 'True LeftToKruise');
});
