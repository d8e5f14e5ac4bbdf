// deadline: 600 s
// needs: node
/**
 * Two nodes with an agent each and default options: what one restart may cost the fleet is shared through the API server, and a
 * node that dies when its turn has come keeps nobody waiting.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { restartWindowMs } from '../../runtime/node/checkpoint.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { inKubeSystem } from '../reconcile/scene.ts';
import { plantedPassword } from '../support/canary.ts';
import { test } from '../support/suite.ts';
import { NODE_NAME, NodeMachine, podOf } from './machine/node.ts';
import { grantImage, IMAGE, ok, pullSecretOf, pushProduct, shell, workFolder } from './machine/product.ts';
import { SECOND_NAME, startSecondNode } from './machine/second-node.ts';
import { inMachine, step } from './machine/steps.ts';
import type { NodeSystem } from './machine/system.ts';

const FLEET = `
image: ${IMAGE}
imagePullSecrets: [pullwright-registry]
clusters:
  - name: prod
    systems:
      global-pull-secret: { createConfigNamespace: true, agent: { report: true } }
`;
const PLATFORM_STATUS = inKubeSystem('PullStatus', 'secret-original-pull-secret', 'pullwright.dev/v1alpha1');
/** Between two turns of so few nodes; all of them have the clock of this machine. */
const APART_MS = restartWindowMs(2);
/** What reading two clocks one after the other may cost. */
const CLOCK_MS = 100;
const TURNS: TestObject = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'global-pull-secret-syncer-turns', namespace: 'kube-system' },
};

await inMachine(import.meta.filename, twoNodes);

async function twoNodes(): Promise<void> {
  const node = await NodeMachine.start({ registries: { 'quay.example.com': 'tenant' } });
  const { plane } = node;
  const tenant = node.registry('quay.example.com');
  const image = node.image('quay.example.com', 'acme/web', '1');
  const systems = new Map<string, NodeSystem>([[NODE_NAME, node.system]]);
  const names = [NODE_NAME, SECOND_NAME] as const;
  const within = <T>(check: () => Promise<T>): Promise<T> =>
    eventually(check, { withinMs: 180_000, everyMs: 250 });
  const on = (name: string): NodeSystem => {
    const system = systems.get(name);
    assert.ok(system !== undefined, name);
    return system;
  };
  const kubelet = (name: string, property: string): string =>
    on(name).run('/usr/bin/systemctl', 'show', '-P', property, 'kubelet.service');
  /** When each kubelet was started last. */
  const startedAt = (): readonly number[] =>
    names.map((name) => {
      const ago =
        Number(process.hrtime.bigint() / 1000n) - Number(kubelet(name, 'ExecMainStartTimestampMonotonic'));
      return Date.now() - ago / 1000;
    });
  const pod = (name: string, onNode: string): TestObject =>
    podOf(name, image, 'default', { nodeName: onNode });
  const runs = async (name: string, onNode: string): Promise<void> => {
    await within(() => plane.apply(pod(name, onNode)));
    await within(async () => {
      const status = JSON.stringify((await plane.get(pod(name, onNode)))?.['status'] ?? {});
      if (!status.includes('"running"')) assert.fail(`${status}\n${await said()}`);
    });
  };
  const said = async (): Promise<string> => {
    const lines =
      'pullwright status || true; kubectl get nodes,pods -A -o wide; kubectl get events -A | grep -v Normal | tail -20';
    return (await shell(node, lines)).stdout.slice(-5000);
  };
  const inOrder = (): Promise<void> => within(async () => void (await ok(node, 'pullwright status')));
  const rotated = async (mark: string): Promise<void> => {
    const next = plantedPassword(mark);
    await tenant.stop();
    tenant.setPassword(next);
    await tenant.start();
    await plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', tenant.config(undefined, next)));
  };

  step('a second node joins, and both have an agent', async () => {
    systems.set(SECOND_NAME, await startSecondNode(node));
    await pushProduct(node);
    await grantImage(node);
    writeFileSync(join(workFolder(node), 'fleet.yaml'), FLEET);
    await ok(
      node,
      `pullwright synth --fleet fleet.yaml --to manifests
       kubectl apply --server-side -k manifests/prod
       kubectl -n kube-system rollout status daemonset/global-pull-secret-syncer --timeout=150s`,
    );
    await within(async () =>
      assert.match((await shell(node, 'pullwright status')).stdout, /2 of 2 nodes eligible/),
    );
  });

  step(
    'a secret reaches both; each books a turn, and the later one is not restarted before its own',
    async () => {
      const since = Date.now();
      await plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', tenant.config()));
      for (const name of names) await runs(`web-${name}`, name);
      await inOrder();
      for (const at of startedAt()) assert.ok(at >= since, 'a kubelet was not restarted');
      const lease = (await plane.get(TURNS))?.['spec'] as { readonly renewTime: string };
      const free = Date.parse(lease.renewTime);
      assert.ok(free >= since + 2 * APART_MS, `two turns are booked from ${since}: the next is ${free}`);
      assert.ok(Math.max(...startedAt()) >= free - APART_MS - CLOCK_MS, 'a turn was not waited for');
    },
  );

  step('one node without power: the other has the rotation, and status tells which does not', async () => {
    await on(SECOND_NAME).lose();
    await rotated('one-away');
    await runs('rotated', NODE_NAME);
    await within(async () => {
      const { code, stdout } = await shell(node, 'pullwright status');
      assert.equal(code, 1, stdout);
      assert.match(stdout, new RegExp(`Attention .*${SECOND_NAME}|1 of 2`));
    });
    await saysNow(PLATFORM_STATUS, new RegExp(`"reason":"NodesBehind"[^}]*"type":"NodesInSync"`));
    await saysNow(PLATFORM_STATUS, new RegExp(`used on 1 of 2 nodes; ${SECOND_NAME} `));
  });

  step('back, it has the rotation too, and all is in order', async () => {
    systems.set(SECOND_NAME, await startSecondNode(node));
    await runs('back', SECOND_NAME);
    await inOrder();
    await saysNow(PLATFORM_STATUS, /"reason":"InSync"[^}]*"type":"NodesInSync"/);
    await doctorSays('back', /^$/);
  });

  const statusOf = async (ref: TestObject): Promise<string> =>
    JSON.stringify((await plane.get(ref))?.['status'] ?? {});
  const saysNow = (ref: TestObject, wanted: RegExp): Promise<void> =>
    within(async () => assert.match(await statusOf(ref), wanted, await said()));
  /** What `doctor` says of a pod: the first link that is broken, and why; empty where none is. */
  const doctorSays = (name: string, wanted: RegExp): Promise<void> =>
    within(async () => {
      const { stdout } = await shell(node, `pullwright doctor pod/${name} -n default`);
      assert.match(/^ {2}broken +.*$/m.exec(stdout)?.[0] ?? '', wanted, stdout);
    });

  test.lastly('the machine stops', async () => {
    systems.get(SECOND_NAME)?.end();
    await node.stop();
  });
}
