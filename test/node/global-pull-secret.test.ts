// deadline: 600 s
// needs: node
/**
 * A tenant's pull secret on a real node of kubeadm, with the shipped image, objects and commands: up to the running pod, and the
 * uninstallation.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import type { TestObject } from '../control-plane/resource-path.ts';
import { inKubeSystem, SYNCER } from '../reconcile/scene.ts';
import { test } from '../support/suite.ts';
import { type Changed, Journey, RUNS, WAITS } from './machine/journey.ts';
import { NODE_NAME, podOf } from './machine/node.ts';
import { IMAGE, pullSecretOf, pushProduct } from './machine/product.ts';
import { inMachine, step } from './machine/steps.ts';

const CONFIG = '/var/lib/kubelet/config.json';
const TENANT = 'quay.example.com';
const NODE_STATUS = inKubeSystem('PullStatus', `node-${NODE_NAME}`, 'pullwright.dev/v1alpha1');
const FLEET = `
image: ${IMAGE}
clusters:
  - name: prod
    systems:
      global-pull-secret:
        createConfigNamespace: true
        agent:
          report: true
          alsoNodes: [{ kubernetes.io/os: linux }]
`;

/** The namespace created for it stays, because it holds a Secret of a person. */
const THEIRS = [
  '+ ConfigMap openshift-config kube-root-ca.crt',
  '+ Namespace <none> openshift-config',
  '+ Secret openshift-config pull-secret',
  '+ ServiceAccount openshift-config default',
];

await inMachine(import.meta.filename, walk);

async function walk(): Promise<void> {
  const journey = await Journey.start({ registries: { [TENANT]: 'tenant' } });
  const { node, plane, within, ok, becomes, make, inOrder, doctor } = journey;
  const platform = node.registry('registry.example.com');
  const image = node.image(TENANT, 'acme/web', '1');
  const pod = (name: string): TestObject => podOf(name, image);
  const give = (config: string): Promise<unknown> =>
    plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', config));
  const keys = (): readonly string[] =>
    Object.keys((JSON.parse(readFileSync(CONFIG, 'utf8')) as { auths: object }).auths).sort();
  let changed: () => Promise<Changed>;

  step('installed as the page says, every pod of ours runs, and the agent runs as root', async () => {
    await pushProduct(node);
    // The administrator's file, with which nodes pull from the platform's registry.
    await ok(`printf %s '${platform.config()}' > platform.json && install -m 0600 platform.json ${CONFIG}`);
    changed = await journey.snapshot();
    await journey.deliver(FLEET);
    await plane.apply(pullSecretOf('openshift-config', 'pull-secret', platform.config()));
    await becomes(SYNCER, /"numberReady":1\b/);
    const uids = node
      .run('/bin/sh', '-c', 'stat -c %u $(ls -d /proc/[0-9]*) 2>/dev/null; ps -eo uid,args')
      .split('\n');
    const agents = uids.filter((line) => line.includes('/usr/bin/pullwright agent'));
    assert.deepEqual(
      agents.map((line) => line.trim().split(/\s+/)[0]),
      ['0'],
    );
  });

  step('before there is a secret, the pod of the tenant does not run', async () => {
    await make(pod('web'), WAITS);
    await doctor(pod('web'), /^ +broken +credential /);
    await inOrder();
  });

  step('with the secret it runs: file, owners, kubelet, PullStatus and status agree', async () => {
    const before = node.invocation();
    await give(node.registry(TENANT).config());
    await becomes(pod('web'), RUNS, 400_000);
    assert.deepEqual(keys(), ['quay.example.com', 'registry.example.com']);
    const { uid, gid, mode } = statSync(CONFIG);
    assert.deepEqual([uid, gid, mode & 0o777], [0, 0, 0o600]);
    assert.notEqual(node.invocation(), before);
    await becomes(NODE_STATUS, /"status":"True","type":"Ready"/);
    await inOrder();
    await doctor(pod('web'), undefined);
    assert.match(await ok('kubectl get events -A'), /Normal .*PullSecretWritten/);
  });

  step('rotated at the registry, then in the secret: a new pod waits for the second, and runs', async () => {
    const config = await journey.rotate(TENANT, 'rotated');
    await make(pod('rotated'), WAITS);
    await doctor(pod('rotated'), /^ +broken +registry /);
    await give(config);
    await becomes(pod('rotated'), RUNS, 400_000);
    await inOrder();
    await doctor(pod('rotated'), undefined);
  });

  step(
    'broken: the last good entry stays on the node, a new pod runs, and the tenant is told which entry',
    async () => {
      await give('{"auths":{"quay.example.com":{"auth":"%%"}}}');
      await journey.wantsAttention(/Attention .*secret-additional-pull-secret .*1 rejected/);
      assert.match(await ok('kubectl get events -A'), /Warning .*additional-pull-secret/);
      assert.deepEqual(keys(), ['quay.example.com', 'registry.example.com']);
      await make(pod('broken'));
    },
  );

  step(
    'without an entry, and then removed: the node has the platform’s alone, and all is in order',
    async () => {
      const before = node.invocation();
      await give('{"auths":{}}');
      await within(() => assert.deepEqual(keys(), ['registry.example.com']), 400_000);
      // Until its restart the kubelet caches removed credentials.
      await within(() => assert.notEqual(node.invocation(), before), 400_000);
      await node.ready();
      await make(pod('empty'), WAITS);
      await doctor(pod('empty'), /^ +broken +credential /);
      await ok('kubectl -n kube-system delete secret additional-pull-secret');
      await inOrder();
      assert.deepEqual(keys(), ['registry.example.com']);
      assert.match(await journey.state(pod('web')), RUNS);
    },
  );

  step('the way out leaves the node with its file and nothing of ours', async () => {
    await ok('pullwright uninstall --yes');
    assert.equal(existsSync('/var/lib/kubelet/.pullwright'), false);
    assert.deepEqual(keys(), ['registry.example.com']);
    await node.ready();
    assert.match(await journey.state(pod('web')), RUNS);
    const config = new RegExp(`^[-+] [0-9a-f]{64}  ${CONFIG}$`);
    const { files, objects } = await changed();
    assert.deepEqual([files.filter((line) => !config.test(line)), objects], [[], THEIRS]);
  });

  test.lastly('the machine stops', journey.stop);
}
