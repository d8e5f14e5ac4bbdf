/** The work queue with a clock of its own. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type QueueClock, WorkQueue } from '../../runtime/engine/queue.ts';
import { test } from '../support/suite.ts';

class ManualClock implements QueueClock {
  #now = 0;
  #timers: { at: number; run: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((one) => one !== timer);
    };
  }

  /** Moves on, running what is due. */
  advance(ms: number): void {
    this.#now += ms;
    const due = this.#timers.filter(({ at }) => at <= this.#now).sort((a, b) => a.at - b.at);
    this.#timers = this.#timers.filter(({ at }) => at > this.#now);
    for (const { run } of due) run();
  }
}

/** Takes what is there now, without waiting. */
async function take(queue: WorkQueue): Promise<string | undefined> {
  return Promise.race([queue.next(), Promise.resolve().then(() => Promise.resolve(undefined))]);
}

test('gives a key once, however often it was added', async () => {
  const queue = new WorkQueue(new ManualClock());
  for (const id of ['a', 'b', 'a', 'a']) queue.add(id);
  assert.equal(await queue.next(), 'a');
  assert.equal(await queue.next(), 'b');
  assert.equal(await take(queue), undefined);
});

test('never gives a key to two workers: added while worked on, it comes again afterwards', async () => {
  const queue = new WorkQueue(new ManualClock());
  queue.add('a');
  assert.equal(await queue.next(), 'a');
  queue.add('a');
  const second = queue.next();
  assert.equal(await Promise.race([second, Promise.resolve('nothing')]), 'nothing');
  queue.done('a');
  assert.equal(await second, 'a');
});

test('gives the earliest due first, and the earlier of two times counts', async () => {
  const clock = new ManualClock();
  const queue = new WorkQueue(clock);
  queue.addAfter('late', 50);
  queue.addAfter('early', 20);
  queue.addAfter('late', 500);
  queue.addAfter('early', 10);
  clock.advance(60);
  assert.deepEqual([await queue.next(), await queue.next()], ['early', 'late']);
});

test('waits longer after each failure, and from the beginning after a success', async () => {
  const clock = new ManualClock();
  const queue = new WorkQueue(clock);
  const waits: number[] = [];
  for (let round = 0; round < 4; round++) {
    queue.addRateLimited('a');
    const next = queue.next();
    const before = clock.now();
    while ((await Promise.race([next, Promise.resolve('')])) === '') clock.advance(1);
    waits.push(clock.now() - before);
    queue.done('a');
    if (round === 2) queue.forget('a');
  }
  assert.deepEqual(waits, [5, 10, 20, 5]);
});

test('a back-off ends at 1000 seconds', async () => {
  const clock = new ManualClock();
  const queue = new WorkQueue(clock);
  for (let round = 0; round < 100; round++) queue.addRateLimited('a');
  clock.advance(5);
  await queue.next();
  queue.done('a');
  queue.addRateLimited('a');
  clock.advance(999_999);
  assert.equal(queue.depth, 0);
  clock.advance(1);
  assert.equal(queue.depth, 1);
});

test('closed, it lets workers go and takes nothing', async () => {
  const queue = new WorkQueue(new ManualClock());
  const waiting = queue.next();
  queue.close();
  assert.equal(await waiting, undefined);
  queue.add('a');
  assert.equal(await queue.next(), undefined);
  assert.equal(queue.depth, 0);
});

test('depth counts what is due and has no worker', async () => {
  const queue = new WorkQueue(new ManualClock());
  queue.add('a');
  queue.add('b');
  queue.addAfter('c', 1000);
  assert.equal(queue.depth, 2);
  await queue.next();
  assert.equal(queue.depth, 1);
});

test('property: every added key is worked on, and none by two workers at once', async () => {
  const step = fc.record({
    id: fc.constantFrom('a', 'b', 'c'),
    wait: fc.nat(20),
    finish: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = new ManualClock();
      const queue = new WorkQueue(clock);
      const active = new Set<string>();
      const pending = new Set<string>();
      const worker = async (): Promise<void> => {
        for (let id = await queue.next(); id !== undefined; id = await queue.next()) {
          assert.equal(active.has(id), false);
          active.add(id);
          pending.delete(id);
          await Promise.resolve();
          active.delete(id);
          queue.done(id);
        }
      };
      const workers = [worker(), worker(), worker()];
      for (const { id, wait, finish } of steps) {
        queue.addAfter(id, wait);
        pending.add(id);
        if (finish) clock.advance(wait);
        await new Promise(setImmediate);
      }
      for (let round = 0; round < 5; round++) {
        clock.advance(50);
        await new Promise(setImmediate);
      }
      assert.deepEqual([...pending], []);
      queue.close();
      await Promise.all(workers);
    }),
    { numRuns: 60 },
  );
});
