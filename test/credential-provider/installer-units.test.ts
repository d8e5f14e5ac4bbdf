// deadline: 240 s
/** The compiled installer on a real systemd: units as systemd reads them, and what shows that an installed provider works. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { missingControlPlane } from '../control-plane/build.ts';
import { suite } from '../support/suite.ts';
import { systemdMissing } from '../support/systemd.ts';
import {
  GOOD_VERSIONS as GOOD,
  InstallerCluster,
  type InstallerNode,
  installerScene,
} from './support/installer-scene.ts';

const test = suite('installer of the credential provider, units');
const missing = systemdMissing() ?? missingControlPlane();

if (missing !== undefined) test.skip('a node', missing);
else {
  const cluster = await InstallerCluster.start();
  const entries = (...images: readonly string[]): Promise<void> => cluster.entries(...images);
  const scene = (
    name: string,
    versions: readonly [string, string],
    body: (node: InstallerNode) => Promise<void>,
  ): void => installerScene({ test, cluster }, name, versions, body);

  scene('the unit counts as systemd reads it, not as it looks', GOOD, async (node) => {
    await entries('docker.io');
    const { state } = node.machine;
    const head =
      '[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\nNotifyAccess=all\nTimeoutStopSec=2\n';
    node.machine.unit(
      `${head}Environment=KUBELET_EXTRA_ARGS="--label=a b" 'KUBELET_EXTRA_ARGS=--label="x y" --v=2'\nExecStart=${state}/kubelet \\\n # --image-credential-provider-config=/old.yaml \\\n; --old \\\n  --first \\\n  $KUBELET_EXTRA_ARGS\n`,
    );
    node.machine.systemctl('restart', 'kubelet.service');
    assert.equal(await node.run(['--once']).ended, 0);
    assert.match(
      node.starts().at(-1) ?? '',
      /^--first --label=x y --v=2 --image-credential-provider-bin-dir=\S+ --image-credential-provider-config=\S+$/,
    );
    for (const command of [
      `/bin/bash -c "exec ${state}/kubelet $KUBELET_EXTRA_ARGS"`,
      `:${state}/kubelet $KUBELET_EXTRA_ARGS`,
      `${state}/kubelet --label=$KUBELET_EXTRA_ARGS`,
    ]) {
      node.machine.unit(`${head}ExecStart=${command}\n`);
      const agent = node.run(['--once']);
      assert.equal(await agent.ended, 1, command);
      assert.equal(agent.reason(), 'NoPlaceForFlags', command);
    }
  });

  scene(
    'an executable that does not work on the node is not in sync, and says what it lacks',
    GOOD,
    async (node) => {
      await entries('docker.io');
      const agent = node.run(['--once', '--provider-arg=--ca-file=/nowhere.crt']);
      assert.equal(await agent.ended, 1);
      assert.equal(agent.reason(), 'ProviderFails');
      assert.match(agent.text(), /no CA to verify the API server with in \/nowhere\.crt/);
      assert.equal(await node.run(['--once']).ended, 0);
      const { state } = node.machine;
      writeFileSync(join(state, 'real'), readFileSync(join(state, 'kubelet')), { mode: 0o755 });
      writeFileSync(join(state, 'kubelet'), `#!/bin/bash\nexec ${state}/real --none\n`);
      node.machine.systemctl('restart', 'kubelet.service');
      const second = node.run(['--once']);
      assert.equal(await second.ended, 1);
      assert.equal(second.reason(), 'KubeletWithoutFlags');
    },
  );

  test.lastly('the control plane stops', () => cluster.plane.stop());
}

test.run();
