/** `mirrors` over objects that the API server or the operator refuses: what nodes then have. */
import assert from 'node:assert/strict';
import { runProcess } from '../support/process.ts';
import { table, test } from '../support/suite.ts';
import { idms, image, type MirrorsRow, machineConfig, ofCluster } from './mirror-objects.ts';

const main = new URL('../../main.ts', import.meta.url).pathname;
const DIGEST = `sha256:${'a'.repeat(64)}`;

const ROWS: readonly MirrorsRow[] = [
  {
    name: 'one bad entry refuses every set',
    reason: 'the operator writes no file, and nodes keep what they have',
    objects: [
      idms('good', 'quay.io/a', 'a.example.com/a'),
      ofCluster(idms('bad', 'quay.io/b', 'https://b.example.com')),
    ],
    args: [`quay.io/a/x@${DIGEST}`, '--for', 'node'],
    code: 1,
    says: [
      /Operator refuses all mirror sets because of ImageDigestMirrorSet\/bad: nodes keep/,
      /error: ImageDigestMirrorSet\/bad/,
    ],
    never: /the API server refuses/,
  },
  {
    name: 'a set that the API server refuses does not come into force',
    reason: 'it is declared, so that its schema counts; the others are applied',
    objects: [
      idms('good', 'quay.io/a', 'a.example.com/a'),
      idms('twice', 'quay.io/a', 'b.example.com/a', 'b.example.com/a'),
    ],
    args: [`quay.io/a/x@${DIGEST}`, '--for', 'node'],
    code: 1,
    says: [
      /the API server refuses ImageDigestMirrorSet\/twice, so that what it says does not come into force: what is shown/,
      /1 {2}a\.example\.com\/a\/x@/,
      /error: ImageDigestMirrorSet\/twice spec\.imageDigestMirrors\[0\]\.mirrors\[1\] lists the mirror "b\.example\.com\/a" twice/,
    ],
    never: /2 {2}b\.example/,
  },
  {
    name: 'an Image object that the API server refuses blocks nothing',
    reason: 'only one of the two lists may be set, be they empty',
    objects: [image({ blockedRegistries: ['quay.io'], allowedRegistries: [] })],
    args: ['quay.io/a/x:1', '--for', 'node'],
    code: 1,
    says: [/the API server refuses Image\/cluster/, /1 {2}quay\.io\/a\/x:1/],
  },
  {
    name: 'what nodes keep is read from the MachineConfig',
    reason: 'that file is in force as long as the objects are refused',
    objects: [
      ofCluster(idms('bad', 'quay.io/a', 'bad/')),
      machineConfig(
        '[[registry]]\n  location = "quay.io/a"\n  [[registry.mirror]]\n    location = "old.example.com/a"\n',
      ),
    ],
    args: ['quay.io/a/x:1', '--for', 'node'],
    code: 0,
    says: [/nodes keep MachineConfig\/99-worker-generated-registries/, /1 {2}old\.example\.com\/a\/x:1/],
  },
];

table(test, ROWS, async (row) => {
  const text = row.objects.map((object) => JSON.stringify(object)).join('\n---\n');
  const args = ['mirrors', ...row.args, '--from', '-'];
  const ran = await runProcess([process.execPath, main, ...args], { stdin: text, deadlineMs: 60_000 });
  assert.equal(ran.code, row.code, ran.stdout + ran.stderr);
  for (const says of row.says) assert.match(ran.stdout + ran.stderr, says);
  if (row.never !== undefined) assert.doesNotMatch(ran.stdout + ran.stderr, row.never);
});
