// deadline: 400 s
/** The webhook through bad hours: caches that are not filled, and an API server that dies while a thousand pods are made. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { missingControlPlane } from '../control-plane/build.ts';
import { eventually } from '../control-plane/eventually.ts';
import { suite } from '../support/suite.ts';
import {
  createPod,
  profileObject,
  readyNamespace,
  reconcilerUser,
  startPlane,
  startReconciler,
} from './live.ts';
import { freePort, webhookHost } from './webhook-host.ts';

const test = suite('webhook faults');
const missing = missingControlPlane();
const PODS = 1000;
const AT_ONCE = 8;
const SOON = { withinMs: 60_000 };

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startPlane();
  await readyNamespace(plane, 'shop', { team: 'a' });
  const host = await webhookHost(plane);
  await plane.apply(
    profileObject('team', {
      namespaceSelector: { matchLabels: { team: 'a' } },
      selector: {},
      mode: 'Inject',
      secrets: [{ name: 'reg' }],
    }),
  );

  test('it does not listen, and is not ready, before it has read everything', async () => {
    const healthPort = await freePort();
    const ready = async (): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${healthPort}/readyz`);
      return `${answer.status} ${await answer.text()}`;
    };
    plane.apiServer.pause();
    const webhook = host.start(0, healthPort);
    try {
      await eventually(async () => assert.match(await ready(), /^503 \w+ is not read yet/), {
        withinMs: 60_000,
      });
      assert.match(webhook.log(), /webhook waits/);
      assert.doesNotMatch(webhook.log(), /webhook listens/);
    } finally {
      plane.apiServer.resume();
    }
    const port = await webhook.port();
    await eventually(async () => assert.match(await ready(), /^200/), { withinMs: 60_000 });
    // Somebody who opened a connection and says nothing must not keep it from ending.
    const silent = connect(port, '127.0.0.1');
    silent.on('error', () => undefined);
    await once(silent, 'connect');
    const started = performance.now();
    await webhook.stop();
    silent.destroy();
    assert.equal(webhook.process.exitCode, 0);
    assert.ok(
      performance.now() - started < 60_000,
      'a TLS handshake that never begins ends after 120 s by itself',
    );
  });

  test('a certificate that is over is said, and the webhook is ready again with the next one', async () => {
    const healthPort = await freePort();
    const webhook = host.start(0, healthPort);
    const readyz = async (): Promise<string> => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).text();
    await webhook.port();
    await eventually(async () => assert.equal((await readyz()).trim(), 'ok'));
    host.place(host.certificate('over', new Date(Date.now() - 60_000)));
    await eventually(async () => assert.match(await readyz(), /its certificate expired at/), SOON);
    assert.match(
      webhook.log(),
      /"level":"warn","msg":"webhook is not ready","problem":"its certificate expired/,
    );
    host.place(host.certificate('next'));
    await eventually(async () => assert.equal((await readyz()).trim(), 'ok'), SOON);
    await webhook.stop();
  });

  test('an API server that is killed during 1,000 pod creations: none is refused for our sake, each is injected or reported', async () => {
    const webhook = host.start();
    await host.callAt(await webhook.port());
    await eventually(
      async () =>
        assert.deepEqual(await createPod(plane, { name: `first-${Date.now()}`, namespace: 'shop' }), {
          names: ['reg'],
        }),
      { withinMs: 60_000 },
    );
    const refused: string[] = [];
    const waiting = Array.from({ length: PODS }, (_, at) => `p-${at}`);
    const made = new Set<string>();
    const worker = async (): Promise<void> => {
      for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
        const answer = await createPod(plane, { name, namespace: 'shop' }).catch(() => undefined);
        if (answer === undefined) {
          waiting.push(name);
          await new Promise((resolve) => setTimeout(resolve, 100));
        } else if ('names' in answer || /already exists/.test(answer.refused)) made.add(name);
        // Not ready yet: admission waits for its own caches after a start.
        else if (/not yet ready|timed out|no admission/i.test(answer.refused)) waiting.push(name);
        else refused.push(answer.refused);
      }
    };
    const load = Promise.all(Array.from({ length: AT_ONCE }, worker));
    await eventually(() => assert.ok(made.size > PODS / 5), { withinMs: 120_000 });
    await plane.apiServer.restart();
    await eventually(() => assert.ok(made.size > PODS / 2), { withinMs: 120_000 });
    await plane.apiServer.restart();
    await load;
    assert.deepEqual(refused, []);
    assert.equal(made.size, PODS);

    // While nothing answers, pods pass as they are (failurePolicy: Ignore).
    await webhook.stop();
    assert.deepEqual(await createPod(plane, { name: 'while-down', namespace: 'shop' }), { names: [] });
    const uninjected = await namesWithout();
    assert.ok(uninjected.includes('while-down'));

    const reconciler = startReconciler(plane, await reconcilerUser(plane, { admission: 'webhook' }), {
      admission: 'webhook',
    });
    await eventually(
      async () => {
        const report = await plane.get({
          apiVersion: 'pullwright.dev/v1alpha1',
          kind: 'PullStatus',
          metadata: { name: 'podlist-shop', namespace: 'shop' },
        });
        const message = String(report?.['status']?.conditions?.[0]?.message ?? 'no report');
        assert.ok(
          message.startsWith(
            `${uninjected.length} ${uninjected.length === 1 ? 'pod lacks' : 'pods lack'} pull secrets`,
          ),
          `${message}; ${uninjected.length} lack them`,
        );
      },
      { withinMs: 90_000 },
    );
    await reconciler.stop();
  });

  /** Pods of the namespace that lack the name. */
  const namesWithout = async (): Promise<readonly string[]> => {
    const { body } = await plane.client.request('GET', '/api/v1/namespaces/shop/pods');
    const pods = body.items as readonly {
      metadata: { name: string };
      spec: { imagePullSecrets?: readonly { name?: string }[] };
    }[];
    return pods
      .filter(({ spec }) => spec.imagePullSecrets?.some(({ name }) => name === 'reg') !== true)
      .map(({ metadata }) => metadata.name);
  };

  test.lastly('the control plane stops', () => plane.stop());
}

/** A port that is free now. */
test.run();
