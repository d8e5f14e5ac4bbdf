// deadline: 900 s
// needs: node
/**
 * Faults on a real node with OpenShift's layout: loss of power, of the runtime, the disk, a registry, the API server, our image,
 * our programs and the correct time. Each time pulls continue, changes arrive without manual action, and `status` is accurate.
 */

import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { grantObject } from '../pull-secret-injection/live.ts';
import { test } from '../support/suite.ts';
import { clockSteps } from './faults-of-clocks.ts';
import { ContainersOf } from './machine/containers.ts';
import { injects, Journey, RUNS, WAITS } from './machine/journey.ts';
import { NODE_NAME, podOf } from './machine/node.ts';
import { grantImage, IMAGE, pullSecretOf, pushProduct, TEAM_FLEET, TEAM_PROFILE } from './machine/product.ts';
import { inMachine, step } from './machine/steps.ts';

const TENANT = 'quay.example.com';
const CONFIG = '/var/lib/kubelet/config.json';
const FILLER = '/var/lib/kubelet/filler';

await inMachine(import.meta.filename, faults);

async function faults(): Promise<void> {
  const journey = await Journey.start({
    layout: 'openshift',
    registries: { [TENANT]: 'tenant', 'team.example.com': 'robot' },
    kubeletDisk: '64m',
  });
  const { node, plane, within, ok, write, state, becomes, make, inOrder, wantsAttention, doctor } = journey;
  const containers = new ContainersOf(node);
  const tenant = node.registry(TENANT);
  const image = node.image(TENANT, 'acme/web', '1');
  const teamImage = node.image('team.example.com', 'team/web', '1');
  const pod = (name: string, namespace = 'default'): TestObject =>
    podOf(name, namespace === 'default' ? image : teamImage, namespace);
  /** Changes the password of the registry; returns a function that writes the new Secret. */
  const rotated = async (mark: string): Promise<() => Promise<unknown>> => {
    const config = await journey.rotate(TENANT, mark);
    return () => plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', config));
  };

  step('installed: the pods of a tenant and of a team run, and all is in order', async () => {
    await pushProduct(node);
    await grantImage(node);
    write('profile.yaml', TEAM_PROFILE);
    await journey.deliver(TEAM_FLEET);
    await ok(
      `kubectl create namespace platform
       kubectl create namespace team-a
       kubectl label namespace team-a registry=team
       until kubectl apply -f profile.yaml; do sleep 1; done`,
    );
    await plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', tenant.config()));
    await plane.apply(pullSecretOf('platform', 'robot', node.registry('team.example.com').config()));
    await plane.apply(grantObject('platform', ['robot'], ['team-*']));
    await injects(journey, 'team');
    await make(pod('web'));
    await make(pod('team', 'team-a'));
    await inOrder();
  });

  step(
    'power lost, and the secret rotated before it is back: every pod runs again, and so does a new one',
    async () => {
      const hand = await rotated('while-off');
      const lost = plane.apply(pod('rotated'));
      await node.system.lose();
      await lost;
      await hand();
      const since = Date.now();
      node.system.boot();
      await node.ready(since);
      await becomes(pod('rotated'), RUNS);
      for (const [name, namespace] of [
        ['web', 'default'],
        ['team', 'team-a'],
      ] as const)
        await within(async () => {
          const status = await state(pod(name, namespace));
          assert.match(status, /"restartCount":[1-9]/);
          assert.match(status, RUNS);
        });
      await inOrder();
    },
  );

  step(
    'CRI-O restarted while a change is on its way: it arrives, and running pods are left alone',
    async () => {
      const hand = await rotated('without-runtime');
      const containerOf = async (): Promise<string | undefined> =>
        /"containerID":"([^"]+)"/.exec(await state(pod('rotated')))?.[1];
      const before = await containerOf();
      await hand();
      node.run('/usr/bin/systemctl', 'restart', 'crio.service');
      await make(pod('runtime'));
      assert.equal(await containerOf(), before);
      await inOrder();
    },
  );

  step('disk full: the file stays whole, status names it, and with room the change arrives', async () => {
    const hand = await rotated('no-room');
    const before = readFileSync(CONFIG);
    node.run(
      '/bin/sh',
      '-c',
      `dd if=/dev/zero of=${FILLER} bs=64k 2> /dev/null; dd if=/dev/zero of=${FILLER}.rest bs=1 2> /dev/null; true`,
    );
    await hand();
    await wantsAttention(new RegExp(`Attention .*node-${NODE_NAME}.*DiskFull`));
    assert.deepEqual(readFileSync(CONFIG), before);
    rmSync(FILLER);
    rmSync(`${FILLER}.rest`);
    await make(pod('room'));
    await inOrder();
  });

  step(
    'a registry is down: doctor names the network, status has nothing to say; back, the pod runs',
    async () => {
      await tenant.stop();
      await make(pod('offline'), WAITS);
      await doctor(pod('offline'), /broken +registry/);
      await inOrder();
      await tenant.start();
      await becomes(pod('offline'), RUNS);
      await doctor(pod('offline'), undefined);
    },
  );

  step(
    'no API server: the file stays, containers start again, a killed agent too; then the change arrives',
    async () => {
      const before = readFileSync(CONFIG);
      await plane.apiServer.kill();
      containers.kill(['web']);
      assert.equal(node.system.kill(/pullwright agent/), 1);
      await containers.again(['web']);
      await eventually(() => assert.equal(node.system.processes(/pullwright agent/).length, 1), {
        withinMs: 120_000,
      });
      assert.deepEqual(readFileSync(CONFIG), before);
      await plane.apiServer.start();
      const hand = await rotated('seen');
      await hand();
      await make(pod('seen'));
      await inOrder();
    },
  );

  step('agent and reconciler killed in the middle of a rotation: it arrives', async () => {
    const hand = await rotated('killed');
    const before = readFileSync(CONFIG, 'utf8');
    await hand();
    node.system.kill(/pullwright reconcile/);
    await eventually(() => assert.notEqual(readFileSync(CONFIG, 'utf8'), before), {
      withinMs: 120_000,
      everyMs: 20,
    });
    node.system.kill(/pullwright agent/);
    await make(pod('killed'));
    await inOrder();
  });

  step(
    'our image is gone from the registry: programs that end start again, and go on with their work',
    async () => {
      const ours = node.registry('registry.example.com');
      rmSync(ours.repository('pullwright'), { recursive: true });
      const asked = `skopeo inspect --creds ${ours.user}:${ours.password} docker://${IMAGE}`;
      await assert.rejects(ok(asked), /unknown/);
      await ok(
        `kubectl -n pullwright-system delete pod --all
       kubectl -n kube-system delete pod --all
       kubectl create namespace team-b
       kubectl label namespace team-b registry=team`,
      );
      // No rotation, because the rate limit of kubelet restarts is reached.
      await make(pod('late', 'team-b'));
      await inOrder();
    },
  );

  clockSteps(step, journey, { rotated, pulls: (name) => make(pod(name)) });

  test.lastly('the machine stops', journey.stop);
}
