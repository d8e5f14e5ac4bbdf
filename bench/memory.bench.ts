/**
 * Cost of a tenant's large Secrets for the shipped reconciler: memory, CPU time, and the delay of other tenants' rotations.
 * One control plane; the sizes run one after the other.
 */
import assert from 'node:assert/strict';
import { startControlPlane } from '../test/control-plane/control-plane.ts';
import { eventually } from '../test/control-plane/eventually.ts';
import { HEAVY_NAMESPACE, makeHeavy, peakOf, processorMs } from '../test/hostile/heavy-secrets.ts';
import {
  grantObject,
  namespaceObject,
  profileObject,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from '../test/pull-secret-injection/live.ts';
import { executable } from '../test/support/executable.ts';
import { ms, printTable, type Row, ratio, spread } from './measure.ts';

const WEIGHTS = [0, 100, 300];
const ROTATIONS = 15;

const program = [await executable()];
const plane = await startPlane({}, startControlPlane);
const user = await reconcilerUser(plane);
for (const name of ['platform', HEAVY_NAMESPACE]) await plane.apply(namespaceObject(name));
await plane.apply(namespaceObject('web', { team: 'a' }));
await plane.apply(grantObject('platform', ['quay']));
await plane.apply(
  profileObject('reg', {
    namespaceSelector: { matchLabels: { team: 'a' } },
    selector: {},
    mode: 'Distribute',
    secrets: [{ name: 'reg', sources: [{ namespace: 'platform', name: 'quay' }] }],
  }),
);

/** Gives the source another registry; resolves once the copy has it, with the milliseconds that it took. */
async function rotated(registry: string): Promise<number> {
  const source = sourceObject('platform', 'quay', ['quay.io', registry]);
  await plane.apply(source);
  const started = performance.now();
  await eventually(
    async () => {
      const copy = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'reg', namespace: 'web' } };
      assert.deepEqual((await plane.get(copy))?.['data'], source['data']);
    },
    { withinMs: 120_000, everyMs: 5 },
  );
  return performance.now() - started;
}

const rows: Row[] = [];
let base: { readonly peak: number; readonly rotation: number } | undefined;
let made = 0;
for (const weight of WEIGHTS) {
  await makeHeavy(plane, made, weight);
  made = weight;
  const reconciler = startReconciler(plane, user, { audit: false }, program);
  await rotated(`first-${weight}.example`);
  const [peak, cpu] = [peakOf(reconciler.process.pid), processorMs(reconciler.process.pid)];
  const rotations: number[] = [];
  for (let at = 0; at < ROTATIONS; at += 1) rotations.push(await rotated(`r${weight}-${at}.example`));
  const rotation = spread(rotations).median;
  base ??= { peak, rotation };
  rows.push({
    'Secrets of a tenant, 1 MiB each': weight,
    'peak of memory (MiB)': peak.toFixed(0),
    'more than without (MiB)': (peak - base.peak).toFixed(0),
    'processor time to the first copy (ms)': ms(cpu),
    'a rotation of others (ms)': ms(rotation),
    'to that without': ratio(rotation, base.rotation),
  });
  await reconciler.stop();
}
printTable('A tenant of many megabytes beside others', rows);
await plane.stop();
