// deadline: 600 s
/**
 * The credential provider on a real node of kubeadm: image, rendered objects and commands as users get them; pods that pull
 * through a mirror with the secrets of their namespace, what that means while the API server is away, and the way out.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { suite } from '../support/suite.ts';
import { missingNode } from './machine/build.ts';
import { ContainersOf } from './machine/containers.ts';
import { machineFolder, runInside } from './machine/namespaces.ts';
import { NODE_NAME, NodeMachine, podOf } from './machine/node.ts';
import { IMAGE, pushProduct, shell } from './machine/product.ts';

const DROP_IN = '/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf';
const PLUGIN = '/usr/libexec/kubelet-image-credential-provider-plugins/crio-credential-provider';
const AUTH_DIR = '/etc/crio/auth';
const WEB = 'quay.example.com/acme/web:1';
const MIRROR = `[[registry]]
prefix = "quay.example.com"
location = "quay.example.com"
[[registry.mirror]]
location = "mirror.example.com"
`;
const FLEET = `
image: ${IMAGE}
clusters:
  - name: prod
    systems:
      credential-provider:
        crd: true
        createConfigNamespace: true
        matchImages: [quay.example.com]
        namespaces:
          - { namespace: team-a, serviceAccounts: [app] }
        installer: { restartWindowSeconds: 0, report: true }
`;

const missing = missingNode();
if (missing === undefined && machineFolder() === undefined)
  process.exitCode = await runInside(import.meta.filename);
else {
  const test = suite('credential provider on a node');
  if (missing !== undefined) test.skip('the journey', missing);
  else await journey(test);
  test.run();
}

async function journey(test: ReturnType<typeof suite>): Promise<void> {
  const node = await NodeMachine.start({ registries: { 'mirror.example.com': 'mirror' } });
  const { plane } = node;
  const containers = new ContainersOf(node);
  const mirror = node.registry('mirror.example.com');
  node.image('mirror.example.com', 'acme/web', '1');
  const within = <T>(check: () => Promise<T>, withinMs = 180_000): Promise<T> =>
    eventually(check, { withinMs, everyMs: 250 });
  const podState = async (name: string, namespace: string): Promise<string> =>
    JSON.stringify((await plane.get(podOf(name, WEB, namespace)))?.['status'] ?? {});
  const running = (name: string, namespace = 'team-a'): Promise<void> =>
    within(async () => assert.match(await podState(name, namespace), /"running"/, node.logs()));
  const ok = async (lines: string): Promise<string> => {
    const ran = await shell(node, lines);
    assert.equal(ran.code, 0, `${lines}\n${ran.stdout.slice(-1000)}\n${ran.stderr.slice(-2000)}`);
    return ran.stdout;
  };
  const pod = (name: string, account: string, policy: string, namespace = 'team-a'): TestObject =>
    podOf(name, WEB, namespace, {
      serviceAccountName: account,
      containers: [{ name: 'main', image: WEB, imagePullPolicy: policy }],
    });
  const authFiles = (): readonly string[] => readdirSync(AUTH_DIR).filter((name) => name !== 'in-use');

  const inSync = async (): Promise<void> => {
    await within(async () => {
      const reported = await plane.get({
        apiVersion: 'pullwright.dev/v1alpha1',
        kind: 'PullStatus',
        metadata: { name: `credential-provider-node-${NODE_NAME}`, namespace: 'kube-system' },
      });
      const { conditions = [] } = (reported?.['status'] ?? {}) as {
        conditions?: readonly { type: string; status: string; reason: string }[];
      };
      const ready = conditions.find(({ type }) => type === 'Ready');
      assert.deepEqual([ready?.status, ready?.reason], ['True', 'InSync'], node.logs());
    });
  };

  test('installed as the page says: the node reports that the provider ran there', async () => {
    writeFileSync('/etc/containers/registries.conf.d/10-mirrors.conf', MIRROR);
    node.run('/usr/bin/systemctl', 'restart', 'crio.service');
    await node.ready();
    await pushProduct(node);
    writeFileSync('/var/lib/kubelet/config.json', node.registry('registry.example.com').config());
    for (const name of ['team-a', 'team-b'])
      await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    for (const name of ['app', 'other'])
      await plane.apply({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name, namespace: 'team-a' },
      });
    await plane.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/dockerconfigjson',
      metadata: { name: 'mirror', namespace: 'team-a' },
      stringData: { '.dockerconfigjson': mirror.config() },
    });
    await ok(`cat > fleet.yaml <<'X'${FLEET}X
      pullwright validate fleet.yaml
      pullwright synth --fleet fleet.yaml --to manifests
      kubectl apply --server-side -k manifests/prod
      until kubectl apply --server-side -k manifests/prod/overlays/config.openshift.io; do sleep 1; done`);
    await inSync();
  });

  test('a pod pulls through the mirror with the secret of its namespace, and no file stays', async () => {
    await within(() => plane.apply(pod('always', 'app', 'Always')));
    await running('always');
    assert.match(mirror.log(), /"GET \/v2\/acme\/web\/manifests\/1\S* HTTP\S+ 200 .*cri-o/);
    assert.deepEqual(authFiles(), []);
  });

  test('the image stays private: neither another account nor another namespace starts it', async () => {
    await plane.apply(pod('other', 'other', 'IfNotPresent'));
    await plane.apply(pod('stranger', 'default', 'Never', 'team-b'));
    await within(async () =>
      assert.match(await podState('other', 'team-a'), /ErrImagePull|ImagePullBackOff/),
    );
    await within(async () => assert.match(await podState('stranger', 'team-b'), /ErrImageNeverPull/));
    for (const [name, namespace] of [
      ['other', 'team-a'],
      ['stranger', 'team-b'],
    ] as const)
      await plane.remove(pod(name, 'app', 'Always', namespace));
  });

  /** A pod whose image no other has, so that no other's file or record counts for it. */
  const started = async (name: string): Promise<void> => {
    node.image('mirror.example.com', `acme/${name}`, '1');
    const image = `quay.example.com/acme/${name}:1`;
    const containersOf = [{ name: 'main', image, imagePullPolicy: 'IfNotPresent' }];
    await plane.apply(podOf(name, image, 'team-a', { serviceAccountName: 'app', containers: containersOf }));
    await running(name);
    assert.deepEqual(authFiles(), []);
  };

  test('private: the kubelet asks for the ServiceAccount before the provider, so a container waits for the API server', async () => {
    await started('private');
    await plane.apiServer.kill();
    containers.kill(['private']);
    await eventually(() =>
      assert.match(
        readFileSync('/var/log/kubelet.log', 'utf8'),
        /failed to get service account.*acme\/private/,
      ),
    );
    await plane.apiServer.start();
    await containers.again(['private']);
    await node.ready();
  });

  test('uninstall leaves nothing on the node', async () => {
    await ok(`sed -i 's/report: true/report: true, uninstall: true/' fleet.yaml
      pullwright synth --fleet fleet.yaml --to manifests
      kubectl apply --server-side -k manifests/prod
      kubectl -n kube-system rollout status daemonset/credential-provider-installer --timeout=120s`);
    await within(async () => assert.equal(existsSync(DROP_IN), false));
    await within(async () => assert.equal(existsSync(PLUGIN), false));
    // The installer's own folder goes last.
    await within(async () => assert.deepEqual(readdirSync('/etc/kubernetes/credential-providers'), []));
    assert.deepEqual(authFiles(), []);
    await node.ready();
    const command = node.run('/bin/sh', '-c', 'cat /proc/$(systemctl show -P MainPID kubelet)/cmdline');
    assert.doesNotMatch(command, /image-credential-provider/);
  });

  test.lastly('the machine stops', () => node.stop());
}
