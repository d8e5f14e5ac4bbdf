// deadline: 300 s
// needs: control plane
/** `reconcile` against a real API server to which bad things happen. Each heals by itself and says one clear thing. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { eventually } from '../control-plane/eventually.ts';
import { controlPlane } from '../control-plane/live.ts';
import { test } from '../support/suite.ts';
import { FaultServer } from './fault-server.ts';
import { NODE, ReconcilerProcess } from './process.ts';
import { additional, furnish, GLOBAL, registriesOf } from './scene.ts';

const plane = await controlPlane({ crds: ['pullstatuses.pullwright.dev'] });
await furnish(plane, 'quay.io');
const faults = new FaultServer(plane);
const faulty = await faults.start();
let process = new ReconcilerProcess(NODE, ['--kubeconfig', faulty]);

/** Writes an additional secret with `registry`, and waits until it is merged. */
const converges = async (registry: string): Promise<void> => {
  await plane.apply(additional(registry));
  await merged(registry);
};
const merged = (registry: string): Promise<void> =>
  eventually(async () =>
    assert.deepEqual(registriesOf(await plane.get(GLOBAL)), ['quay.io', registry].sort()),
  );

test('nothing, at first', async () => {
  await converges('start.example.com');
});

test('the API server being killed and coming back', async () => {
  await plane.apiServer.kill();
  await process.says('cannot watch');
  await plane.apiServer.start();
  await converges('killed.example.com');
  assert.equal(process.running, true);
});

test('etcd being compacted while a watch sleeps: it lists again after 410', async () => {
  process.signal('SIGSTOP');
  await plane.apply(additional('lost.example.com'));
  await plane.remove(GLOBAL);
  for (let index = 0; index < 50; index++) await plane.apply(additional(`compacted-${index}.example.com`));
  await plane.compact();
  await plane.apiServer.restart();
  process.signal('SIGCONT');
  await merged('compacted-49.example.com');
});

test('every watch being cut again and again, without losing a change', async () => {
  for (let round = 0; round < 6; round++) {
    await eventually(() => assert.ok(faults.cutWatches() > 0, 'there were watches to cut'));
    await converges(`cut-${round}.example.com`);
  }
});

test('a storm of 429, with patience', async () => {
  faults.mode = 'storm';
  faults.requests = 0;
  faults.cutWatches();
  await plane.apply(additional('storm.example.com'));
  await new Promise((resolve) => setTimeout(resolve, 4000));
  const sent = faults.requests;
  faults.mode = 'pass';
  await merged('storm.example.com');
  // Some 40 watches, each asking again about once a second.
  assert.ok(sent < 400, `${sent} requests in 4 s of refusals`);
});

test('a server that takes requests and never answers', async () => {
  faults.mode = 'silence';
  faults.requests = 0;
  faults.cutWatches();
  await plane.apply(additional('silent.example.com'));
  await eventually(() => assert.ok(faults.requests > 0, 'somebody asked'));
  faults.mode = 'pass';
  // The requests of the silence end by their own deadline of 30 s.
  await merged('silent.example.com');
});

test('an expired token, and takes the rotated one', async () => {
  await process.stop();
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
  // The API server gives a minute of grace.
  const user = await plane.user({ name: 'pod', by: 'token', cluster: rules, tokenSeconds: -5 });
  process = new ReconcilerProcess(NODE, ['--kubeconfig', user.kubeconfig]);
  await converges('token.example.com');
  const { client } = user;
  await eventually(
    async () => assert.equal((await client.request('GET', '/api/v1/namespaces')).status, 401),
    { withinMs: 180_000 },
  );
  // Watches that are open stay open; a write needs a token.
  await plane.apply(additional('expired.example.com'));
  await eventually(() => assert.match(process.log, /401 Unauthorized/));
  await user.renewToken(3600);
  await merged('expired.example.com');
  assert.equal(process.log.includes(readFileSync(user.tokenFile, 'utf8')), false);
});

test('rights being taken away and given back', async () => {
  await process.stop();
  const rules = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
  const user = await plane.user({ name: 'limited', cluster: rules });
  process = new ReconcilerProcess(NODE, ['--kubeconfig', user.kubeconfig]);
  await converges('granted.example.com');
  await user.revoke();
  await eventually(async () => assert.equal((await user.client.request('GET', '/api/v1/nodes')).status, 403));
  await plane.apply(additional('revoked.example.com'));
  await eventually(() => assert.match(process.log, /403 Forbidden/));
  // An event may carry the refusal before the pass has told of it; rights given back until then would leave nothing to recover from.
  await process.says('reconciliation failed');
  const complaints = process.said('reconciliation failed').filter(({ level }) => level !== 'debug');
  await user.grant();
  await merged('revoked.example.com');
  assert.ok(complaints.length <= 3, 'said once, not in every round');
  await process.says('reconciliation recovered');
});

test('it never shows a credential', () => {
  assert.equal(process.log.includes('robot'), false);
});

test.lastly('it stops with exit code 0', async () => {
  assert.equal(await process.stop(), 0);
  await faults.stop();
});
