/** A broker hands out so many messages at a time: how many of these places one cluster has that cannot be looked at. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EventOutcome, eventHandler } from '../../runtime/pull-secret-adapter/adapter/handle-event.ts';
import { ClusterQueue, type ClusterQueueOptions } from '../../runtime/pull-secret-adapter/adapter/process.ts';
import type { Handled } from '../../runtime/pull-secret-adapter/broker/broker.ts';
import { eventually } from '../control-plane/eventually.ts';
import { type Case, table, test } from '../support/suite.ts';
import { eventFor } from './scene.ts';

interface Bench {
  readonly send: (cluster: string, event: string) => Promise<Handled>;
  readonly counts: Partial<Record<EventOutcome, number>>;
  readonly looks: string[];
  readonly open: () => number;
  readonly hint: (id: string) => void;
  readonly end: () => void;
}

/** The handler over passes that end as `pass` says; one that has failed is made again after the test. */
function bench(pass: (id: string) => Promise<void>, more: Partial<ClusterQueueOptions> = {}): Bench {
  const counts: Partial<Record<EventOutcome, number>> = {};
  const looks: string[] = [];
  let open = 0;
  const queue = new ClusterQueue({
    reconcile: async (id) => {
      looks.push(id);
      await pass(id);
      return {};
    },
    onError: () => undefined,
    pauseMs: () => 600_000,
    ...more,
  });
  const handle = eventHandler(
    (id) => queue.ask(id),
    (result) => {
      counts[result] = (counts[result] ?? 0) + 1;
    },
  );
  return {
    counts,
    looks,
    open: () => open,
    hint: (id) => queue.hint(id, 'job'),
    end: () => void queue.close(),
    send: async (cluster, event) => {
      open += 1;
      return handle(eventFor(cluster, event)).finally(() => {
        open -= 1;
      });
    },
  };
}

const turn = (): Promise<void> => sleep(20);

interface Row extends Case {
  readonly pass: (id: string) => Promise<void>;
}

const fails = (): Promise<void> => Promise.reject(new Error('no answer'));
const hangs = (): Promise<void> => new Promise(() => undefined);

table<Row>(
  test,
  [
    { name: 'passes that fail', reason: 'each waits half a minute for five of them', pass: fails },
    { name: 'a pass that hangs', reason: 'what comes later waits for the same', pass: hangs },
  ],
  async ({ pass }) => {
    const { send, open, counts, looks, end } = bench((id) =>
      id === 'cls-bad' ? pass(id) : Promise.resolve(),
    );
    const sent = Array.from({ length: 1000 }, (_, at) => send('cls-bad', `bad-${at}`));
    await turn();
    assert.equal(open(), 1, 'the newest waits');
    assert.equal(counts.superseded, 999);
    assert.deepEqual(await send('cls-good', 'good'), { outcome: 'done' });
    assert.equal(looks.at(-1), 'cls-good');
    const other = send('cls-bad', 'newest');
    await turn();
    assert.equal(open(), 1);
    end();
    if (pass === fails)
      assert.deepEqual(await other, { outcome: 'again' }, 'given back when the process ends');
    assert.ok((await Promise.all(sent)).every(({ outcome: result }) => result === 'done'));
  },
);

test('the newest is looked at after it came, and nothing is lost when that works', async () => {
  let works = false;
  const { send, looks, counts } = bench(() => (works ? Promise.resolve() : fails()));
  const old = send('cls-1', 'old');
  await turn();
  works = true;
  assert.deepEqual(await send('cls-1', 'new'), { outcome: 'done' });
  assert.deepEqual(await old, { outcome: 'done' });
  assert.deepEqual([looks.length, counts.superseded, counts.done], [2, 1, 1]);
});

test('the same event, delivered again while it waits, ends with it and not before', async () => {
  let release = (): void => undefined;
  const { send, open, looks, counts } = bench(() => new Promise((resolve) => (release = resolve)));
  const both = [send('cls-1', 'same'), send('cls-1', 'same')];
  await turn();
  assert.equal(open(), 2, 'a broker may take the end of one delivery for that of the message');
  release();
  assert.deepEqual(await Promise.all(both), [{ outcome: 'done' }, { outcome: 'done' }]);
  assert.deepEqual([looks.length, counts.done, counts.duplicate], [1, 1, 1]);
});

test('the old one again, after the newest, is looked at: nobody has said that it was', async () => {
  const { send, looks } = bench(() => Promise.resolve());
  await Promise.all([send('cls-1', 'old'), send('cls-1', 'new')]);
  await send('cls-1', 'old');
  assert.equal(looks.length, 3);
});

test('an event without an identifier is dropped as no repetition, and goes to the dead letters like others', async () => {
  const { send, looks, end } = bench((id) => (id === 'cls-bad' ? fails() : Promise.resolve()), { tries: 1 });
  const ends: unknown[] = [];
  for (let time = 0; time < 3; time += 1) {
    ends.push((await send('cls-bad', '')).outcome);
    await send('cls-good', '');
  }
  assert.deepEqual(ends, ['again', 'again', 'dead']);
  assert.equal(looks.length, 6);
  end();
});

test('what is seen while an event waits brings passes at once, which are none of its tries', async () => {
  let works = false;
  const { send, looks, open, hint } = bench(() => (works ? Promise.resolve() : fails()), { tries: 2 });
  const sent = send('cls-1', 'first');
  for (let passes = 1; passes < 6; passes += 1) {
    await eventually(() => assert.equal(looks.length, passes));
    assert.equal(open(), 1);
    works = passes === 5;
    hint('cls-1');
  }
  assert.deepEqual(await sent, { outcome: 'done' });
});

test('what was seen before the last try of an event failed is looked at again', async () => {
  let works = false;
  const busy = Promise.withResolvers<void>();
  const pass = (id: string): Promise<void> =>
    id === 'cls-0' ? busy.promise : works ? Promise.resolve() : fails();
  const { send, looks, hint } = bench(pass, { tries: 1, concurrency: 1 });
  hint('cls-0');
  await turn();
  hint('cls-1');
  const sent = send('cls-1', 'first');
  busy.resolve();
  assert.deepEqual(await sent, { outcome: 'again' });
  works = true;
  await eventually(() => assert.deepEqual(looks, ['cls-0', 'cls-1', 'cls-1']));
});

test('each cluster has a place of its own', async () => {
  const { send, open, end } = bench(fails);
  const sent = ['a', 'b', 'c'].flatMap((id) => [send(`cls-${id}`, `${id}-1`), send(`cls-${id}`, `${id}-2`)]);
  await turn();
  assert.equal(open(), 3);
  end();
  const outcomes = (await Promise.all(sent)).map(({ outcome: result }) => result).sort();
  assert.deepEqual(outcomes, ['again', 'again', 'again', 'done', 'done', 'done']);
});
