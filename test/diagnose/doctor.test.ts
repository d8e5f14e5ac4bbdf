// deadline: 600 s
// needs: control plane
/** `pullwright doctor` in a cluster: set-ups that are broken, the first broken link, and that the printed YAML fixes it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pullSecretProfileCrd } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { controlPlaneBinaries } from '../control-plane/build.ts';
import { installCrd } from '../control-plane/crds.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { plantedPassword } from '../support/canary.ts';
import { meta } from '../support/meta.ts';
import { type ProcessResult, runMain, runProcess } from '../support/process.ts';
import { table, test } from '../support/suite.ts';
import { account, BRINGING, deployment, GOOD, MIRRORS, PROFILE, rows } from './doctor-cases.ts';

interface Answer {
  readonly findings: readonly {
    readonly check: string;
    readonly severity: string;
    readonly message: string;
    readonly advice?: string;
    readonly commands?: readonly string[];
  }[];
}

const plane = await controlPlane({ crds: 'all' });
await installCrd(plane.client, pullSecretProfileCrd());
await plane.apply(MIRRORS);
await plane.apply(PROFILE);
await plane.apply(BRINGING);
const ready = { type: 'Ready', status: 'False', reason: 'NotGranted', message: 'nobody says yes' };
await plane.client.request(
  'PATCH',
  '/apis/pullwright.dev/v1alpha1/pullsecretprofiles/bringing/status',
  { status: { conditions: [{ ...ready, lastTransitionTime: new Date(0).toISOString() }] } },
  'application/merge-patch+json',
);
const doctor = (what: string, namespace: string, ...more: readonly string[]): Promise<ProcessResult> =>
  runMain(['doctor', what, '-n', namespace, '--kubeconfig', plane.kubeconfig, ...more]);
const examined = async (what: string, namespace: string): Promise<Answer> => {
  const ran = await doctor(what, namespace, '--output', 'json');
  assert.ok(ran.stdout !== '', ran.stderr);
  return JSON.parse(ran.stdout) as Answer;
};
const fix = async ({ commands = [] }: Answer['findings'][number], what: string, namespace: string) => {
  const { stdout: yaml, code } = await doctor(what, namespace, '--output', 'yaml');
  assert.equal(code, 1);
  if (yaml !== '') {
    const file = join(plane.folder, `${namespace}.yaml`);
    writeFileSync(file, yaml);
    const apply = ['apply', '--server-side', '--field-manager=pullwright-fix', '--force-conflicts'];
    const applied = await plane.kubectl(...apply, '-f', file);
    assert.equal(applied.code, 0, `${yaml}\n${applied.stderr}`);
  }
  for (const command of commands) await shell(command);
};
/** Runs a printed command as it is. */
const shell = async (command: string): Promise<void> => {
  const env = {
    PATH: `${dirname((await controlPlaneBinaries()).kubectl)}:/usr/bin:/bin`,
    KUBECONFIG: plane.kubeconfig,
    KUBECACHEDIR: join(plane.folder, 'cache'),
    USERNAME: 'robot',
    PASSWORD: plantedPassword('doctor'),
  };
  const ran = await runProcess(['sh', '-c', command], { env });
  assert.equal(ran.code, 0, `${command}\n${ran.stderr}`);
};
/** Same as people do: kubectl then owns the fields that the fix does not name, and they must stay. */
const applyByKubectl = async (object: TestObject): Promise<void> => {
  const file = join(plane.folder, 'applied.json');
  writeFileSync(file, JSON.stringify(object));
  const applied = await plane.kubectl('apply', '--server-side', '-f', file);
  assert.equal(applied.code, 0, applied.stderr);
};
const firstBroken = ({ findings }: Answer) =>
  findings.find(({ severity }) => !['ok', 'info'].includes(severity));
let count = 0;

table(test, rows, async ({ objects, labels, what = 'deploy/web', broken, says, fixes, advice }) => {
  count += 1;
  const namespace = `case-${count}`;
  await plane.apply(meta('v1 Namespace', { name: namespace, labels: labels ?? {} }));
  for (const object of objects) {
    const placed = JSON.parse(JSON.stringify(object).replaceAll('NAMESPACE', namespace)) as TestObject;
    const whole = { ...placed, metadata: { ...placed.metadata, namespace } };
    if (placed.kind === 'Deployment') await applyByKubectl(whole);
    else await plane.apply(whole);
  }
  const found = firstBroken(await examined(what, namespace));
  assert.equal(found?.check, broken, JSON.stringify(found));
  assert.equal(found.severity, 'error');
  assert.match(found.message, says);
  if (advice !== undefined) assert.match(found.advice ?? '', advice);
  if (fixes === undefined) return;
  // Cluster-wide objects are printed separately, after those of the tenant.
  await fix(found, what, namespace);
  const left = firstBroken(await examined(what, namespace));
  if (left?.check === 'mirror-credential') await fix(left, what, namespace);
  const after = firstBroken(await examined(what, namespace));
  assert.equal(after?.check, fixes === true ? undefined : fixes, JSON.stringify(after));
});

