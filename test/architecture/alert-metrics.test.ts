/** Every metric that an alert asks for is one that a program of ours serves, or one of those of others that are named here. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installerGauges } from '../../runtime/credential-provider/installer/installer.ts';
import { createMetrics } from '../../runtime/engine/metrics.ts';
import { authFileAge, NodeMetrics } from '../../runtime/node/report.ts';
import { test } from '../support/suite.ts';

const root = join(import.meta.dirname, '../..');

/** Served by programs that are not ours, by the names in their sources. */
const OF_OTHERS: ReadonlySet<string> = new Set([
  // pkg/credentialprovider/plugin/metrics.go of the kubelet.
  'kubelet_credential_provider_plugin_errors_total',
  // kube-state-metrics.
  'kube_job_complete',
  'kube_job_failed',
]);
const METRIC =
  /\b(?:pullwright|controller_runtime|workqueue|rest_client|leader_election|kubelet|kube)_[a-z0-9_]+/g;

async function served(): Promise<ReadonlySet<string>> {
  const pages = [
    (await createMetrics().render()).text,
    new NodeMetrics(0).text([authFileAge(0)]),
    new NodeMetrics(0, 'pullwright_installer').text(
      installerGauges({ root: '/nowhere', stateDir: '', authDir: '/auth' }, undefined, 'Starting'),
    ),
  ];
  // Gauges and counters that a reconciler or an adapter gives by name, once there is something to count.
  const given = globSync('runtime/**/*.ts', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/'(pullwright_[a-z0-9_]+)'/g)].map(
      ([, name = '']) => name,
    ),
  );
  const scraped = [...pages.join('\n').matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  return new Set([...scraped, ...given]);
}

/** Every metric that the charts name, alerts that the example does not render included. */
function asked(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const file of globSync('charts/**/*.ts', { cwd: root })) {
    const text = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
    if (!/\bexpr(ession)?:/.test(text)) continue;
    for (const [name] of text.matchAll(METRIC)) found.set(name, file);
  }
  return found;
}

test('every metric in an expression is served', async () => {
  const names = await served();
  const base = (name: string): string => name.replace(/_(bucket|sum|count)$/, '');
  const wrong = [...asked()].filter(
    ([name]) => !names.has(name) && !names.has(base(name)) && !OF_OTHERS.has(name),
  );
  assert.deepEqual(wrong, []);
});

test('every metric that is served stands in the documents', async () => {
  const documents = globSync('docs/**/*.md', { cwd: root })
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join();
  const missing = [...(await served())].filter(
    (name) => name.startsWith('pullwright_') && !documents.includes(name),
  );
  assert.deepEqual(missing, []);
});

test('the charts ask for metrics of each program: the test looks where it should', () => {
  const names = [...asked().keys()];
  for (const name of [
    'pullwright_installer_in_sync',
    'pullwright_auth_file_oldest_seconds',
    'leader_election_master_status',
  ])
    assert.ok(names.includes(name), name);
});
