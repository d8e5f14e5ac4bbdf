// deadline: 240 s
// needs: control plane
/** Fields that cannot be changed in place, on a real API server: ours are made again; of others it is said what to do, once. */
import assert from 'node:assert/strict';
import type { CommandIo } from '../../runtime/cli/command.ts';
import { openKubeconfig } from '../../runtime/commands/reconcile/live.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { type Committed, commit } from '../../runtime/engine/apply.ts';
import { type ChangeSet, fieldManager, marked } from '../../runtime/engine/changes.ts';
import type { Cluster } from '../../runtime/engine/cluster.ts';
import type { Ref } from '../../runtime/engine/contract.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { decodeObject, digestObject } from '../../runtime/kube/decode.ts';
import { controlPlane } from '../control-plane/live.ts';
import { plantedAuth } from '../support/canary.ts';
import { pullSecretObject } from '../support/meta.ts';
import { test } from '../support/suite.ts';

const AUTHOR = { reconciler: 'global-pull-secret', key: { scope: 'local', name: 'x' } };

const pods = (app: string): object => ({
  selector: { matchLabels: { app } },
  template: {
    metadata: { labels: { app } },
    spec: { containers: [{ name: 'main', image: 'registry.example.com/a:1' }] },
  },
});

const meta = { name: 'one', namespace: 'web' };
const workload = (kind: string, app: string): KubeObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: meta,
  spec: pods(app),
});
const job = (image: string): KubeObject => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: meta,
  spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image }] } } },
});
const binding = (role: string): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: meta,
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: role },
  subjects: [],
});
const secret = (label: string, more: object = {}): KubeObject =>
  decodeObject({
    ...pullSecretObject(meta, { auths: { 'quay.io': { auth: plantedAuth(label) } } }),
    ...more,
  });

interface Row {
  readonly name: string;
  readonly there: KubeObject;
  readonly wanted: KubeObject;
  /** Message when the object is not ours to delete. */
  readonly says: RegExp;
}

const ROWS: readonly Row[] = [
  {
    name: 'the selector of a Deployment',
    there: workload('Deployment', 'old'),
    wanted: workload('Deployment', 'new'),
    says: /^Cannot change "Deployment\/web\/one" in place: .*spec\.selector is immutable: it is \{"matchLabels":\{"app":"old"\}\}, expected \{"matchLabels":\{"app":"new"\}\}/,
  },
  {
    name: 'the selector of a DaemonSet',
    there: workload('DaemonSet', 'old'),
    wanted: workload('DaemonSet', 'new'),
    says: /spec\.selector is immutable: it is \{"matchLabels":\{"app":"old"\}\}/,
  },
  {
    name: 'the type of a Secret',
    there: secret('a', { type: 'Opaque' }),
    wanted: secret('a'),
    says: /type is immutable: it is "Opaque", expected "kubernetes.io\/dockerconfigjson"/,
  },
  {
    name: 'the data of an immutable Secret',
    there: secret('a', { immutable: true }),
    wanted: secret('b'),
    says: /data cannot be changed because "immutable: true" is set/,
  },
  {
    name: 'the template of a Job',
    there: job('registry.example.com/a:1'),
    wanted: job('registry.example.com/a:2'),
    says: /spec\.template is immutable: it is .*expected/,
  },
  {
    name: 'the role of a binding',
    there: binding('old'),
    wanted: binding('new'),
    says: /roleRef is immutable: it is .*"old".*expected .*"new"/,
  },
];

const plane = await controlPlane();
await plane.client.request('POST', '/api/v1/namespaces', { metadata: { name: 'web' } });
const io = { env: {} } as CommandIo;
const opener = { io, metrics: createMetrics(), instance: 'test', mayWrite: () => true };
const cluster = await openKubeconfig(plane.kubeconfig, opener);
const KINDS = [
  'deployments.apps',
  'daemonsets.apps',
  'secrets',
  'jobs.batch',
  'rolebindings.rbac.authorization.k8s.io',
];
const rights = KINDS.map((kind) => {
  const [resource = '', ...group] = kind.split('.');
  return { apiGroups: [group.join('.')], resources: [resource], verbs: ['get', 'create', 'patch'] };
});
const keeper = await plane.user({
  name: 'keeper',
  cluster: [...rights, { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['bind'] }],
});
const bound = await openKubeconfig(keeper.kubeconfig, opener);

