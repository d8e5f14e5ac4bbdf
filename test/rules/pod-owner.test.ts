/** Who makes an evicted pod again, and which Jobs outlive an eviction. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { outlivesEviction, replacesPods } from '../../runtime/rules/kubernetes/pod-owner.ts';
import { suite } from '../support/suite.ts';

const test = suite('owners of pods');

const OWNERS: readonly (readonly [string, string, boolean, string])[] = [
  ['apps/v1', 'ReplicaSet', true, 'a Deployment'],
  ['apps/v1', 'StatefulSet', true, 'in order'],
  ['apps/v1', 'DaemonSet', true, 'on the same node'],
  ['v1', 'ReplicationController', true, 'a DeploymentConfig of OpenShift'],
  ['batch/v1', 'Job', true, 'as long as it has a try left'],
  ['apps.kruise.io/v1alpha1', 'CloneSet', true, 'Kruise'],
  ['apps.kruise.io/v1beta1', 'StatefulSet', true, 'Kruise'],
  ['apps.kruise.io/v1alpha1', 'BroadcastJob', false, 'it counts failures'],
  ['tekton.dev/v1', 'TaskRun', false, 'it fails with its pod'],
  ['v1', 'Pod', false, 'nobody makes it'],
  ['example.com/v1', 'ReplicaSet', false, 'somebody else’s kind of that name'],
  ['constructor/v1', 'Job', false, 'no group of that name'],
];

for (const [apiVersion, kind, makes, reason] of OWNERS)
  test(`replacesPods() of ${apiVersion} ${kind}: ${makes}, ${reason}`, () =>
    assert.equal(replacesPods({ apiVersion, kind }), makes));

const rule = (action: string, condition: object): object => ({
  podFailurePolicy: { rules: [{ action, onPodConditions: [condition] }] },
});

interface Row {
  readonly spec?: object;
  readonly status?: object;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly evicted?: number;
  readonly outlives: boolean;
}

const JOBS: Readonly<Record<string, Row>> = {
  'six tries where nothing is said': { status: { failed: 5 }, outlives: true },
  'the sixth failure is the last one': { status: { failed: 6 }, outlives: false },
  'a Job that must not fail': { spec: { backoffLimit: 0 }, outlives: false },
  'one try is left': { spec: { backoffLimit: 1 }, outlives: true },
  'an eviction of a moment ago counts': { spec: { backoffLimit: 1 }, evicted: 1, outlives: false },
  'a failure that is not counted yet counts': {
    spec: { backoffLimit: 1 },
    status: { uncountedTerminatedPods: { failed: ['uid'] } },
    outlives: false,
  },
  'a pod on its way out counts': { spec: { backoffLimit: 1 }, status: { terminating: 1 }, outlives: false },
  'disruptions are no failures of it': {
    spec: { backoffLimit: 0, ...rule('Ignore', { type: 'DisruptionTarget' }) },
    outlives: true,
  },
  'disruptions end it': {
    spec: { backoffLimit: 9, ...rule('FailJob', { type: 'DisruptionTarget' }) },
    outlives: false,
  },
  'a disruption is counted like any failure': {
    spec: { backoffLimit: 0, ...rule('Count', { type: 'DisruptionTarget', status: 'True' }) },
    outlives: false,
  },
  'a rule about something else says nothing': {
    spec: { backoffLimit: 0, ...rule('Ignore', { type: 'DisruptionTarget', status: 'False' }) },
    outlives: false,
  },
  'an index without tries': { spec: { backoffLimitPerIndex: 0 }, outlives: false },
  'an index with one': { spec: { backoffLimitPerIndex: 1 }, outlives: true },
  'an index that used it': {
    spec: { backoffLimitPerIndex: 1 },
    annotations: { 'batch.kubernetes.io/job-index-failure-count': '1' },
    outlives: false,
  },
};

for (const [reason, { spec, status, annotations, evicted = 0, outlives }] of Object.entries(JOBS))
  test(`outlivesEviction() is ${outlives}: ${reason}`, () => {
    const job: KubeObject = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' }, spec, status };
    const metadata = { name: 'p', ...(annotations === undefined ? {} : { annotations }) };
    assert.equal(outlivesEviction(job, { apiVersion: 'v1', kind: 'Pod', metadata }, evicted), outlives);
  });

test.run();
