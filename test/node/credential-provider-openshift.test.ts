// deadline: 600 s
// needs: node
/**
 * The credential provider on a real node laid out as OpenShift's: the original in the platform's folder of plugins first, then
 * ours over it, by the MachineConfigs that are rendered. `/usr` is read-only.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { credentialProviderSystem } from '../../charts/credential-provider/chart.ts';
import { namespaceAccess, nodeAccess } from '../../runtime/credential-provider/access.ts';
import { executableMachineConfigs } from '../../runtime/credential-provider/objects.ts';
import { parseReconcilerOptions } from '../../runtime/credential-provider/options.ts';
import { credentialProviderReconciler } from '../../runtime/credential-provider/reconciler/reconcile.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { clusterObjects, worldOf } from '../credential-provider/support/world-double.ts';
import { findPlanted, plantedPassword } from '../support/canary.ts';
import { test } from '../support/suite.ts';
import { rollPool } from './machine/machine-configs.ts';
import { NodeMachine, podOf } from './machine/node.ts';
import { furnish, kubeletConfig, OPERATOR_CRDS, PLUGIN, PLUGINS, WORKER_POOL } from './machine/plugins.ts';
import { IMAGE, pullSecretOf, pushProduct } from './machine/product.ts';
import { changes, nodeFiles } from './machine/snapshot.ts';
import { inMachine } from './machine/steps.ts';

const UNIT = 'pullwright-credential-provider.service';

/** What the Machine Config Operator keeps for itself, and folders that it made and does not take away. */
const OPERATORS =
  / \/etc\/(machine-config-daemon\/currentconfig|kubernetes\/credential-providers|systemd\/system\/(kubelet\.service\.d|multi-user\.target\.wants))$/;

/** What a NodePool's nodes get by the ConfigMap of a hosted cluster with the section `executable: {}`. */
function hostedConfig(): TestObject {
  const east = {
    cluster: { image: IMAGE, hostedCluster: { namespace: 'clusters', name: 'east' } },
    config: { executable: {}, provider: {} },
  };
  const part = credentialProviderSystem.managementReconciler?.({} as never, [east as never], undefined);
  const nodes = [{ name: 'node1', pool: 'worker', kubelet: 'v1.36.3', runtime: 'cri-o://1.36.1' }];
  const matchImages = ['quay.example.com'];
  const reader = worldOf(clusterObjects({ hosted: true, platform: 'BareMetal', nodes, matchImages }), true);
  const reconciler = credentialProviderReconciler(parseReconcilerOptions(part?.options ?? {}));
  const [applied] = reconciler.reconcile(reader, { scope: 'clusters/east', name: 'cluster' }).apply ?? [];
  assert.ok(applied !== undefined && 'object' in applied);
  return JSON.parse((applied.object['data'] as { readonly config: string }).config) as TestObject;
}

await inMachine(import.meta.filename, journey);

