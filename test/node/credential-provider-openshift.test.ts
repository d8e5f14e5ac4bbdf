// deadline: 600 s
// needs: node
/**
 * The credential provider on a real node with OpenShift's layout: first upstream's in the platform's folder of plugins, then ours
 * mounted over it by the rendered MachineConfigs. `/usr` is read-only.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { namespaceAccess, nodeAccess } from '../../runtime/credential-provider/access.ts';
import { executableMachineConfigs } from '../../runtime/credential-provider/objects.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { hostedConfig } from '../credential-provider/support/reconcile-once.ts';
import { findPlanted } from '../support/canary.ts';
import { test } from '../support/suite.ts';
import { Journey, WAITS } from './machine/journey.ts';
import { rollPool } from './machine/machine-configs.ts';
import { podOf } from './machine/node.ts';
import {
  furnish,
  kubeletConfig,
  NODE_SHAPE,
  OPERATOR_CRDS,
  PLUGIN,
  PLUGINS,
  WORKER_POOL,
} from './machine/plugins.ts';
import { IMAGE, pullSecretOf, pushProduct } from './machine/product.ts';
import { changes, nodeFiles } from './machine/snapshot.ts';
import { inMachine } from './machine/steps.ts';

const HOST = 'mirror.example.com';
const UNIT = 'pullwright-credential-provider.service';

/** State of the Machine Config Operator, and folders that it creates and does not remove. */
const OPERATORS =
  / \/etc\/(machine-config-daemon\/currentconfig|kubernetes\/credential-providers|systemd\/system\/(kubelet\.service\.d|multi-user\.target\.wants))$/;

await inMachine(import.meta.filename, journey);

async function journey(): Promise<void> {
  const { node, plane, within, make, rotate } = await Journey.start({
    layout: 'openshift',
    registries: { [HOST]: 'mirror' },
    crds: OPERATOR_CRDS,
  });
  const own = executableMachineConfigs({ pools: ['worker'], image: IMAGE }) as readonly TestObject[];
  const systemctl = (...args: readonly string[]): string => node.run('/usr/bin/systemctl', ...args);
  const pod = (name: string, namespace: string, repository: string, policy: string): TestObject => {
    const image = `quay.example.com/acme/${repository}:1`;
    return podOf(name, image, namespace, { containers: [{ name: 'main', image, imagePullPolicy: policy }] });
  };

  let before: ReadonlySet<string>;

  test('the original: it pulls through the mirror, and any namespace starts the image after that', async () => {
    furnish(node);
    before = nodeFiles(node);
    await plane.apply(WORKER_POOL);
    await plane.apply(kubeletConfig());
    assert.ok(await rollPool(node));
    for (const repository of ['first', 'second', 'third']) node.image(HOST, `acme/${repository}`, '1');
    for (const name of ['team-a', 'team-b'])
      await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    for (const object of namespaceAccess({ namespace: 'team-a' })) await plane.apply(object);
    await plane.apply(pullSecretOf('team-a', 'mirror', node.registry(HOST).config()));
    // Without the ClusterRole the kubelet cannot request a token for the provider.
    const early = pod('early', 'team-a', 'first', 'IfNotPresent');
    await make(early, WAITS);
    await plane.remove(early);
    for (const object of nodeAccess()) await plane.apply(object);
    await make(pod('own', 'team-a', 'first', 'IfNotPresent'));
    await make(pod('stranger', 'team-b', 'first', 'Never'));
  });

  test('ours over it: nothing of /usr is written, the kubelet is not restarted, the other plugins stay', async () => {
    await pushProduct(node);
    for (const object of own) await plane.apply(object);
    assert.ok(await rollPool(node));
    assert.equal(await rollPool(node), false);
    // The unit and the kubelet do not wait for each other.
    await within(() => systemctl('is-active', UNIT));
    const invocation = node.invocation();
    systemctl('restart', UNIT);
    assert.match(node.run(PLUGIN, '--version-json'), /^\{"version":"/);
    assert.match(node.run('/bin/ls', PLUGINS), /ecr-credential-provider/);
    assert.equal(node.invocation(), invocation);
    await make(pod('private', 'team-a', 'second', 'IfNotPresent'));
    await make(pod('curious', 'team-b', 'second', 'Never'), /ErrImageNeverPull/);
  });

  test('a rotated secret is used by the next pull, and no credential is in what the kubelet logs', async () => {
    await plane.apply(pullSecretOf('team-a', 'mirror', await rotate(HOST, 'rotated')));
    await make(pod('rotated', 'team-a', 'second', 'Always'));
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
    // As HyperShift delivers it to the nodes of a NodePool.
    const { metadata, ...rest } = hostedConfig(IMAGE, {}, NODE_SHAPE);
    const labels = { 'machineconfiguration.openshift.io/role': 'worker' };
    await plane.apply({ ...rest, metadata: { name: metadata.name, labels } });
    assert.ok(await rollPool(node));
    await within(() => systemctl('is-active', UNIT));
    assert.match(node.run(PLUGIN, '--version-json'), /^\{"version":"/);
    await make(pod('hosted', 'team-a', 'third', 'IfNotPresent'));
    await make(pod('prying', 'team-b', 'third', 'Never'), /ErrImageNeverPull/);
  });

  test.lastly('the machine stops', () => node.stop());
}
