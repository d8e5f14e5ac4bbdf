/** The metrics of secrets, as a scrape shows them. */
import assert from 'node:assert/strict';
import { SecretMetrics } from '../../runtime/pull-secret-adapter/adapter/secret-metrics.ts';
import { createMetrics } from '../../runtime/telemetry/metrics.ts';
import { suite } from '../support/suite.ts';

const test = suite('secret metrics');

async function scrape(secrets: SecretMetrics): Promise<readonly string[]> {
  const metrics = createMetrics();
  metrics.samples('secrets', secrets.samples());
  const { text } = await metrics.render();
  return text.split('\n').filter((line) => line.startsWith('pullwright_pull_secret'));
}

test('age, count and result of each cluster; the last look wins; what is gone is gone', async () => {
  const secrets = new SecretMetrics();
  const data = { versionCreatedTime: '2026-01-01T00:00:00.000Z', enabledVersions: 2 };
  secrets.looked('cls-1', { phase: 'failed', reason: 'QuotaExceeded', data: {} });
  secrets.looked('cls-1', { phase: 'stored', reason: 'SecretAvailable', data });
  secrets.looked('cls-2', { phase: 'failed', reason: 'IamPermissionDenied', data: { failed: true } });
  secrets.looked('cls-3', { phase: 'stored', reason: 'SecretAvailable', data });
  secrets.looked('cls-3', { phase: 'gone', reason: 'ClusterGone', data: {} });
  assert.deepEqual(await scrape(secrets), [
    'pullwright_pull_secret_version_created_timestamp_seconds{cluster="cls-1"} 1767225600',
    'pullwright_pull_secret_enabled_versions{cluster="cls-1"} 2',
    'pullwright_pull_secret_result{cluster="cls-1",reason="SecretAvailable"} 1',
    'pullwright_pull_secret_result{cluster="cls-2",reason="IamPermissionDenied"} 1',
  ]);
});

test('what a cluster document or an old report holds instead of a time or a number is left out', async () => {
  const secrets = new SecretMetrics();
  secrets.looked('cls-1', {
    phase: 'stored',
    reason: 'SecretAvailable',
    data: { versionCreatedTime: 'x', enabledVersions: '2' },
  });
  assert.equal((await scrape(secrets)).length, 1);
});

test.run();
