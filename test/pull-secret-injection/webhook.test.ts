// deadline: 300 s
/** The webhook as its own process, called by a real API server over TLS: its answers, its certificates, and its absence. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { readProfile } from '../../runtime/pull-secret-injection/kinds/profile.ts';
import { injectionPlan } from '../../runtime/pull-secret-injection/plan/plan.ts';
import { compileInjectionPolicy } from '../../runtime/pull-secret-injection/plan/policy.ts';
import { missingControlPlane } from '../control-plane/build.ts';
import { eventually } from '../control-plane/eventually.ts';
import { suite } from '../support/suite.ts';
import { createPod, type PodInput, podObject, profileObject, readyNamespace, startPlane } from './live.ts';
import { webhookHost } from './webhook-host.ts';

const test = suite('webhook');
const missing = missingControlPlane();
const root = new URL('../..', import.meta.url).pathname;

if (missing !== undefined) test.skip('all of it', missing);
else {
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
    await eventually(async () =>
      assert.deepEqual(await admitted({ own: ['mine', 'mine'] }), ['mine', 'reg']),
    );
    assert.deepEqual(await admitted(), ['reg']);
    const mirror = {
      annotations: { 'kubernetes.io/config.mirror': 'x', 'kubernetes.io/config.hash': 'x' },
      nodeName: 'node',
    };
    assert.deepEqual(await admitted(mirror), []);
    assert.doesNotMatch(webhook.log(), /handler failed|orbidden/);
  });

  test('a namespace that was made a moment ago is known', async () => {
    await readyNamespace(plane, 'new', { team: 'a' });
    assert.deepEqual(await admitted({ namespace: 'new' }), ['reg']);
  });

  test('an account that enforces mountable secrets is left alone, with a warning', async () => {
    const annotations = { 'kubernetes.io/enforce-mountable-secrets': 'true' };
    await plane.apply({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'strict', namespace: 'shop', annotations },
    });
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
      assert.match(webhook.log(), /certificate kept.*the key is not that of the certificate/),
    );
    assert.deepEqual(await admitted(), ['reg'], 'the old pair goes on serving');
    host.place({ key: second.key });
    await eventually(() => assert.match(webhook.log(), /certificate reloaded/));
    host.place(third);
    running.abort();
    await load;
    assert.equal(refused, 0);
    assert.deepEqual(await admitted(), ['reg']);
  });

  test('while the policy is at work the webhook stays out of it', async () => {
    const read = readProfile({
      apiVersion: '',
      kind: '',
      metadata: { name: 'p' },
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
    await webhook.stop();
    assert.equal(webhook.process.exitCode, 0);
    assert.deepEqual(await admitted(), []);
    const pair = {
      cert: readFileSync(join(certificates, 'tls.crt')),
      key: readFileSync(join(certificates, 'tls.key')),
    };
    const slow = createServer(pair, () => undefined);
    slow.listen(0, '127.0.0.1');
    await once(slow, 'listening');
    await host.callAt((slow.address() as AddressInfo).port);
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

  test('wrong certificates are said at the start', async () => {
    host.place({ key: 'no key' });
    const child = spawn(
      process.execPath,
      [join(root, 'main.ts'), 'webhook', '--cert-dir', certificates, '--kubeconfig', user.kubeconfig],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    let text = '';
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const [code] = (await once(child, 'exit')) as [number];
    assert.equal(code, 1);
    assert.match(
      text,
      /^Cannot use the certificate .*they are no PEM certificate and key\. Expected tls\.crt and tls\.key/,
    );
  });

  test.lastly('all stops', async () => {
    await webhook.stop();
    await plane.stop();
  });
}

test.run();