async function journey(): Promise<void> {
  const node = await NodeMachine.start({
    layout: 'openshift',
    registries: { 'mirror.example.com': 'mirror' },
    crds: OPERATOR_CRDS,
  });
  const { plane } = node;
  const own = executableMachineConfigs({ pools: ['worker'], image: IMAGE }) as readonly TestObject[];
  const systemctl = (...args: readonly string[]): string => node.run('/usr/bin/systemctl', ...args);
  const within = <T>(check: () => Promise<T>): Promise<T> =>
    eventually(check, { withinMs: 180_000, everyMs: 250 });
  const pod = (name: string, namespace: string, repository: string, policy: string): TestObject => {
    const image = `quay.example.com/acme/${repository}:1`;
    return podOf(name, image, namespace, { containers: [{ name: 'main', image, imagePullPolicy: policy }] });
  };
  const becomes = async (object: TestObject, state: RegExp): Promise<void> => {
    await within(() => plane.apply(object));
    await within(async () =>
      assert.match(JSON.stringify((await plane.get(object))?.['status'] ?? {}), state, node.logs()),
    );
  };

  const mirror = node.registry('mirror.example.com');

  let before: ReadonlySet<string>;

  test('the original: it pulls through the mirror, and any namespace starts the image after that', async () => {
    furnish(node);
    before = nodeFiles(node);
    await plane.apply(WORKER_POOL);
    await plane.apply(kubeletConfig());
    assert.ok(await rollPool(node));
    for (const repository of ['first', 'second', 'third'])
      node.image('mirror.example.com', `acme/${repository}`, '1');
    for (const name of ['team-a', 'team-b'])
      await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    for (const object of namespaceAccess({ namespace: 'team-a' })) await plane.apply(object);
    await plane.apply(pullSecretOf('team-a', 'mirror', mirror.config()));
    // Without the ClusterRole the kubelet gets no token for the provider.
    const early = pod('early', 'team-a', 'first', 'IfNotPresent');
    await becomes(early, /ErrImagePull|ImagePullBackOff/);
    await plane.remove(early);
    for (const object of nodeAccess()) await plane.apply(object);
    await becomes(pod('own', 'team-a', 'first', 'IfNotPresent'), /"running"/);
    await becomes(pod('stranger', 'team-b', 'first', 'Never'), /"running"/);
  });

  test('ours over it: nothing of /usr is written, the kubelet is not restarted, the other plugins stay', async () => {
    await pushProduct(node);
    for (const object of own) await plane.apply(object);
    assert.ok(await rollPool(node));
    assert.equal(await rollPool(node), false);
    // It waits for no kubelet, nor a kubelet for it.
    await within(() => Promise.resolve(systemctl('is-active', UNIT)));
    const invocation = node.invocation();
    systemctl('restart', UNIT);
    assert.match(node.run(PLUGIN, '--version-json'), /^\{"version":"/);
    assert.match(node.run('/bin/ls', PLUGINS), /ecr-credential-provider/);
    assert.equal(node.invocation(), invocation);
    await becomes(pod('private', 'team-a', 'second', 'IfNotPresent'), /"running"/);
    await becomes(pod('curious', 'team-b', 'second', 'Never'), /ErrImageNeverPull/);
  });

  test('a rotated secret is used by the next pull, and no credential is in what the kubelet logs', async () => {
    const rotated = plantedPassword('rotated');
    await mirror.stop();
    mirror.setPassword(rotated);
    await mirror.start();
    await plane.apply(pullSecretOf('team-a', 'mirror', mirror.config(undefined, rotated)));
    await becomes(pod('rotated', 'team-a', 'second', 'Always'), /"running"/);
    assert.equal(findPlanted(readFileSync('/var/log/kubelet.log', 'utf8')), undefined);
  });

  test('taken back, the platform’s plugin is there again, and files and units are gone', async () => {
    systemctl('stop', UNIT);
    assert.doesNotMatch(node.run(PLUGIN, '--version-json'), /^\{"version":"/);
    for (const object of [kubeletConfig(), ...own]) await plane.remove(object);
    assert.ok(await rollPool(node));
    const left = changes(before, nodeFiles(node)).filter((line) => !OPERATORS.test(line));
    assert.deepEqual(
      left.filter((line) => !/ \/etc\/crio\/auth(\/(failed|in-use))?(\/[0-9a-f]{64}\.json)?$/.test(line)),
      [],
    );
    assert.equal(
      node.run('/usr/bin/find', '/etc/crio/auth', '-type', 'f', '-not', '-path', '*/failed/*'),
      '',
    );
    assert.throws(() => systemctl('cat', UNIT));
  });

  test('a hosted cluster: the ConfigMap of its NodePools brings file, unit and executable, and it pulls', async () => {
    // As HyperShift hands it to the pool of its nodes.
    const { metadata, ...rest } = hostedConfig();
    const labels = { 'machineconfiguration.openshift.io/role': 'worker' };
    await plane.apply({ ...rest, metadata: { name: metadata.name, labels } });
    assert.ok(await rollPool(node));
    await within(() => Promise.resolve(systemctl('is-active', UNIT)));
    assert.match(node.run(PLUGIN, '--version-json'), /^\{"version":"/);
    await becomes(pod('hosted', 'team-a', 'third', 'IfNotPresent'), /"running"/);
    await becomes(pod('prying', 'team-b', 'third', 'Never'), /ErrImageNeverPull/);
  });

  test.lastly('the machine stops', () => node.stop());
}
