/** What is there, and what the adapter then does and reports: one row per situation in the life of a cluster. */

import type { ClusterOutcome } from '../../runtime/pull-secret-adapter/adapter/desired-state.ts';
import type {
  JobView,
  NamespaceState,
  RecordView,
  SecretView,
} from '../../runtime/pull-secret-adapter/adapter/observe.ts';
import type { AdapterStatus, HyperfleetCluster } from '../../runtime/pull-secret-adapter/cluster.ts';
import type { AdapterSettings } from '../../runtime/pull-secret-adapter/options.ts';
import type { Case } from '../support/suite.ts';
import {
  cluster,
  deletionJob,
  failedJob,
  job,
  own,
  ownStored,
  PLACES,
  READY,
  RECORD,
  report,
  SECRET,
  storedJob,
} from './reconcile-parts.ts';

export interface ReconcileCase extends Case {
  readonly of?: HyperfleetCluster;
  readonly statuses?: readonly AdapterStatus[];
  readonly jobs?: readonly JobView[];
  readonly secret?: SecretView;
  readonly record?: RecordView;
  /** Of the management namespace. @default {'active'} */
  readonly namespace?: NamespaceState;
  readonly settings?: Partial<AdapterSettings>;
  readonly phase: ClusterOutcome['phase'];
  readonly effects: readonly string[];
  readonly after?: readonly string[];
  readonly available: string;
  readonly finalized?: string;
  /** What a Job that deletes goes to. */
  readonly starts?: readonly string[];
  readonly receipt?: Readonly<Record<string, string>>;
}

