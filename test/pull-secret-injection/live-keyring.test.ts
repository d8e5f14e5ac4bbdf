// deadline: 240 s
// needs: control plane
/** What a template's pods pull with: the commands say what the live API server then makes of such a pod, with injection and without. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { meta } from '../support/meta.ts';
import { runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { readyNamespace, reconcilerUser, startPlane, startReconciler } from './live.ts';
import { applySource, conditionOf, teamProfile, waiter } from './live-scene.ts';

const IMAGE = 'quay.io/team/web';

interface Template {
  readonly labels: Readonly<Record<string, string>>;
  readonly account?: string;
  readonly own?: string;
}

/** A template as `reconcile --from` shows it. */
interface Shown {
  readonly template: string;
  readonly secrets: readonly { readonly name: string }[];
}

/** By what kubectl calls them. */
const TEMPLATES: Readonly<Record<string, Template>> = {
  'deployment/web': { labels: { app: 'web' } },
  'deployment/strict': { labels: { app: 'web' }, account: 'strict' },
  'statefulset/db': { labels: { app: 'db' }, account: 'listed' },
  'statefulset/other': { labels: { app: 'other' } },
  'job/once': { labels: { app: 'once' }, own: 'mine' },
  'cronjob/nightly': { labels: { app: 'nightly', 'pullwright.dev/inject': 'false' } },
  'cronjob/daily': { labels: { app: 'daily' }, account: 'listed', own: 'reg' },
};

function podTemplate({ labels, account, own }: Template): object {
  return {
    metadata: { labels },
    spec: {
      restartPolicy: 'Never',
      containers: [{ name: 'c', image: IMAGE }],
      ...(account === undefined ? {} : { serviceAccountName: account }),
      ...(own === undefined ? {} : { imagePullSecrets: [{ name: own }] }),
    },
  };
}

function workload(reference: string, template: Template): TestObject {
  const [kind, name = ''] = reference.split('/');
  const pods = podTemplate(template);
  const always = { ...pods, spec: { ...(pods as { spec: object }).spec, restartPolicy: 'Always' } };
  const scaled = { replicas: 0, selector: { matchLabels: template.labels }, template: always };
  const of = (apiVersion: string, full: string, spec: object): TestObject => ({
    apiVersion,
    kind: full,
    metadata: { name, namespace: 'shop' },
    spec,
  });
  if (kind === 'deployment') return of('apps/v1', 'Deployment', scaled);
  if (kind === 'statefulset') return of('apps/v1', 'StatefulSet', { ...scaled, serviceName: 'none' });
  if (kind === 'job') return of('batch/v1', 'Job', { suspend: true, template: pods });
  return of('batch/v1', 'CronJob', {
    schedule: '0 0 * * *',
    suspend: true,
    jobTemplate: { spec: { template: pods } },
  });
}

const plane = await startPlane();
await applySource(plane);
await readyNamespace(plane, 'shop', { team: 'a' });
const account = (name: string, more: object, annotations = {}): TestObject => ({
  ...meta('v1 ServiceAccount', { name, namespace: 'shop', annotations }),
  ...more,
});
await plane.apply(account('listed', { imagePullSecrets: [{ name: 'own' }] }));
await plane.apply(account('strict', {}, { 'kubernetes.io/enforce-mountable-secrets': 'true' }));
for (const [reference, template] of Object.entries(TEMPLATES))
  await plane.apply(workload(reference, template));
const viewer = await plane.user({
  name: 'viewer',
  by: 'token',
  cluster: [{ apiGroups: ['*'], resources: ['*'], verbs: ['get', 'list', 'watch'] }],
});
const reconciler = startReconciler(plane, await reconcilerUser(plane));
const soon = waiter(reconciler);
const run = (...args: readonly string[]) => runMain(args);
const live = ['--kubeconfig', viewer.kubeconfig, '--namespace', 'shop'];

