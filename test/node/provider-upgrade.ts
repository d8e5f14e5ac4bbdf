/** Replaces the kubelet's unit, as an upgrade of its package does. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import type { TestBody } from '../support/suite.ts';
import type { ProviderScene } from './provider-scene.ts';

const UNIT = '/usr/lib/systemd/system/kubelet.service';
const KUBEADM = `${UNIT}.d/10-kubeadm.conf`;
const VARIABLES = '/etc/default/kubelet';
const PROVIDERS = '/etc/kubernetes/credential-providers';
const FLAGS = /--image-credential-provider-config=\/etc\/kubernetes\/credential-providers\/pullwright-/;

export function upgradeSteps(step: (name: string, body: TestBody) => void, scene: ProviderScene): void {
  const { node } = scene;
  const systemctl = (...args: readonly string[]): string => node.run('/usr/bin/systemctl', ...args);
  const upgraded = async (path: string, text: string): Promise<void> => {
    writeFileSync(path, text);
    systemctl('daemon-reload');
    systemctl('restart', 'kubelet.service');
    await node.ready();
  };
  const runsWith = (...flags: readonly RegExp[]): Promise<void> =>
    scene.within(async () => {
      for (const flag of flags) assert.match(scene.kubeletCommand(), flag);
    });
  const [before, unit] = [readFileSync(KUBEADM, 'utf8'), readFileSync(UNIT, 'utf8')];
  /** Provider flags of the kubelet. */
  const written = (): string => node.run('/bin/sh', '-c', `cat ${PROVIDERS}/pullwright-*`);

  step('a new unit with other flags: the kubelet starts with them and with the provider', async () => {
    await upgraded(UNIT, unit.replace('RestartSec=10', 'RestartSec=5'));
    await upgraded(KUBEADM, before.replace('$KUBELET_CONFIG_ARGS ', '$KUBELET_CONFIG_ARGS --v=1 '));
    await runsWith(FLAGS, / --v=1 /);
    await scene.inState('True', 'InSync');
    await scene.started('after-upgrade', { policy: 'Always' });
  });

  step('the installer killed while a change is on its way: it arrives, and the kubelet has it', async () => {
    const invocation = node.invocation();
    const patch = `[{"op":"add","path":"/spec/matchImages/-","value":"other.example.com"}]`;
    await scene.ok(`kubectl patch criocredentialproviderconfig cluster --type=json --patch='${patch}'`);
    await eventually(() => assert.match(written(), /other\.example\.com/), { withinMs: 180_000 });
    assert.equal(node.system.kill(/pullwright install-provider/), 1);
    await scene.within(async () => assert.notEqual(node.invocation(), invocation));
    await node.ready();
    await scene.inState('True', 'InSync');
    await scene.started('after-kill', { policy: 'Always' });
  });

  step(
    'one that sets the variable in a file, which wins: the installer sets it again, with what it held',
    async () => {
      await upgraded(VARIABLES, 'KUBELET_EXTRA_ARGS=--max-pods=99\n');
      await scene.within(async () => {
        assert.match(scene.kubeletCommand(), FLAGS);
        assert.match(scene.kubeletCommand(), / --max-pods=99( |$)/);
      });
      await scene.inState('True', 'InSync');
      rmSync(VARIABLES);
    },
  );

  step(
    'one without a place for flags: the kubelet starts all the same, and the report is not InSync',
    async () => {
      await upgraded(KUBEADM, before.replace(' $KUBELET_EXTRA_ARGS', ''));
      assert.doesNotMatch(scene.kubeletCommand(), /image-credential-provider/);
      await scene.inState('False', 'NoPlaceForFlags');
      writeFileSync(UNIT, unit);
      await upgraded(KUBEADM, before);
      await scene.inState('True', 'InSync');
      assert.match(scene.kubeletCommand(), FLAGS);
    },
  );
}
