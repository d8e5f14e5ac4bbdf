// deadline: 600 s
// needs: node
/**
 * Two nodes with an agent each and default options: they share the restart queue through the API server, and a node that dies in
 * its slot blocks no other.
 */
import assert from 'node:assert/strict';
import { restartWindowMs } from '../../runtime/node/checkpoint.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { inKubeSystem } from '../reconcile/scene.ts';
import { test } from '../support/suite.ts';
import { Journey } from './machine/journey.ts';
import { NODE_NAME, podOf } from './machine/node.ts';
import { grantImage, IMAGE, pullSecretOf, pushProduct } from './machine/product.ts';
import { SECOND_NAME, startSecondNode } from './machine/second-node.ts';
import { inMachine, step } from './machine/steps.ts';
import type { NodeSystem } from './machine/system.ts';

const TENANT = 'quay.example.com';
const FLEET = `
image: ${IMAGE}
imagePullSecrets: [pullwright-registry]
clusters:
  - name: prod
    systems:
      global-pull-secret: { createConfigNamespace: true, agent: { report: true } }
`;
const PLATFORM_STATUS = inKubeSystem('PullStatus', 'secret-original-pull-secret', 'pullwright.dev/v1alpha1');
/** Time between two slots of so few nodes, which share this machine's clock. */
const APART_MS = restartWindowMs(2);
/** Tolerance for reading two clocks one after the other. */
const CLOCK_MS = 100;
const TURNS: TestObject = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'global-pull-secret-syncer-turns', namespace: 'kube-system' },
};

await inMachine(import.meta.filename, twoNodes);

async function twoNodes(): Promise<void> {
  const journey = await Journey.start({ registries: { [TENANT]: 'tenant' } });
  const { node, plane, within, ok, shell, make, becomes, inOrder } = journey;
  const image = node.image(TENANT, 'acme/web', '1');
  const systems = new Map<string, NodeSystem>([[NODE_NAME, node.system]]);
  const names = [NODE_NAME, SECOND_NAME] as const;
  const on = (name: string): NodeSystem => {
    const system = systems.get(name);
    assert.ok(system !== undefined, name);
    return system;
  };
  const kubelet = (name: string, property: string): string =>
    on(name).run('/usr/bin/systemctl', 'show', '-P', property, 'kubelet.service');
  /** Time of the last start of each kubelet. */
  const startedAt = (): readonly number[] =>
    names.map((name) => {
      const ago =
        Number(process.hrtime.bigint() / 1000n) - Number(kubelet(name, 'ExecMainStartTimestampMonotonic'));
      return Date.now() - ago / 1000;
    });
  const pod = (name: string, onNode: string): TestObject =>
    podOf(name, image, 'default', { nodeName: onNode });
  const give = (config: string): Promise<unknown> =>
    plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', config));

  step('a second node joins, and both have an agent', async () => {
    systems.set(SECOND_NAME, await startSecondNode(node));
    await pushProduct(node);
    await grantImage(node);
    await journey.deliver(FLEET);
    await ok('kubectl -n kube-system rollout status daemonset/global-pull-secret-syncer --timeout=150s');
    await within(async () =>
      assert.match((await shell('pullwright status')).stdout, /2 of 2 nodes eligible/),
    );
  });

  step(
    'a secret reaches both; each books a turn, and the later one is not restarted before its own',
    async () => {
      const since = Date.now();
      await give(node.registry(TENANT).config());
      for (const name of names) await make(pod(`web-${name}`, name));
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
    await give(await journey.rotate(TENANT, 'one-away'));
    await make(pod('rotated', NODE_NAME));
    await journey.wantsAttention(new RegExp(`Attention .*${SECOND_NAME}|1 of 2`));
    await becomes(PLATFORM_STATUS, new RegExp(`"reason":"NodesBehind"[^}]*"type":"NodesInSync"`));
    await becomes(PLATFORM_STATUS, new RegExp(`used on 1 of 2 nodes; ${SECOND_NAME} `));
  });

  step('back, it has the rotation too, and all is in order', async () => {
    systems.set(SECOND_NAME, await startSecondNode(node));
    await make(pod('back', SECOND_NAME));
    await inOrder();
    await becomes(PLATFORM_STATUS, /"reason":"InSync"[^}]*"type":"NodesInSync"/);
    await journey.doctor(pod('back', SECOND_NAME), undefined);
  });

  test.lastly('the machine stops', async () => {
    systems.get(SECOND_NAME)?.end();
    await node.stop();
  });
}
