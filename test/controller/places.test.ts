/** Places for clusters that start: a server that does not answer holds none for long, however many there are. */
import assert from 'node:assert/strict';
import { Places } from '../../runtime/kube/semaphore.ts';
import { suite } from '../support/suite.ts';

const test = suite('Places');

/** Timers that a test lets run. */
class Timers {
  #set: { readonly ms: number; readonly run: () => void }[] = [];

  readonly after = (ms: number, run: () => void): (() => void) => {
    const timer = { ms, run };
    this.#set.push(timer);
    return () => {
      this.#set = this.#set.filter((one) => one !== timer);
    };
  };

  get running(): number {
    return this.#set.length;
  }

  runAll(): void {
    for (const { run } of this.#set.splice(0)) run();
  }
}

async function turns(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

test('whoever does not move leaves, so that a good one behind any number of them has its turn', async () => {
  const timers = new Timers();
  const places = new Places({ count: 16, patienceMs: 1000, after: timers.after });
  for (let silent = 0; silent < 400; silent += 1) void places.enter();
  const entered: string[] = [];
  void places.enter().then(() => entered.push('good'));
  await turns();
  let patience = 0;
  for (; entered.length === 0; patience += 1) {
    assert.equal(timers.running, 16);
    timers.runAll();
    await turns();
  }
  assert.equal(patience, 25);
});

test('whoever moves stays, and a place that is left is given once', async () => {
  const timers = new Timers();
  const places = new Places({ count: 1, patienceMs: 1000, after: timers.after });
  const first = await places.enter();
  const entered: string[] = [];
  for (const name of ['second', 'third']) void places.enter().then(() => entered.push(name));
  first.moved();
  assert.equal(timers.running, 1);
  assert.equal(first.isLeft, false);
  timers.runAll();
  assert.equal(first.isLeft, true);
  first.moved();
  first.leave();
  await turns();
  assert.deepEqual(entered, ['second']);
  assert.equal(timers.running, 1);
});

test.run();
