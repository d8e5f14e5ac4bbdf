// deadline: 240 s
/** The test machine itself: a node that joins, pulls a private image, and keeps it from who has no password. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import { suite } from '../support/suite.ts';
import { missingNode } from './machine/build.ts';
import { machineFolder, runInside } from './machine/namespaces.ts';
import { NODE_NAME, NodeMachine, podOf } from './machine/node.ts';

const missing = missingNode();
if (missing === undefined && machineFolder() === undefined)
  process.exitCode = await runInside(import.meta.filename);
else {
  const test = suite('test machine');
  if (missing !== undefined) test.skip('a node', missing);
  else {
    const node = await NodeMachine.start();
    test('kubelet and CRI-O say their versions', async () => {
      const object = await node.plane.get({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE_NAME } });
      const { nodeInfo = {} } = (object?.['status'] ?? {}) as { nodeInfo?: Record<string, string> };
      assert.match(nodeInfo['kubeletVersion'] ?? '', /^v1\.36\./);
      assert.match(nodeInfo['containerRuntimeVersion'] ?? '', /^cri-o:\/\/1\.36\./);
    });
    test('a pod with the password of its registry runs; one without it does not', async () => {
      const image = node.image('registry.example.com', 'platform/web', '1');
      const { plane } = node;
      await eventually(() => plane.apply(podOf('without', image)));
      await plane.apply({
        apiVersion: 'v1',
        kind: 'Secret',
        type: 'kubernetes.io/dockerconfigjson',
        metadata: { name: 'pull', namespace: 'default' },
        stringData: { '.dockerconfigjson': node.registry('registry.example.com').config() },
      });
      await plane.apply(podOf('with', image, 'default', { imagePullSecrets: [{ name: 'pull' }] }));
      const stateOf = async (name: string): Promise<string> => {
        const pod = await plane.get(podOf(name, image));
        return JSON.stringify(pod?.['status'] ?? {});
      };
      await eventually(async () => assert.match(await stateOf('with'), /"running"/));
      await eventually(async () => assert.match(await stateOf('without'), /ErrImagePull|ImagePullBackOff/));
    });
    test.lastly('the machine stops', () => node.stop());
  }
  test.run();
}
