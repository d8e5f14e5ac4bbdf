// deadline: 1500 s
// needs: control plane
/** The test control plane itself: it starts, says no to who has no rights, survives, and leaves nothing behind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from '../support/suite.ts';
import { startControlPlane } from './control-plane.ts';
import { eventually } from './eventually.ts';

const started = await Promise.all([startControlPlane({ crds: 'all' }), startControlPlane()]);
const [plane, other] = started;
const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'default' } };

test('two at once hold different objects', async () => {
  await plane.apply(secret);
  assert.equal((await plane.get(secret))?.kind, 'Secret');
  assert.equal(await other.get(secret), undefined);
});

test('every definition is served', async () => {
  const listed = await plane.client.request('GET', '/apis/pullwright.dev/v1alpha1/pullstatuses');
  assert.equal(listed.status, 200);
  const machines = await plane.client.request('GET', '/apis/cluster.x-k8s.io/v1beta1/machines');
  assert.equal(machines.body.kind, 'MachineList');
});

for (const by of ['certificate', 'token'] as const)
  test(`a user by ${by} may do what its rules say, until they are taken away`, async () => {
    const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];
    const user = await plane.user({ name: `user-${by}`, by, namespaces: { default: rules } });
    const status = async (path: string): Promise<number> => (await user.client.request('GET', path)).status;
    await eventually(async () => assert.equal(await status('/api/v1/namespaces/default/secrets/a'), 200));
    assert.equal(await status('/api/v1/namespaces/kube-system/secrets/a'), 403);
    await user.revoke();
    await eventually(async () => assert.equal(await status('/api/v1/namespaces/default/secrets/a'), 403));
  });

test('a killed API server comes back with its objects', async () => {
  await plane.apply(secret);
  await plane.apiServer.kill();
  await assert.rejects(plane.client.request('GET', '/readyz'));
  await plane.apiServer.start();
  assert.equal((await plane.get(secret))?.metadata.name, 'a');
});

test('nothing is left of one whose test was killed', async () => {
  const code = `
      import { startControlPlane } from '${import.meta.dirname}/control-plane.ts';
      const plane = await startControlPlane();
      process.stdout.write(plane.folder + '\\n');
      setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  const folder = chunk.toString().trim();
  const pids = readFileSync(join(folder, 'pids'), 'utf8').trim().split('\n');
  assert.equal(pids.length, 2);
  child.kill('SIGKILL');
  await eventually(() => {
    assert.equal(existsSync(folder), false);
    for (const pid of pids) assert.equal(isRunning(pid), false);
  });
});

test.lastly('they stop and their folders are gone', async () => {
  await Promise.all(started.map((one) => one.stop()));
  for (const { folder } of started) assert.equal(existsSync(folder), false);
});

function isRunning(pid: string): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}
