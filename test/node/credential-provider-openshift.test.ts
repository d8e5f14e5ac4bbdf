// deadline: 600 s
/**
 * The credential provider on a real node laid out as OpenShift's: the original in the platform's folder of plugins first, then
 * ours over it, by the MachineConfigs that are rendered. `/usr` is read-only.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { namespaceAccess, nodeAccess } from '../../charts/credential-provider/access.ts';
import { credentialProviderSystem } from '../../charts/credential-provider/chart.ts';
import { executableMachineConfigs } from '../../charts/credential-provider/executable.ts';
import { parseReconcilerOptions } from '../../runtime/credential-provider/reconciler/options.ts';
import { credentialProviderReconciler } from '../../runtime/credential-provider/reconciler/reconciler.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { clusterObjects, worldOf } from '../credential-provider/support/world-double.ts';
import { suite } from '../support/suite.ts';
import { missingNode } from './machine/build.ts';
import { machineFolder, runInside } from './machine/namespaces.ts';
import { NodeMachine, podOf } from './machine/node.ts';
import { IMAGE, pushProduct } from './machine/product.ts';

const PLUGINS = '/usr/libexec/kubelet-image-credential-provider-plugins';
const PLUGIN = `${PLUGINS}/crio-credential-provider`;
const UNIT = 'pullwright-credential-provider.service';
const MIRROR =
  '[[registry]]\nprefix = "quay.example.com"\nlocation = "quay.example.com"\n[[registry.mirror]]\nlocation = "mirror.example.com"\n';

/** The calls of podman that the rendered script makes, with the programs that a test machine has. */
const PODMAN = `#!/bin/bash
set -euo pipefail
store=/run/podman-of-the-test
case "$1" in
  pull) mkdir -p "$store"; skopeo copy -q --authfile "$4" "docker://$5" "dir:$store/image" ;;
  create) echo c0ffee ;;
  cp) for layer in "$store"/image/*; do
        if tar -xOf "$layer" "\${2#*:/}" > "$3" 2> /dev/null || tar -xOf "$layer" "./\${2#*:/}" > "$3" 2> /dev/null; then exit 0; fi
      done; exit 125 ;;
  rm) rm -rf "$store" ;;
  *) exit 125 ;;
esac
`;

interface MachineConfig {
  readonly spec: {
    readonly config: {
      readonly storage: {
        readonly files?: readonly {
          readonly path: string;
          readonly mode: number;
          readonly contents: { readonly source: string };
        }[];
      };
      readonly systemd: { readonly units?: readonly { readonly name: string; readonly contents: string }[] };
    };
  };
}

/** What the Machine Config Daemon does with one. */
function applyConfig(object: unknown): void {
  const { storage, systemd } = (object as MachineConfig).spec.config;
  for (const { path, mode, contents } of storage.files ?? []) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, Buffer.from(contents.source.split(',')[1] ?? '', 'base64'));
    chmodSync(path, mode);
  }
  for (const { name, contents } of systemd.units ?? [])
    writeFileSync(`/etc/systemd/system/${name}`, contents);
}

/** The reconciler's, for this platform. */
function kubeletConfig(): unknown {
  const nodes = [{ name: 'node1', pool: 'worker', kubelet: 'v1.36.3', runtime: 'cri-o://1.36.1' }];
  const matchImages = ['quay.example.com'];
  const objects = clusterObjects({ platform: 'BareMetal', pools: ['worker'], nodes, matchImages });
  const outcome = credentialProviderReconciler(parseReconcilerOptions({})).reconcile(worldOf(objects), {
    scope: 'local',
    name: 'cluster',
  });
  const [applied] = outcome.apply ?? [];
  assert.ok(applied !== undefined && 'object' in applied);
  return applied.object;
}

/** What a NodePool's nodes get by the ConfigMap of a hosted cluster with the section `executable: {}`. */
function hostedConfig(): unknown {
  const east = {
    cluster: { image: IMAGE, hostedCluster: { namespace: 'clusters', name: 'east' } },
    config: { executable: {}, provider: {} },
  };
  const part = credentialProviderSystem.managementReconciler?.({} as never, [east as never], undefined);
  const nodes = [{ name: 'node1', pool: 'worker', kubelet: 'v1.36.3', runtime: 'cri-o://1.36.1' }];
  const matchImages = ['quay.example.com'];
  const world = worldOf(clusterObjects({ hosted: true, platform: 'BareMetal', nodes, matchImages }), true);
  const reconciler = credentialProviderReconciler(parseReconcilerOptions(part?.options ?? {}));
  const [applied] = reconciler.reconcile(world, { scope: 'clusters/east', name: 'cluster' }).apply ?? [];
  assert.ok(applied !== undefined && 'object' in applied);
  return JSON.parse((applied.object['data'] as { readonly config: string }).config);
}

