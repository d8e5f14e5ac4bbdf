// deadline: 420 s
/** `pullwright uninstall` on a real control plane: killed again and again, it ends with nothing of ours and all of others. */
import assert from 'node:assert/strict';
import { realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readFleet, renderFleet, SYSTEMS, writeTree } from '../../charts/mod.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { NODE, ReconcilerProcess } from '../reconcile/process.ts';
import { additional, GLOBAL, inKubeSystem, ORIGINAL, platform, registriesOf } from '../reconcile/scene.ts';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import { killedAfter, StandIn } from './scene.ts';

const test = suite('uninstall, live');
const missing = missingControlPlane();
const root = new URL('../..', import.meta.url).pathname;
const LABEL = 'hypershift.openshift.io/nodepool-globalps-enabled';
const SYNCER = inKubeSystem('DaemonSet', 'global-pull-secret-syncer', 'apps/v1');
const NODE_REF: TestObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-a' } };
const CR: TestObject = {
  apiVersion: 'config.openshift.io/v1',
  kind: 'CRIOCredentialProviderConfig',
  metadata: { name: 'cluster' },
};
const MACHINE_CONFIG: TestObject = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: '97-worker-generated-credentialproviderconfig' },
};
const definition = (name: string): TestObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name },
});
const OWN_NAMESPACE: TestObject = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'pullwright-system' },
};

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startControlPlane({
    controllerManager: true,
    crds: [
      'machineconfigpools.machineconfiguration.openshift.io',
      'machineconfigs.machineconfiguration.openshift.io',
    ],
  });
  const within = <T>(check: () => Promise<T>): Promise<T> => eventually(check, { withinMs: 90_000 });
  const uninstall = (...flags: string[]) =>
    runProcess([...NODE, 'uninstall', '--kubeconfig', plane.kubeconfig, ...flags], { deadlineMs: 180_000 });
  const kubelet = new StandIn(plane);

  test('a cluster with every system, and a reconciler that has done its work', async () => {
    const systems = Object.fromEntries(SYSTEMS.map(({ name }) => [name, {}]));
    const fleet = readFleet({
      image: 'registry.example.com/pullwright:1',
      clusters: [
        {
          name: 'every',
          path: '.',
          systems: {
            ...systems,
            'global-pull-secret': { createConfigNamespace: true },
            'credential-provider': { crd: true },
            'pull-secret-adapter': {
              api: 'https://hyperfleet.example.com',
              jobGoogleServiceAccount: 'pull-secrets@example-project.iam.gserviceaccount.com',
            },
          },
        },
      ],
    });
    const folder = join(plane.folder, 'manifests');
    writeTree(folder, renderFleet(fleet).tree);
    await within(async () => {
      const applied = await plane.kubectl('apply', '--server-side', '-k', folder);
      assert.equal(applied.code, 0, applied.stderr);
    });
    await plane.apply({
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'openshift-user-critical' },
      value: 1_000_000,
    });
    await plane.apply(NODE_REF);
    await plane.client.request(
      'PATCH',
      '/api/v1/nodes/node-a/status',
      {
        status: {
          nodeInfo: { kubeletVersion: 'v1.34.0', containerRuntimeVersion: 'cri-o://1.34.0' },
          conditions: [{ type: 'Ready', status: 'True' }],
        },
      },
      'application/merge-patch+json',
    );
    await plane.apply(
      {
        ...NODE_REF,
        metadata: { name: 'node-a', labels: { 'node-role.kubernetes.io/worker': '', [LABEL]: 'true' } },
      },
      'pullwright-global-pull-secret',
    );
    await plane.apply(platform('quay.io'));
    await plane.apply(additional('tenant.example.com'));
    await plane.apply({
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigPool',
      metadata: { name: 'worker', labels: { 'machineconfiguration.openshift.io/mco-built-in': '' } },
      spec: { nodeSelector: { matchLabels: { 'node-role.kubernetes.io/worker': '' } } },
    });
    await within(() => plane.apply({ ...CR, spec: { matchImages: ['mirror.example.com'] } }));
    kubelet.start();
    const config = join(plane.folder, 'config.yaml');
    const map = await plane.get({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'pullwright-reconciler-config', namespace: 'pullwright-system' },
    });
    writeFileSync(config, String(map?.['data']['config.yaml']));
    const reconciler = new ReconcilerProcess(NODE, [
      `--kubeconfig=${plane.kubeconfig}`,
      `--config=${config}`,
      '--lease-namespace=pullwright-system',
    ]);
    try {
      await within(async () =>
        assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['quay.io', 'tenant.example.com']),
      );
    } catch (error) {
      throw new Error(`${String(error)}\n${reconciler.log.slice(-3000)}`, { cause: error });
    }
    assert.equal(await reconciler.stop(), 0);
    // As the reconciler makes it where it may; whether it may is not what is tested here.
    const labels = { 'pullwright.dev/owner': 'credential-provider' };
    const spec = { config: { ignition: { version: '3.5.0' } } };
    await plane.apply({ ...MACHINE_CONFIG, metadata: { ...MACHINE_CONFIG.metadata, labels }, spec });
    await within(async () => assert.equal((await plane.get(SYNCER))?.['status'].numberReady, 1));
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
    assert.match(asked.stderr, /give --yes/);
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
    assert.notEqual(
      await plane.get(definition('machineconfigs.machineconfiguration.openshift.io')),
      undefined,
    );
  });

  test('once more: nothing to remove', async () => {
    const again = await uninstall('--yes');
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, /^0 removed, 1 kept$/m);
  });

  test('a namespace of ours that holds something of others stays, and it says what', async () => {
    const labels = { 'app.kubernetes.io/part-of': 'pullwright' };
    await plane.apply({ ...OWN_NAMESPACE, metadata: { name: 'pullwright-system', labels } });
    const foreign = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'theirs', namespace: 'pullwright-system' },
    };
    await within(() => plane.apply(foreign));
    const left = await uninstall('--yes');
    assert.equal(left.code, 0, left.stderr);
    assert.match(
      left.stdout,
      /^kept Namespace\/pullwright-system: it holds "ConfigMap\/pullwright-system\/theirs"$/m,
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

  test.lastly('the kubelet and the control plane stop', async () => {
    await kubelet.stop();
    await plane.stop();
  });
}

test.run();