test('a dump without the ServiceAccount: the command keeps the list that it has, or makes one', async () => {
  const message = 'failed to authorize: failed to fetch anonymous token: 401 Unauthorized';
  for (const [namespace, before] of [
    ['with-list', ['other']],
    ['without-list', []],
  ] as const) {
    await plane.apply(meta('v1 Namespace', { name: namespace }));
    await plane.apply({ ...account(before), metadata: { name: 'default', namespace } });
    const waiting = {
      reason: 'ImagePullBackOff',
      message: `Back-off pulling image "ghcr.io/a/b:1": ${message}`,
    };
    const dump = join(plane.folder, `${namespace}.json`);
    const pod = {
      ...meta('v1 Pod', { name: 'web', namespace }),
      spec: { containers: [{ name: 'a', image: 'ghcr.io/a/b:1' }] },
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'a', image: 'ghcr.io/a/b:1', state: { waiting } }],
      },
    };
    writeFileSync(dump, JSON.stringify(pod));
    const from = ['doctor', 'web', '-n', namespace, '--from', dump];
    const ran = await runMain([...from, '-o', 'json']);
    const [, patch = ''] = firstBroken(JSON.parse(ran.stdout) as Answer)?.commands ?? [];
    await shell(patch);
    const { stdout } = await plane.kubectl('get', 'sa', 'default', '-n', namespace, '-o', 'json');
    assert.deepEqual(
      (JSON.parse(stdout) as TestObject)['imagePullSecrets'],
      account([...before, 'pull-ghcr-io'])['imagePullSecrets'],
    );
  }
});

test('rights that are missing are named', async () => {
  const namespace = 'case-2';
  const some = [
    { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] },
    { apiGroups: ['pullwright.dev'], resources: ['pullstatuses', 'pullsecretgrants'], verbs: ['list'] },
  ];
  const user = await plane.user({ name: 'nobody', by: 'token', namespaces: { [namespace]: some } });
  const ask = (where: string, ...more: readonly string[]) =>
    runMain(['doctor', 'deploy/web', '-n', where, '--kubeconfig', user.kubeconfig, ...more]);
  const blind = await ask('case-3');
  assert.equal(blind.code, 1);
  assert.match(blind.stderr, /Cannot get "Deployment\/case-3\/web".*403 Forbidden.*Grant the verb "get"/);
  assert.match(blind.stderr, /Cannot examine Deployment "case-3\/web": it could not be read/);
  const halfBlind = await ask(namespace);
  assert.match(halfBlind.stderr, /Cannot list "Secret in case-2".*Grant the verb "list"/);
  const status = await runMain(['status', '-n', namespace, '--kubeconfig', user.kubeconfig]);
  assert.equal(status.stderr, '', 'what is outside of the namespace is not asked for');
  assert.equal(status.stdout, `No objects of Pullwright in namespace "${namespace}"\n`);
});

test('a healthy pod has no broken link, and the text says so', async () => {
  await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fine' } });
  for (const object of [account(['good']), GOOD, deployment({})])
    await plane.apply({ ...object, metadata: { ...object.metadata, namespace: 'fine' } });
  const ran = await doctor('deploy/web', 'fine');
  assert.equal(ran.code, 0, ran.stdout);
  assert.match(ran.stdout, /^Deployment\/fine\/web\n {2}ok +image /);
});

test('a pod that is not there, and a cluster that does not answer', async () => {
  assert.match((await doctor('web', 'fine')).stderr, /Cannot find Pod "fine\/web"/);
  assert.equal((await doctor('web/x/y', 'fine')).code, 2);
});

test('--all -A has one entry for each cause, and the YAML for all of them', async () => {
  const ask = (...more: readonly string[]) => runMain(['doctor', ...more, '--kubeconfig', plane.kubeconfig]);
  const ran = await ask('--all', '-A', '-o', 'json');
  assert.equal(ran.code, 1, ran.stderr);
  assert.equal(ran.stderr, '');
  const { causes, unread } = JSON.parse(ran.stdout) as {
    readonly causes: readonly {
      check: string;
      title: string;
      about?: string;
      pods: number;
      cases: { subject: string }[];
    }[];
    readonly unread: readonly string[];
  };
  assert.deepEqual(unread, []);
  const refused = causes.find(({ about }) => about?.includes('denied access, or the image does not exist'));
  assert.equal(refused?.check, 'registry');
  assert.equal(refused.pods, 1, JSON.stringify(causes));
  const failing = causes.filter(({ pods }) => pods > 0);
  assert.equal(failing.length, 10, JSON.stringify(failing));
  assert.ok(
    failing.some(({ about }) => about === 'PullSecretProfile/bringing'),
    JSON.stringify(failing),
  );
  // The cases of a template alone, each in a namespace of its own: one cause, as the ServiceAccount has the same name everywhere.
  const lists = causes.find(({ check, about }) => check === 'credential' && about === 'images of quay.io');
  // Beside them the one Deployment of which a pod was refused.
  assert.equal(lists?.pods, 1, JSON.stringify(lists));
  const namespace = refused.cases[0]?.subject.split('/')[1] ?? '';
  const one = await ask('--all', '-n', namespace);
  assert.match(one.stdout, /^1 pod in namespace "case-\d+" fails to pull, for 1 cause\n/);
  assert.match(
    one.stdout,
    /✕ broken +The last pull of an image failed: quay\.io denied access, or the image does not exist \(1 in .+\)\n/,
  );
  assert.match(one.stdout, /Pod\/case-\d+\/web\n[^]*\n {2}fix: Check the name/);
  const fine = await ask('--all', '-n', 'fine');
  assert.equal(fine.stdout, 'No pod in namespace "fine" fails to pull; -A examines every namespace\n');
  assert.equal(fine.code, 0, fine.stderr);
});