/** As the platform's image has it: the original in its folder, and `/usr/local` that leads into `/var`. */
function furnish(node: NodeMachine): void {
  const mount = (...args: readonly string[]): unknown => execFileSync('mount', args);
  mount('-o', 'remount,rw', '/usr');
  mkdirSync(PLUGINS, { recursive: true });
  copyFileSync(node.binaries.originalProvider, PLUGIN);
  writeFileSync(`${PLUGINS}/ecr-credential-provider`, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  writeFileSync('/usr/bin/podman', PODMAN, { mode: 0o755 });
  const local = join(node.folder, 'usrlocal');
  cpSync('/usr/local/bin/kubenswrapper', join(local, 'bin/kubenswrapper'), { recursive: true });
  mount('-o', 'remount,ro', '/usr');
  mount('--bind', local, '/usr/local');
  const { port } = new URL(node.plane.server);
  writeFileSync(
    '/etc/kubernetes/apiserver-url.env',
    `KUBERNETES_SERVICE_HOST='10.99.0.10'\nKUBERNETES_SERVICE_PORT='${port}'\n`,
  );
  writeFileSync('/etc/containers/registries.conf.d/10-mirrors.conf', MIRROR);
  writeFileSync('/var/lib/kubelet/config.json', node.registry('registry.example.com').config());
}

const missing = missingNode();
if (missing === undefined && machineFolder() === undefined)
  process.exitCode = await runInside(import.meta.filename);
else {
  const test = suite('credential provider on a node of OpenShift');
  if (missing !== undefined) test.skip('the journey', missing);
  else await journey(test);
  test.run();
}

async function journey(test: ReturnType<typeof suite>): Promise<void> {
  const node = await NodeMachine.start({
    layout: 'openshift',
    registries: { 'mirror.example.com': 'mirror' },
  });
  const { plane } = node;
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

  test('the original: it pulls through the mirror, and any namespace starts the image after that', async () => {
    furnish(node);
    applyConfig(kubeletConfig());
    systemctl('daemon-reload');
    systemctl('restart', 'crio.service');
    systemctl('restart', 'kubelet.service');
    await node.ready();
    for (const repository of ['first', 'second']) node.image('mirror.example.com', `acme/${repository}`, '1');
    for (const name of ['team-a', 'team-b'])
      await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    for (const object of [...nodeAccess(), ...namespaceAccess({ namespace: 'team-a' })])
      await plane.apply(object);
    await plane.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/dockerconfigjson',
      metadata: { name: 'mirror', namespace: 'team-a' },
      stringData: { '.dockerconfigjson': node.registry('mirror.example.com').config() },
    });
    await becomes(pod('own', 'team-a', 'first', 'IfNotPresent'), /"running"/);
    await becomes(pod('stranger', 'team-b', 'first', 'Never'), /"running"/);
  });

  test('ours over it: nothing of /usr is written, the kubelet is not restarted, the other plugins stay', async () => {
    await pushProduct(node);
    const before = node.invocation();
    for (const object of executableMachineConfigs({ pools: ['worker'], image: IMAGE })) applyConfig(object);
    systemctl('daemon-reload');
    systemctl('start', UNIT);
    assert.match(node.run(PLUGIN, '--version-json'), /^\{"version":"/);
    assert.match(node.run('/bin/ls', PLUGINS), /ecr-credential-provider/);
    assert.equal(node.invocation(), before);
    await becomes(pod('private', 'team-a', 'second', 'IfNotPresent'), /"running"/);
    await becomes(pod('curious', 'team-b', 'second', 'Never'), /ErrImageNeverPull/);
  });

  test('taken back, the platform’s plugin is there again', () => {
    systemctl('stop', UNIT);
    assert.doesNotMatch(node.run(PLUGIN, '--version-json'), /^\{"version":"/);
  });

  test('a hosted cluster: the ConfigMap of its NodePools brings file, unit and executable, and it pulls', async () => {
    applyConfig(hostedConfig());
    systemctl('daemon-reload');
    systemctl('restart', 'kubelet.service');
    systemctl('start', UNIT);
    await node.ready();
    assert.match(node.run(PLUGIN, '--version-json'), /^\{"version":"/);
    node.image('mirror.example.com', 'acme/third', '1');
    await becomes(pod('hosted', 'team-a', 'third', 'IfNotPresent'), /"running"/);
    await becomes(pod('prying', 'team-b', 'third', 'Never'), /ErrImageNeverPull/);
  });

  test.lastly('the machine stops', () => node.stop());
}
