// deadline: 420 s
// needs: control plane
/** `pullwright uninstall` on a real control plane: killed again and again, it ends with nothing of ours and all of others. */
import assert from 'node:assert/strict';
import { realpathSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { NODE } from '../reconcile/process.ts';
import { GLOBAL, inKubeSystem, ORIGINAL, platform } from '../reconcile/scene.ts';
import { meta } from '../support/meta.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { everySystem, killedAfter, LABEL, MACHINE_CONFIG, NODE_REF, StandIn } from './scene.ts';

const root = new URL('../..', import.meta.url).pathname;
const SYNCER = inKubeSystem('DaemonSet', 'global-pull-secret-syncer', 'apps/v1');
const definition = (name: string): TestObject =>
  meta('apiextensions.k8s.io/v1 CustomResourceDefinition', { name });
const OWN_NAMESPACE: TestObject = meta('v1 Namespace', { name: 'pullwright-system' });

const plane = await controlPlane({
  controllerManager: true,
  crds: [
    'machineconfigpools.machineconfiguration.openshift.io',
    'machineconfigs.machineconfiguration.openshift.io',
  ],
});
const uninstall = (...flags: string[]) =>
  runProcess([...NODE, 'uninstall', '--kubeconfig', plane.kubeconfig, ...flags], { deadlineMs: 180_000 });
const kubelet = new StandIn(plane);

test('a cluster with every system, and a reconciler that has done its work', async () => {
  await everySystem(plane, kubelet);
  await eventually(async () => assert.equal((await plane.get(SYNCER))?.['status'].numberReady, 1));
});

test('--dry-run says what would go, and changes nothing', async () => {
  const dry = await uninstall('--dry-run');
  assert.equal(dry.code, 0, dry.stderr);
  assert.match(dry.stdout, /^programs\n {2}remove {2}Deployment\/hyperfleet-system/);
  assert.match(dry.stdout, /machine configs\n {2}remove {2}MachineConfig\/97-worker/);
  assert.match(dry.stdout, /release Node\/node-a/);
  assert.match(dry.stdout, /definitions\n/);
  assert.ok((await plane.get(GLOBAL)) !== undefined);
  const again = JSON.parse((await uninstall('--dry-run', '--output=json')).stdout) as {
    stages: { name: string }[];
  };
  assert.equal(again.stages[0]?.name, 'programs');
});

test('without a terminal and without --yes it asks for one of them', async () => {
  const asked = await uninstall();
  assert.equal(asked.code, 2);
  assert.match(asked.stderr, /use --yes/);
  assert.ok((await plane.get(GLOBAL)) !== undefined);
});

test('what a GitOps tool delivers stops it before anything is removed', async () => {
  const mark = { metadata: { labels: { 'argocd.argoproj.io/instance': 'prod' } } };
  const path = '/apis/apps/v1/namespaces/kube-system/daemonsets/global-pull-secret-syncer';
  await plane.client.request('PATCH', path, mark, 'application/merge-patch+json');
  const refused = await uninstall('--yes');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /Argo CD Application "prod"/);
  assert.notEqual(await plane.get(MACHINE_CONFIG), undefined);
  const off = { metadata: { labels: { 'argocd.argoproj.io/instance': null } } };
  await plane.client.request('PATCH', path, off, 'application/merge-patch+json');
});

test('killed after every few removals, it goes on where it was, in the order of the requirement', async () => {
  const order: string[] = [];
  let kills = 0;
  for (let rounds = 0; ; rounds += 1) {
    assert.ok(rounds < 60, order.join('\n'));
    const ended = await killedAfter(plane.kubeconfig, 3 + (rounds % 4), order);
    if (ended.killed) {
      kills += 1;
      continue;
    }
    assert.equal(ended.code, 0, ended.stderr);
    break;
  }
  assert.ok(kills > 5, `${kills} kills`);
  const first = (kind: string): number => order.findIndex((line) => line.startsWith(`removed ${kind}/`));
  const last = (kind: string): number => order.findLastIndex((line) => line.startsWith(`removed ${kind}/`));
  const path = [
    'Deployment',
    'CRIOCredentialProviderConfig',
    'MachineConfig',
    'DaemonSet',
    'Secret',
    'CustomResourceDefinition',
    'Namespace',
  ];
  for (const [index, kind] of path.entries()) {
    assert.ok(first(kind) >= 0, `${kind}: ${order.join('\n')}`);
    const before = path[index - 1];
    if (before !== undefined) assert.ok(last(before) < first(kind), `${before} before ${kind}`);
  }
});