/** Pod of the template after admission, in a dry run. */
const dryRun = async (template: Template): Promise<readonly string[]> => {
  const { metadata, spec } = podTemplate(template) as { readonly metadata: object; readonly spec: object };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, generateName: 'try-' }, spec };
  const path = '/api/v1/namespaces/shop/pods?dryRun=All';
  const { status, body } = await plane.client.request('POST', path, pod);
  assert.equal(status, 201, String(body.message));
  return ((body['spec'].imagePullSecrets ?? []) as readonly { name: string }[]).map(({ name }) => name);
};
const explained = async (reference: string): Promise<readonly string[]> => {
  const ran = await run('explain', '--pod', reference, '--output', 'json', ...live);
  const [{ secrets }] = JSON.parse(ran.stdout) as [
    { readonly secrets: readonly { readonly name: string }[] },
  ];
  return secrets.map(({ name }) => name);
};
/** Number of Secrets of a pod of the template by `doctor`, or the obstacle that `doctor` reports. */
const doctored = async (reference: string): Promise<string> => {
  const ran = await run('doctor', reference, '--output', 'json', ...live);
  const { findings } = JSON.parse(ran.stdout) as {
    readonly findings: readonly { readonly check: string; readonly message: string }[];
  };
  const of = (name: string): string => findings.find(({ check }) => check === name)?.message ?? '';
  // Findings about another ServiceAccount of the namespace do not apply to this pod.
  if (reference !== 'deployment/strict') assert.match(of('distribution'), /^nothing that syncs/, reference);
  const message = of('injection');
  return /lists (no|\d+) (?:Secret|imagePullSecret)/.exec(message)?.[1]?.replace('no', '0') ?? message;
};
const HINDERED = /^profile\/team adds Secret "reg" to such pods, but nothing injects it/;
/** The cluster as `kubectl get -o json` writes it down. */
const dump = async (folder: string): Promise<void> => {
  mkdirSync(folder, { recursive: true });
  const kinds =
    'namespaces,secrets,serviceaccounts,deployments,statefulsets,jobs,cronjobs,pullsecretprofiles,pullsecretgrants,mutatingadmissionpolicies,mutatingadmissionpolicybindings';
  const ran = await plane.kubectl('get', kinds, '--all-namespaces', '--output=json');
  assert.equal(ran.code, 0, ran.stderr);
  writeFileSync(join(folder, 'dump.json'), ran.stdout);
};

test('explain and doctor name the Secrets that the API server gives, in its order', async () => {
  await plane.apply(
    teamProfile({ selector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['other'] }] } }),
  );
  await soon(async () => assert.equal(await conditionOf(plane, 'team', 'Injecting'), 'True Policy'));
  // The owner of "strict" lets its pods have no name of others: nothing for the platform to do.
  await soon(async () => assert.equal(await conditionOf(plane, 'team', 'Ready'), 'True BlockedByTenants'));
  const made: Record<string, readonly string[]> = {};
  for (const [reference, template] of Object.entries(TEMPLATES)) {
    made[reference] = await dryRun(template);
    assert.deepEqual(await explained(reference), made[reference], reference);
    const said = await doctored(reference);
    if (reference === 'deployment/strict') assert.match(said, HINDERED);
    else assert.equal(said, String(made[reference].length), reference);
  }
  assert.deepEqual(made, {
    'deployment/web': ['reg'],
    'deployment/strict': [],
    'statefulset/db': ['own', 'reg'],
    'statefulset/other': [],
    'job/once': ['mine', 'reg'],
    'cronjob/nightly': [],
    'cronjob/daily': ['reg'],
  });
});

test('test and reconcile --from say the same of a dump', async () => {
  const folder = join(plane.folder, 'dump');
  await dump(folder);
  const ran = await run('reconcile', '--from', folder, '--output', 'json');
  const [{ templates }] = JSON.parse(ran.stdout) as [{ readonly templates: readonly Shown[] }];
  for (const [reference, template] of Object.entries(TEMPLATES)) {
    const { kind, metadata } = workload(reference, template);
    const shown = templates.find((one) => one.template === `${kind}/shop/${metadata.name}`);
    // Templates that pull with nothing but what they list themselves are not named.
    const names =
      shown?.secrets.map(({ name }) => name) ?? (template.own === undefined ? [] : [template.own]);
    assert.deepEqual(names, await dryRun(template), reference);
  }
  const file = join(plane.folder, 'keyring.tests');
  const rows = await Promise.all(
    Object.entries(TEMPLATES).map(async ([reference, template]) => {
      const expect = (await dryRun(template)).includes('reg') ? '{ secret: reg, username: robot }' : 'denied';
      return `  - { pod: ${reference}, namespace: shop, image: ${IMAGE}, expect: ${expect} }\n`;
    }),
  );
  writeFileSync(file, `tests:\n${rows.join('')}`);
  const tested = await run('test', file, '--from', folder);
  assert.match(tested.stdout, /7 passed, 0 failed/, tested.stdout + tested.stderr);
});

test('where nothing injects any more they say that too', async () => {
  await reconciler.stop();
  for (const kind of ['mutatingadmissionpolicybindings', 'mutatingadmissionpolicies'])
    assert.equal((await plane.kubectl('delete', kind, '--all')).code, 0);
  const web = TEMPLATES['deployment/web'] as Template;
  await eventually(async () => assert.deepEqual(await dryRun(web), []));
  for (const [reference, template] of Object.entries(TEMPLATES))
    assert.deepEqual(await explained(reference), await dryRun(template), reference);
  assert.match(await doctored('deployment/web'), HINDERED);
});

test.lastly('ends', () => reconciler.stop());
