// deadline: 900 s
// needs: pods, RabbitMQ
/** Sentinel, RabbitMQ, adapter, Job, Secret Manager, status, deletion: each as a process of its own, the cluster a real control plane. */
import assert from 'node:assert/strict';
import { HttpKubeClient } from '../../runtime/kube/http-client.ts';
import { loadConnection } from '../../runtime/kube/kubeconfig.ts';
import { JOB_BINDING, JOB_CLUSTER_ROLE } from '../../runtime/pull-secret-adapter/objects.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { executable } from '../support/executable.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { NODE } from './container.ts';
import { customerLiveCase } from './customer-live-case.ts';
import { deletionLiveCases } from './deletion-live-cases.ts';
import { pullSecret } from './run-job.ts';
import { NAMESPACE, QUEUE, Stage } from './stage.ts';

const until = (holds: () => boolean | Promise<boolean>): Promise<void> =>
  eventually(async () => assert.ok(await holds()));

const stage = await Stage.start();
const { api, gcp, kubelet, plane, rabbit } = stage;
const compiled = [await executable()];
// One of each kind, so that both are seen to work, and to work together.
const adapters = [stage.adapter(NODE), stage.adapter(compiled)];
const spec = (secret: unknown): Record<string, unknown> => ({
  provider: 'gcp',
  gcp: { projectId: 'cust-proj' },
  pullSecret: { data: secret },
});
let polls = 0;

async function sentinel(...more: readonly string[]): Promise<void> {
  polls += 1;
  const program = polls % 2 === 0 ? compiled : NODE;
  const run = stage.run(program, ['sentinel', '--once', '--debounce', '0', ...more]);
  assert.equal(await run.ended(), 0, stage.output.slice(-2000));
}

test('a good cluster: stored at Google, written for HyperShift, reported; the temporary Secret goes', async () => {
  // Both replicas consume before anything is sent.
  await until(async () => (await stage.consumers().catch(() => 0)) === 2);
  await stage.add('cls-1', spec(pullSecret('one')));
  await sentinel();
  await until(() => stage.condition('cls-1', 'Available') === 'True SecretAvailable');
  assert.deepEqual(stage.stored('cls-1'), [pullSecret('one')]);
  assert.equal(await stage.delivered('cls-1'), pullSecret('one'));
  const temporary = meta('v1 Secret', { name: 'cluster-cls-1-pullsecret-data', namespace: NAMESPACE });
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
  await sentinel('--max-age', '1', '--event-type', 'cluster.create');
  await until(() => api.reported.length > before);
  assert.equal(kubelet.runs.length, runs);
  assert.equal(stage.stored('cls-1')?.length, 1);
});

test('a new pull secret is a new generation, a new Job and one new version', async () => {
  api.patch('cls-1', spec(pullSecret('rotated')));
  await sentinel();
  await until(
    () =>
      api.last('cls-1')?.observed_generation === 2 &&
      stage.condition('cls-1', 'Available') === 'True SecretAvailable',
  );
  assert.equal(stage.stored('cls-1')?.length, 2);
});

test('what can never work is refused without a Job, and says why', async () => {
  const runs = kubelet.runs.length;
  await stage.add('cls-2', spec('{"auths":{"quay.io":{}}}'));
  await sentinel();
  await until(() => stage.condition('cls-2', 'Available') === 'False InvalidPullSecret');
  assert.match(JSON.stringify(api.last('cls-2')), /quay\.io/);
  assert.equal(kubelet.runs.length, runs);
});

test('rule dependencies: no event before the others are ready, then the same flow', async () => {
  await stage.add('cls-7', spec(pullSecret('seven')));
  api.clusters.get('cls-7')?.reports.clear();
  const before = api.reported.length;
  await sentinel('--rule', 'dependencies');
  // The event of the invalid cluster has been handled.
  await until(() => api.reported.slice(before).some((one) => one.cluster === 'cls-2'));
  assert.equal(api.last('cls-7'), undefined);
  api.dependenciesReady('cls-7');
  await sentinel('--rule', 'dependencies');
  await until(() => stage.condition('cls-7', 'Available') === 'True SecretAvailable');
});

