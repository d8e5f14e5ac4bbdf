/** `pullwright doctor --from`: a folder of manifests, where not everything is that a cluster has. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProcess } from '../support/process.ts';
import { suite } from '../support/suite.ts';
import { deployment } from './doctor-cases.ts';

const test = suite('pullwright doctor --from');
const main = new URL('../../main.ts', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'pullwright-doctor-'));
const doctor = (name: string) =>
  runProcess([process.execPath, main, 'doctor', `deploy/${name}`, '-n', 'shop', '--from', folder]);

for (const [name, spec] of [
  ['plain', {}],
  ['own', { serviceAccountName: 'own' }],
] as const) {
  const object = deployment(spec);
  const metadata = { name, namespace: 'shop' };
  writeFileSync(join(folder, `${name}.json`), JSON.stringify({ ...object, metadata }));
}

test('takes the ServiceAccount "default" for there: Kubernetes makes it', async () => {
  const ran = await doctor('plain');
  assert.equal(ran.code, 0, ran.stdout);
  assert.match(ran.stdout, /ok +service-account/);
});

test('misses one that somebody has to make', async () => {
  const ran = await doctor('own');
  assert.equal(ran.code, 1);
  assert.match(ran.stdout, /broken +service-account +ServiceAccount "shop\/own" does not exist/);
});

test.lastly('the folder is removed', () => rmSync(folder, { recursive: true }));
test.run();