test('the node was told to uninstall before its pods went, and its label is off', async () => {
  assert.ok(kubelet.left.length > 0);
  assert.equal((await plane.get(NODE_REF))?.metadata.labels?.[LABEL], undefined);
  assert.notEqual(await plane.get(NODE_REF), undefined);
});

test('nothing of ours is left, and everything of others is', async () => {
  for (const gone of [
    GLOBAL,
    ORIGINAL,
    SYNCER,
    MACHINE_CONFIG,
    OWN_NAMESPACE,
    definition('pullstatuses.pullwright.dev'),
    definition('pullsecretprofiles.pullwright.dev'),
    definition('criocredentialproviderconfigs.config.openshift.io'),
  ])
    assert.ok((await plane.get(gone).catch(() => undefined)) === undefined, gone.metadata.name);
  const all = await plane.kubectl(
    'get',
    'clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts,validatingadmissionpolicies,deployments,services,networkpolicies',
    '-A',
    '-l',
    'app.kubernetes.io/part-of=pullwright',
    '-o',
    'name',
  );
  assert.equal(all.stdout, '');
  assert.notEqual(await plane.get(inKubeSystem('Secret', 'additional-pull-secret')), undefined);
  assert.notEqual(await plane.get(platform('quay.io')), undefined);
  assert.notEqual(await plane.get(definition('machineconfigs.machineconfiguration.openshift.io')), undefined);
});

test('once more: nothing to remove', async () => {
  const again = await uninstall('--yes');
  assert.equal(again.code, 0, again.stderr);
  assert.match(again.stdout, /^0 removed, 1 kept$/m);
});

test('a namespace of ours that holds something of others stays, and it says what', async () => {
  const labels = { 'app.kubernetes.io/part-of': 'pullwright' };
  await plane.apply({ ...OWN_NAMESPACE, metadata: { name: 'pullwright-system', labels } });
  // The platform makes a ServiceAccount of this name, and no Secret.
  const foreign = meta('v1 Secret', { name: 'deployer', namespace: 'pullwright-system' });
  await eventually(() => plane.apply(foreign));
  // More than a page of what the platform makes, before it.
  for (let count = 10; count < 70; count += 1)
    await plane.apply(meta('v1 Secret', { name: `default-token-${count}`, namespace: 'pullwright-system' }));
  const left = await uninstall('--yes');
  assert.equal(left.code, 0, left.stderr);
  assert.match(
    left.stdout,
    /^kept Namespace\/pullwright-system: it contains "Secret\/pullwright-system\/deployer"$/m,
  );
  assert.notEqual(await plane.get(foreign), undefined);
});

test('it reads the kubeconfig and nothing else, and says so when it may not', async () => {
  const program = ['main.ts', 'package.json', 'charts', 'runtime', 'node_modules'].map((name) =>
    realpathSync(`${root}${name}`),
  );
  const run = (...reads: readonly string[]) =>
    runProcess([
      process.execPath,
      '--permission',
      ...[...program, `${root}node_modules`, ...reads].map((path) => `--allow-fs-read=${path}`),
      `${root}main.ts`,
      'uninstall',
      '--dry-run',
      `--kubeconfig=${plane.kubeconfig}`,
    ]);
  const allowed = await run(plane.kubeconfig);
  assert.equal(allowed.code, 0, allowed.stderr);
  const denied = await run();
  assert.notEqual(denied.code, 0);
  assert.ok(denied.stderr.includes(plane.kubeconfig), denied.stderr);
  assert.doesNotMatch(denied.stderr, /^ +at /m);
});

test('a user who may not delete learns what is missing', async () => {
  const user = await plane.user({
    name: 'reader',
    cluster: [{ apiGroups: [''], resources: ['nodes'], verbs: ['list'] }],
  });
  const denied = await runProcess([...NODE, 'uninstall', '--kubeconfig', user.kubeconfig, '--yes']);
  assert.equal(denied.code, 1);
  assert.match(denied.stderr, /list/);
  assert.doesNotMatch(denied.stderr, /^ +at /m);
});

test.lastly('the kubelet and the control plane stop', () => kubelet.stop());
