/** Inputs of `reconcile` for its tests: a valid cluster, its statuses, a Job and its Secret; each can be overridden. */
import { contentHash, targetHash } from '../../runtime/pull-secret-adapter/adapter/desired-state.ts';
import type { JobView, RecordView, SecretView } from '../../runtime/pull-secret-adapter/adapter/observe.ts';
import {
  type AdapterStatus,
  clusterDocument,
  type HyperfleetCluster,
} from '../../runtime/pull-secret-adapter/cluster.ts';
import { jobLabels } from '../../runtime/pull-secret-adapter/names.ts';
import { DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/options.ts';
import { pullSecret } from './run-job.ts';

export const NOW: Date = new Date('2026-01-01T01:00:00Z');

/** Generation 2, with everything that is needed. */
export function cluster(
  change: Record<string, unknown> = {},
  spec: Record<string, unknown> = {},
): HyperfleetCluster {
  return clusterDocument.parse({
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
    data: {},
    metadata: {},
    ...more,
  };
}

/** Every dependency is there, for this generation. */
export const READY: readonly AdapterStatus[] = ['validation', 'dns', 'placement'].map((name) =>
  report(name, 'True'),
);
export const HASH: string = contentHash(cluster());

export const TARGET: string = targetHash(cluster(), DEFAULT_SETTINGS);
/** Where it belongs. */
export const PLACES: readonly string[] = [
  'namespaces/clusters-cls-1/secrets/pull-secret',
  'projects/cust/secrets/hyperfleet-cls-1-pull-secret',
];

/** The Job that stores generation 2, running. */
export function job(change: Partial<JobView> = {}): JobView {
  return {
    name: 'pullsecret-cls-1-gen2',
    uid: 'u',
    purpose: 'store',
    generation: 2,
    hash: HASH,
    target: TARGET,
    places: PLACES,
    verifyRequest: '',
    attempt: 1,
    phase: 'running',
    removing: false,
    labels: jobLabels(cluster(), change.purpose ?? 'store'),
    startedAt: undefined,
    finishedAt: undefined,
    exitCode: undefined,
    result: undefined,
    cause: undefined,
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

/** Status that the adapter reported for a failed attempt. */
export function own(reason: string, completed: string): AdapterStatus {
  return {
    adapter: 'pullsecret',
    observed_generation: 2,
    conditions: [{ type: 'Available', status: 'False', reason, message: 'm' }],
    data: {
      content: HASH,
      target: TARGET,
      failed: true,
      failure: { reason, message: 'm', verifyRequest: '' },
    },
    metadata: { attempt: 1, completed_time: completed },
  };
}

/** A report of ours that remembers what is stored, of whatever generation. */
export function ownStored(
  generation: number,
  verifiedTime: string,
  more: Record<string, unknown> = {},
): AdapterStatus {
  const stored = {
    content: HASH,
    target: TARGET,
    message: 'Stored',
    verifiedTime,
    verifyRequest: '',
    details: {},
  };
  return {
    ...report('pullsecret', 'True', generation),
    data: { content: HASH, target: TARGET, stored, places: PLACES, ...more },
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

/** The Job ended well, and told when the older version is due. */
export function storedJob(previousUntil: string, finishedAt: string): JobView {
  return job({
    phase: 'succeeded',
    finishedAt,
    result: { status: 'success', reason: 'SecretUnchanged', message: 'm', details: { previousUntil } },
  });
}

/** The record of {@link PLACES}. */
export const RECORD: RecordView = {
  uid: 'r',
  resourceVersion: '1',
  places: PLACES,
  verifyRequest: '',
  revokeRequest: '',
};

/** The Job that deletes, ended well, with what became of the places. */
export function deletionJob(
  receipt: Readonly<Record<string, string>>,
  change: Partial<JobView> = {},
): JobView {
  const result = { status: 'success', reason: 'SecretDeleted', message: 'm', details: {}, receipt } as const;
  return job({ purpose: 'delete', phase: 'succeeded', result, ...change });
}
