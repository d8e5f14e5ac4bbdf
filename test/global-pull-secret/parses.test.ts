/** Pull secrets are parsed once for each Secret, and not again until it changes. */
import assert from 'node:assert/strict';
import { Session } from 'node:inspector/promises';
import { createReader } from '../../runtime/engine/store.ts';
import { reconcilers } from '../../runtime/global-pull-secret/reconciler/reconcile.ts';
import { test } from '../support/suite.ts';
import { additional, auth, config, fleet, NOW, PLATFORM } from './fleet.ts';

const TENANT = config({ 'tenant.example.com': auth('tenant') });

/** Calls of the parser while `run` runs, counted by V8. */
async function parsesOf(run: () => unknown): Promise<number> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  run();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  const file = result.find(({ url }) => url.endsWith('/runtime/core/go/json.ts'));
  const parse = file?.functions.find(({ functionName }) => functionName === 'parseGoJson');
  return parse?.ranges[0]?.count ?? 0;
}

test('a steady pass parses each of the four Secrets once, and none that it has seen', async () => {
  const options = { agent: { report: true } };
  const settled = fleet(PLATFORM, TENANT, options);
  settled.reconcile();
  // New objects, as from the API server, that no reconcile has cached.
  for (const store of [settled.hosted, settled.management])
    for (const secret of store.list({ apiVersion: 'v1', kind: 'Secret' })) store.set({ ...secret });
  const [reconciler] = reconcilers(options);
  assert.ok(reconciler !== undefined);
  const pass = () => {
    const reader = createReader({
      scope: { name: 'clusters/a', controlPlaneNamespace: 'clusters-a' },
      stores: { hosted: settled.hosted, management: settled.management },
      reads: reconciler.watches,
      now: NOW,
      serves: () => true,
    });
    const { apply = [] } = reconciler.reconcile(reader, { scope: 'clusters/a', name: 'global-pull-secret' });
    return apply.filter((one) => 'object' in one && one.object.kind === 'Secret').length;
  };
  assert.equal(await parsesOf(() => assert.equal(pass(), 2)), 4);
  assert.equal(await parsesOf(pass), 0);
  settled.hosted.set(additional(config({ 'tenant.example.com': auth('other') })));
  assert.equal(await parsesOf(pass), 2);
});
