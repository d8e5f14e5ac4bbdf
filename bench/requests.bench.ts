/**
 * Cost of one change for the API servers: the reconciler's requests by verb and resource, from the audit logs of a
 * management and a hosted cluster, compared with the minimum.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { missingControlPlane } from '../test/control-plane/build.ts';
import { startControlPlane } from '../test/control-plane/control-plane.ts';
import { eventually } from '../test/control-plane/eventually.ts';
import type { TestObject } from '../test/control-plane/resource-path.ts';
import { namespaceObject, profileObject, sourceObject } from '../test/pull-secret-injection/live.ts';
import { NODE, ReconcilerProcess } from '../test/reconcile/process.ts';
import { additional, pullSecret, secretOf } from '../test/reconcile/scene.ts';
import { mirrors } from '../test/registry-overrides/live-objects.ts';
import { furnish } from '../test/soak/changes.ts';
import { printTable } from './measure.ts';

const NAMESPACES = 10;
/** Number of systems that are enabled below. */
const SYSTEMS = 3;
/** A change is complete after this time without a request; longer than the interval between counts of profiles. */
const QUIET_MS = 3000;

const missing = missingControlPlane();
if (missing !== undefined) {
  process.stderr.write(`skipped: ${missing}\n`);
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), 'pullwright-requests-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

function audited(name: string): { readonly flags: readonly string[]; readonly log: string } {
  const [policy, log] = [join(folder, `${name}.yaml`), join(folder, `${name}.log`)];
  writeFileSync(
    policy,
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\nrules: [{ level: Metadata }]\n',
  );
  writeFileSync(log, '');
  return { flags: [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`], log };
}

const logs = { management: audited('management'), hosted: audited('hosted') };
/** The program to look at; `PROGRAM` names another one, with its arguments. */
const PROGRAM = process.env['PROGRAM']?.split(' ') ?? NODE;
const [management, hosted] = await Promise.all([
  startControlPlane({
    apiServerFlags: logs.management.flags,
    crds: [
      'hostedclusters.hypershift.openshift.io',
      'hostedcontrolplanes.hypershift.openshift.io',
      'nodepools.hypershift.openshift.io',
      'machines.cluster.x-k8s.io',
      'imagedigestmirrorsets.config.openshift.io',
      'pullstatuses.pullwright.dev',
    ],
  }),
  startControlPlane({ apiServerFlags: logs.hosted.flags, crds: ['pullstatuses.pullwright.dev'] }),
]);

interface AuditLine {
  readonly verb: string;
  readonly userAgent?: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string; readonly name?: string };
}

/** Number of times that the reconciler has sent each request, without periodic ones (watches, discovery, the kubeconfig). */
function requests(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  // The last line may still be on its way to the disk.
  for (const { log } of Object.values(logs))
    for (const line of readFileSync(log, 'utf8').split('\n').slice(0, -1)) {
      const { verb, userAgent = '', objectRef } = JSON.parse(line) as AuditLine;
      if (!userAgent.startsWith('pullwright') || verb === 'watch' || objectRef?.resource === undefined)
        continue;
      if (objectRef.name === 'pullwright-kubeconfig') continue;
      const { resource, subresource } = objectRef;
      const request = `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
      counts.set(request, (counts.get(request) ?? 0) + 1);
    }
  return counts;
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, times) => sum + times, 0);
}

/** Passes of all controllers so far; those by the clock too, so that a few more may be seen than a change needs. */
async function passes(): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const counts = [...text.matchAll(/^controller_runtime_reconcile_total\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, value]) => sum + Number(value), 0);
}

async function quiet(): Promise<void> {
  for (let before = -1, at = 0; ; await delay(250)) {
    const now = sumOf(requests());
    if (now !== before) [before, at] = [now, performance.now()];
    else if (performance.now() - at > QUIET_MS) return;
  }
}

const rows: Record<string, string | number>[] = [];

/** Makes a change and adds a row with what it cost. `least` is what no program could do without. */
async function cost(change: string, least: string, make: () => Promise<unknown>): Promise<void> {
  const [before, passesBefore] = [requests(), await passes()];
  await make();
  await quiet();
  const sent = [...requests()]
    .map(([request, times]) => [request, times - (before.get(request) ?? 0)] as const)
    .filter(([, times]) => times > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  rows.push({
    change,
    passes: (await passes()) - passesBefore,
    requests: sumOf(new Map(sent)),
    'which ones': sent.map(([request, times]) => `${times} ${request}`).join(', '),
    'the least possible': least,
  });
}

function named(apiVersion: string, kind: string, name: string, namespace?: string): TestObject {
  return { apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } };
}

