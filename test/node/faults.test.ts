// deadline: 900 s
// needs: node
/**
 * What goes wrong around a node, on a real one laid out as OpenShift's: it loses its power, its runtime, its disk, a registry, the
 * API server, our image, our programs and the right time. Each time what pulled goes on pulling, what changed meanwhile arrives
 * without a hand's help, and `status` says neither too little nor too much.
 */

import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../control-plane/eventually.ts';
import { grantObject } from '../pull-secret-injection/live.ts';
import { plantedPassword } from '../support/canary.ts';
import { test } from '../support/suite.ts';
import { clockSteps } from './faults-of-clocks.ts';
import { ContainersOf } from './machine/containers.ts';
import { NODE_NAME, NodeMachine, podOf } from './machine/node.ts';
import {
  grantImage,
  IMAGE,
  ok,
  pullSecretOf,
  pushProduct,
  shell,
  TEAM_FLEET,
  TEAM_PROFILE,
} from './machine/product.ts';
import { inMachine, step } from './machine/steps.ts';

const CONFIG = '/var/lib/kubelet/config.json';
const FILLER = '/var/lib/kubelet/filler';

await inMachine(import.meta.filename, faults);

async function faults(): Promise<void> {
  const node = await NodeMachine.start({
    layout: 'openshift',
    registries: { 'quay.example.com': 'tenant', 'team.example.com': 'robot' },
    kubeletDisk: '64m',
  });
  const { plane } = node;
  const containers = new ContainersOf(node);
  const tenant = node.registry('quay.example.com');
  const team = node.registry('team.example.com');
  const image = node.image('quay.example.com', 'acme/web', '1');
  const teamImage = node.image('team.example.com', 'team/web', '1');
  const within = <T>(check: () => Promise<T>): Promise<T> =>
    eventually(check, { withinMs: 180_000, everyMs: 250 });
  const write = (name: string, text: string): void => writeFileSync(join(node.folder, 'work', name), text);
  const states = async (name: string, namespace: string): Promise<string> =>
    JSON.stringify((await plane.get(podOf(name, image, namespace)))?.['status'] ?? {});
  const start = async (name: string, namespace = 'default'): Promise<void> => {
    const wanted = namespace === 'default' ? image : teamImage;
    await within(() => plane.apply(podOf(name, wanted, namespace)));
  };
  const runs = (name: string, namespace = 'default'): Promise<void> =>
    within(async () => {
      const status = await states(name, namespace);
      if (!status.includes('"running"')) assert.fail(`${status}\n${await said(node)}\n${node.logs()}`);
    });
  const waits = (name: string): Promise<void> =>
    within(async () => assert.match(await states(name, 'default'), /ErrImagePull|ImagePullBackOff/));
  const inOrder = (): Promise<void> => within(async () => void (await ok(node, 'pullwright status')));
  /** The registry takes another password from now on; what writes the Secret for it. */
  const rotated = async (mark: string): Promise<() => Promise<unknown>> => {
    const next = plantedPassword(mark);
    await tenant.stop();
    tenant.setPassword(next);
    await tenant.start();
    const secret = pullSecretOf('kube-system', 'additional-pull-secret', tenant.config(undefined, next));
    return () => plane.apply(secret);
  };

  step('installed: the pods of a tenant and of a team run, and all is in order', async () => {
    await pushProduct(node);
    await grantImage(node);
    write('fleet.yaml', TEAM_FLEET);
    write('profile.yaml', TEAM_PROFILE);
    await ok(
      node,
      `pullwright synth --fleet fleet.yaml --to manifests
       kubectl apply --server-side -k manifests/prod
       kubectl create namespace platform
       kubectl create namespace team-a
       kubectl label namespace team-a registry=team
       until kubectl apply -f profile.yaml; do sleep 1; done`,
    );
    await plane.apply(pullSecretOf('kube-system', 'additional-pull-secret', tenant.config()));
    await plane.apply(pullSecretOf('platform', 'robot', team.config()));
    await plane.apply(grantObject('platform', ['robot'], ['team-*']));
    await within(async () => {
      const condition = `jsonpath={.status.conditions[?(@.type=="Injecting")].status}`;
      assert.equal(await ok(node, `kubectl get pullsecretprofile team -o '${condition}'`), 'True');
    });
    await start('web');
    await start('team', 'team-a');
    await runs('web');
    await runs('team', 'team-a');
    await inOrder();
  });

  step(
    'power lost, and the secret rotated before it is back: every pod runs again, and so does a new one',
    async () => {
      const hand = await rotated('while-off');
      const lost = plane.apply(podOf('rotated', image));
      await node.system.lose();
      await lost;
      await hand();
      const since = Date.now();
      node.system.boot();
      await node.ready(since);
      await runs('rotated');
      for (const [name, namespace] of [
        ['web', 'default'],
        ['team', 'team-a'],
      ] as const)
        await within(async () => {
          const status = await states(name, namespace);
          assert.match(status, /"restartCount":[1-9]/);
          assert.match(status, /"running"/);
        });
      await inOrder();
    },
  );

  step(
    'CRI-O restarted while a change is on its way: it arrives, and running pods are left alone',
    async () => {
      const hand = await rotated('without-runtime');
      const containerOf = async (): Promise<string | undefined> =>
        /"containerID":"([^"]+)"/.exec(await states('rotated', 'default'))?.[1];
      const before = await containerOf();
      await hand();
      node.run('/usr/bin/systemctl', 'restart', 'crio.service');
      await start('runtime');
      await runs('runtime');
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
    await within(async () => {
      const { code, stdout } = await shell(node, 'pullwright status');
      assert.equal(code, 1, stdout);
      assert.match(stdout, new RegExp(`Attention .*node-${NODE_NAME}.*DiskFull`));
    });
    assert.deepEqual(readFileSync(CONFIG), before);
    rmSync(FILLER);
    rmSync(`${FILLER}.rest`);
    await start('room');
    await runs('room');
    await inOrder();
  });

  step(
    'a registry is down: doctor names the network, status has nothing to say; back, the pod runs',
    async () => {
      await tenant.stop();
      await start('offline');
      await waits('offline');
      await within(async () => {
        const { code, stdout } = await shell(node, 'pullwright doctor pod/offline -n default');
        assert.equal(code, 1, stdout);
        assert.match(stdout, /broken +registry/);
      });
      await inOrder();
      await tenant.start();
      await runs('offline');
      await within(async () => void (await ok(node, 'pullwright doctor pod/offline -n default')));
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
      await start('seen');
      await runs('seen');
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
    await start('killed');
    await runs('killed');
    await inOrder();
  });

  step(
    'our image is gone from the registry: programs that end start again, and go on with their work',
    async () => {
      const ours = node.registry('registry.example.com');
      rmSync(ours.repository('pullwright'), { recursive: true });
      const asked = `skopeo inspect --creds ${ours.user}:${ours.password} docker://${IMAGE}`;
      await assert.rejects(ok(node, asked), /unknown/);
      await ok(
        node,
        `kubectl -n pullwright-system delete pod --all
       kubectl -n kube-system delete pod --all
       kubectl create namespace team-b
       kubectl label namespace team-b registry=team`,
      );
      // Not a rotation: the kubelet was restarted as often as it may be within the hour.
      await start('late', 'team-b');
      await runs('late', 'team-b');
      await inOrder();
    },
  );

  clockSteps(step, {
    node,
    rotated,
    inOrder,
    pulls: async (name) => {
      await start(name);
      await runs(name);
    },
  });

  test.lastly('the machine stops', () => node.stop());
}

async function said(node: NodeMachine): Promise<string> {
  const { stdout } = await shell(
    node,
    'pullwright status || true; kubectl get pods -A -o wide; kubectl get events -A | grep -v Normal | tail -20; tail -n 12 /var/log/pods/*/*/*.log || true; kubectl -n kube-system logs daemonset/global-pull-secret-syncer --tail 12 || true',
  );
  return stdout.slice(-6000);
}
