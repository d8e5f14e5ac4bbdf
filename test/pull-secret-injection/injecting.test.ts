// deadline: 240 s
// needs: control plane
/** `Injecting` of a profile is held against the thing itself: configuration, endpoints, and a pod that is tried. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { freePort } from '../support/loopback.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import {
  createPod,
  namespaceObject,
  type PodInput,
  profileObject,
  readyNamespace,
  reconcilerUser,
  startPlane,
  startReconciler,
} from './live.ts';
import { conditionOf, messageOf } from './live-scene.ts';
import { webhookHost } from './webhook-host.ts';

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
      const said = await conditionOf(plane, team, 'Injecting');
      assert.match(`${said}: ${await messageOf(plane, team, 'Injecting')}`, wanted);
    },
    { everyMs: 100, withinMs: 60_000 },
  );
  assert.equal(reconciler.process.exitCode, null, reconciler.log);
};
const endpoints = (ready: boolean): TestObject => ({
  ...meta('discovery.k8s.io/v1 EndpointSlice', {
    name: 'webhook-1',
    namespace: 'pullwright-system',
    labels: { 'kubernetes.io/service-name': 'pullwright-webhook' },
  }),
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
  await injecting(/^False NotInjected: A dry-run pod in namespace "shop" lacks reg/);
});

test('with a webhook that does, the pod comes back with the names', async () => {
  const webhook = host.start();
  await host.callAt(await webhook.port());
  await injecting(/^True Webhook: .* \(1 ready\): dry run passed in namespace "shop"$/);
  await plane.apply(endpoints(false));
  await injecting(/^False WebhookDown/);
  await webhook.stop();
});

test('only pods that it can help are sent to it, and each of them once', async () => {
  const healthPort = await freePort();
  const webhook = host.start(0, healthPort);
  const port = await webhook.port();
  await host.callAt(port);
  /** Requests that it answered. Nothing is tried meanwhile: no endpoint is ready. */
  const asked = async (): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${healthPort}/metrics`)).text();
    const counts = [...text.matchAll(/^pullwright_webhook_handler_seconds_count\S* (\d+)$/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  };
  let at = 0;
  const made = async (input: Partial<PodInput>): Promise<unknown> => {
    at += 1;
    const pod = await createPod(plane, { name: `sent-${at}`, namespace: 'shop', ...input });
    return 'names' in pod ? pod.names : pod.refused;
  };
  const web = { labels: { app: 'web' } };
  await eventually(async () => assert.deepEqual(await made(web), ['reg']));
  const configuration = async (): Promise<readonly Record<string, unknown>[]> => {
    const group = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
    return (await plane.client.request('GET', `${group}/pullwright-webhook`)).body.webhooks;
  };
  await eventually(async () => assert.equal((await configuration()).length, 2));
  await readyNamespace(plane, 'other');
  await eventually(async () => {
    const before = await asked();
    assert.deepEqual(await made({}), [], 'labels that no profile selects');
    assert.equal(await asked(), before, 'the API server took the narrowed configuration');
  });
  const before = await asked();
  assert.deepEqual(await made({ ...web, namespace: 'other' }), []);
  assert.deepEqual(await made({ ...web, own: ['reg'] }), ['reg']);
  assert.deepEqual(await made({ labels: { app: 'web', 'pullwright.dev/inject': 'false' } }), []);
  assert.deepEqual(await made({ labels: { app: 'cache' } }), []);
  assert.equal(await asked(), before, 'none of them was sent');
  assert.deepEqual(await made({ ...web, own: ['mine', 'mine', 'reg'] }), ['mine', 'reg']);
  assert.equal(await asked(), before + 1);
  const second = profileObject('second', {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } },
    selector: {},
    mode: 'Inject',
    secrets: [{ name: 'more' }],
  });
  await plane.apply(second);
  await eventually(async () => assert.deepEqual(await made({}), ['more']));
  const then = await asked();
  assert.deepEqual(await made(web), ['more', 'reg']);
  assert.equal(await asked(), then + 1, 'the first entry gave both names: the second one is not asked');
  await plane.remove(second);
  await eventually(async () => assert.equal((await configuration()).length, 2));
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
});
