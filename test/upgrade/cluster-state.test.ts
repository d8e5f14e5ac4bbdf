/** State of another version's reconciler in a cluster, under the current reconciler. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE } from '../reconcile/process.ts';
import { plantedPassword } from '../support/canary.ts';
import { pullSecretObject } from '../support/meta.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const work = tempFolder();
const cluster = join(work, 'cluster');
mkdirSync(cluster);

/** A Secret as tenants and platforms write them. */
function secret(namespace: string, name: string, host: string, more: object = {}): object {
  const auth = Buffer.from(`robot:${plantedPassword(host)}`).toString('base64');
  const text = JSON.stringify({ auths: { [host]: { auth } } });
  return pullSecretObject({ name, namespace, ...more }, text);
}

const write = (folder: string, object: object): void =>
  writeFileSync(
    join(folder, `${(object as { metadata: { name: string } }).metadata.name}.yaml`),
    JSON.stringify(object),
  );
write(cluster, secret('openshift-config', 'pull-secret', 'quay.io'));
write(cluster, secret('kube-system', 'additional-pull-secret', 'tenant.example.com'));

async function reconcile(from: string, ...flags: string[]): Promise<string> {
  const ran = await runProcess([...NODE, 'reconcile', '--from', from, ...flags]);
  assert.equal(ran.code, 0, ran.stderr);
  return ran.stdout;
}

test('what this version made, another build of it leaves as it is: versions do not take turns', async () => {
  const to = join(work, 'made');
  assert.doesNotMatch(await reconcile(cluster, '--to', to, '--with-secrets'), /\n0 created/);
  const merged = join(work, 'merged');
  cpSync(cluster, merged, { recursive: true });
  cpSync(to, join(merged, 'made'), { recursive: true });
  assert.match(await reconcile(merged), /\n0 created, 0 configured, \d+ unchanged, 0 removed\n$/);
});

test('an object whose key this version does not understand is left alone', async () => {
  const folder = join(work, 'unknown-key');
  cpSync(cluster, folder, { recursive: true });
  const later = secret('kube-system', 'of-a-later-version', 'later.example.com', {
    uid: '11111111-1111-4111-8111-111111111111',
    labels: { 'pullwright.dev/owner': 'global-pull-secret' },
    annotations: { 'pullwright.dev/key': 'v2;scope=clusters/prod;name=later' },
  });
  write(folder, later);
  assert.match(await reconcile(folder), /, 0 removed\n$/);
});

test('a configuration of a later version is refused with the name of what is not known', async () => {
  const config = join(work, 'config.yaml');
  writeFileSync(config, 'systems: { global-pull-secret: { tomorrow: true } }\n');
  const ran = await runProcess([...NODE, 'reconcile', '--from', cluster, '--config', config]);
  assert.notEqual(ran.code, 0);
  assert.match(ran.stderr, /tomorrow/);
});
