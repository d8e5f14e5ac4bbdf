/** The metrics of secrets, as a scrape shows them. */
import assert from 'node:assert/strict';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { SecretMetrics } from '../../runtime/pull-secret-adapter/adapter/process.ts';
import { test } from '../support/suite.ts';

async function scrape(secrets: SecretMetrics): Promise<readonly string[]> {
  const metrics = createMetrics();
  metrics.samples('secrets', secrets.samples());
  const { text } = await metrics.render();
  return text.split('\n').filter((line) => line.startsWith('pullwright_pull_secret'));
}

test('age, count and result of each cluster; the last pass wins; what is gone is gone', async () => {
  const secrets = new SecretMetrics();
  secrets.isLeading = true;
  const data = { versionCreatedTime: '2026-01-01T00:00:00.000Z', enabledVersions: 2 };
  secrets.reconciled('cls-1', { phase: 'failed', reason: 'QuotaExceeded', data: {} });
  secrets.reconciled('cls-1', { phase: 'stored', reason: 'SecretAvailable', data });
  secrets.reconciled('cls-2', { phase: 'failed', reason: 'IamPermissionDenied', data: { failed: true } });
  secrets.reconciled('cls-3', { phase: 'stored', reason: 'SecretAvailable', data });
  secrets.reconciled('cls-3', { phase: 'gone', reason: 'ClusterGone', data: {} });
  assert.deepEqual(await scrape(secrets), [
    'pullwright_pull_secret_version_created_timestamp_seconds{cluster="cls-1"} 1767225600',
    'pullwright_pull_secret_enabled_versions{cluster="cls-1"} 2',
    'pullwright_pull_secret_result{cluster="cls-1",reason="SecretAvailable"} 1',
    'pullwright_pull_secret_result{cluster="cls-2",reason="IamPermissionDenied"} 1',
  ]);
});

test('what a cluster document or an old report holds instead of a time or a number is left out', async () => {
  const secrets = new SecretMetrics();
  secrets.isLeading = true;
  secrets.reconciled('cls-1', {
    phase: 'stored',
    reason: 'SecretAvailable',
    data: { versionCreatedTime: 'x', enabledVersions: '2' },
  });
  assert.equal((await scrape(secrets)).length, 1);
});

test('only the leader speaks, and what other replicas did is in what it lists', async () => {
  const secrets = new SecretMetrics();
  secrets.reconciled('cls-1', { phase: 'failed', reason: 'QuotaExceeded', data: {} });
  secrets.reconciled('cls-2', { phase: 'stored', reason: 'SecretAvailable', data: {} });
  assert.deepEqual(await scrape(secrets), []);
  secrets.isLeading = true;
  secrets.listed(new Map([['cls-1', 'SecretAvailable']]), new Set(['cls-1', 'cls-2']));
  assert.deepEqual(await scrape(secrets), [
    'pullwright_pull_secret_result{cluster="cls-1",reason="SecretAvailable"} 1',
  ]);
  secrets.isLeading = false;
  assert.deepEqual(await scrape(secrets), []);
});
