// deadline: 600 s
/**
 * Replicas that divide the hosted clusters by shards, and die, stop, freeze and start at any instant: each cluster has one writer at a
 * time, and always gets one again. `PULLWRIGHT_CHAOS` sets how often, `PULLWRIGHT_SEED` who and how.
 */
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { missingControlPlane } from '../control-plane/control-plane.ts';
import { eventually } from '../control-plane/eventually.ts';
import { counted } from '../support/counted.ts';
import { executable } from '../support/executable.ts';
import { randomFrom } from '../support/seeded-random.ts';
import { suite } from '../support/suite.ts';
import { ShardScene } from './shard-scene.ts';

const test = suite('replicas that divide hosted clusters');
const missing = missingControlPlane();
const SLOW = { withinMs: 120_000 };
const SHARDS = 4;
const REPLICAS = 3;

if (missing !== undefined) test.skip('shards and kills', missing);
else {
  const scene = await ShardScene.start({ shards: SHARDS, clusters: 8 });
  // A copy: a build meanwhile takes the one away that a long run goes on to start.
  const program = [`${scene.management.folder}/pullwright`];
  copyFileSync(await executable(), program[0] ?? '');
  type Replica = ReturnType<ShardScene['replica']>;
  let replicas: Replica[] = [];
  const start = (...more: readonly string[]): Replica => {
    const replica = scene.replica(program, more);
    replicas.push(replica);
    return replica;
  };
  let startedAgain = 0;
  /**
   * Those that are there beside `but`. On a machine without processor to spare a replica loses a Lease in time and ends, as it must; it is started again,
   * as a kubelet would.
   */
  const present = (but?: Replica): readonly Replica[] => {
    for (const replica of replicas.filter((one) => one !== but && !one.running)) {
      assert.ok(replica.said('lease lost').length > 0, `${replica.name} ended:\n${replica.log.slice(-1500)}`);
      replicas = replicas.filter((one) => one !== replica);
      startedAgain += 1;
      start();
    }
    return replicas.filter((one) => one !== but);
  };
  const namesOf = (some: readonly Replica[]): readonly string[] => some.map(({ name }) => name).sort();
  /** The end of each: all of it, made anew with each look, would keep this process from answering the replicas. */
  const logs = (): string =>
    replicas
      .map(({ name, lines }) => [name, ...lines.slice(-8).map((line) => JSON.stringify(line))].join('\n'))
      .join('\n');

  /** Every shard has an owner among those that are there beside `but`, none two more than another. */
  const divided = (but?: Replica): Promise<void> =>
    eventually(async () => {
      const some = present(but);
      const holders = (await scene.states()).map(({ holder }) => holder);
      assert.deepEqual([...new Set(holders)].sort(), namesOf(some), `${holders.join()}\n${logs()}`);
      const counts = some.map(({ name }) => holders.filter((holder) => holder === name).length);
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, holders.join());
    }, SLOW);

  /** Every cluster is written to, by the owner of its shard as it is by then. */
  const written = async (): Promise<void> => {
    const before = scene.clusters.map((cluster) => scene.writers(cluster).length);
    await eventually(
      () =>
        assert.deepEqual(
          scene.clusters.filter((cluster, at) => scene.writers(cluster).length <= (before[at] ?? 0) + 1),
          [],
          logs(),
        ),
      SLOW,
    );
  };

  test('three replicas have their share each, and each cluster is written to by the owner of its shard', async () => {
    scene.rotate();
    for (let count = 0; count < REPLICAS; count++) start();
    await divided();
    await written();
    for (const replica of replicas) {
      const ready = await fetch(`http://127.0.0.1:${await replica.port('health')}/readyz`);
      assert.equal(ready.status, 200);
      assert.equal(await replica.metric(/^leader_election_master_status\{/), 1);
    }
    const owned = await Promise.all(replicas.map((one) => one.metric(/^pullwright_shard_owned\{/)));
    assert.equal(
      owned.reduce((sum, count) => sum + count),
      SHARDS,
    );
    await eventually(async () => {
      const ready = await Promise.all(
        replicas.map((one) => one.metric(/^pullwright_hosted_clusters\{state="ready"\}/)),
      );
      // Each has its own clusters open, and no others.
      assert.equal(
        ready.reduce((sum, count) => sum + count),
        scene.clusters.length,
      );
    }, SLOW);
    await scene.assertOneWriterAtATime();
  });

  const kills = Number(process.env['PULLWRIGHT_CHAOS'] ?? 3);
  const seed = Number(process.env['PULLWRIGHT_SEED'] ?? 1);

  test(`${kills} times (seed ${seed}) one is killed, stopped or frozen: its shards move, and nobody writes beside another`, async () => {
    const random = randomFrom(seed);
    const seen = { killed: 0, stopped: 0, frozen: 0, 'with shards': 0 };
    for (let round = 0; round < kills; round++) {
      const choice = present();
      const victim = choice[Math.floor(random() * choice.length)] as Replica;
      const had = (await scene.states()).filter(({ holder }) => holder === victim.name).length;
      const how = (['killed', 'stopped', 'frozen'] as const)[round % 3] as 'killed' | 'stopped' | 'frozen';
      if (how === 'killed') await victim.stop('SIGKILL');
      else if (how === 'stopped') {
        assert.equal(await victim.stop(), 0, victim.log.slice(-1500));
        const left = (await scene.states()).filter(({ holder }) => holder === victim.name);
        assert.deepEqual(left, [], 'its Leases are given back, not left to run out');
      } else victim.signal('SIGSTOP');
      await divided(victim);
      await written();
      if (how === 'frozen') {
        const before = scene.writesOf(victim.name);
        victim.signal('SIGCONT');
        assert.equal(await victim.ended(), 1, 'whoever lost a lease starts again from nothing');
        assert.equal(scene.writesOf(victim.name), before, 'it wrote when it woke up');
      }
      replicas = replicas.filter((one) => one !== victim);
      start();
      await divided();
      await written();
      await scene.assertOneWriterAtATime();
      seen[how] += 1;
      if (had > 0) seen['with shards'] += 1;
    }
    const each = Math.floor(kills / 3);
    // Were they many, the Leases would be lost for another reason than the machine.
    assert.ok(startedAgain <= kills, `${startedAgain} replicas lost a Lease that nobody took from them`);
    counted(seen, { killed: each, stopped: each, frozen: each, 'with shards': kills });
  });

  test('replicas that divide otherwise, and one that leads alone, wait until the last of these is gone', async () => {
    const former = [...replicas];
    const other = start(`--shards=${SHARDS - 1}`);
    const alone = start('--shards=1');
    await other.says('listening');
    await alone.says('listening');
    await written();
    await Promise.all(former.map((one) => one.stop()));
    // One of both, and not both.
    const [first, second] = await eventually(() => {
      if (alone.said('this process leads').length > 0) return [alone, other] as const;
      assert.ok(other.said('shard taken').length > 0, logs());
      return [other, alone] as const;
    }, SLOW);
    await written();
    assert.equal(scene.writesOf(second.name), 0);
    assert.equal(await first.stop(), 0, first.log.slice(-1500));
    await written();
    assert.ok(scene.writesOf(second.name) > 0);
    assert.equal(await second.stop(), 0, second.log.slice(-1500));
    for (const cluster of scene.clusters) {
      const writers = scene.writers(cluster);
      assert.ok(
        writers.lastIndexOf(first.name) < writers.indexOf(second.name),
        'they wrote beside each other',
      );
    }
  });

  test.lastly('everything stops', () => scene.stop());
}

test.run();
