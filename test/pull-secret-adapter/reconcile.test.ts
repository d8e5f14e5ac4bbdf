import assert from 'node:assert/strict';
import type {
  ClusterOutcome,
  DesiredState,
} from '../../runtime/pull-secret-adapter/adapter/desired-state.ts';
import { reconcile } from '../../runtime/pull-secret-adapter/adapter/reconcile.ts';
import type { AdapterStatus } from '../../runtime/pull-secret-adapter/cluster.ts';
import { DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/options.ts';
import { findPlanted } from '../support/canary.ts';
import { table, test } from '../support/suite.ts';
import { RECONCILE_CASES } from './reconcile-cases.ts';
import { DELETION_CASES } from './reconcile-deletion-cases.ts';
import { cluster, failedJob, NOW, own, ownStored, READY, report } from './reconcile-parts.ts';

/** Outcome for a valid cluster without any objects, except for the given state. */
function decided(given: Partial<DesiredState>): ClusterOutcome {
  return reconcile({
    cluster: cluster(),
    statuses: READY,
    jobs: [],
    secret: undefined,
    record: undefined,
    namespaces: {},
    settings: DEFAULT_SETTINGS,
    now: NOW,
    ...given,
  });
}

table(test, [...RECONCILE_CASES, ...DELETION_CASES], (row) => {
  const { of = cluster(), statuses = READY, jobs = [], secret, record, namespace = 'active' } = row;
  const result = decided({
    cluster: of,
    statuses,
    jobs,
    secret,
    record,
    namespaces: { 'clusters-cls-1': namespace },
    settings: { ...DEFAULT_SETTINGS, ...row.settings },
  });
  const shown = (type: string): string => {
    const found = result.report.conditions.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  };
  assert.equal(`${result.phase}, ${shown('Available')}`, row.is ?? 'stored, True SecretAvailable');
  assert.deepEqual(
    result.effects.map((effect) => effect.do),
    row.effects ?? [],
  );
  assert.deepEqual(
    result.afterReport.map((effect) => effect.do),
    row.after ?? [],
  );
  const started = result.effects.find((effect) => effect.do === 'start');
  if (row.starts !== undefined) assert.deepEqual(started?.places, row.starts);
  if (row.receipt !== undefined) assert.deepEqual(result.report.data['receipt'], row.receipt);
  assert.equal(shown('Finalized'), row.finalized ?? 'False InUse');
  assert.deepEqual(
    result.report.conditions.map((one) => one.type),
    ['Available', 'Applied', 'Health', 'Finalized'],
  );
  assert.equal(findPlanted(JSON.stringify(result)), undefined);
});

test('pauses end, and what was stored is looked at again, exactly when they are due', () => {
  const asked = (
    own: AdapterStatus,
    now: number,
    settings = DEFAULT_SETTINGS,
  ): { readonly phase: string; readonly after: number | undefined } => {
    const result = decided({ statuses: [...READY, own], settings, now: new Date(now) });
    return { phase: result.phase, after: result.requeueAfterMs };
  };
  const at = Date.parse('2026-01-01T00:00:00Z');
  const failed = own('QuotaExceeded', new Date(at).toISOString());
  const pause = asked(failed, at).after ?? 0;
  assert.ok(pause > 0);
  assert.deepEqual(asked(failed, at + pause - 1), { phase: 'failed', after: 1 });
  assert.equal(asked(failed, at + pause).phase, 'started');
  const stored = ownStored(2, new Date(at).toISOString());
  const day = DEFAULT_SETTINGS.verifyEverySeconds * 1000;
  assert.equal(asked(stored, at + day - 1).phase, 'stored');
  assert.equal(asked(stored, at + day).phase, 'started');
  const never = { ...DEFAULT_SETTINGS, verifyEverySeconds: 0 };
  assert.equal(asked(ownStored(2, ''), at).phase, 'started', 'without a time, a proof is due');
  assert.equal(asked(ownStored(2, ''), at, never).phase, 'stored', 'a proof is never due');
});

test('a failed Job is looked at again when its pause is over, and at the soonest in a second', () => {
  const after = (finishedAt: string): number | undefined =>
    decided({ jobs: [failedJob('QuotaExceeded', finishedAt)] }).requeueAfterMs;
  assert.equal(after('2026-01-01T00:00:00Z'), 1000);
  assert.ok((after('2026-01-01T00:59:59Z') ?? 0) > 1000);
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
    decided({ cluster: cluster({ status }), statuses }).phase;
  assert.equal(phase({ adapters }, []), 'started');
  assert.equal(phase({ conditions: mirrored }, []), 'started');
  assert.equal(phase({ conditions: mirrored, adapters }, [report('dns', 'False')]), 'waiting');
  assert.equal(
    phase({ conditions: mirrored.map((one) => ({ ...one, observed_generation: 1 })) }, []),
    'waiting',
  );
});
