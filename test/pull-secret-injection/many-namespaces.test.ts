// deadline: 300 s
/**
 * Two thousand namespaces in the executable that ships: one write for each copy, none at a restart, and memory within its bound, the
 * peak of the burst included.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import { peakOf } from '../hostile/heavy-secrets.ts';
import { executable } from '../support/executable.ts';
import { test } from '../support/suite.ts';
import { CrowdedServer } from './crowded-server.ts';
import {
  grantObject,
  namespaceObject,
  profileObject,
  type RunningReconciler,
  sourceObject,
  startCommand,
} from './live.ts';

const NAMESPACES = 2000;
const MOST_MIB = 140;
const MEGABYTE = 2 ** 20;
const HEAVY = 300;
/** The namespaces, their accounts and copies, and the names of the heavy ones. */
const MOST_READ = 16 * MEGABYTE;

const server = await CrowdedServer.start();
for (let at = 0; at < NAMESPACES; at += 1) {
  server.put('namespaces', namespaceObject(`ns-${at}`, { team: 'a' }));
  const metadata = { name: 'default', namespace: `ns-${at}` };
  server.put('serviceaccounts', { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
}
server.put('namespaces', namespaceObject('kube-system'));
server.put('namespaces', namespaceObject('platform'));
server.put('secrets', sourceObject('platform', 'quay', ['quay.io', 'first.example']));
server.put('pullsecretgrants', grantObject('platform', ['quay']));
server.put(
  'pullsecretprofiles',
  profileObject('team', {
    namespaceSelector: { matchLabels: { team: 'a' } },
    selector: {},
    mode: 'Distribute',
    secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
  }),
);

const program = [await executable()];
const start = (): RunningReconciler =>
  startCommand(server.kubeconfig, { audit: false, admission: 'none' }, program);
const copied = (reconciler: RunningReconciler, body: string): Promise<void> =>
  eventually(
    () => {
      assert.equal(reconciler.process.exitCode, null, reconciler.log.slice(-2000));
      const copies = server.all('secrets').filter(({ metadata }) => metadata.name === 'reg');
      assert.equal(copies.filter(({ data }) => JSON.stringify(data) === body).length, NAMESPACES);
    },
    { withinMs: 180_000, everyMs: 250 },
  );

/** A new namespace, until it has its copy. */
async function serves(name: string): Promise<void> {
  server.put('namespaces', namespaceObject(name, { team: 'a' }));
  await eventually(() =>
    assert.ok(server.all('secrets').some(({ metadata }) => metadata.namespace === name)),
  );
}

test('a first distribution and a rotation within the memory', async () => {
  const reconciler = start();
  for (const [round, host] of ['first.example', 'second.example'].entries()) {
    const source = sourceObject('platform', 'quay', ['quay.io', host]);
    if (round > 0) server.put('secrets', source);
    await copied(reconciler, JSON.stringify(source['data']));
  }
  const peak = peakOf(reconciler.process.pid);
  const environment = readFileSync(`/proc/${reconciler.process.pid}/environ`, 'utf8');
  await reconciler.stop();
  process.stdout.write(`peak of memory: ${peak.toFixed(0)} MiB\n`);
  assert.ok(environment.includes('BUN_JSC_forceRAMSize='), 'the collector is told of a small machine');
  assert.ok(environment.includes('BUN_JSC_useFTLJIT=0'), 'the last tier of the compiler is left out');
  assert.ok(peak <= MOST_MIB, `${peak.toFixed(0)} MiB`);
  assert.equal(server.writes, 2 * NAMESPACES);
  assert.equal(server.looks, 2, 'the source, as it was first and as it was then; a copy is never asked for');
});

test('a restart writes nothing', async () => {
  const reconciler = start();
  const before = server.writes;
  await eventually(() => assert.match(reconciler.log, /caches are synced/));
  // Behind all keys of the start: a change that comes last.
  await serves('late');
  await reconciler.stop();
  assert.equal(server.writes, before + 1);
});

test('what a tenant keeps in its Secrets is not asked for', async () => {
  const heavy = { '.dockerconfigjson': 'A'.repeat(MEGABYTE) };
  for (let at = 0; at < HEAVY; at += 1)
    server.put('secrets', { ...sourceObject('platform', `heavy-${at}`, []), data: heavy });
  const [sent, looks] = [server.sent, server.looks];
  const reconciler = start();
  await serves('last');
  server.put('secrets', { ...sourceObject('platform', 'heavy-0', []), data: heavy });
  await serves('very-last');
  await reconciler.stop();
  const bytes = server.sent - sent;
  process.stdout.write(`${HEAVY} Secrets of a megabyte, ${(bytes / MEGABYTE).toFixed(1)} MiB were read\n`);
  assert.ok(bytes < MOST_READ, `${bytes} bytes were read`);
  assert.equal(server.looks - looks, 1, 'the source alone');
});
test.lastly('the server stops', () => server.stop());
