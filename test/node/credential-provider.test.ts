// deadline: 840 s
// needs: node
/**
 * The credential provider on a real node of kubeadm, with the shipped image, objects and commands: pods that pull through a
 * mirror with Secrets of their namespace, an outage of the API server, and the uninstallation.
 */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { RUNS, WAITS } from './machine/journey.ts';
import { NodeMachine } from './machine/node.ts';
import { IMAGE, pushProduct } from './machine/product.ts';
import { inMachine, step } from './machine/steps.ts';
import { outageSteps } from './provider-outage.ts';
import { DROP_IN, MIRROR, PLUGIN, ProviderScene } from './provider-scene.ts';
import { troubleSteps } from './provider-trouble.ts';
import { upgradeSteps } from './provider-upgrade.ts';

const MIRRORS = `[[registry]]
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

/** CRI-O's own folders, which docs/operations.md lists. */
const LEFT_ON_NODE = [
  '+ d 700 0:0 /etc/crio/auth',
  '+ d 700 0:0 /etc/crio/auth/in-use',
  '- d 755 0:0 /etc/crio/auth',
];
/** Namespaces with default objects, and objects of the test. */
const THEIRS =
  /^\+ (Namespace|ConfigMap \S+ kube-root-ca.crt$|ServiceAccount \S+ (default|app|other)$|Secret team-a (mirror|named)$)/;

await inMachine(import.meta.filename, journey);

async function journey(): Promise<void> {
  const node = await NodeMachine.start({ registries: { [MIRROR]: 'mirror' } });
  const { plane } = node;
  const scene = new ProviderScene(node);
  const mirror = node.registry(MIRROR);
  node.image(MIRROR, 'acme/web', '1');
  writeFileSync('/etc/containers/registries.conf.d/10-mirrors.conf', MIRRORS);
  writeFileSync('/var/lib/kubelet/config.json', node.registry('registry.example.com').config());
  const changed = await scene.snapshot();

  step('installed as the page says: the node reports that the provider ran there', async () => {
    node.run('/usr/bin/systemctl', 'restart', 'crio.service');
    await node.ready();
    await pushProduct(node);
    for (const name of ['team-a', 'team-b'])
      await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    for (const name of ['app', 'other'])
      await plane.apply(meta('v1 ServiceAccount', { name, namespace: 'team-a' }));
    await plane.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/dockerconfigjson',
      metadata: { name: 'mirror', namespace: 'team-a' },
      stringData: { '.dockerconfigjson': mirror.config() },
    });
    await scene.deliver(FLEET);
    await scene.ok(
      'until kubectl apply --server-side -k manifests/prod/overlays/config.openshift.io; do sleep 1; done',
    );
    await scene.inState('True', 'InSync');
  });

  step('a pod pulls through the mirror with the secret of its namespace, and no file stays', async () => {
    await scene.make(scene.pod('always', { policy: 'Always', image: 'web' }));
    assert.match(mirror.log(), /"GET \/v2\/acme\/web\/manifests\/1\S* HTTP\S+ 200 .*cri-o/);
    assert.deepEqual(scene.authFiles(), []);
  });

  step('the image stays private: neither another account nor another namespace starts it', async () => {
    const others = [
      [scene.pod('another', { account: 'other', image: 'web' }), WAITS],
      [
        scene.pod('stranger', { namespace: 'team-b', account: 'default', policy: 'Never', image: 'web' }),
        /ErrImageNeverPull/,
      ],
      [scene.pod('own', { policy: 'Never', image: 'web' }), RUNS],
    ] as const;
    for (const [pod, state] of others) await scene.make(pod, state);
    for (const [pod] of others) await plane.remove(pod);
  });

  troubleSteps(step, scene);
  outageSteps(step, scene);
  upgradeSteps(step, scene);

  step('uninstall leaves nothing on the node', async () => {
    await scene.ok(
      `sed -i 's/report: true/report: true, uninstall: true/' fleet.yaml
      pullwright synth --fleet fleet.yaml --to manifests
      kubectl apply --server-side -k manifests/prod
      kubectl -n kube-system rollout status daemonset/credential-provider-installer --timeout=120s`,
    );
    for (const gone of [DROP_IN, dirname(PLUGIN), '/etc/kubernetes/credential-providers'])
      await scene.within(async () => assert.equal(existsSync(gone), false, gone));
    assert.deepEqual(scene.authFiles(), []);
    await node.ready();
    assert.doesNotMatch(scene.kubeletCommand(), /image-credential-provider/);
  });

  step(
    'and nothing in the cluster: both are as they were, but for what people made and what is said to stay',
    async () => {
      await scene.ok('pullwright uninstall --yes');
      await node.ready();
      const { files, objects } = await changed();
      assert.deepEqual([files, objects.filter((line) => !THEIRS.test(line))], [LEFT_ON_NODE, []]);
    },
  );

  test.lastly('the machine stops', () => node.stop());
}
