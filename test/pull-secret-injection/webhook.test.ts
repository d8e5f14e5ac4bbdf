// deadline: 600 s
// needs: control plane
/** The webhook as its own process, called by a real API server over TLS: its answers, its certificates, its absence, and bad hours. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { compileInjectionPolicy, injectionPlan } from '../../runtime/pull-secret-injection/plan/plan.ts';
import { eventually } from '../control-plane/eventually.ts';
import { NODE } from '../reconcile/process.ts';
import { freePort, listen } from '../support/loopback.ts';
import { meta } from '../support/meta.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import {
  createPod,
  type PodInput,
  podObject,
  profileObject,
  readyNamespace,
  reconcilerUser,
  startPlane,
  startReconciler,
} from './live.ts';
import { webhookHost } from './webhook-host.ts';

const PODS = 1000;
const AT_ONCE = 8;

const plane = await startPlane();
await readyNamespace(plane, 'shop', { team: 'a' });
const host = await webhookHost(plane);
const { certificates, user } = host;
let count = 0;
const admitted = async (input: Partial<PodInput> = {}): Promise<unknown> => {
  count += 1;
  const created = await createPod(plane, { name: `w-${count}`, namespace: 'shop', ...input });
  return 'names' in created ? created.names : created.refused;
};

await plane.apply(
  profileObject('team', {
    namespaceSelector: { matchLabels: { team: 'a' } },
    selector: {},
    mode: 'Inject',
    secrets: [{ name: 'reg' }],
  }),
);
let webhook = host.start();
await host.callAt(await webhook.port());

test('pods get the names, from a webhook with the rights of the charts', async () => {
  await eventually(async () => assert.deepEqual(await admitted({ own: ['mine', 'mine'] }), ['mine', 'reg']));
  assert.deepEqual(await admitted(), ['reg']);
  const mirror = {
    annotations: { 'kubernetes.io/config.mirror': 'x', 'kubernetes.io/config.hash': 'x' },
    nodeName: 'node',
  };
  assert.deepEqual(await admitted(mirror), []);
  assert.doesNotMatch(webhook.log, /handler failed|orbidden/);
});

test('a namespace that was made a moment ago is known', async () => {
  await readyNamespace(plane, 'new', { team: 'a' });
  assert.deepEqual(await admitted({ namespace: 'new' }), ['reg']);
});

test('an account that enforces mountable secrets is left alone, with a warning', async () => {
  const annotations = { 'kubernetes.io/enforce-mountable-secrets': 'true' };
  await plane.apply(meta('v1 ServiceAccount', { name: 'strict', namespace: 'shop', annotations }));
  let at = 0;
  await eventually(async () => {
    at += 1;
    const file = join(plane.folder, `strict-${at}.json`);
    writeFileSync(
      file,
      JSON.stringify(podObject({ name: `strict-${at}`, namespace: 'shop', account: 'strict' })),
    );
    const { code, stderr } = await plane.kubectl('create', '-f', file);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /service account "strict" enforces mountable secrets/);
  });
});

test('certificates are taken over while pods are created; half a pair is not taken', async () => {
  let refused = 0;
  const running = new AbortController();
  const load = (async () => {
    while (!running.signal.aborted) if (!Array.isArray(await admitted())) refused += 1;
  })();
  const [second, third] = [host.certificate('second'), host.certificate('third')];
  host.place({ certificate: second.certificate });
  await eventually(() =>
    assert.match(webhook.log, /certificate kept.*the key is not that of the certificate/),
  );
  assert.deepEqual(await admitted(), ['reg'], 'the old pair goes on serving');
  host.place({ key: second.key });
  await eventually(() => assert.match(webhook.log, /certificate reloaded/));
  host.place(third);
  running.abort();
  await load;
  assert.equal(refused, 0);
  assert.deepEqual(await admitted(), ['reg']);
});

test('while the policy is at work the webhook stays out of it', async () => {
  const read = readProfile({
    ...meta(' ', { name: 'p' }),
    spec: { namespaceSelector: {}, selector: {}, secrets: [{ name: 'by-policy' }] },
  });
  assert.ok(read.ok);
  const options = { apiVersion: 'admissionregistration.k8s.io/v1', excludedNamespaces: [] };
  const compiled = compileInjectionPolicy(injectionPlan([read.profile]), options);
  assert.ok(compiled.ok);
  const marks = { labels: { 'pullwright.dev/owner': 'pull-secret-injection' } };
  const made = [compiled.policy, compiled.binding].map((object) => ({
    ...object,
    metadata: { ...object.metadata, ...marks },
  }));
  for (const object of made) await plane.apply(object);
  await eventually(async () => assert.deepEqual(await admitted(), ['by-policy']));
  for (const object of made) await plane.remove(object);
  await eventually(async () => assert.deepEqual(await admitted(), ['reg']));
});

test('a webhook that is down or slow does not hold pods up', async () => {
  const port = await webhook.port();
  assert.equal(await webhook.stop(), 0);
  assert.deepEqual(await admitted(), []);
  const pair = {
    cert: readFileSync(join(certificates, 'tls.crt')),
    key: readFileSync(join(certificates, 'tls.key')),
  };
  const slow = createServer(pair, () => undefined);
  await host.callAt(await listen(slow));
  await eventually(async () => {
    const started = performance.now();
    assert.deepEqual(await admitted(), []);
    assert.ok(performance.now() - started > 900, 'the slow one was asked');
  });
  slow.closeAllConnections();
  slow.close();
  webhook = host.start(port);
  await webhook.port();
  await host.callAt(port);
  await eventually(async () => assert.deepEqual(await admitted(), ['reg']));
});

await readyNamespace(plane, 'storm', { team: 'a' });

test('it does not listen, and is not ready, before it has read everything', async () => {
  const healthPort = await freePort();
  const ready = async (): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${healthPort}/readyz`);
    return `${answer.status} ${await answer.text()}`;
  };
  plane.apiServer.pause();
  const webhook = host.start(0, healthPort);
  try {
    await eventually(async () => assert.match(await ready(), /^503 \w+ is not synced yet/));
    assert.match(webhook.log, /webhook waits/);
    assert.doesNotMatch(webhook.log, /webhook listens/);
  } finally {
    plane.apiServer.resume();
  }
  const port = await webhook.port();
  await eventually(async () => assert.match(await ready(), /^200/));
  // A silent open connection must not block the shutdown.
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
  await eventually(async () => assert.match(await readyz(), /its certificate expired at/));
  assert.match(webhook.log, /"level":"warn","msg":"webhook is not ready","problem":"its certificate expired/);
  host.place(host.certificate('next'));
  await eventually(async () => assert.equal((await readyz()).trim(), 'ok'));
  await webhook.stop();
});

test('an API server that is killed during 1,000 pod creations: none is refused for our sake, each is injected or reported', async () => {
  const webhook = host.start();
  await host.callAt(await webhook.port());
  await eventually(async () =>
    assert.deepEqual(await createPod(plane, { name: `first-${Date.now()}`, namespace: 'storm' }), {
      names: ['reg'],
    }),
  );
  const refused: string[] = [];
  const waiting = Array.from({ length: PODS }, (_, at) => `p-${at}`);
  const made = new Set<string>();
  const worker = async (): Promise<void> => {
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      const answer = await createPod(plane, { name, namespace: 'storm' }).catch(() => undefined);
      if (answer === undefined) {
        waiting.push(name);
        await new Promise((resolve) => setTimeout(resolve, 100));
      } else if ('names' in answer || /already exists/.test(answer.refused)) made.add(name);
      // Admission is not ready: it waits for its own caches after a start.
      else if (/not yet ready|timed out|no admission/i.test(answer.refused)) waiting.push(name);
      else refused.push(answer.refused);
    }
  };
  const load = Promise.all(Array.from({ length: AT_ONCE }, worker));
  await eventually(() => assert.ok(made.size > PODS / 5));
  await plane.apiServer.restart();
  await eventually(() => assert.ok(made.size > PODS / 2));
  await plane.apiServer.restart();
  await load;
  assert.deepEqual(refused, []);
  assert.equal(made.size, PODS);

  // While nothing answers, pods pass as they are (failurePolicy: Ignore).
  await webhook.stop();
  assert.deepEqual(await createPod(plane, { name: 'while-down', namespace: 'storm' }), { names: [] });
  const uninjected = await namesWithout();
  assert.ok(uninjected.includes('while-down'));

  const reconciler = startReconciler(plane, await reconcilerUser(plane, { admission: 'webhook' }), {
    admission: 'webhook',
  });
  await eventually(async () => {
    const report = await plane.get(
      meta('pullwright.dev/v1alpha1 PullStatus', { name: 'podlist-storm', namespace: 'storm' }),
    );
    const message = String(report?.['status']?.conditions?.[0]?.message ?? 'no report');
    assert.ok(
      message.startsWith(
        `${uninjected.length} ${uninjected.length === 1 ? 'pod lacks' : 'pods lack'} pull secrets`,
      ),
      `${message}; ${uninjected.length} lack them`,
    );
  });
  await reconciler.stop();
});

/** Pods of the namespace that lack the name. */
const namesWithout = async (): Promise<readonly string[]> => {
  const { body } = await plane.client.request('GET', '/api/v1/namespaces/storm/pods');
  const pods = body.items as readonly {
    metadata: { name: string };
    spec: { imagePullSecrets?: readonly { name?: string }[] };
  }[];
  return pods
    .filter(({ spec }) => spec.imagePullSecrets?.some(({ name }) => name === 'reg') !== true)
    .map(({ metadata }) => metadata.name);
};

test('wrong certificates are said at the start', async () => {
  host.place({ key: 'no key' });
  const { code, stderr } = await runProcess([
    ...NODE,
    'webhook',
    `--cert-dir=${certificates}`,
    `--kubeconfig=${user.kubeconfig}`,
  ]);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^Cannot use the certificate .*they are not a PEM certificate and key\. Expected tls\.crt and tls\.key/,
  );
});

test.lastly('all stops', () => webhook.stop());
