// deadline: 600 s
// needs: control plane
/** `pullwright verify` in a cluster, as its CronJob runs it: with the rights that are rendered, and with what it writes. */
import assert from 'node:assert/strict';
import { schema, verifyObjects } from '../../charts/verify/chart.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { EntryStatus } from '../../runtime/core/kubernetes/pull-status.ts';
import { reconcilers } from '../../runtime/diagnose/commands/verify.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { controlPlane } from '../control-plane/live.ts';
import { type Seen, startServer } from '../registry/https-server.ts';
import { plantedAuth } from '../support/canary.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { ca, tidy } from './verify-scene.ts';

const OWN = 'pullwright-system';

/** A token that ends in a few days, as an `auth` field. */
function shortToken(): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1000) + 5 * 86_400;
  return Buffer.from(
    `b:${part({ alg: 'RS256' })}.${part({ exp })}.${part({ s: plantedAuth('short') })}`,
  ).toString('base64');
}

function secret(name: string, auths: Readonly<Record<string, string>>) {
  const config = { auths: Object.fromEntries(Object.entries(auths).map(([key, auth]) => [key, { auth }])) };
  return pullSecretObject({ name, namespace: 'web' }, config);
}

const plane = await controlPlane({ crds: 'all' });
let refused = plantedAuth('good');
const registry = await startServer((request: Seen, response) => {
  if (request.authorization === undefined || request.authorization === `Basic ${refused}`)
    response.writeHead(401, { 'www-authenticate': 'Basic realm="r"', 'content-length': '0' }).end();
  else response.writeHead(200, { 'docker-content-digest': `sha256:${'a'.repeat(64)}` }).end();
});
for (const name of ['web', OWN, 'openshift-config'])
  await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
const objects = verifyObjects({
  ...schema.parse({ namespaces: ['web'], allowHosts: [registry.host], egressPorts: [443] }),
  namespace: OWN,
  image: 'registry.example.com/pullwright:0.1.0',
});
for (const object of objects) await plane.apply(object);
await plane.apply(secret('pull', { [`${registry.host}/a`]: refused, [`${registry.host}/b`]: shortToken() }));
await plane.apply({
  ...meta('apps/v1 Deployment', { name: 'web', namespace: 'web' }),
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        imagePullSecrets: [{ name: 'pull' }],
        containers: ['a', 'b'].map((name) => ({ name, image: `${registry.host}/${name}/app:1` })),
      },
    },
  },
});
const kubeconfig = await plane.account(OWN, 'pullwright-verify');
const cronJob = objects.find((object) => object.kind === 'CronJob') as unknown as {
  spec: { jobTemplate: { spec: { template: { spec: { containers: { args: string[] }[] } } } } };
};
const args = cronJob.spec.jobTemplate.spec.template.spec.containers[0]?.args ?? [];
const run = () => runMain(['verify', ...args, '--ca', ca, '--timeout', '40', '--kubeconfig', kubeconfig]);
const stored = async (): Promise<KubeObject> => {
  const found = await plane.get(
    meta('pullwright.dev/v1alpha1 PullStatus', { name: 'cronjob-pullwright-verify', namespace: OWN }),
  );
  assert.ok(found !== undefined, 'no PullStatus');
  return found;
};
const verdicts = async (): Promise<readonly EntryStatus[]> =>
  ((await stored()).status as { verdicts: readonly EntryStatus[] }).verdicts;
const events = async (): Promise<readonly string[]> => {
  const { body } = await plane.client.request('GET', '/apis/events.k8s.io/v1/namespaces/web/events');
  return (body as { items: { reason: string; regarding: { kind: string; name: string } }[] }).items.map(
    ({ reason, regarding }) => `${regarding.kind}/${regarding.name} ${reason}`,
  );
};

test('with the rendered rights, a refused credential is reported, and its owner told', async () => {
  const ran = await run();
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(ran.stderr, '');
  const [broken, first, second] = await verdicts();
  assert.equal(broken?.reason, 'NotPullable');
  assert.deepEqual([first?.verdict, first?.reason, first?.lastOk], ['Rejected', 'Invalid', undefined]);
  assert.deepEqual([second?.verdict, second?.reason], ['Warning', 'EndsSoon']);
  assert.match(second?.expiresAt ?? '', /^\d{4}-/);
  assert.deepEqual((await events()).toSorted(), [
    'Secret/pull CredentialEndsSoon',
    'Secret/pull CredentialInvalid',
  ]);
});

test('the same again says nothing new, and a renewed credential is good again', async () => {
  await run();
  assert.equal((await events()).length, 2);
  refused = 'nothing';
  await run();
  const [first] = (await verdicts()).filter(({ subject }) => subject.includes('/a in'));
  assert.deepEqual([first?.verdict, first?.lastOk === undefined], ['Accepted', false]);
  assert.ok((await events()).includes('Secret/pull CredentialValid'));
});

test('the reconciler makes gauges of it', async () => {
  const store = new ObjectStore();
  store.set(await stored());
  const [reconciler] = reconcilers({});
  assert.ok(reconciler !== undefined);
  const reader = { scope: { name: 'local' }, get: (ref: object) => store.get(ref as never) } as never;
  const { metrics: samples = [] } = reconciler.reconcile(reader, { scope: 'local', name: 'x' });
  const metrics = createMetrics();
  metrics.samples('verify', samples);
  const { text } = await metrics.render();
  assert.match(text, /pullwright_credential_expires_at\{.*\/b in Secret\/web\/pull.*\} \d+/);
  assert.match(text, /pullwright_credential_last_ok\{.*\/a in Secret\/web\/pull.*\} \d+/);
  assert.match(text, /pullwright_verify_last_run\{scope="local"\} \d+/);
  assert.doesNotMatch(text, /pullwright_credential_refused\{/);
});

test('a right that is missing is named, and the report says that it is incomplete', async () => {
  await plane.kubectl(
    'delete',
    'role',
    'pullwright-verify-job-images',
    'pullwright-verify-images',
    '-n',
    'web',
    '--ignore-not-found',
  );
  const ran = await run();
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /Cannot list "Pod in web".*403 Forbidden.*Grant the verb "list"/);
  const { conditions } = (await stored()).status as { conditions: { type: string; reason: string }[] };
  assert.equal(conditions.find(({ type }) => type === 'Ready')?.reason, 'Incomplete');
});

test.lastly('the rest stops', tidy);
