// deadline: 480 s
/** Sentinel, RabbitMQ, adapter, Job, Secret Manager, status, deletion: each as a process of its own, the cluster a real control plane. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Connection } from 'rabbitmq-client';
import { ADAPTER_ACCOUNT, adapterInstallation } from '../../charts/pull-secret-adapter/installation.ts';
import { missingRabbitMq, startRabbitMq } from '../brokers/rabbitmq-node.ts';
import { missingControlPlane, startControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { executable } from '../support/executable.ts';
import { suite } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { SecretManagerDouble } from './doubles/secret-manager.ts';
import { Kubelet } from './kubelet.ts';
import { pullSecret } from './run-job.ts';

const test = suite('pull secret adapter end to end');

async function until(holds: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
  await eventually(async () => assert.ok(await holds()), { withinMs, everyMs: 100 });
}

const missing = missingControlPlane() ?? missingRabbitMq();
const NAMESPACE = 'hyperfleet-system';
const QUEUE = 'hyperfleet-clusters-pullsecret';
const NODE = [process.execPath, new URL('../../main.ts', import.meta.url).pathname];

if (missing !== undefined) test.skip('everything', missing);
else {
  const plane = await startControlPlane({ controllerManager: true });
  const rabbit = await startRabbitMq();
  const api = await HyperfleetDouble.start();
  const gcp = await SecretManagerDouble.start();
  const kubelet = await install();
  const urlFile = join(plane.folder, 'broker-url');
  writeFileSync(urlFile, rabbit.url, { mode: 0o600 });
  const kubeconfig = await plane.account(NAMESPACE, ADAPTER_ACCOUNT);
  let output = '';
  const shared = ['--api', api.url, '--broker-url-file', urlFile];
  const compiled = [await executable()];
  // One of each kind, so that both are seen to work, and to work together.
  const adapters = [startAdapter(NODE), startAdapter(compiled)];
  const probe = new Connection({ url: rabbit.url, retryHigh: 1000 });
  // It is killed along with the broker, and comes back by itself.
  probe.on('error', () => undefined);

  async function install(): Promise<Kubelet> {
    for (const name of [NAMESPACE, 'clusters-cls-1', 'clusters-cls-2', 'clusters-cls-3'])
      await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    const objects = adapterInstallation({
      namespace: NAMESPACE,
      image: 'pullwright:test',
      api: api.url,
      broker: 'rabbitmq',
      brokerSecret: 'broker',
      topic: 'hyperfleet-clusters',
      subscription: 'pullsecret',
      replicas: 0,
      jobGoogleServiceAccount: 'job@mgmt.iam.gserviceaccount.com',
      pullSecretName: 'pull-secret',
      sentinel: false,
      args: [],
      alerts: false,
    });
    for (const object of objects) await plane.apply(object);
    return new Kubelet(plane, NAMESPACE, {
      GCE_METADATA_HOST: gcp.host,
      METADATA_SERVER_DETECTION: 'assume-present',
    });
  }

  function run(program: readonly string[], args: readonly string[]): ChildProcess {
    const [command = '', ...rest] = program;
    const child = spawn(command, [...rest, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
    return child;
  }

  /** As the broker sees it: nothing that was true before a restart can be taken for something that is true after it. */
  async function consumers(): Promise<number> {
    return (await probe.queueDeclare({ queue: QUEUE, passive: true })).consumerCount;
  }

  function startAdapter(program: readonly string[]): ChildProcess {
    const env = Object.entries(gcp.jobEnv).flatMap(([key, value]) => ['--job-env', `${key}=${value}`]);
    const flags = [
      '--kubeconfig',
      kubeconfig,
      '--health-port',
      'off',
      '--metrics-port',
      'off',
      '--lease-seconds',
      '3',
      '--sweep-seconds',
      '600',
      '--repeat-seconds',
      '0',
    ];
    return run(program, ['adapter', ...shared, ...flags, ...env]);
  }

  let polls = 0;

  async function sentinel(...more: readonly string[]): Promise<void> {
    polls += 1;
    const program = polls % 2 === 0 ? compiled : NODE;
    const child = run(program, ['sentinel', ...shared, '--once', '--debounce-seconds', '0', ...more]);
    const [code] = (await once(child, 'exit')) as [number];
    assert.equal(code, 0, output.slice(-2000));
  }

  function condition(id: string, type: string): string {
    const found = api.last(id)?.conditions.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  }

  const spec = (secret: unknown): Record<string, unknown> => ({
    provider: 'gcp',
    gcp: { projectId: 'cust-proj' },
    pullSecret: { data: secret },
  });
  const gcpPath = (id: string): string => `projects/cust-proj/secrets/hyperfleet-${id}-pull-secret`;

  test('a good cluster: stored at Google, written for HyperShift, reported; the temporary Secret goes', async () => {
    // Both replicas consume before anything is sent.
    await until(async () => (await consumers().catch(() => 0)) === 2, 90_000);
    api.add('cls-1', spec(pullSecret('one')));
    await sentinel();
    await until(() => condition('cls-1', 'Available') === 'True SecretAvailable', 90_000);
    assert.deepEqual(
      gcp.secrets.get(gcpPath('cls-1'))?.versions.map((version) => version.data.toString()),
      [pullSecret('one')],
    );
    const secret = await plane.get({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'pull-secret', namespace: 'clusters-cls-1' },
    });
    const data = (secret as { data?: Record<string, string>; type?: string } | undefined)?.data;
    assert.equal(Buffer.from(data?.['.dockerconfigjson'] ?? '', 'base64').toString(), pullSecret('one'));
    const temporary = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'cluster-cls-1-pullsecret-data', namespace: NAMESPACE },
    };
    assert.equal(await plane.get(temporary), undefined);
    assert.equal(api.last('cls-1')?.metadata?.['job_name'], 'pullsecret-cls-1-gen1');
    assert.ok(
      kubelet.runs.every((one) => findPlanted(JSON.stringify(one.env)) === undefined),
      'no secret in the environment',
    );
  });

  test('the same again makes no Job and no version', async () => {
    const runs = kubelet.runs.length;
    const before = api.reported.length;
    await sentinel('--max-age-seconds', '1', '--event-type', 'cluster.create');
    await until(() => api.reported.length > before, 90_000);
    assert.equal(kubelet.runs.length, runs);
    assert.equal(gcp.secrets.get(gcpPath('cls-1'))?.versions.length, 1);
  });

  test('a new pull secret is a new generation, a new Job and one new version', async () => {
    api.patch('cls-1', spec(pullSecret('rotated')));
    await sentinel();
    await until(
      () =>
        api.last('cls-1')?.observed_generation === 2 &&
        condition('cls-1', 'Available') === 'True SecretAvailable',
      90_000,
    );
    assert.equal(gcp.secrets.get(gcpPath('cls-1'))?.versions.length, 2);
  });

  test('what can never work is refused without a Job, and says why', async () => {
    const runs = kubelet.runs.length;
    api.add('cls-2', spec('{"auths":{"quay.io":{}}}'));
    await sentinel();
    await until(() => condition('cls-2', 'Available') === 'False InvalidPullSecret', 90_000);
    assert.match(JSON.stringify(api.last('cls-2')), /quay\.io/);
    assert.equal(kubelet.runs.length, runs);
  });

  test('a refused permission fails the Job at once, with its cause, and only once', async () => {
    gcp.faults = [{ rpc: 'GetSecret', code: 'PERMISSION_DENIED' }];
    api.add('cls-3', spec(pullSecret('three')));
    await sentinel();
    await until(() => condition('cls-3', 'Available') === 'False IamPermissionDenied', 90_000);
    const runs = kubelet.runs.length;
    await sentinel();
    await until(() => condition('cls-3', 'Available') === 'False IamPermissionDenied');
    assert.equal(kubelet.runs.length, runs);
    gcp.faults = [];
  });

  test('garbage goes to the dead letters and holds up nothing', async () => {
    const publisher = probe.createPublisher({ confirm: true });
    for (const body of [
      'xx',
      '{"id":"1","type":"cluster.create"}',
      Buffer.from([255, 254, 0]),
      '{"specversion":"1.0","id":"1","type":"cluster.create","data":{}}',
      Buffer.alloc(10 * 2 ** 20, 'x'),
    ])
      await publisher.send(QUEUE, Buffer.from(body));
    const dead = { queue: `${QUEUE}-dlq`, passive: true };
    await until(async () => (await probe.queueDeclare(dead)).messageCount === 5, 90_000);
    assert.equal((await probe.queueDeclare({ queue: QUEUE, passive: true })).messageCount, 0);
    await publisher.close();
  });

  test('the broker and a replica may die: the next event is handled all the same', async () => {
    adapters[0]?.kill('SIGKILL');
    await rabbit.restart();
    await until(async () => (await consumers().catch(() => 0)) === 1, 90_000);
    api.patch('cls-2', spec(pullSecret('two')));
    await sentinel();
    await until(() => condition('cls-2', 'Available') === 'True SecretAvailable', 90_000);
  });

  test('deletion passes although the dependencies are gone, cleans both places, and reports Finalized', async () => {
    api.delete('cls-1');
    await sentinel();
    await until(() => !api.clusters.has('cls-1'), 90_000);
    assert.equal(condition('cls-1', 'Finalized'), 'True CleanupConfirmed');
    assert.equal(gcp.secrets.has(gcpPath('cls-1')), false);
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'pull-secret', namespace: 'clusters-cls-1' },
    };
    assert.equal(await plane.get(secret), undefined);
  });

  test('nothing printed a secret, and the API refused no report', () => {
    assert.equal(findPlanted(output + kubelet.output + JSON.stringify(api.reported)), undefined);
    assert.deepEqual([api.refused, api.violations], [[], []]);
  });

  test.lastly('everything stops', async () => {
    for (const child of adapters) child.kill('SIGTERM');
    const [code] = adapters[1]?.exitCode === null ? ((await once(adapters[1], 'exit')) as [number]) : [0];
    assert.equal(code, 0, output.slice(-1000));
    await probe.close();
    await kubelet.stop();
    await rabbit.stop();
    await api.close();
    await gcp.close();
    await plane.stop();
  });
}

test.run();
