// deadline: 580 s
// needs: pods, RabbitMQ
/**
 * The adapter is killed at any instant: every event is published once, nothing else tells it what to do, and yet each cluster ends as it
 * should, with its secret stored once. Half of the kills are in rotations, a quarter in deletions, and most of these are aimed between two
 * writes: after the Job is there or has ended, before that is reported. A run in which too few hit counts as failed. `PULLWRIGHT_CHAOS`
 * sets how often it is killed, `PULLWRIGHT_SEED` when.
 */
import assert from 'node:assert/strict';
import { redact } from '../../runtime/core/redacted.ts';
import { rabbitMqTopology } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { publishRabbitMq } from '../../runtime/pull-secret-adapter/broker/rabbitmq.ts';
import { clusterDocument } from '../../runtime/pull-secret-adapter/cluster.ts';
import { DEFAULT_SENTINEL } from '../../runtime/pull-secret-adapter/sentinel/options.ts';
import { eventFor } from '../../runtime/pull-secret-adapter/sentinel/sentinel.ts';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { counted } from '../support/counted.ts';
import { executable } from '../support/executable.ts';
import { randomFrom } from '../support/random.ts';
import type { RunningProgram } from '../support/running-program.ts';
import { test } from '../support/suite.ts';
import { goodSpec } from './scene.ts';
import { NAMESPACE, QUEUE, Stage } from './stage.ts';

const kills = Number(process.env['PULLWRIGHT_CHAOS'] ?? 20);
const seed = Number(process.env['PULLWRIGHT_SEED'] ?? 9);

/** Desired final state. */
interface Wanted {
  /** Contents in the order in which they were declared. */
  readonly contents: string[];
  deleted: boolean;
}

const compiled = [await executable()];
const stage = await Stage.start(compiled);
const topology = rabbitMqTopology({
  topic: 'hyperfleet-clusters',
  subscription: 'pullsecret',
});
const publisher = publishRabbitMq({ url: redact(stage.rabbit.url), topology, note: () => undefined });
const wanted = new Map<string, Wanted>();
const random = randomFrom(seed);
let victim: RunningProgram;

/** Set when the test itself stops the process. */
let over = false;
/** Who loses the lease of one second on a busy machine ends with 1, and is started again, as a kubelet does. */
const start = (): RunningProgram => {
  const child = stage.adapter(compiled, { '--lease-duration': '1' });
  child.process.once('exit', (code) => {
    if (code === 1 && child === victim && !over) victim = start();
  });
  return child;
};

async function publish(id: string): Promise<void> {
  const generation = stage.api.clusters.get(id)?.generation ?? 0;
  const cluster = clusterDocument.parse({ id, generation: Math.max(generation, 1) });
  await publisher.publish(eventFor(cluster, DEFAULT_SENTINEL, ''));
}

type Change = 'made' | 'rotated' | 'deleted';
/** Kills that hit, by what was going on, after a write of the adapter for it and before its last one. */
const hits: Record<Change, number> = { made: 0, rotated: 0, deleted: 0 };

/** A new cluster, another secret for one, or the end of one. */
async function change(round: number): Promise<readonly [id: string, change: Change]> {
  const living = [...wanted].filter(([, want]) => !want.deleted);
  const [chosen, want] = living[Math.floor(random() * living.length)] ?? [];
  const spec = goodSpec(`round-${round}`);
  const content = (spec['pullSecret'] as { data: string }).data;
  if (chosen === undefined || want === undefined || round % 4 === 0) {
    const id = `cls-${round}`;
    await stage.add(id, spec);
    wanted.set(id, { contents: [content], deleted: false });
    return [id, 'made'];
  }
  if (round % 4 === 3) {
    want.deleted = true;
    stage.api.delete(chosen);
    return [chosen, 'deleted'];
  }
  want.contents.push(content);
  stage.api.patch(chosen, spec);
  return [chosen, 'rotated'];
}

interface SeenJob {
  readonly metadata: { readonly name: string };
  readonly status?: { readonly conditions?: readonly { readonly type: string }[] };
}

/** Job for the latest state of a cluster. */
async function jobOf(id: string, generation: number): Promise<SeenJob | undefined> {
  const { body } = await stage.plane.client.request('GET', `/apis/batch/v1/namespaces/${NAMESPACE}/jobs`);
  const { items = [] } = body as { readonly items?: readonly SeenJob[] };
  return items.find(({ metadata }) => metadata.name.startsWith(`pullsecret-${id}-gen${generation}`));
}

