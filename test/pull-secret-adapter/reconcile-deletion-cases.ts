/** The end of a cluster, whatever has happened to the places that its pull secret was written to: one row per misfortune. */

import type { Case } from '../support/suite.ts';
import type { ReconcileCase } from './reconcile-cases.ts';
import { cluster, deletionJob, ownStored, PLACES, RECORD } from './reconcile-parts.ts';

const DELETING = { deleted_time: '2026-01-01T00:59:00Z' };
const STORED = [ownStored(1, '2026-01-01T00:00:00Z')];
const [MANAGEMENT = '', GOOGLE = ''] = PLACES;
const OTHER = 'projects/first/secrets/hyperfleet-cls-1-pull-secret';

/** Default of each row: a deletion Job starts. */
const USUAL = {
  of: cluster(DELETING),
  statuses: STORED,
  record: RECORD,
  effects: ['start'],
  is: 'deleting, False Deleting',
  finalized: 'False CleanupInProgress',
} as const;

const ROWS: readonly (Case & Partial<ReconcileCase>)[] = [
  {
    name: 'the management namespace is gone',
    reason: 'that part is gone with it; only Google is gone to',
    namespace: 'gone',
    starts: [GOOGLE],
    receipt: { [MANAGEMENT]: 'its namespace does not exist' },
  },
  {
    name: 'the management namespace is being deleted',
    reason: 'nothing can be made in it, and nothing has to be',
    namespace: 'terminating',
    starts: [GOOGLE],
    receipt: { [MANAGEMENT]: 'its namespace is being deleted' },
  },
  {
    name: 'provider and project were removed from the document before',
    reason: 'what was written is recorded, and removed all the same',
    of: cluster(DELETING, { provider: undefined, gcp: {} }),
    starts: PLACES,
  },
  {
    name: 'the project was changed before',
    reason: 'both are gone to',
    record: { ...RECORD, places: [...PLACES, OTHER] },
    starts: [MANAGEMENT, GOOGLE, OTHER],
  },
  {
    name: 'the record was deleted by somebody',
    reason: 'the report knows as well, and it is recorded again',
    record: undefined,
    effects: ['record', 'start'],
    starts: PLACES,
  },
  {
    name: 'a Job could remove only a part',
    reason: 'not final, and what is proven stays proven',
    effects: [],
    jobs: [
      deletionJob(
        {},
        {
          phase: 'failed',
          finishedAt: '2026-01-01T00:59:59Z',
          result: {
            status: 'failure',
            reason: 'ManagementPermissionDenied',
            message: 'm',
            details: {},
            receipt: { [GOOGLE]: 'removed' },
          },
        },
      ),
    ],
    is: 'failed, False ManagementPermissionDenied',
    finalized: 'False ManagementPermissionDenied',
    receipt: { [GOOGLE]: 'removed' },
  },
  {
    name: 'the next Job after such a part',
    reason: 'goes only to what is left',
    statuses: [ownStored(2, '2026-01-01T00:00:00Z', { receipt: { [GOOGLE]: 'removed' } })],
    starts: [MANAGEMENT],
    receipt: { [GOOGLE]: 'removed' },
  },
  {
    name: 'secrets at Google are to be retained',
    reason: 'said in the receipt',
    effects: [],
    namespace: 'gone',
    settings: { onDeletion: 'retain' },
    after: ['remove-record'],
    is: 'deleted, False SecretDeleted',
    finalized: 'True CleanupConfirmed',
    receipt: { [GOOGLE]: 'retained by policy', [MANAGEMENT]: 'its namespace does not exist' },
  },
  {
    name: 'more places than one result can tell of',
    reason: 'a Job at a time',
    record: {
      ...RECORD,
      places: Array.from({ length: 12 }, (_, n) => `projects/p${10 + n}/secrets/s`),
    },
    effects: ['record', 'start'],
    starts: [MANAGEMENT, GOOGLE, ...Array.from({ length: 8 }, (_, n) => `projects/p${10 + n}/secrets/s`)],
  },
];

export const DELETION_CASES: readonly ReconcileCase[] = ROWS.map((row) => ({ ...USUAL, ...row }));
