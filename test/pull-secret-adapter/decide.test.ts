/* oxlint-disable max-lines -- one table of cases */
import assert from 'node:assert/strict';
import type { AdapterStatus, Cluster } from '../../runtime/pull-secret-adapter/cluster.ts';
import { readCluster } from '../../runtime/pull-secret-adapter/cluster.ts';
import { decide } from '../../runtime/pull-secret-adapter/decide.ts';
import { contentHash, type Decision } from '../../runtime/pull-secret-adapter/decision.ts';
import type { JobView, SecretView } from '../../runtime/pull-secret-adapter/observe.ts';
import { DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/settings.ts';
import { findPlanted } from '../support/canary.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { pullSecret } from './run-job.ts';

const test = suite('decide');
const NOW = new Date('2026-01-01T01:00:00Z');

function cluster(change: Record<string, unknown> = {}, spec: Record<string, unknown> = {}): Cluster {
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

function report(
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

const READY = ['validation', 'dns', 'placement'].map((name) => report(name, 'True'));
const HASH = contentHash(cluster());

function job(change: Partial<JobView> = {}): JobView {
  return {
    name: 'pullsecret-cls-1-gen2',
    uid: 'u',
    purpose: 'store',
    generation: 2,
    hash: HASH,
    attempt: 1,
    phase: 'running',
    removing: false,
    ...change,
  };
}

const SECRET: SecretView = { uid: 's', resourceVersion: '1', generation: 2, hash: HASH, ownerUids: ['u'] };

function own(reason: string, more: Partial<AdapterStatus>): AdapterStatus {
  return {
    adapter: 'pullsecret',
    observed_generation: 2,
    conditions: [{ type: 'Available', status: 'False', reason, message: 'm' }],
    ...more,
  };
}

interface Row extends Case {
  readonly of?: Cluster;
  readonly statuses?: readonly AdapterStatus[];
  readonly jobs?: readonly JobView[];
  readonly secret?: SecretView;
  readonly phase: Decision['phase'];
  readonly steps: readonly string[];
  readonly after?: readonly string[];
  readonly available: string;
  readonly finalized?: string;
}

const failedJob = (reason: string, finishedAt: string): JobView =>
  job({
    phase: 'failed',
    exitCode: 1,
    finishedAt,
    result: { status: 'failure', reason, message: 'm', details: {} },
  });

const ROWS: readonly Row[] = [
  {
    name: 'everything ready',
    reason: 'the six preconditions hold',
    phase: 'started',
    steps: ['start'],
    available: 'False JobInProgress',
  },
  {
    name: 'a dependency is late',
    reason: 'comes by itself',
    statuses: READY.slice(0, 2),
    phase: 'waiting',
    steps: [],
    available: 'False PreconditionNotMet',
  },
  {
    name: 'a dependency is True for an older generation',
    reason: 'stale truth is none',
    statuses: [...READY.slice(0, 2), report('placement', 'True', 1)],
    phase: 'waiting',
    steps: [],
    available: 'False PreconditionNotMet',
  },
  {
    name: 'other provider',
    reason: 'not ours',
    of: cluster({}, { provider: 'aws' }),
    phase: 'invalid',
    steps: [],
    available: 'False PreconditionNotMet',
  },
  {
    name: 'no pull secret',
    reason: 'somebody must give one',
    of: cluster({}, { pullSecret: {} }),
    phase: 'invalid',
    steps: [],
    available: 'False PreconditionNotMet',
  },
  {
    name: 'bad pull secret',
    reason: 'refused before any Job',
    of: cluster({}, { pullSecret: { data: '{"auths":{"a":{}}}' } }),
    phase: 'invalid',
    steps: [],
    available: 'False InvalidPullSecret',
  },
  {
    name: 'running',
    reason: 'nothing to do',
    jobs: [job()],
    secret: SECRET,
    phase: 'running',
    steps: [],
    available: 'False JobInProgress',
  },
  {
    name: 'running without its Secret',
    reason: 'drift is repaired',
    jobs: [job()],
    phase: 'running',
    steps: ['repair-secret'],
    available: 'False JobInProgress',
  },
  {
    name: 'running, owner missing',
    reason: 'killed between two writes',
    jobs: [job()],
    secret: { ...SECRET, ownerUids: [] },
    phase: 'running',
    steps: ['repair-secret'],
    available: 'False JobInProgress',
  },
  {
    name: 'an older Job is there',
    reason: 'it could write last',
    jobs: [job({ name: 'pullsecret-cls-1-gen1', generation: 1 })],
    phase: 'running',
    steps: ['remove-job'],
    available: 'False JobInProgress',
  },
  {
    name: 'done',
    reason: 'the Secret goes',
    jobs: [job({ phase: 'succeeded' })],
    secret: SECRET,
    phase: 'stored',
    steps: ['remove-secret'],
    available: 'True SecretAvailable',
  },
  {
    name: 'failed for good',
    reason: 'no second try',
    jobs: [failedJob('SecretNotOwned', '2026-01-01T00:00:00Z')],
    secret: SECRET,
    phase: 'failed',
    steps: ['remove-secret'],
    available: 'False SecretNotOwned',
  },
  {
    name: 'failed a moment ago',
    reason: 'the pause is not over',
    jobs: [failedJob('QuotaExceeded', '2026-01-01T00:59:55Z')],
    phase: 'failed',
    steps: [],
    available: 'False QuotaExceeded',
  },
  {
    name: 'failed a while ago',
    reason: 'made again once the report remembers it',
    jobs: [failedJob('QuotaExceeded', '2026-01-01T00:59:00Z')],
    phase: 'failed',
    steps: [],
    after: ['remove-job'],
    available: 'False QuotaExceeded',
  },
  {
    name: 'the failed Job has gone, pause over',
    reason: 'next attempt',
    statuses: [
      ...READY,
      own('QuotaExceeded', {
        data: { content: HASH, failed: true },
        metadata: { attempt: 1, completed_time: '2026-01-01T00:59:00Z' },
      }),
    ],
    phase: 'started',
    steps: ['start'],
    available: 'False JobInProgress',
  },
  {
    name: 'the failed Job has gone, terminal',
    reason: 'only a change helps',
    statuses: [
      ...READY,
      own('SecretNotOwned', {
        data: { content: HASH, failed: true },
        metadata: { attempt: 1, completed_time: '2026-01-01T00:00:00Z' },
      }),
    ],
    phase: 'failed',
    steps: [],
    available: 'False SecretNotOwned',
  },
  {
    name: 'stored, Job gone',
    reason: 'the report remembers',
    statuses: [
      ...READY,
      {
        ...report('pullsecret', 'True'),
        data: { content: HASH },
        metadata: { completed_time: '2026-01-01T00:00:00Z' },
      },
    ],
    phase: 'stored',
    steps: [],
    available: 'True Reported',
  },
  {
    name: 'stored long ago',
    reason: 'looked at again once a day',
    statuses: [
      ...READY,
      {
        ...report('pullsecret', 'True'),
        data: { content: HASH },
        metadata: { completed_time: '2025-12-30T00:00:00Z' },
      },
    ],
    phase: 'started',
    steps: ['start'],
    available: 'False JobInProgress',
  },
  {
    name: 'deleting, dependencies gone',
    reason: 'deletion passes all the same',
    of: cluster({ deleted_time: '2026-01-01T00:59:00Z' }),
    statuses: [],
    secret: SECRET,
    phase: 'deleting',
    steps: ['remove-secret', 'start'],
    available: 'False Deleting',
    finalized: 'False CleanupInProgress',
  },
  {
    name: 'deleting while a Job stores',
    reason: 'it could bring the secret back',
    of: cluster({ deleted_time: 'x' }),
    jobs: [job({ generation: 1 })],
    phase: 'deleting',
    steps: ['remove-job'],
    available: 'False Deleting',
    finalized: 'False CleanupInProgress',
  },
  {
    name: 'deleted',
    reason: 'the API waits for this',
    of: cluster({ deleted_time: 'x' }),
    jobs: [job({ purpose: 'delete', phase: 'succeeded' })],
    phase: 'deleted',
    steps: ['remove-binding'],
    after: ['remove-job'],
    available: 'False SecretDeleted',
    finalized: 'True CleanupConfirmed',
  },
  {
    name: 'deleting what never had a project',
    reason: 'nothing is stored anywhere',
    of: cluster({ deleted_time: 'x' }, { gcp: {} }),
    phase: 'deleted',
    steps: ['remove-binding'],
    available: 'False SecretDeleted',
    finalized: 'True CleanupConfirmed',
  },
];

table(test, ROWS, (row) => {
  const decision = decide({
    cluster: row.of ?? cluster(),
    statuses: row.statuses ?? READY,
    jobs: row.jobs ?? [],
    secret: row.secret,
    settings: DEFAULT_SETTINGS,
    now: NOW,
  });
  const shown = (type: string): string => {
    const found = decision.report.conditions.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  };
  assert.equal(decision.phase, row.phase);
  assert.deepEqual(
    decision.steps.map((step) => step.do),
    row.steps,
  );
  assert.deepEqual(
    decision.afterReport.map((step) => step.do),
    row.after ?? [],
  );
  assert.equal(shown('Available'), row.available);
  assert.equal(shown('Finalized'), row.finalized ?? 'False InUse');
  assert.deepEqual(
    decision.report.conditions.map((one) => one.type),
    ['Available', 'Applied', 'Health', 'Finalized'],
  );
  assert.equal(findPlanted(JSON.stringify(decision)), undefined);
});

test('the three sources of a dependency are read, the most exact one first', () => {
  const adapters = Object.fromEntries(
    ['validation', 'dns', 'placement'].map((name) => [name, { available: 'True' }]),
  );
  const mirrored = ['ValidationSuccessful', 'DNSSuccessful', 'PlacementSuccessful'].map((type) => ({
    type,
    status: 'True',
    observed_generation: 2,
  }));
  const phase = (status: unknown, statuses: readonly AdapterStatus[]): string =>
    decide({
      cluster: cluster({ status }),
      statuses,
      jobs: [],
      secret: undefined,
      settings: DEFAULT_SETTINGS,
      now: NOW,
    }).phase;
  assert.equal(phase({ adapters }, []), 'started');
  assert.equal(phase({ conditions: mirrored }, []), 'started');
  assert.equal(phase({ conditions: mirrored, adapters }, [report('dns', 'False')]), 'waiting');
  assert.equal(
    phase({ conditions: mirrored.map((one) => ({ ...one, observed_generation: 1 })) }, []),
    'waiting',
  );
});

test.run();
