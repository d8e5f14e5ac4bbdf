/** What the adapter makes of every way in which the HyperFleet API, or its own cluster, can fail, and that it mends. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import { findPlanted } from '../support/canary.ts';
import { suite, table } from '../support/suite.ts';
import { WRONG_ANSWERS } from './api-fault-answers.ts';
import { type ApiFaultCase, always, problem } from './api-fault-case.ts';
import { OUTAGES } from './api-fault-outages.ts';
import { REFUSALS } from './api-fault-refusals.ts';
import { eventFor, goodSpec, Scene } from './scene.ts';

const test = suite('adapter and a failing API');

table(test, [...REFUSALS, ...OUTAGES, ...WRONG_ANSWERS], async (row) => {
  const scene = await Scene.start((api) => ({
    ...(row.baseUrl === undefined ? {} : { baseUrl: row.baseUrl(api) }),
    ...(row.timeoutMs === undefined ? {} : { timeoutMs: row.timeoutMs }),
  }));
  scene.cluster.jobMs = 60_000;
  scene.api.add('cls-1', goodSpec('faults'));
  row.prepare?.(scene);
  scene.api.faults = [...(row.faults?.() ?? [])];
  const handled = await scene.handle(eventFor('cls-1', '1'));
  const ended = handled.outcome === 'dead' ? handled.reason : handled.outcome;
  if (row.message instanceof RegExp) assert.match(ended, row.message);
  else assert.equal(ended, row.message);
  if (row.log === undefined) assert.deepEqual(scene.log, []);
  else assert.match(scene.log.at(-1) ?? '', row.log);
  assert.deepEqual([scene.reported('cls-1', 'Available'), scene.reported('cls-1', 'Health')], row.reported);
  if (row.pause !== undefined) assert.ok(scene.pauses.some(row.pause), String(scene.pauses));
  assert.equal(findPlanted(scene.log.join('')), undefined);
  assert.deepEqual([scene.api.violations, scene.api.refused], [[], []]);
  if (row.baseUrl === undefined) await mends(scene, row);
  await scene.close();
});

/** Once the fault is over, the message that was given back, or the next one, has its effect. */
async function mends(scene: Scene, row: ApiFaultCase): Promise<void> {
  scene.api.faults = [];
  row.undo?.(scene);
  scene.cluster.jobMs = 0;
  assert.deepEqual(await scene.handle(eventFor('cls-1', '2')), { outcome: 'done' });
  await eventually(() => assert.ok(scene.cluster.started.length > 0), { withinMs: 60_000 });
  assert.equal(scene.reported('cls-1', 'Health'), 'True Healthy');
}

test('a fault that follows one cluster, while others succeed, ends in the dead letters', async () => {
  const scene = await Scene.start();
  scene.api.add('cls-1', goodSpec('one'));
  scene.api.add('cls-2', goodSpec('two'));
  scene.api.faults = [...always({ on: /cls-1/, ...problem(500, 'HYPERFLEET-INT-001') })];
  const outcomes: string[] = [];
  for (const round of ['a', 'b', 'c']) {
    outcomes.push((await scene.handle(eventFor('cls-1', 'same'))).outcome);
    outcomes.push((await scene.handle(eventFor('cls-2', round))).outcome);
  }
  assert.deepEqual(outcomes, ['again', 'done', 'again', 'done', 'dead', 'done']);
  await scene.close();
});

test('an API that fails for all is waited for, however long', async () => {
  const scene = await Scene.start();
  scene.api.faults = [...always(problem(500, 'HYPERFLEET-INT-001'))];
  for (let round = 0; round < 10; round += 1)
    assert.equal((await scene.handle(eventFor('cls-1', 'same'))).outcome, 'again');
  await scene.close();
});

test.run();