const refOf = ({ apiVersion, kind, metadata }: KubeObject): Ref => ({
  role: 'hosted',
  apiVersion,
  kind,
  name: metadata.name,
  namespace: 'web',
});
/** Makes `there` under `manager`, and gives it as the server has it. */
const make = async (there: KubeObject, manager: string, by: Cluster = cluster): Promise<KubeObject> => {
  await by.client.apply(there, { manager, force: true });
  return (await cluster.client.get(refOf(there))) as KubeObject;
};
const changing = (row: Row, before: KubeObject): ChangeSet & { readonly desired: KubeObject } => ({
  verb: 'configured',
  ref: refOf(row.wanted),
  desired: marked(row.wanted, AUTHOR),
  before,
});
const empty = async (row: Row): Promise<void> => {
  const ref = refOf(row.there);
  await cluster.client.remove(ref);
  assert.equal(await cluster.client.get(ref), undefined);
};
const refusal = (done: Committed): string => {
  assert.ok(done.verb === 'failed');
  const { code, retryPolicy, message, hint = '' } = done.problem;
  assert.deepEqual([code, retryPolicy], ['FieldImmutable', 'terminal'], message);
  assert.match(hint, /kubectl -n web delete \w+ one$/);
  return message;
};

for (const row of ROWS) {
  test(`${row.name}: ours is made again`, async () => {
    const before = await make(marked(row.there, AUTHOR), fieldManager(AUTHOR.reconciler));
    const done = await commit(changing(row, before), AUTHOR, cluster);
    assert.equal(done.verb, 'replaced', JSON.stringify(done));
    const after = (await cluster.client.get(refOf(row.wanted))) as KubeObject;
    assert.notEqual(after.metadata.uid, before.metadata.uid);
    const again = await commit(changing(row, after), AUTHOR, cluster);
    assert.equal(again.verb, 'configured', JSON.stringify(again));
    const last = (await cluster.client.get(refOf(row.wanted))) as KubeObject;
    assert.equal(last.metadata.uid, after.metadata.uid);
    assert.equal(digestObject(last['data'] ?? {}), digestObject(after['data'] ?? {}));
    await empty(row);
  });

  test(`${row.name}: somebody else's stays, and it is said what to do`, async () => {
    const before = await make(row.there, 'somebody');
    assert.match(refusal(await commit(changing(row, before), AUTHOR, cluster)), row.says);
    const after = (await cluster.client.get(refOf(row.there))) as KubeObject;
    assert.equal(after.metadata.uid, before.metadata.uid);
    await empty(row);
  });

  test(`${row.name}: ours that may not be deleted`, async () => {
    const before = await make(marked(row.there, AUTHOR), fieldManager(AUTHOR.reconciler));
    assert.match(refusal(await commit(changing(row, before), AUTHOR, bound)), row.says);
    await empty(row);
  });
}

test('one that a finalizer holds is waited for, and made again when it has gone', async () => {
  const row = ROWS[2] as Row;
  const held = { ...row.there, metadata: { ...meta, finalizers: ['example.com/backup'] } };
  const before = await make(marked(held, AUTHOR), fieldManager(AUTHOR.reconciler));
  const done = await commit(changing(row, before), AUTHOR, cluster);
  assert.ok(done.verb === 'failed');
  assert.deepEqual([done.problem.code, done.problem.retryPolicy], ['Terminating', 'waiting']);
  assert.match(done.problem.message, /waits for example\.com\/backup/);
  await cluster.client.jsonPatch(
    refOf(row.there),
    [{ op: 'remove', path: '/metadata/finalizers' }],
    'somebody',
  );
  const { ref, desired } = changing(row, before);
  const made: ChangeSet = { verb: 'created', ref, desired };
  assert.equal((await commit(made, AUTHOR, cluster)).verb, 'created');
  await empty(row);
});

test.lastly('the rest stops', () => {
  cluster.close();
  bound.close();
});
