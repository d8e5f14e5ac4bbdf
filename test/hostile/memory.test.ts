// deadline: 600 s
// needs: control plane
/**
 * A tenant's heavy Secrets cost the tenant: with more bytes of them than the reconciler may have memory, copies elsewhere come as
 * before, in bounded memory.
 */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import {
  grantObject,
  namespaceObject,
  profileObject,
  type RunningReconciler,
  reconcilerUser,
  sourceObject,
  startPlane,
  startReconciler,
} from '../pull-secret-injection/live.ts';
import { executable } from '../support/executable.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { heavyName, makeHeavy, peakOf } from './heavy-secrets.ts';

const HEAVY = 300;
/** None of them is read, until somebody asks for it: the rest is what the collector has not taken yet. */
const MOST_MIB = 24;

const plane = await startPlane();
const user = await reconcilerUser(plane);
for (const name of ['platform', 'heavy']) await plane.apply(namespaceObject(name));
await plane.apply(namespaceObject('web', { team: 'a' }));
const distribute = (name: string, namespace: string, sources: readonly string[]): TestObject =>
  profileObject(name, {
    namespaceSelector: { matchLabels: { team: 'a' } },
    selector: {},
    mode: 'Distribute',
    secrets: sources.map((source, at) => ({
      name: at === 0 ? name : `${name}-${at}`,
      sources: [{ namespace, name: source }],
    })),
  });
const copyHas = async (hosts: readonly string[]): Promise<void> => {
  const copy = await plane.get(meta('v1 Secret', { name: 'reg', namespace: 'web' }));
  const wanted = sourceObject('platform', 'quay', hosts)['data'];
  assert.deepEqual(copy?.['data'], wanted);
};
/** Starts anew with another source, and gives the peak of memory once the copy has it. */
const rotated = async (
  hosts: readonly string[],
): Promise<{ readonly reconciler: RunningReconciler; readonly peak: number }> => {
  await plane.apply(sourceObject('platform', 'quay', hosts));
  const reconciler = startReconciler(plane, user, { audit: false }, [await executable()]);
  await eventually(
    async () => {
      assert.equal(reconciler.process.exitCode, null, reconciler.log());
      await copyHas(hosts);
    },
    { withinMs: 90_000, everyMs: 100 },
  );
  return { reconciler, peak: peakOf(reconciler.process.pid) };
};

test('heavy Secrets of a tenant', async () => {
  await plane.apply(grantObject('platform', ['quay']));
  await plane.apply(grantObject('heavy', [heavyName(0), heavyName(1), heavyName(2)]));
  await plane.apply(distribute('reg', 'platform', ['quay']));
  const light = await rotated(['quay.io', 'one.example']);
  await light.reconciler.stop();
  await makeHeavy(plane, 0, HEAVY);
  const { reconciler, peak } = await rotated(['quay.io', 'two.example']);
  process.stdout.write(
    `peak of memory: ${light.peak.toFixed(0)} MiB, with ${HEAVY} Secrets of a megabyte ${peak.toFixed(0)} MiB\n`,
  );
  assert.ok(peak - light.peak <= MOST_MIB, `${(peak - light.peak).toFixed(0)} MiB more`);

  // Sources that are heavy are read by name, and harm no others.
  await plane.apply(distribute('theirs', 'heavy', [heavyName(0), heavyName(1), heavyName(2)]));
  const copyOf = (name: string) =>
    plane.get({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'web' } });
  await eventually(async () => assert.ok((await copyOf('theirs-2'))?.['data']), {
    withinMs: 30_000,
    everyMs: 100,
  });
  await plane.apply(sourceObject('platform', 'quay', ['quay.io', 'three.example']));
  await eventually(() => copyHas(['quay.io', 'three.example']), { withinMs: 30_000, everyMs: 100 });
  await reconciler.stop();
});
