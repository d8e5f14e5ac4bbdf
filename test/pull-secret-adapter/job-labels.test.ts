// deadline: 240 s
// needs: control plane
/** Manual changes of a running Job's labels, on a real API server and with the adapter's own rights. */
import assert from 'node:assert/strict';
import { ADAPTER_ACCOUNT } from '../../charts/pull-secret-adapter/access.ts';
import { adapterInstallation } from '../../charts/pull-secret-adapter/chart.ts';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { findPlanted } from '../support/canary.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { HyperfleetDouble } from './doubles/hyperfleet-api.ts';
import { goodSpec, kubeOf, runHere } from './scene.ts';

/** Image of the Deployment and of its Jobs: policies require the same one. */
const IMAGE = 'registry.example.com/pullwright:0.1.0';
const NAMESPACE = 'hyperfleet-system';
const JOB: TestObject = meta('batch/v1 Job', { name: 'pullsecret-cls-1-gen1', namespace: NAMESPACE });

const plane = await controlPlane();
await plane.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
const installation = { image: IMAGE, api: 'https://hyperfleet.example.com', alerts: false };
for (const object of adapterInstallation(installation)) await plane.apply(object);
const api = await HyperfleetDouble.start();
const kube = await kubeOf(await plane.account(NAMESPACE, ADAPTER_ACCOUNT));
const log: string[] = [];
const run = (image: string): ReturnType<typeof runHere> =>
  runHere(api, kube, { image, namespace: NAMESPACE, sweepSeconds: 1 }, log);
api.add('cls-1', goodSpec('cls-1'));
api.add('cls-2', { ...goodSpec('cls-2'), provider: 'aws' });
let adapter = run(IMAGE);
let uid = '';
let wanted: unknown;
const labelsOf = async (): Promise<unknown> => (await plane.get(JOB))?.metadata['labels'];
const change = async (labels: Readonly<Record<string, string | null>>): Promise<void> => {
  const path = `/apis/batch/v1/namespaces/${NAMESPACE}/jobs/${JOB.metadata.name}`;
  const answer = await plane.client.request(
    'PATCH',
    path,
    { metadata: { labels } },
    'application/merge-patch+json',
  );
  assert.equal(answer.status, 200);
};
const isPutBack = async (): Promise<void> => {
  await eventually(async () => assert.deepEqual(await labelsOf(), wanted, log.slice(-5).join('')));
  const { body } = await plane.client.request('GET', `/apis/batch/v1/namespaces/${NAMESPACE}/jobs`);
  const jobs = (body.items as TestObject[]).map(({ metadata }) => metadata['uid']);
  assert.deepEqual(jobs, [uid], 'the Job is the same, and the only one');
};

test('the Job is made', async () => {
  await eventually(async () => {
    uid = String((await plane.get(JOB))?.metadata['uid'] ?? '');
    assert.notEqual(uid, '', log.slice(-5).join(''));
  });
  wanted = await labelsOf();
});

test('a label that says something else is put back, and said in the log, by an Event and a metric', async () => {
  await change({ 'app.kubernetes.io/managed-by': 'somebody', 'hyperfleet.io/resource-type': null });
  await isPutBack();
  await eventually(async () => {
    const { body } = await plane.client.request(
      'GET',
      `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`,
    );
    const notes = (body.items as TestObject[]).map((event) => `${event['reason']} ${event['note']}`);
    assert.match(
      notes.join('\n'),
      /LabelsPutBack .*app\.kubernetes\.io\/managed-by, hyperfleet\.io\/resource-type/,
    );
  });
  assert.match(log.join(''), /Reverted labels of a Job/);
  assert.match(
    (await adapter.metrics.render()).text,
    /pullwright_adapter_repairs_total\{what="job-labels"\} 1/,
  );
});

test('one that says "delete" does not make it a Job of a deletion', async () => {
  await change({ 'pullwright.dev/purpose': 'delete' });
  await isPutBack();
});

test('one that hides it, or gives it to another cluster, does not have it removed or made twice', async () => {
  for (const labels of [
    { 'hyperfleet.io/cluster-id': null },
    { 'hyperfleet.io/adapter': 'other' },
    { 'hyperfleet.io/cluster-id': 'cls-2' },
    { 'hyperfleet.io/cluster-id': 'cls-unknown' },
  ]) {
    await change(labels);
    await isPutBack();
  }
});

test('labels that people add stay', async () => {
  await change({ team: 'web' });
  await change({ 'app.kubernetes.io/part-of': 'other' });
  wanted = { ...(wanted as object), team: 'web' };
  await isPutBack();
});

test('a hidden Job of another image, whose template cannot be changed, goes on', async () => {
  assert.equal(await adapter.stop(), 0);
  await change({ 'hyperfleet.io/cluster-id': null });
  adapter = run('registry.example.com/pullwright:0.2.0');
  await isPutBack();
});

test.lastly('everything stops, and nothing was shown', async () => {
  assert.equal(await adapter.stop(), 0);
  assert.equal(findPlanted(log.join('')), undefined);
  kube.close();
  await api.close();
});
