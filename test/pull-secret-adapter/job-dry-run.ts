/** `--dry-run`: what it finds out, and that it writes nothing. Run here and compiled. */
import assert from 'node:assert/strict';
import { type Case, type TestSuite, table } from '../support/suite.ts';
import type { SecretManagerDouble } from './doubles/secret-manager.ts';
import type { StoredSecret } from './doubles/secret-versions.ts';
import { OURS, withDouble } from './job-scenarios.ts';
import { type JobRunner, PATH, pullSecret } from './run-job.ts';

interface Dry extends Case {
  readonly present?: Partial<StoredSecret>;
  readonly env?: Readonly<Record<string, string>>;
  readonly denied?: readonly string[];
  readonly prepare?: (double: SecretManagerDouble) => void;
  /** @default {0} */
  readonly code?: number;
  /** @default {'DryRunPassed'} */
  readonly is?: string;
  readonly details?: Readonly<Record<string, string>>;
  readonly says?: RegExp;
}

const HELD = [{ state: 'ENABLED' as const, data: Buffer.from(pullSecret()) }];

const ROWS: readonly Dry[] = [
  {
    name: 'no secret yet',
    reason: 'the project is asked for permissions, since there is no secret to ask about',
    details: { plan: 'create', permissions: 'tested' },
  },
  {
    name: 'may not create',
    reason: 'found before anything is written',
    denied: ['secretmanager.secrets.create'],
    code: 77,
    is: 'IamPermissionDenied',
    says: /secretmanager\.secrets\.create in project "cust-proj"/,
  },
  {
    name: 'the API that knows the permissions of a project is disabled',
    reason: 'says that it could not test, and passes',
    prepare: (double) => {
      double.faults = [
        { rpc: 'TestProjectPermissions', code: 'PERMISSION_DENIED', info: 'SERVICE_DISABLED' },
      ];
    },
    details: { plan: 'create', permissions: 'not tested' },
  },
  {
    name: 'other content',
    reason: 'a version would be added',
    present: { labels: { ...OURS }, versions: [{ state: 'ENABLED', data: Buffer.from('x') }] },
    details: { plan: 'add a version to', permissions: 'tested' },
  },
  {
    name: 'latest is disabled',
    reason: 'a version would be added',
    present: { labels: { ...OURS }, versions: [{ state: 'DISABLED', data: Buffer.from('x') }] },
    details: { plan: 'add a version to', permissions: 'tested' },
  },
  {
    name: 'the same content',
    reason: 'nothing to do',
    present: { labels: { ...OURS }, versions: HELD },
    details: { plan: 'leave as it is', permissions: 'tested' },
  },
  {
    name: 'may not add',
    reason: 'the next rotation would fail',
    present: { labels: { ...OURS }, versions: HELD },
    denied: ['secretmanager.versions.add'],
    code: 77,
    is: 'IamPermissionDenied',
    says: /secretmanager\.versions\.add on secret/,
  },
  {
    name: 'may not disable',
    reason: 'not needed to store, but named',
    present: { labels: { ...OURS }, versions: HELD },
    denied: ['secretmanager.versions.disable'],
    details: { plan: 'leave as it is', permissions: 'without secretmanager.versions.disable' },
  },
  {
    name: 'of another cluster',
    reason: 'what the run would end with',
    present: { labels: { ...OURS, 'cluster-id': 'cls-9' } },
    code: 73,
    is: 'SecretNotOwned',
  },
  {
    name: 'deletion',
    reason: 'would delete',
    present: { labels: { ...OURS } },
    env: { JOB_MODE: 'delete' },
    details: { plan: 'delete', permissions: 'tested' },
  },
  {
    name: 'may not delete',
    reason: 'a cluster would hang in deletion',
    present: { labels: { ...OURS } },
    env: { JOB_MODE: 'delete' },
    denied: ['secretmanager.secrets.delete'],
    code: 77,
    is: 'IamPermissionDenied',
  },
  {
    name: 'no token',
    reason: 'the existing job says "authentication validated" here',
    prepare: (double) => {
      double.identity.metadata = 'down';
    },
    code: 69,
    is: 'IdentityUnavailable',
  },
  {
    name: 'bad pull secret',
    reason: 'refused as a run would',
    env: { PULL_SECRET_DATA: '{"auths":{}}' },
    code: 65,
    is: 'InvalidPullSecret',
  },
];

const WRITES = /^(Create|Update|Delete|Add|Disable|Enable|Destroy)/;

export function jobDryRuns(test: TestSuite, run: JobRunner): void {
  table(
    test,
    ROWS.map((row) => ({ ...row, name: `dry run: ${row.name}` })),
    (row) =>
      withDouble(async (double) => {
        if (row.present !== undefined) double.put(PATH, row.present);
        double.denied = new Set(row.denied);
        row.prepare?.(double);
        const before = JSON.stringify([...double.secrets]);
        const { code, result } = await run(double, row.env, { dryRun: true });
        assert.deepEqual([code, result.reason], [row.code ?? 0, row.is ?? 'DryRunPassed'], result.message);
        if (row.says !== undefined) assert.match(result.message, row.says);
        for (const [key, value] of Object.entries(row.details ?? {}))
          assert.equal(result.details[key], value);
        assert.deepEqual(
          double.calls.filter((call) => WRITES.test(call.rpc)),
          [],
        );
        assert.equal(JSON.stringify([...double.secrets]), before);
      }),
  );
}