await furnish({ management, hosted });
for (let at = 0; at < NAMESPACES; at++) await hosted.apply(namespaceObject(`team-${at}`, { tier: 'a' }));
const config = join(folder, 'config.yaml');
writeFileSync(
  config,
  'systems: { global-pull-secret: {}, pull-secret-injection: {}, credential-provider: false, registry-overrides: { catalogs: false } }\n',
);
const reconciler = new ReconcilerProcess(PROGRAM, [
  `--kubeconfig=${management.kubeconfig}`,
  '--discover',
  '--allow-address=127.0.0.0/8',
  `--config=${config}`,
  '--metrics-port=0',
]);
const port = await reconciler.port('metrics');
// Wait for every controller of the hosted cluster, including the last one.
await eventually(
  () => {
    if (reconciler.said('caches are synced').length < SYSTEMS)
      throw new Error(`caches are not filled: ${reconciler.log.slice(-2000)}`);
  },
  { withinMs: 30_000 },
);
await quiet();

const sources = [{ namespace: 'sources', name: 'registry' }];
const profile = (secrets: readonly object[]): TestObject =>
  profileObject('team', { mode: 'Distribute', namespaceSelector: { matchLabels: { tier: 'a' } }, secrets });
const writes = (count: number): string => `${count} writes, 1 status`;

await cost('the tenant adds its secret', '1 write, 1 PullStatus made and filled', () =>
  hosted.apply(additional('a.example.com')),
);
await cost('the tenant changes its secret', '1 write, 1 status', () =>
  hosted.apply(additional('a.example.com', 'b.example.com')),
);
await cost('the platform rotates its secret', '2 writes', () =>
  management.apply(pullSecret('pull-secret', 'clusters-prod', ['quay.io', 'second.example.com'])),
);
await cost('the tenant breaks its secret', '1 status, 1 event', () =>
  hosted.apply(
    secretOf('additional-pull-secret', 'kube-system', {
      '.dockerconfigjson': Buffer.from('{"auths":[]}').toString('base64'),
    }),
  ),
);
await cost('the tenant deletes its secret', '2 deletions', () =>
  hosted.remove(named('v1', 'Secret', 'additional-pull-secret', 'kube-system')),
);
await cost(`a profile brings a Secret to ${NAMESPACES} namespaces`, writes(NAMESPACES), () =>
  hosted.apply(profile([{ name: 'reg', sources }])),
);
await cost('its source rotates', `${NAMESPACES} writes`, () =>
  hosted.apply(sourceObject('sources', 'registry', ['s.example.com', 't.example.com'])),
);
await cost('a namespace comes', '1 write, 1 status', () =>
  hosted.apply(namespaceObject('team-new', { tier: 'a' })),
);
await cost('somebody deletes a copy', '1 write', () => hosted.remove(named('v1', 'Secret', 'reg', 'team-0')));
await cost('the profile brings a second Secret', writes(NAMESPACES + 1), () =>
  hosted.apply(
    profile([
      { name: 'reg', sources },
      { name: 'reg-2', sources },
    ]),
  ),
);
await cost('the profile goes', `${2 * (NAMESPACES + 1)} deletions`, () =>
  hosted.remove(named('pullwright.dev/v1alpha1', 'PullSecretProfile', 'team')),
);
await cost('a mirror set comes', '2 Deployments, 1 ConfigMap, 1 status', () =>
  management.apply(mirrors([['quay.io/ocp', ['a.example.com/ocp']]])),
);

await cost('it changes', '2 Deployments, 1 ConfigMap, 1 status', () =>
  management.apply(mirrors([['quay.io/ocp', ['b.example.com/ocp']]])),
);
await cost('it goes', '2 Deployments, 1 ConfigMap, 1 status', () =>
  management.remove(named('config.openshift.io/v1', 'ImageDigestMirrorSet', 'release')),
);

await reconciler.stop();
await Promise.all([management.stop(), hosted.stop()]);
printTable('Requests of one change, by the audit logs of the API servers', rows);