const hasEnded = (job: SeenJob | undefined): boolean =>
  job?.status?.conditions?.some(({ type }) => /^(Complete|Failed)$/.test(type)) === true;

/** Until a write has been seen, but no longer than ten seconds: an older Job of the cluster may be in the way. */
async function moment(id: string, generation: number, isEnd: boolean): Promise<void> {
  const until = performance.now() + 10_000;
  while (performance.now() < until && stage.api.clusters.has(id)) {
    const job = await jobOf(id, generation);
    if (isEnd ? hasEnded(job) : job !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Something was written about the state that it is to have, and the last word on it was not. */
async function isBetween(id: string, generation: number): Promise<boolean> {
  if (!stage.api.clusters.has(id)) return false;
  const last = stage.api.last(id);
  const word = last?.conditions.find(({ type }) => type === 'Available');
  const isSaid = last?.observed_generation === generation && word?.status === 'True';
  return !isSaid && (await jobOf(id, generation)) !== undefined;
}

async function kill(round: number): Promise<void> {
  const [id, what] = await change(round);
  const generation = stage.api.clusters.get(id)?.generation ?? 0;
  await publish(id);
  // From before the event arrives until after its Job has ended; two of three rotations and deletions at a write.
  if (what === 'made' || round % 3 === 0)
    await new Promise((resolve) => setTimeout(resolve, random() * 2500));
  else await moment(id, generation, round % 3 === 2);
  over = true;
  await victim.stop('SIGKILL');
  if (await isBetween(id, generation)) hits[what] += 1;
  over = false;
  victim = start();
}

test(`killed ${kills} times (seed ${seed}), also in rotations and deletions: nothing is lost, nothing is stored twice, the last report is true`, async () => {
  victim = start();
  await eventually(async () => assert.equal(await stage.consumers(), 1));
  for (let round = 0; round < kills; round += 1) await kill(round);
  for (const [id, want] of wanted) await settled(id, want);
  assert.deepEqual([await stage.waiting(), await stage.waiting(`${QUEUE}-dlq`)], [0, 0]);
  assert.deepEqual([stage.api.refused, stage.api.violations], [[], []]);
  // Otherwise the test proves nothing: each kill came before the work started or after it ended.
  counted(
    { 'between two writes of a rotation': hits.rotated, 'of a deletion': hits.deleted },
    {
      'between two writes of a rotation': Math.ceil(kills / 8),
      'of a deletion': Math.ceil(kills / 20),
    },
  );
});

async function settled(id: string, want: Wanted): Promise<void> {
  const check = async (): Promise<void> => {
    if (want.deleted) {
      assert.ok(!stage.api.clusters.has(id), `${id} is still there: ${stage.condition(id, 'Finalized')}`);
      assert.equal(stage.stored(id), undefined);
      assert.equal(await stage.delivered(id), undefined);
      return;
    }
    assert.equal(stage.condition(id, 'Available'), 'True SecretAvailable', id);
    assert.equal(stage.api.last(id)?.observed_generation, stage.api.clusters.get(id)?.generation);
    assert.equal(await stage.delivered(id), want.contents.at(-1));
  };
  await eventually(check);
  if (want.deleted) return;
  const stored = stage.stored(id) ?? [];
  assert.equal(new Set(stored).size, stored.length, `${id} has a version twice`);
  assert.equal(stored.at(-1), want.contents.at(-1));
  assert.deepEqual(
    stored.filter((content) => !want.contents.includes(content)),
    [],
  );
}

test('the temporary Secrets have gone, and nothing printed a secret', async () => {
  await eventually(async () => {
    const path = `/api/v1/namespaces/${NAMESPACE}/secrets`;
    const { body } = await stage.plane.client.request('GET', path);
    const { items = [] } = body as { readonly items?: readonly { metadata: { name: string } }[] };
    assert.deepEqual(
      items.map((one) => one.metadata.name).filter((name) => name.endsWith('-pullsecret-data')),
      [],
    );
  });
  assert.equal(findPlanted(stage.output + stage.kubelet.output), undefined);
});

test.lastly('everything stops', async () => {
  over = true;
  await victim.stop();
  await publisher.close();
  await stage.close();
});
