/** Both generations of the HyperFleet API: what we send fits its published document, and the double would notice if not. */
import assert from 'node:assert/strict';
import { test } from '../support/suite.ts';
import { eventFor, goodSpec, Scene } from './scene.ts';

for (const generation of ['old', 'current'] as const)
  test(`the ${generation} API: its method is found out once, and everything fits its document`, async () => {
    const scene = await Scene.start();
    scene.api.generation = generation;
    for (const id of ['cls-1', 'cls-2', 'cls-3']) {
      scene.api.add(id, goodSpec(id));
      assert.deepEqual(await scene.handle(eventFor(id, id)), { outcome: 'done' });
    }
    const methods = scene.api.requests
      .filter((one) => !one.startsWith('GET'))
      .map((one) => one.split(' ')[0]);
    assert.deepEqual(methods, generation === 'old' ? ['PUT', 'POST', 'POST', 'POST'] : ['PUT', 'PUT', 'PUT']);
    scene.api.clusters.delete('cls-1');
    assert.deepEqual(await scene.handle(eventFor('cls-1', 'late')), { outcome: 'done' });
    assert.deepEqual([scene.api.violations, scene.api.refused], [[], []]);
    await scene.close();
  });

test('a wrong client or a wrong double is noticed', async () => {
  const scene = await Scene.start();
  const cluster = scene.api.add('cls-1', goodSpec('one'));
  const put = (body: unknown): Promise<Response> =>
    fetch(`${scene.api.url}/api/hyperfleet/v1/clusters/cls-1/statuses`, {
      method: 'PUT',
      body: JSON.stringify(body),
    });
  assert.equal((await put({ adapter: 'x', conditions: [{ type: 'Available', status: 'Yes' }] })).status, 400);
  assert.match(scene.api.violations[0] ?? '', /observed_generation.*observed_time.*conditions\.0\.status/);
  cluster.name = 'Not A Name';
  await fetch(`${scene.api.url}/api/hyperfleet/v1/clusters/cls-1`);
  assert.match(scene.api.violations[1] ?? '', /answer 200 of GET \/clusters\/\{id\}: name/);
  await scene.close();
});
