/** Turns of a fleet at a restart: the table, and the budget that no number of nodes may break. */
import assert from 'node:assert/strict';
import { bookTurn, RESTART_MS, restartBudget, restartWindowMs } from '../../runtime/rules/rollout/turns.ts';
import { randomFrom } from '../support/seeded-random.ts';
import { suite } from '../support/suite.ts';

const test = suite('turns');

const WINDOWS: readonly (readonly [nodes: number, atOnce: number, ms: number])[] = [
  [1, 1, 0],
  [2, 1, 6000],
  [10, 1, 54_000],
  [11, 2, 30_000],
  [20, 2, 57_000],
  [100, 10, 59_400],
  [1000, 100, 59_940],
];
for (const [nodes, atOnce, ms] of WINDOWS)
  test(`${nodes} nodes: ${atOnce} at once, the last after ${ms} ms`, () => {
    assert.equal(restartBudget(nodes), atOnce);
    assert.equal(restartWindowMs(nodes), ms);
  });

const NOW = 1_700_000_000_000;
const DAY = 86_400_000;
const BOOKED: readonly (readonly [name: string, next: number | undefined, nodes: number, at: number])[] = [
  ['nobody has asked yet: at once', undefined, 100, NOW],
  ['the last turn is long past: at once', NOW - DAY, 100, NOW],
  ['others are first: their turns are kept', NOW + 5000, 100, NOW + 5000],
  ['one node, twice in a row: the second waits for the first restart', NOW + 4000, 1, NOW + 4000],
  ['booked by a clock that is a day ahead: not believed', NOW + DAY, 100, NOW],
];
for (const [name, next, nodes, at] of BOOKED)
  test(name, () => {
    const turn = bookTurn({ now: NOW, next, nodes });
    assert.equal(turn.at, at);
    assert.ok(turn.next > turn.at);
  });

test('1 to 1000 nodes that ask in any order: the budget holds at every instant, and the last is done in time', () => {
  const random = randomFrom(20_261_122);
  for (let nodes = 1; nodes <= 1000; nodes += 1) {
    const asks = Array.from({ length: nodes }, () => NOW + Math.floor(random() * nodes * 20)).sort(
      (a, b) => a - b,
    );
    let next: number | undefined;
    const begins = asks.map((now) => {
      const turn = bookTurn({ now, next, nodes });
      next = turn.next;
      return turn.at;
    });
    const budget = restartBudget(nodes);
    for (const [index, at] of begins.entries()) {
      // Restarts that were begun less than one restart ago are still under way.
      const before = begins[index - budget];
      if (before !== undefined) assert.ok(at - before >= RESTART_MS, `${nodes} nodes, turn ${index}`);
    }
    assert.ok((begins.at(-1) ?? 0) - NOW <= 80_000, `${nodes} nodes take ${(begins.at(-1) ?? 0) - NOW} ms`);
    if (nodes <= 100) assert.ok((begins.at(-1) ?? 0) - NOW <= 65_000);
  }
});

test.run();
