/** Containers of private images during an outage of the API server, in each order. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import type { TestBody } from '../support/suite.ts';
import { MIRROR, type ProviderScene, SOURCE } from './provider-scene.ts';

/** Longest timeout of a kubelet for the API server, plus its own back-off. */
const WITHIN_MS = 300_000;

export function outageSteps(step: (name: string, body: TestBody) => void, scene: ProviderScene): void {
  const { node, containers } = scene;
  const { plane } = node;

  step(
    'private by ServiceAccount: the kubelet asks for it before the provider, so a container waits for the API server',
    async () => {
      await scene.started('private');
      await plane.apiServer.kill();
      containers.kill(['private']);
      await eventually(() =>
        assert.match(
          readFileSync('/var/log/kubelet.log', 'utf8'),
          /failed to get service account.*acme\/private/,
        ),
      );
      await plane.apiServer.start();
      await containers.again(['private'], WITHIN_MS);
      await node.ready();
    },
  );

  const named = ['named-stopped', 'named-hangs', 'named-restarted'];

  step(
    'private by a Secret of the pod that names the registry of the image: nobody else starts it',
    async () => {
      const auths = {
        ...JSON.parse(node.registry(MIRROR).config()).auths,
        // Without a user name, so that it is not sent to a registry.
        [SOURCE]: { auth: Buffer.from(`:${randomBytes(24).toString('base64url')}`).toString('base64') },
      };
      await plane.apply({
        apiVersion: 'v1',
        kind: 'Secret',
        type: 'kubernetes.io/dockerconfigjson',
        metadata: { name: 'named', namespace: 'team-a' },
        stringData: { '.dockerconfigjson': JSON.stringify({ auths }) },
      });
      for (const name of named) await scene.started(name, { secret: 'named' });
      await scene.make(
        scene.pod('curious', {
          namespace: 'team-b',
          account: 'default',
          policy: 'Never',
          image: 'named-stopped',
        }),
        /ErrImageNeverPull/,
      );
      await plane.remove(scene.pod('curious', { namespace: 'team-b' }));
    },
  );

  step('such a container comes back while the API server is stopped', async () => {
    await plane.apiServer.kill();
    containers.kill(['named-stopped']);
    await containers.again(['named-stopped'], WITHIN_MS);
    await plane.apiServer.start();
    await node.ready();
  });

  step('and while it hangs', async () => {
    plane.apiServer.pause();
    try {
      containers.kill(['named-hangs']);
      await containers.again(['named-hangs'], WITHIN_MS);
    } finally {
      plane.apiServer.resume();
    }
    await node.ready();
  });

  step('and after the kubelet was restarted, once it knows its pods', async () => {
    node.run('/usr/bin/systemctl', 'restart', 'kubelet.service');
    await node.ready();
    containers.kill(['named-restarted']);
    await containers.again(['named-restarted'], WITHIN_MS);
    // The kubelet must observe the new container before it can observe its exit.
    await scene.becomes(scene.pod('named-restarted'), /"ready":true,"restartCount":1/);
    await plane.apiServer.kill();
    containers.kill(['named-restarted']);
    await containers.again(['named-restarted'], WITHIN_MS);
    await plane.apiServer.start();
    await node.ready();
  });
}
