// deadline: 300 s
/** The webhook as its own process, called by a real API server over TLS: its answers, its certificates, and its absence. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { webhookObjects } from '../../charts/pull-secret-injection/webhook.ts';
import { readProfile } from '../../runtime/rules/pull-secret-profile.ts';
import { injectionPlan } from '../../runtime/rules/pull-secret-profile-plan.ts';
import { compileInjectionPolicy } from '../../runtime/rules/pull-secret-profile-policy.ts';
import { missingControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { Authority } from '../control-plane/x509.ts';
import { suite } from '../support/suite.ts';
import {
  createPod,
  type PodInput,
  podObject,
  profileObject,
  readyNamespace,
  sourceObject,
  startPlane,
} from './live.ts';

const test = suite('webhook');
const missing = missingControlPlane();
const root = new URL('../..', import.meta.url).pathname;

if (missing !== undefined) test.skip('all of it', missing);
else {
  const plane = await startPlane();
  await readyNamespace(plane, 'shop', { team: 'a' });
  const authority = new Authority('webhook');
  const certificates = join(plane.folder, 'tls');
  mkdirSync(certificates);
  const certificate = (name: string): { certificate: string; key: string } =>
    authority.issue({ commonName: name, hosts: ['127.0.0.1', 'localhost'] });
  const place = (pair: { certificate?: string; key?: string }): void => {
    if (pair.certificate !== undefined) writeFileSync(join(certificates, 'tls.crt'), pair.certificate);
    if (pair.key !== undefined) writeFileSync(join(certificates, 'tls.key'), pair.key);
  };
  place(certificate('first'));

  // What the charts grant, and nothing else.
  const objects = webhookObjects({
    namespace: 'pullwright-system',
    image: 'unused',
    certificates: { kind: 'manual', caBundle: Buffer.from(authority.certificate).toString('base64') },
  });
  const role = objects.find(({ kind }) => kind === 'ClusterRole')?.['rules'] as [];
  const user = await plane.user({ name: 'webhook', by: 'token', cluster: role });

  interface Running {
    readonly process: ChildProcess;
    readonly port: number;
    log(): string;
  }
  const start = async (port = 0): Promise<Running> => {
    const child = spawn(
      process.execPath,
      [
        join(root, 'main.ts'),
        'webhook',
        '--cert-dir',
        certificates,
        '--port',
        String(port),
        '--health-port',
        'off',
        '--kubeconfig',
        user.kubeconfig,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    const log = (): string => text;
    const found = await eventually(() => {
      const match = /"webhook listens","port":(\d+)/.exec(text)?.[1];
      assert.ok(match, text);
      return Number(match);
    });
    return { process: child, port: found, log };
  };
  const stop = async ({ process: child }: Running): Promise<void> => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  };

  const configuration = objects.find(({ kind }) => kind === 'MutatingWebhookConfiguration') as TestObject;
  const callAt = async (port: number): Promise<void> => {
    const webhooks = configuration['webhooks'].map((hook: { clientConfig: { caBundle: string } }) => ({
      ...hook,
      timeoutSeconds: 1,
      clientConfig: { url: `https://127.0.0.1:${port}/inject`, caBundle: hook.clientConfig.caBundle },
    }));
    await plane.apply({ ...configuration, webhooks });
  };
  let count = 0;
  const admitted = async (input: Partial<PodInput> = {}): Promise<unknown> => {
    count += 1;
    const created = await createPod(plane, { name: `w-${count}`, namespace: 'shop', ...input });
    return 'names' in created ? created.names : created.refused;
  };

  await plane.apply(
    profileObject('team', {
      namespaceSelector: { matchLabels: { team: 'a' } },
      mode: 'Inject',
      secrets: [{ name: 'reg' }],
    }),
  );
  let webhook = await start();
  await callAt(webhook.port);

  test('pods get the names, from a webhook with the rights of the charts', async () => {
    await eventually(
      async () => assert.deepEqual(await admitted({ own: ['mine', 'mine'] }), ['mine', 'reg']),
      { withinMs: 20_000 },
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

  test('whoever creates a pod is warned while the Secret is not there', async () => {
    const warned = async (name: string): Promise<string> => {
      const file = join(plane.folder, `${name}.json`);
      writeFileSync(file, JSON.stringify(podObject({ name, namespace: 'shop' })));
      return (await plane.kubectl('create', '-f', file)).stderr;
    };
    assert.match(
      await warned('warned'),
      /pull secret "reg" was added to the pod but is not in namespace "shop" yet/,
    );
    await plane.apply(sourceObject('shop', 'reg', ['quay.io']));
    let at = 0;
    await eventually(async () => {
      at += 1;
      assert.doesNotMatch(await warned(`calm-${at}`), /pull secret/);
    });
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
    const [second, third] = [certificate('second'), certificate('third')];
    place({ certificate: second.certificate });
    await eventually(
      () => assert.match(webhook.log(), /certificate kept.*the key is not that of the certificate/),
      { withinMs: 25_000 },
    );
    assert.deepEqual(await admitted(), ['reg'], 'the old pair goes on serving');
    place({ key: second.key });
    await eventually(() => assert.match(webhook.log(), /certificate reloaded/), { withinMs: 25_000 });
    place(third);
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
      spec: { namespaceSelector: {}, secrets: [{ name: 'by-policy' }] },
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

  test('an API server that is killed during pod creations refuses none for our sake', async () => {
    const answers: unknown[] = [];
    let lost = 0;
    const load = (async () => {
      for (let at = 0; at < 200; at++) {
        try {
          answers.push(await admitted());
        } catch {
          lost += 1;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
      }
    })();
    await eventually(() => assert.ok(answers.length > 40));
    await plane.apiServer.restart();
    await load;
    const injected = answers.filter((names) => JSON.stringify(names) === '["reg"]').length;
    const left = answers.filter((names) => JSON.stringify(names) === '[]').length;
    const refused = answers.filter(
      (answer) => typeof answer === 'string' && /webhook|pullwright/i.test(answer),
    );
    assert.deepEqual(refused, []);
    assert.ok(injected > 40, `${injected} injected, ${left} not, ${lost} without an answer`);
  });

  test('a webhook that is down or slow does not hold pods up', async () => {
    const { port } = webhook;
    await stop(webhook);
    assert.equal(webhook.process.exitCode, 0);
    assert.deepEqual(await admitted(), []);
    const pair = {
      cert: readFileSync(join(certificates, 'tls.crt')),
      key: readFileSync(join(certificates, 'tls.key')),
    };
    const slow = createServer(pair, () => undefined);
    slow.listen(0, '127.0.0.1');
    await once(slow, 'listening');
    await callAt((slow.address() as AddressInfo).port);
    await eventually(async () => {
      const started = performance.now();
      assert.deepEqual(await admitted(), []);
      assert.ok(performance.now() - started > 900, 'the slow one was asked');
    });
    slow.closeAllConnections();
    slow.close();
    webhook = await start(port);
    await callAt(port);
    await eventually(async () => assert.deepEqual(await admitted(), ['reg']), { withinMs: 20_000 });
  });

  test('wrong certificates are said at the start', async () => {
    place({ key: 'no key' });
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
      /^Cannot use the certificate .*they are no PEM certificate and key\. Wanted tls\.crt and tls\.key/,
    );
  });

  test.lastly('all stops', async () => {
    await stop(webhook);
    await plane.stop();
  });
}

test.run();
