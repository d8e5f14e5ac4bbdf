/** `pullwright adapter status`: what is said of a cluster that is in order, one that failed, one that has ended and one nobody knows. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ClusterSight, clusterView } from '../../runtime/pull-secret-adapter/adapter/cluster-view.ts';
import { redact } from '../../runtime/rules/redacted.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted, plantedPassword } from '../support/canary.ts';
import { runProcess } from '../support/process.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { NODE } from './container.ts';
import { failedJob, ownStored, PLACES, RECORD } from './reconcile-parts.ts';
import { pullSecret } from './run-job.ts';
import { eventFor, goodSpec, Scene } from './scene.ts';

const test = suite('adapter status');
const [MANAGEMENT = '', GOOGLE = ''] = PLACES;

function secret(owner: string): ClusterSight['secrets'][string] {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'pull-secret', labels: { 'hyperfleet.io/cluster-id': owner } },
  };
}

const SIGHT: ClusterSight = {
  cluster: 'cls-1',
  status: undefined,
  jobs: [],
  record: RECORD,
  namespaces: { 'clusters-cls-1': 'active' },
  secrets: { [MANAGEMENT]: secret('cls-1') },
  events: [],
};

interface Row extends Case {
  readonly sight: Partial<ClusterSight>;
  readonly inOrder: boolean;
  readonly management: string;
}

const HEALTHY = [
  { type: 'Available', status: 'True', reason: 'SecretAvailable' },
  { type: 'Health', status: 'True' },
];
const ROWS: readonly Row[] = [
  {
    name: 'no report, and the Secret is there',
    reason: 'all that is known is well',
    sight: {},
    inOrder: true,
    management: 'written',
  },
  {
    name: 'available and healthy',
    reason: 'the report says so',
    sight: { status: { ...ownStored(2, '2026-01-01T00:00:00Z'), conditions: HEALTHY } },
    inOrder: true,
    management: 'written',
  },
  {
    name: 'available, and the last look failed',
    reason: 'somebody has to see it',
    sight: {
      status: { ...ownStored(2, '2026-01-01T00:00:00Z'), conditions: HEALTHY },
      jobs: [failedJob('IamPermissionDenied', '2026-01-01T00:59:00Z')],
    },
    inOrder: false,
    management: 'written',
  },
  {
    name: 'the Secret is missing',
    reason: 'nothing says that it was written',
    sight: { secrets: {} },
    inOrder: false,
    management: 'not there',
  },
  {
    name: "another cluster's Secret",
    reason: 'not ours',
    sight: { secrets: { [MANAGEMENT]: secret('cls-9') } },
    inOrder: false,
    management: 'not ours',
  },
  {
    name: 'the namespace is going',
    reason: 'said by its state, whatever is in it still',
    sight: { namespaces: { 'clusters-cls-1': 'terminating' } },
    inOrder: false,
    management: 'namespace terminating',
  },
  {
    name: 'an end that is proven',
    reason: 'nothing has to be there any more',
    sight: {
      namespaces: { 'clusters-cls-1': 'gone' },
      secrets: {},
      status: {
        ...ownStored(2, '2026-01-01T00:00:00Z', { receipt: { [GOOGLE]: 'removed' } }),
        conditions: [{ type: 'Finalized', status: 'True' }],
      },
    },
    inOrder: true,
    management: 'namespace gone',
  },
];
table(test, ROWS, ({ sight, inOrder, management }) => {
  const view = clusterView({ ...SIGHT, ...sight });
  assert.equal(view.inOrder, inOrder);
  assert.deepEqual(view.management, [{ place: MANAGEMENT, state: management }]);
  assert.deepEqual(view.places, PLACES);
});

test('the program shows report, Job, version and places, and no secret; two words or one', async () => {
  const scene = await Scene.start();
  const status = (args: readonly string[]): ReturnType<typeof runProcess> =>
    runProcess([...NODE, ...args, '--kubeconfig', scene.cluster.kubeconfig, '--api', scene.api.url]);
  scene.api.add('cls-1', goodSpec('status'));
  await scene.handle(eventFor('cls-1', '1'));
  await eventually(
    async () => {
      await scene.handle(eventFor('cls-1', String(Math.random())));
      assert.equal(scene.reported('cls-1', 'Available'), 'True SecretAvailable');
    },
    { withinMs: 60_000 },
  );
  const text = await status(['adapter', 'status', 'cls-1']);
  assert.match(text.stdout, /^Available +True +SecretAvailable/m, text.stderr);
  assert.match(text.stdout, /^pullsecret-cls-1-gen1 +store +1 +succeeded/m);
  assert.match(text.stdout, /namespaces\/clusters-cls-1\/secrets\/pull-secret/);
  const json = await status(['adapter-status', 'cls-1', '-o', 'json']);
  assert.equal(json.code, 0, json.stderr);
  assert.equal((JSON.parse(json.stdout) as { cluster: string }).cluster, 'cls-1');
  assert.equal(findPlanted(text.stdout + json.stdout + text.stderr), undefined);
  const unknown = await status(['adapter', 'status', 'cls-9']);
  assert.equal(unknown.code, 1);
  assert.match(unknown.stdout, /Report: the API knows none of this adapter/);
  for (const wrong of [[], ['a', 'b'], ['../x']])
    assert.equal((await status(['adapter', 'status', ...wrong])).code, 2);
  assert.match(
    (await runProcess([...NODE, 'adapter', 'status', '--help'])).stdout,
    /^Usage: pullwright adapter status CLUSTER/m,
  );
  await scene.close();
});

test('a canary: secrets stand wherever they can, and none is in any form of the view, watched or not', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pullwright-status-'));
  const [token, wrong] = [join(folder, 'token'), join(folder, 'wrong')];
  writeFileSync(token, plantedPassword('api'));
  writeFileSync(wrong, plantedPassword('wrong'));
  const kubeconfig = join(folder, 'kubeconfig');
  const scene = await Scene.start({ token: () => Promise.resolve(redact(plantedPassword('api'))) });
  scene.api.token = plantedPassword('api');
  const plain = readFileSync(scene.cluster.kubeconfig, 'utf8');
  writeFileSync(kubeconfig, plain.replace('token: test', `token: ${plantedPassword('kubeconfig')}`));
  assert.ok(readFileSync(kubeconfig, 'utf8').includes(plantedPassword('kubeconfig')));
  // The Job runs on, so that its temporary Secret stays.
  scene.cluster.jobMs = 1_000_000;
  scene.api.add('cls-1', goodSpec('canary'));
  await scene.handle(eventFor('cls-1', '1'));
  const [temporary] = scene.cluster.all('secrets');
  const values = Object.values((temporary as unknown as { data: Record<string, string> }).data);
  assert.ok(values.some((value) => findPlanted(Buffer.from(value, 'base64').toString()) !== undefined));
  const planted = { 'kubectl.kubernetes.io/last-applied-configuration': plantedPassword('annotation') };
  for (const [path, object] of scene.cluster.objects)
    if (/jobs|configmaps/.test(path))
      scene.cluster.objects.set(path, {
        ...object,
        metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...planted } },
      });
  scene.cluster.objects.set('/api/v1/namespaces/clusters-cls-1/secrets/pull-secret', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'pull-secret',
      namespace: 'clusters-cls-1',
      labels: { 'hyperfleet.io/cluster-id': 'cls-1' },
      annotations: planted,
    },
    data: { '.dockerconfigjson': Buffer.from(pullSecret('management')).toString('base64') },
  });
  const command = ['adapter', 'status', 'cls-1', '--kubeconfig', kubeconfig, '--api', scene.api.url];
  let printed = '';
  const seen: string[] = [];
  for (const [form, given] of [
    ['text', token],
    ['json', token],
    ['yaml', token],
    ['text', wrong],
  ] as const) {
    const ran = await runProcess([...NODE, ...command, '--api-token-file', given, '-o', form]);
    seen.push(`${form} ${ran.code} ${ran.stdout.includes('clusters-cls-1') ? 'view' : 'no view'}`);
    printed += ran.stdout + ran.stderr;
  }
  assert.deepEqual(seen, ['text 1 view', 'json 1 view', 'yaml 1 view', 'text 1 no view']);
  const [file, ...rest] = [...NODE, ...command, '--api-token-file', token, '--watch'];
  const watching = spawn(file, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(watching, 'exit');
  let watched = '';
  for (const stream of [watching.stdout, watching.stderr])
    stream.on('data', (chunk: Buffer) => (watched += chunk.toString()));
  await eventually(() => assert.match(watched, /Cluster: cls-1/), { withinMs: 60_000 });
  scene.api.faults = [{ status: 401, times: 1000, body: `{"detail":"${plantedPassword('answer')}"}` }];
  await eventually(() => assert.match(watched, /HTTP 401/), { withinMs: 60_000 });
  scene.api.faults = [];
  await eventually(() => assert.equal(watched.split('Cluster: cls-1').length > 2, true), {
    withinMs: 60_000,
  });
  watching.kill('SIGTERM');
  await ended;
  assert.equal(findPlanted(printed + watched), undefined);
  await scene.close();
  rmSync(folder, { recursive: true });
});

test.run();
