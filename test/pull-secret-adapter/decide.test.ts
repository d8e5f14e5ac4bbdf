import assert from 'node:assert/strict';
import { decide } from '../../runtime/pull-secret-adapter/adapter/decide.ts';
import { DEFAULT_SETTINGS } from '../../runtime/pull-secret-adapter/adapter/settings.ts';
import type { AdapterStatus } from '../../runtime/pull-secret-adapter/cluster.ts';
import { findPlanted } from '../support/canary.ts';
import { suite, table } from '../support/suite.ts';
import { DECIDE_CASES } from './decide-cases.ts';
import { cluster, failedJob, HASH, NOW, own, READY, report } from './decide-parts.ts';

const test = suite('decide');

table(test, DECIDE_CASES, (row) => {
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

test('pauses end, and what was stored is looked at again, exactly when they are due', () => {
  const asked = (
    own: AdapterStatus,
    now: number,
  ): { readonly phase: string; readonly after: number | undefined } => {
    const situation = { cluster: cluster(), statuses: [...READY, own], jobs: [], secret: undefined };
    const decision = decide({ ...situation, settings: DEFAULT_SETTINGS, now: new Date(now) });
    return { phase: decision.phase, after: decision.requeueAfterMs };
  };
  const at = Date.parse('2026-01-01T00:00:00Z');
  const metadata = { attempt: 1, completed_time: new Date(at).toISOString() };
  const failed = own('QuotaExceeded', { data: { content: HASH, failed: true }, metadata });
  const pause = asked(failed, at).after ?? 0;
  assert.ok(pause > 0);
  assert.deepEqual(asked(failed, at + pause - 1), { phase: 'failed', after: 1 });
  assert.equal(asked(failed, at + pause).phase, 'started');
  const stored = { ...report('pullsecret', 'True'), data: { content: HASH }, metadata };
  const day = DEFAULT_SETTINGS.verifyEverySeconds * 1000;
  assert.equal(asked(stored, at + day - 1).phase, 'stored');
  assert.equal(asked(stored, at + day).phase, 'started');
});

test('a failed Job is looked at again when its pause is over, and at the soonest in a second', () => {
  const after = (finishedAt: string): number | undefined =>
    decide({
      cluster: cluster(),
      statuses: READY,
      jobs: [failedJob('QuotaExceeded', finishedAt)],
      secret: undefined,
      settings: DEFAULT_SETTINGS,
      now: NOW,
    }).requeueAfterMs;
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
