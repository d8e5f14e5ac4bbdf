// deadline: 300 s
// needs: control plane
/** Two replicas and a Lease, and a program that is killed at any instant. `PULLWRIGHT_CHAOS` sets how often, `PULLWRIGHT_SEED` when. */
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import type { TestObject } from '../control-plane/resource-path.ts';
import { counted } from '../support/counted.ts';
import { executable } from '../support/executable.ts';
import { meta } from '../support/meta.ts';
import { randomFrom } from '../support/random.ts';
import { test } from '../support/suite.ts';
import { FaultServer } from './fault-server.ts';
import { NODE, ReconcilerProcess } from './process.ts';
import { additional, furnish, GLOBAL, registriesOf, SYNCER } from './scene.ts';

const LEASE: TestObject = meta('coordination.k8s.io/v1 Lease', {
  name: 'pullwright-reconciler',
  namespace: 'default',
});

/** Objects that the reconciler applies to the cluster. */
const AGENT = [
  SYNCER,
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: SYNCER.metadata },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: SYNCER.metadata },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: SYNCER.metadata },
];
const plane = await controlPlane({ crds: ['pullstatuses.pullwright.dev'] });
await furnish(plane, 'quay.io');
const replica = (program = NODE, leaseSeconds = 15, kubeconfig = plane.kubeconfig): ReconcilerProcess =>
  new ReconcilerProcess(program, [
    '--kubeconfig',
    kubeconfig,
    '--lease-namespace=default',
    `--lease-duration=${leaseSeconds}`,
  ]);
const merged = (registry: string): Promise<void> =>
  eventually(async () =>
    assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['quay.io', registry].sort()),
  );
const holder = async (): Promise<unknown> => (await plane.get(LEASE))?.['spec']?.holderIdentity;

test('a frozen leader is replaced, and writes nothing when it wakes up', async () => {
  // Counts what reaches the server: an answer that comes while it is frozen is read, and logged, after.
  const between = new FaultServer(plane);
  const first = replica(NODE, 15, await between.start('frozen'));
  await first.says('became leader');
  const second = replica();
  await plane.apply(additional('first.example.com'));
  await merged('first.example.com');
  await second.says('caches are synced');
  assert.equal(second.said('became leader').length, 0);
  first.signal('SIGSTOP');
  await second.says('became leader');
  await plane.apply(additional('second.example.com'));
  await merged('second.example.com');
  const { writesLeft } = between;
  first.signal('SIGCONT');
  assert.equal(await first.ended(), 1, 'whoever lost the lease starts again from nothing');
  assert.equal(between.writesLeft, writesLeft);
  await between.stop();
  // A leader that is told to stop hands over at once.
  const third = replica();
  await third.says('caches are synced');
  const leader = await holder();
  assert.ok(typeof leader === 'string' && leader !== '');
  assert.equal(await second.stop(), 0);
  assert.notEqual(await holder(), leader, 'the lease is given back, not left to run out');
  await third.says('became leader');
  assert.equal(await third.stop(), 0);
});

const kills = Number(process.env['PULLWRIGHT_CHAOS'] ?? 20);
const seed = Number(process.env['PULLWRIGHT_SEED'] ?? 7);
/** States of the merged Secret that are seen at least. */
const STATES = 4;

test(`killed at ${kills} random instants (seed ${seed}), no partial object is ever seen and the state converges`, async () => {
  // A copy: a build meanwhile takes the one away that a long run goes on to start.
  const program = [`${plane.folder}/pullwright`];
  copyFileSync(await executable(), program[0] ?? '');
  const random = randomFrom(seed);
  const partial: string[] = [];
  const watching = observe(partial);
  const faults = new FaultServer(plane);
  const throughFaults = await faults.start('held');
  /** Kills a leader while its next write is held: it has done `writes` of them, and not all. */
  let between = 0;
  let rounds = 0;
  const killBetweenWrites = async (writes: number): Promise<void> => {
    for (const object of [...AGENT, LEASE]) await plane.remove(object);
    faults.writesLeft = writes;
    faults.held = 0;
    // Patient: a renewal that is late on a slow machine must not end it before its writes.
    const victim = replica(program, 60, throughFaults);
    await eventually(() => assert.ok(faults.held > 0, victim.log.slice(-1500)));
    await victim.stop('SIGKILL');
    assert.equal(faults.writesLeft, 0);
    assert.equal(await missesSome(), true, 'it died with nothing left to write');
    between += 1;
  };
  const killAnywhere = async (round: number): Promise<void> => {
    if (round % 3 === 0) await plane.remove(SYNCER);
    const victim = replica(program);
    // Every second one around its first pass, which comes when the caches of that reconciler are filled; the others anywhere in their start.
    if (round % 2 === 0) {
      await plane.remove(LEASE);
      await victim.says('became leader');
      await eventually(() =>
        assert.ok(
          victim.said('caches are synced').some((line) => line['controller'] === 'global-pull-secret'),
          victim.log.slice(-1500),
        ),
      );
      await new Promise((resolve) => setTimeout(resolve, random() * 400));
    } else await new Promise((resolve) => setTimeout(resolve, 100 + random() * 500));
    await victim.stop('SIGKILL');
  };
  try {
    // A busy machine's victims come less far in the same time: more of them, until the run counts.
    for (; rounds < kills || (rounds < 3 * kills && watching.seen() < STATES); rounds++) {
      await plane.apply(additional(`round-${rounds}.example.com`));
      await (rounds % 4 === 0 ? killBetweenWrites(1 + ((rounds / 4) % 3)) : killAnywhere(rounds));
    }
    await plane.remove(LEASE);
    const survivor = replica(program);
    // A victim may have done the work already: without this the survivor could be told to stop before it has begun.
    await survivor.says('became leader');
    await merged(`round-${rounds - 1}.example.com`);
    await eventually(async () => assert.equal(await missesSome(), false));
    assert.equal(await survivor.stop(), 0);
  } finally {
    await faults.stop();
    await watching.stop();
  }
  assert.deepEqual(partial, []);
  counted(
    { kills: rounds, 'between two writes': between, 'states of the object': watching.seen() },
    { kills, 'between two writes': Math.ceil(kills / 4), 'states of the object': STATES },
  );
});

async function missesSome(): Promise<boolean> {
  const found = await Promise.all(AGENT.map((object) => plane.get(object)));
  return found.includes(undefined);
}

/** Reads the merged secret all the time and keeps whatever is not whole. */
function observe(partial: string[]): { stop(): Promise<void>; seen(): number } {
  const state = { running: true };
  const versions = new Set<string>();
  const loop = (async () => {
    while (state.running) {
      const secret = await plane.get(GLOBAL);
      if (secret !== undefined) versions.add(String(secret.metadata['resourceVersion']));
      try {
        const registries = registriesOf(secret);
        if (secret !== undefined && !(registries.length === 2 && registries.includes('quay.io')))
          partial.push(registries.join());
      } catch {
        partial.push('not a pull secret');
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  return {
    stop: () => {
      state.running = false;
      return loop;
    },
    seen: () => versions.size,
  };
}
