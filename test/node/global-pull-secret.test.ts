// deadline: 600 s
// needs: node
/**
 * The journey of a tenant's pull secret on a real node of kubeadm: the image, the rendered objects and the commands as users
 * get them, up to the pod that runs, and the way out.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { plantedPassword } from '../support/canary.ts';
import { test } from '../support/suite.ts';
import { NODE_NAME, NodeMachine, podOf } from './machine/node.ts';
import { IMAGE, pullSecretOf, pushProduct, shell } from './machine/product.ts';
import { changes, clusterObjects, nodeFiles } from './machine/snapshot.ts';
import { inMachine, step } from './machine/steps.ts';

const CONFIG = '/var/lib/kubelet/config.json';
const SYNCER: TestObject = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'global-pull-secret-syncer', namespace: 'kube-system' },
};
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

/** The namespace that was made for it stays, as it holds the Secret of a person. */
const THEIRS = [
  '+ ConfigMap openshift-config kube-root-ca.crt',
  '+ Namespace <none> openshift-config',
  '+ Secret openshift-config pull-secret',
  '+ ServiceAccount openshift-config default',
];

await inMachine(import.meta.filename, journey);

async function journey(): Promise<void> {
  const node = await NodeMachine.start({ registries: { 'quay.example.com': 'tenant' } });
  const { plane } = node;
  const platform = node.registry('registry.example.com');
  const tenant = node.registry('quay.example.com');
  const image = node.image('quay.example.com', 'acme/web', '1');
  const within = <T>(check: () => Promise<T>, withinMs = 180_000): Promise<T> =>
    eventually(check, { withinMs, everyMs: 250 });
  const keys = (): readonly string[] =>
    Object.keys((JSON.parse(readFileSync(CONFIG, 'utf8')) as { auths: object }).auths).sort();
  const podState = async (name: string): Promise<string> =>
    JSON.stringify((await plane.get(podOf(name, image)))?.['status'] ?? {});
  const ok = async (lines: string): Promise<string> => {
    const ran = await shell(node, lines);
    assert.equal(ran.code, 0, `${lines}\n${ran.stdout.slice(-1000)}\n${ran.stderr.slice(-2000)}`);
    return ran.stdout;
  };

  /** Nothing wants attention, and every node is said to have what was decided. */
  const inOrder = (): Promise<void> => within(async () => void (await ok('pullwright status')), 120_000);
  /** What `doctor` says of a pod: the first link that is broken, or that none is. */
  const doctorSays = (pod: string, link: string | undefined): Promise<void> =>
    within(async () => {
      const { code, stdout } = await shell(node, `pullwright doctor pod/${pod} -n default`);
      const [, broken] = /^ {2}broken +(\S+)/m.exec(stdout) ?? [];
      assert.deepEqual([code, broken], [link === undefined ? 0 : 1, link], stdout);
    });
  let files: ReadonlySet<string>;
  let objects: ReadonlySet<string>;

  step('installed as the page says, every pod of ours runs, and the agent runs as root', async () => {
    await pushProduct(node);
    // What an administrator put there so that nodes can pull from the platform's registry at all.
    await ok(`printf %s '${platform.config()}' > platform.json && install -m 0600 platform.json ${CONFIG}`);
    files = nodeFiles(node);
    objects = await clusterObjects(node);
    await ok(`cat > fleet.yaml <<'X'${FLEET}X
      pullwright validate fleet.yaml
      pullwright synth --fleet fleet.yaml --to manifests
      kubectl apply --server-side -k manifests/prod`);
    await plane.apply(pullSecretOf('openshift-config', 'pull-secret', platform.config()));
    await within(async () => {
      const { numberReady } = ((await plane.get(SYNCER))?.['status'] ?? {}) as { numberReady?: number };
      assert.equal(
        numberReady,
        1,
        (await ok('kubectl get pods -A -o wide; kubectl get events -A')).slice(-3000),
      );
    });
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
    await within(() => plane.apply(podOf('web', image)));
    await within(async () => assert.match(await podState('web'), /ErrImagePull|ImagePullBackOff/));
    await doctorSays('web', 'credential');
    await inOrder();
  });

  step('with the secret it runs: file, owners, kubelet, PullStatus and status agree', async () => {
    const before = node.invocation();
    await plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', tenant.config()));
    await within(async () => assert.match(await podState('web'), /"running"/, node.logs()), 400_000);
    assert.deepEqual(keys(), ['quay.example.com', 'registry.example.com']);
    const { uid, gid, mode } = statSync(CONFIG);
    assert.deepEqual([uid, gid, mode & 0o777], [0, 0, 0o600]);
    assert.notEqual(node.invocation(), before);
    await within(async () => {
      const reports = await ok('kubectl get pullstatuses -A -o json');
      const { items } = JSON.parse(reports) as {
        items: readonly {
          metadata: { name: string };
          status?: { conditions?: readonly { type: string; status: string }[] };
        }[];
      };
      const own = items.find(({ metadata }) => metadata.name.includes(NODE_NAME));
      assert.equal(
        own?.status?.conditions?.find(({ type }) => type === 'Ready')?.status,
        'True',
        reports.slice(0, 3000),
      );
    });
    await inOrder();
    await doctorSays('web', undefined);
    assert.match(await ok('kubectl get events -A'), /Normal .*PullSecretWritten/);
  });

  step('rotated at the registry, then in the secret: a new pod waits for the second, and runs', async () => {
    const next = plantedPassword('rotated');
    await tenant.stop();
    tenant.setPassword(next);
    await tenant.start();
    await plane.apply(podOf('rotated', image));
    await within(async () => assert.match(await podState('rotated'), /ErrImagePull|ImagePullBackOff/));
    await doctorSays('rotated', 'registry');
    await plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', tenant.config(undefined, next)));
    await within(async () => assert.match(await podState('rotated'), /"running"/, node.logs()), 400_000);
    await inOrder();
    await doctorSays('rotated', undefined);
  });

  step(
    'broken: the last good entry stays on the node, a new pod runs, and the tenant is told which entry',
    async () => {
      await plane.apply(
        pullSecretOf('kube-system', 'additional-pull-secret', '{"auths":{"quay.example.com":{"auth":"%%"}}}'),
      );
      await within(async () => {
        const { code, stdout } = await shell(node, 'pullwright status');
        assert.equal(code, 1, stdout);
        assert.match(stdout, /Attention .*secret-additional-pull-secret .*1 rejected/);
      });
      assert.match(await ok('kubectl get events -A'), /Warning .*additional-pull-secret/);
      assert.deepEqual(keys(), ['quay.example.com', 'registry.example.com']);
      await plane.apply(podOf('broken', image));
      await within(async () => assert.match(await podState('broken'), /"running"/));
    },
  );

  step(
    'without an entry, and then removed: the node has the platform’s alone, and all is in order',
    async () => {
      const before = node.invocation();
      await plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', '{"auths":{}}'));
      await within(async () => assert.deepEqual(keys(), ['registry.example.com']), 400_000);
      // Until its restart the kubelet holds what it has read; what was removed is gone with that.
      await within(async () => assert.notEqual(node.invocation(), before), 400_000);
      await node.ready();
      await plane.apply(podOf('empty', image));
      await within(async () => assert.match(await podState('empty'), /ErrImagePull|ImagePullBackOff/));
      await doctorSays('empty', 'credential');
      await ok('kubectl -n kube-system delete secret additional-pull-secret');
      await inOrder();
      assert.deepEqual(keys(), ['registry.example.com']);
      assert.match(await podState('web'), /"running"/);
    },
  );

  step('the way out leaves the node with its file and nothing of ours', async () => {
    await ok('pullwright uninstall --yes');
    assert.equal(existsSync('/var/lib/kubelet/.pullwright'), false);
    assert.deepEqual(keys(), ['registry.example.com']);
    await node.ready();
    const left = await ok(
      'kubectl get all,roles,rolebindings,clusterroles,clusterrolebindings,crds -A -l app.kubernetes.io/part-of=pullwright -o name',
    );
    assert.equal(left, '');
    assert.match(await podState('web'), /"running"/);
    const config = new RegExp(`^[-+] [0-9a-f]{64}  ${CONFIG}$`);
    assert.deepEqual(
      changes(files, nodeFiles(node)).filter((line) => !config.test(line)),
      [],
    );
    assert.deepEqual(changes(objects, await clusterObjects(node)), THEIRS);
  });

  test.lastly('the machine stops', () => node.stop());
}