export const RECONCILE_CASES: readonly ReconcileCase[] = [
  {
    name: 'everything ready',
    reason: 'the six preconditions hold',
    phase: 'started',
    effects: ['record', 'start'],
    available: 'False JobInProgress',
  },
  {
    name: 'a dependency is late',
    reason: 'comes by itself',
    statuses: READY.slice(0, 2),
    phase: 'waiting',
    effects: [],
    available: 'False PreconditionNotMet',
  },
  {
    name: 'a dependency is True for an older generation',
    reason: 'stale truth is none',
    statuses: [...READY.slice(0, 2), report('placement', 'True', 1)],
    phase: 'waiting',
    effects: [],
    available: 'False PreconditionNotMet',
  },
  {
    name: 'other provider',
    reason: 'not ours',
    of: cluster({}, { provider: 'aws' }),
    phase: 'invalid',
    effects: [],
    available: 'False PreconditionNotMet',
  },
  {
    name: 'no pull secret',
    reason: 'somebody must give one',
    of: cluster({}, { pullSecret: {} }),
    phase: 'invalid',
    effects: [],
    available: 'False PreconditionNotMet',
  },
  {
    name: 'bad pull secret',
    reason: 'refused before any Job',
    of: cluster({}, { pullSecret: { data: '{"auths":{"a":{}}}' } }),
    phase: 'invalid',
    effects: [],
    available: 'False InvalidPullSecret',
  },
  {
    name: 'running',
    reason: 'nothing to do',
    jobs: [job()],
    secret: SECRET,
    phase: 'running',
    effects: [],
    available: 'False JobInProgress',
  },
  {
    name: 'running without its Secret',
    reason: 'drift is repaired',
    jobs: [job()],
    phase: 'running',
    effects: ['repair-secret'],
    available: 'False JobInProgress',
  },
  {
    name: 'running, owner missing',
    reason: 'killed between two writes',
    jobs: [job()],
    secret: { ...SECRET, ownerUids: [] },
    phase: 'running',
    effects: ['repair-secret'],
    available: 'False JobInProgress',
  },
  {
    name: 'an older Job is there',
    reason: 'it could write last',
    jobs: [job({ name: 'pullsecret-cls-1-gen1', generation: 1, hash: 'other' })],
    phase: 'running',
    effects: ['remove-job'],
    available: 'False JobInProgress',
  },
  {
    name: 'done',
    reason: 'the Secret goes',
    jobs: [storedJob('', '2026-01-01T00:59:59Z')],
    secret: SECRET,
    phase: 'stored',
    effects: ['remove-secret'],
    available: 'True SecretAvailable',
  },
  {
    name: 'ended with exit code 0 and no result',
    reason: 'nothing shows that it is stored: unknown until the next attempt',
    jobs: [job({ phase: 'succeeded', finishedAt: '2026-01-01T00:59:59Z' })],
    secret: SECRET,
    phase: 'failed',
    effects: ['remove-secret'],
    available: 'False ResultUnknown',
  },
  {
    name: 'ended with exit code 0 and a result that says failure',
    reason: 'the result counts, not the exit code',
    jobs: [{ ...failedJob('QuotaExceeded', '2026-01-01T00:59:59Z'), phase: 'succeeded', exitCode: 0 }],
    phase: 'failed',
    effects: [],
    available: 'False QuotaExceeded',
  },
  {
    name: 'done, reported, and its pod is gone',
    reason: 'the report remembers what that Job proved',
    jobs: [job({ phase: 'succeeded', finishedAt: '2026-01-01T00:59:59Z' })],
    statuses: [...READY, ownStored(2, '2026-01-01T00:59:59Z')],
    phase: 'stored',
    effects: [],
    available: 'True SecretAvailable',
  },
  {
    name: 'failed for good',
    reason: 'no second try',
    jobs: [failedJob('SecretNotOwned', '2026-01-01T00:00:00Z')],
    secret: SECRET,
    phase: 'failed',
    effects: ['remove-secret'],
    available: 'False SecretNotOwned',
  },
  {
    name: 'failed a moment ago',
    reason: 'the pause is not over',
    jobs: [failedJob('QuotaExceeded', '2026-01-01T00:59:55Z')],
    phase: 'failed',
    effects: [],
    available: 'False QuotaExceeded',
  },
  {
    name: 'failed a while ago',
    reason: 'made again once the report remembers it',
    jobs: [failedJob('QuotaExceeded', '2026-01-01T00:59:00Z')],
    phase: 'failed',
    effects: [],
    after: ['remove-job'],
    available: 'False QuotaExceeded',
  },
  {
    name: 'the failed Job has gone, pause over',
    reason: 'next attempt',
    statuses: [...READY, own('QuotaExceeded', '2026-01-01T00:59:00Z')],
    phase: 'started',
    effects: ['record', 'start'],
    available: 'False JobInProgress',
  },
  {
    name: 'the failed Job has gone, terminal',
    reason: 'only a change helps',
    statuses: [...READY, own('SecretNotOwned', '2026-01-01T00:00:00Z')],
    phase: 'failed',
    effects: [],
    available: 'False SecretNotOwned',
  },
  {
    name: 'stored, Job gone',
    reason: 'the report remembers',
    statuses: [...READY, ownStored(2, '2026-01-01T00:00:00Z')],
    phase: 'stored',
    effects: [],
    available: 'True SecretAvailable',
  },
  {
    name: 'stored long ago',
    reason: 'looked at again once a day',
    statuses: [...READY, ownStored(2, '2025-12-30T00:00:00Z')],
    phase: 'started',
    effects: ['record', 'start'],
    available: 'True SecretAvailable',
  },
  {
    name: 'deleting, dependencies gone',
    reason: 'deletion passes all the same',
    of: cluster({ deleted_time: '2026-01-01T00:59:00Z' }),
    statuses: [],
    secret: SECRET,
    phase: 'deleting',
    effects: ['remove-secret', 'record', 'start'],
    available: 'False Deleting',
    finalized: 'False CleanupInProgress',
  },
  {
    name: 'deleting while a Job stores',
    reason: 'it could bring the secret back',
    of: cluster({ deleted_time: 'x' }),
    jobs: [job({ generation: 1 })],
    phase: 'deleting',
    effects: ['remove-job'],
    available: 'False Deleting',
    finalized: 'False CleanupInProgress',
  },
  {
    name: 'deleted',
    reason: 'the API waits for this',
    of: cluster({ deleted_time: 'x' }),
    statuses: [ownStored(1, '2026-01-01T00:00:00Z')],
    jobs: [deletionJob(Object.fromEntries(PLACES.map((place) => [place, 'removed'])))],
    record: RECORD,
    phase: 'deleted',
    effects: ['remove-binding'],
    after: ['remove-job', 'remove-record'],
    available: 'False SecretDeleted',
    finalized: 'True CleanupConfirmed',
  },
  {
    name: 'deleting what never had a project',
    reason: 'nothing is stored anywhere',
    of: cluster({ deleted_time: 'x' }, { gcp: {} }),
    phase: 'deleted',
    effects: ['remove-binding'],
    available: 'False SecretDeleted',
    finalized: 'True CleanupConfirmed',
  },
];