test('a refused permission fails the Job at once, with its cause, and only once', async () => {
  gcp.faults = [{ rpc: 'GetSecret', code: 'PERMISSION_DENIED' }];
  await stage.add('cls-3', spec(pullSecret('three')));
  await sentinel();
  await until(() => stage.condition('cls-3', 'Available') === 'False IamPermissionDenied');
  const runs = kubelet.runs.length;
  await sentinel();
  await until(() => stage.condition('cls-3', 'Available') === 'False IamPermissionDenied');
  assert.equal(kubelet.runs.length, runs);
  gcp.faults = [];
});

test('garbage goes to the dead letters and holds up nothing', async () => {
  const publisher = stage.probe.createPublisher({ confirm: true });
  for (const body of [
    'xx',
    '{"id":"1","type":"cluster.create"}',
    Buffer.from([255, 254, 0]),
    '{"specversion":"1.0","id":"1","type":"cluster.create","data":{}}',
    Buffer.alloc(10 * 2 ** 20, 'x'),
  ])
    await publisher.send(QUEUE, Buffer.from(body));
  const dead = { queue: `${QUEUE}-dlq`, passive: true };
  await until(async () => (await stage.probe.queueDeclare(dead)).messageCount === 5);
  assert.equal((await stage.probe.queueDeclare({ queue: QUEUE, passive: true })).messageCount, 0);
  await publisher.close();
});

test('the broker and a replica die while events are under way: none is lost, and the next is handled', async () => {
  const ids = ['cls-4', 'cls-5', 'cls-6'];
  for (const id of ids) await stage.add(id, spec(pullSecret(id)));
  await sentinel();
  await adapters[0]?.stop('SIGKILL');
  await rabbit.restart();
  await until(async () => (await stage.consumers().catch(() => 0)) === 1);
  for (const id of ids) {
    await until(() => stage.condition(id, 'Available') === 'True SecretAvailable');
    assert.equal(stage.stored(id)?.length, 1);
  }
  api.patch('cls-2', spec(pullSecret('two')));
  await sentinel();
  await until(() => stage.condition('cls-2', 'Available') === 'True SecretAvailable');
});

test('deletion passes although the dependencies are gone, cleans both places, and reports Finalized', async () => {
  api.delete('cls-1');
  await sentinel();
  await until(() => !api.clusters.has('cls-1'));
  assert.equal(stage.condition('cls-1', 'Finalized'), 'True CleanupConfirmed');
  assert.equal(stage.stored('cls-1'), undefined);
  assert.equal(await stage.delivered('cls-1'), undefined);
});

deletionLiveCases(test, stage, sentinel);

test('the adapters end when they are told to', async () => {
  for (const adapter of adapters.slice(1)) assert.equal(await adapter.stop(), 0, stage.output.slice(-1000));
});

customerLiveCase(test, stage, { program: NODE, sentinel });

test('with the token of the adapter nobody else is given the right of the Jobs, and no other role', async () => {
  const connection = await loadConnection(stage.kubeconfig, {});
  const kube = new HttpKubeClient({ connection, userAgent: 'test' });
  const role = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name });
  const account = (name: string) => ({ kind: 'ServiceAccount', name, namespace: NAMESPACE });
  const policy = /ValidatingAdmissionPolicy "pull-secret-adapter-bindings"/;
  const attempts = [
    ['clusters-cls-4', JOB_CLUSTER_ROLE, 'default', policy],
    ['kube-system', JOB_CLUSTER_ROLE, 'pullsecret-adapter-job', policy],
    ['clusters-cls-4', 'view', 'pullsecret-adapter-job', /policy|Policy|Forbidden|403|422/],
  ] as const;
  for (const [namespace, name, subject, says] of attempts)
    await eventually(() =>
      assert.rejects(
        kube.apply(
          {
            ...meta('rbac.authorization.k8s.io/v1 RoleBinding', { name: JOB_BINDING, namespace }),
            roleRef: role(name),
            subjects: [account(subject)],
          },
          { manager: 'somebody', force: true },
        ),
        says,
      ),
    );
  kube.close();
});

test('nothing printed a secret, and the API refused no report', () => {
  assert.equal(findPlanted(stage.output + kubelet.output + JSON.stringify(api.reported)), undefined);
  assert.deepEqual([api.refused, api.violations], [[], []]);
});

test.lastly('everything stops', async () => {
  await stage.close();
});
