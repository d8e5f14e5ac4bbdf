/** Current state, and the resulting actions and report of the adapter: one row per situation in the life of a cluster. */

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
  readonly record?: RecordView | undefined;
  /** State of the management namespace. @default {'active'} */
  readonly namespace?: NamespaceState;
  readonly settings?: Partial<AdapterSettings>;
  /** @default none */
  readonly effects?: readonly string[];
  readonly after?: readonly string[];
  /** Phase, and status and reason of `Available`. @default {'stored, True SecretAvailable'} */
  readonly is?: `${ClusterOutcome['phase']}, ${string}`;
  readonly finalized?: string;
  /** Targets of a deletion Job. */
  readonly starts?: readonly string[];
  readonly receipt?: Readonly<Record<string, string>>;
}

export const RECONCILE_CASES: readonly ReconcileCase[] = [
  {
    name: 'everything ready',
    reason: 'the six preconditions hold',
    effects: ['record', 'start'],
    is: 'started, False JobInProgress',
  },
  {
    name: 'a dependency is late',
    reason: 'comes by itself',
    statuses: READY.slice(0, 2),
    is: 'waiting, False PreconditionNotMet',
  },
  {
    name: 'a dependency is True for an older generation',
    reason: 'stale truth is none',
    statuses: [...READY.slice(0, 2), report('placement', 'True', 1)],
    is: 'waiting, False PreconditionNotMet',
  },
  {
    name: 'other provider',
    reason: 'not ours',
    of: cluster({}, { provider: 'aws' }),
    is: 'invalid, False PreconditionNotMet',
  },
  {
    name: 'no pull secret',
    reason: 'somebody must give one',
    of: cluster({}, { pullSecret: {} }),
    is: 'invalid, False PreconditionNotMet',
  },
  {
    name: 'bad pull secret',
    reason: 'refused before any Job',
    of: cluster({}, { pullSecret: { data: '{"auths":{"a":{}}}' } }),
    is: 'invalid, False InvalidPullSecret',
  },
  {
    name: 'running',
    reason: 'nothing to do',
    jobs: [job()],
    secret: SECRET,
    is: 'running, False JobInProgress',
  },
  {
    name: 'running without its Secret',
    reason: 'drift is repaired',
    jobs: [job()],
    effects: ['repair-secret'],
    is: 'running, False JobInProgress',
  },
  {
    name: 'running, owner missing',
    reason: 'killed between two writes',
    jobs: [job()],
    secret: { ...SECRET, ownerUids: [] },
    effects: ['repair-secret'],
    is: 'running, False JobInProgress',
  },
  {
    name: 'an older Job is there',
    reason: 'it could write last',
    jobs: [job({ name: 'pullsecret-cls-1-gen1', generation: 1, hash: 'other' })],
    effects: ['remove-job'],
    is: 'running, False JobInProgress',
  },
  {
    name: 'done',
    reason: 'the Secret goes',
    jobs: [storedJob('', '2026-01-01T00:59:59Z')],
    secret: SECRET,
    effects: ['remove-secret'],
  },
  {
    name: 'ended with exit code 0 and no result',
    reason: 'nothing shows that it is stored: unknown until the next attempt',
    jobs: [job({ phase: 'succeeded', finishedAt: '2026-01-01T00:59:59Z' })],
    secret: SECRET,
    effects: ['remove-secret'],
    is: 'failed, False ResultUnknown',
  },
  {
    name: 'ended with exit code 0 and a result that says failure',
    reason: 'the result counts, not the exit code',
    jobs: [{ ...failedJob('QuotaExceeded', '2026-01-01T00:59:59Z'), phase: 'succeeded', exitCode: 0 }],
    is: 'failed, False QuotaExceeded',
  },
  {
    name: 'done, reported, and its pod is gone',
    reason: 'the report remembers what that Job proved',
    jobs: [job({ phase: 'succeeded', finishedAt: '2026-01-01T00:59:59Z' })],
    statuses: [...READY, ownStored(2, '2026-01-01T00:59:59Z')],
  },
  {
    name: 'failed for good',
    reason: 'no second try',
    jobs: [failedJob('SecretNotOwned', '2026-01-01T00:00:00Z')],
    secret: SECRET,
    effects: ['remove-secret'],
    is: 'failed, False SecretNotOwned',
  },
  {
    name: 'failed a moment ago',
    reason: 'the pause is not over',
    jobs: [failedJob('QuotaExceeded', '2026-01-01T00:59:55Z')],
    is: 'failed, False QuotaExceeded',
  },
  {
    name: 'failed a while ago',
    reason: 'made again once the report remembers it',
    jobs: [failedJob('QuotaExceeded', '2026-01-01T00:59:00Z')],
    after: ['remove-job'],
    is: 'failed, False QuotaExceeded',
  },
  {
    name: 'the failed Job has gone, pause over',
    reason: 'next attempt',
    statuses: [...READY, own('QuotaExceeded', '2026-01-01T00:59:00Z')],
    effects: ['record', 'start'],
    is: 'started, False JobInProgress',
  },
  {
    name: 'the failed Job has gone, terminal',
    reason: 'only a change helps',
    statuses: [...READY, own('SecretNotOwned', '2026-01-01T00:00:00Z')],
    is: 'failed, False SecretNotOwned',
  },
  {
    name: 'stored, Job gone',
    reason: 'the report remembers',
    statuses: [...READY, ownStored(2, '2026-01-01T00:00:00Z')],
  },
  {
    name: 'stored long ago',
    reason: 'looked at again once a day',
    statuses: [...READY, ownStored(2, '2025-12-30T00:00:00Z')],
    effects: ['record', 'start'],
    is: 'started, True SecretAvailable',
  },
  {
    name: 'deleting, dependencies gone',
    reason: 'deletion passes all the same',
    of: cluster({ deleted_time: '2026-01-01T00:59:00Z' }),
    statuses: [],
    secret: SECRET,
    effects: ['remove-secret', 'record', 'start'],
    is: 'deleting, False Deleting',
    finalized: 'False CleanupInProgress',
  },
  {
    name: 'deleting while a Job stores',
    reason: 'it could bring the secret back',
    of: cluster({ deleted_time: 'x' }),
    jobs: [job({ generation: 1 })],
    effects: ['remove-job'],
    is: 'deleting, False Deleting',
    finalized: 'False CleanupInProgress',
  },
  {
    name: 'deleted',
    reason: 'the API waits for this',
    of: cluster({ deleted_time: 'x' }),
    statuses: [ownStored(1, '2026-01-01T00:00:00Z')],
    jobs: [deletionJob(Object.fromEntries(PLACES.map((place) => [place, 'removed'])))],
    record: RECORD,
    effects: ['remove-binding'],
    after: ['remove-job', 'remove-record'],
    is: 'deleted, False SecretDeleted',
    finalized: 'True CleanupConfirmed',
  },
  {
    name: 'deleting what never had a project',
    reason: 'nothing is stored anywhere; an empty name does not give way to the one of the older variant',
    of: cluster({ deleted_time: 'x' }, { gcp: { projectId: '' }, platform: { gcp: { projectID: 'q' } } }),
    effects: ['remove-binding'],
    is: 'deleted, False SecretDeleted',
    finalized: 'True CleanupConfirmed',
  },
  // A stored secret stays available when preconditions, labels and attempts change; conditions that prevent a start.
  {
    name: 'a dependency flaps after it was stored',
    reason: 'preconditions gate work, not what is stored',
    statuses: [...READY.slice(0, 2), report('placement', 'False'), ownStored(2, '2026-01-01T00:00:00Z')],
  },
  {
    name: 'a dependency flaps when it should be proved again',
    reason: 'the proof waits, what is stored stays',
    statuses: [...READY.slice(0, 2), report('placement', 'False'), ownStored(2, '2025-12-01T00:00:00Z')],
    is: 'waiting, True SecretAvailable',
  },
  {
    name: 'labels have changed',
    reason: 'a new generation with the same content and places is stored already',
    statuses: [...READY, ownStored(1, '2026-01-01T00:00:00Z')],
  },
  {
    name: 'another project',
    reason: 'it is not stored there, and the first place is not forgotten',
    of: cluster({}, { gcp: { projectId: 'other' } }),
    statuses: [...READY, ownStored(1, '2026-01-01T00:00:00Z')],
    record: RECORD,
    effects: ['record', 'start'],
    is: 'started, False JobInProgress',
  },
  {
    name: 'labels change while the Job runs',
    reason: 'it does what is wanted now',
    jobs: [job({ generation: 1, name: 'pullsecret-cls-1-gen1' })],
    secret: SECRET,
    is: 'running, False JobInProgress',
  },
  {
    name: 'proving fails because nobody answers',
    reason: 'what is stored is not taken away by that',
    statuses: [...READY, ownStored(2, '2025-12-01T00:00:00Z')],
    jobs: [failedJob('QuotaExceeded', '2026-01-01T00:59:55Z')],
    is: 'failed, True SecretAvailable',
  },
  {
    name: 'proving finds the secret to be somebody else’s',
    reason: 'that is known',
    statuses: [...READY, ownStored(2, '2025-12-01T00:00:00Z')],
    jobs: [failedJob('SecretNotOwned', '2026-01-01T00:59:55Z')],
    is: 'failed, False SecretNotOwned',
  },
  {
    name: 'somebody asks for a proof',
    reason: 'now, not in a day',
    statuses: [...READY, ownStored(2, '2026-01-01T00:59:59Z')],
    record: { ...RECORD, verifyRequest: 'now' },
    effects: ['start'],
    is: 'started, True SecretAvailable',
  },
  {
    name: 'the proof that was asked for is there',
    reason: 'asked once, answered once',
    jobs: [{ ...storedJob('', '2026-01-01T00:59:59Z'), verifyRequest: 'now' }],
    record: { ...RECORD, verifyRequest: 'now' },
  },
  {
    name: 'the management namespace is being deleted',
    reason: 'nothing can be made in it',
    namespace: 'terminating',
    is: 'waiting, False ManagementNamespaceTerminating',
  },
  {
    name: 'a name that makes a reserved namespace',
    reason: 'judged before anything is made',
    of: cluster({ name: 'openshift-config' }),
    settings: { managementNamespace: '{name}' },
    is: 'invalid, False InvalidConfiguration',
  },
  {
    name: 'a project that makes a reserved namespace',
    reason: 'every template takes the same fields',
    of: cluster({}, { gcp: { projectId: 'openshift-config' } }),
    settings: { managementNamespace: '{project}' },
    is: 'invalid, False InvalidConfiguration',
  },
  {
    name: 'a project of another tenant',
    reason: 'not touched',
    of: cluster({ created_by: 'b@example.com' }),
    settings: { tenants: { 'a@example.com': ['cust'] } },
    is: 'waiting, False TenancyUnproven',
  },
  {
    name: 'a project of nobody, with a challenge',
    reason: 'whose label it should carry is not known',
    of: cluster({ created_by: '' }),
    settings: { challenge: 'project-label' },
    is: 'waiting, False TenancyUnproven',
  },
  {
    name: 'a region that is missing where the location names it',
    reason: 'judged before anything is made',
    settings: { location: '{region}' },
    is: 'invalid, False InvalidConfiguration',
  },
  {
    name: 'the same of replication',
    reason: 'a Job would only be refused',
    settings: { replication: 'user-managed:{region}' },
    is: 'invalid, False InvalidConfiguration',
  },
  {
    name: 'an older version is due',
    reason: 'the Job that is there has told when; its successor retires it',
    jobs: [storedJob('2026-01-01T00:59:00Z', '2026-01-01T00:50:00Z')],
    after: ['remove-job'],
  },
  {
    name: 'an older version is due, and the last Job could not retire it a moment ago',
    reason: 'not one Job after the other without a pause',
    jobs: [storedJob('2026-01-01T00:50:00Z', '2026-01-01T00:59:59Z')],
  },
  {
    name: 'an older version is due tomorrow',
    reason: 'not yet',
    jobs: [storedJob('2026-01-02T00:00:00Z', '2026-01-01T00:50:00Z')],
  },
];
