/** What `decide` is given in its tests: a cluster that can work, its statuses, a Job and its Secret; each can be changed. */
import assert from 'node:assert/strict';
import { contentHash } from '../../runtime/pull-secret-adapter/adapter/decision.ts';
import type { JobView, SecretView } from '../../runtime/pull-secret-adapter/adapter/observe.ts';
import { type AdapterStatus, type Cluster, readCluster } from '../../runtime/pull-secret-adapter/cluster.ts';
import { jobLabels } from '../../runtime/pull-secret-adapter/names.ts';
import { pullSecret } from './run-job.ts';

export const NOW: Date = new Date('2026-01-01T01:00:00Z');

/** Generation 2, with everything that is needed. */
export function cluster(change: Record<string, unknown> = {}, spec: Record<string, unknown> = {}): Cluster {
  const read = readCluster({
    id: 'cls-1',
    name: 'one',
    generation: 2,
    spec: {
      provider: 'gcp',
      gcp: { projectId: 'cust' },
      pullSecret: { data: pullSecret('decide') },
      ...spec,
    },
    ...change,
  });
  assert.ok(read.ok);
  return read.value;
}

/** Another adapter's report. */
export function report(
  adapter: string,
  available: string,
  generation = 2,
  more: Partial<AdapterStatus> = {},
): AdapterStatus {
  return {
    adapter,
    observed_generation: generation,
    conditions: [{ type: 'Available', status: available }],
    ...more,
  };
}

/** Every dependency is there, for this generation. */
export const READY: readonly AdapterStatus[] = ['validation', 'dns', 'placement'].map((name) =>
  report(name, 'True'),
);
export const HASH: string = contentHash(cluster());

/** The Job that stores generation 2, running. */
export function job(change: Partial<JobView> = {}): JobView {
  return {
    name: 'pullsecret-cls-1-gen2',
    uid: 'u',
    purpose: 'store',
    generation: 2,
    hash: HASH,
    attempt: 1,
    phase: 'running',
    removing: false,
    labels: jobLabels(cluster(), change.purpose ?? 'store'),
    ...change,
  };
}

/** The Secret that the running Job reads. */
export const SECRET: SecretView = {
  uid: 's',
  resourceVersion: '1',
  generation: 2,
  hash: HASH,
  ownerUids: ['u'],
};

/** What the adapter itself reported before. */
export function own(reason: string, more: Partial<AdapterStatus>): AdapterStatus {
  return {
    adapter: 'pullsecret',
    observed_generation: 2,
    conditions: [{ type: 'Available', status: 'False', reason, message: 'm' }],
    ...more,
  };
}

/** The Job's first attempt, ended with a result. */
export function failedJob(reason: string, finishedAt: string): JobView {
  return job({
    phase: 'failed',
    exitCode: 1,
    finishedAt,
    result: { status: 'failure', reason, message: 'm', details: {} },
  });
}
