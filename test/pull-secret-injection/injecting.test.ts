// deadline: 240 s
/** `Injecting` of a profile is held against the thing itself: configuration, endpoints, and a pod that is tried. */
import assert from 'node:assert/strict';
import { missingControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { suite } from '../support/suite.ts';
import {
  namespaceObject,
  profileObject,
  readyNamespace,
  reconcilerUser,
  startPlane,
  startReconciler,
} from './live.ts';
import { webhookHost } from './webhook-host.ts';

const test = suite('whether something injects');
const missing = missingControlPlane();

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startPlane();
  await plane.apply(namespaceObject('pullwright-system'));
  await readyNamespace(plane, 'shop', { team: 'a' });
  const host = await webhookHost(plane);
  const team = profileObject('team', {
    namespaceSelector: { matchLabels: { team: 'a' } },
    selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['web', 'db'] }] },
    mode: 'Inject',
    secrets: [{ name: 'reg' }],
  });
  await plane.apply(team);
  const reconciler = startReconciler(plane, await reconcilerUser(plane, { admission: 'webhook' }), {
    admission: 'webhook',
  });

  const injecting = async (wanted: RegExp): Promise<void> => {
    await eventually(
      async () => {
        const conditions = ((await plane.get(team))?.['status']?.conditions ?? []) as {
          readonly type: string;
          readonly status: string;
          readonly reason: string;
          readonly message: string;
        }[];
        const found = conditions.find(({ type }) => type === 'Injecting');
        assert.match(`${found?.status} ${found?.reason}: ${found?.message}`, wanted);
      },
      { everyMs: 100, withinMs: 60_000 },
    );
    assert.equal(reconciler.process.exitCode, null, reconciler.log());
  };
  const endpoints = (ready: boolean): TestObject => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'webhook-1',
      namespace: 'pullwright-system',
      labels: { 'kubernetes.io/service-name': 'pullwright-webhook' },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready } }],
    ports: [{ port: 8443 }],
  });

  test('without a configuration nothing calls it', () => injecting(/^False WebhookMissing/));

  test('without a ready endpoint nothing answers', async () => {
    await host.callAt(1);
    await injecting(/^False WebhookDown/);
    await plane.apply(endpoints(false));
    await injecting(/^False WebhookDown/);
  });

  test('with an endpoint that does not inject, the pod that is tried shows it', async () => {
    await plane.apply(endpoints(true));
    await injecting(/^False NotInjected: A pod that was tried in namespace "shop" lacks reg/);
  });

  test('with a webhook that does, the pod comes back with the names', async () => {
    const webhook = host.start();
    await host.callAt(await webhook.port());
    await injecting(/^True Webhook: .* \(1 ready\): one was tried in namespace "shop"$/);
    await plane.apply(endpoints(false));
    await injecting(/^False WebhookDown/);
    await webhook.stop();
  });

  test('where no pod of the profile may be injected into, nothing is claimed', async () => {
    await plane.apply(endpoints(true));
    await plane.apply(namespaceObject('shop', { team: 'a', 'pullwright.dev/inject': 'false' }));
    await injecting(/^Unknown NothingToTry/);
  });

  test.lastly('the reconciler stops, having made no pod', async () => {
    await reconciler.stop();
    assert.doesNotMatch((await plane.kubectl('get', 'pods', '-A')).stdout, /pullwright-trial/);
    assert.equal(reconciler.process.exitCode, 0, reconciler.log());
    await plane.stop();
  });
}

test.run();
