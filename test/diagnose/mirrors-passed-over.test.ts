/** The textbook fault of a disconnected cluster, as each command shows it: a tag, and mirrors that serve digests only. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type InProcessRun, runInProcess } from '../support/in-process.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();

const OBJECTS = [
  {
    ...meta('config.openshift.io/v1 ImageDigestMirrorSet', { name: 'release' }),
    spec: { imageDigestMirrors: [{ source: 'quay.invalid/a', mirrors: ['m.invalid/a'] }] },
  },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'web' } },
  {
    ...meta('v1 Pod', { name: 'shop', namespace: 'web' }),
    spec: { containers: [{ name: 'shop', image: 'quay.invalid/a/x:1' }] },
    status: {
      containerStatuses: [
        {
          name: 'shop',
          image: 'quay.invalid/a/x:1',
          state: {
            waiting: {
              reason: 'ImagePullBackOff',
              message: 'pinging container registry quay.invalid: dial tcp: lookup quay.invalid: no such host',
            },
          },
        },
      ],
    },
  },
];
writeFileSync(join(folder, 'all.yaml'), OBJECTS.map((object) => JSON.stringify(object)).join('\n---\n'));

function cli(...args: readonly string[]): Promise<InProcessRun> {
  return runInProcess([...args, '--from', folder]);
}

const PASSED =
  /is named by tag, and mirror "m\.invalid\/a" \(ImageDigestMirrorSet\/release\) serves digests only/;

test('explain names the mirror and prints the set to apply', async () => {
  const ran = await cli('explain', '--pod', 'shop', '-n', 'web');
  assert.match(ran.stdout.replace(/\s+/g, ' '), PASSED);
  assert.match(ran.stdout, /---\napiVersion: config\.openshift\.io\/v1\nkind: ImageTagMirrorSet\n/);
});

test('doctor names the mirror and not DNS', async () => {
  const ran = await cli('doctor', 'shop', '-n', 'web');
  assert.equal(ran.code, 1);
  assert.match(ran.stdout.replace(/\s+/g, ' '), PASSED);
  assert.match(ran.stdout, /kind: ImageTagMirrorSet/);
});

test('mirrors names the mirror, and has a code for programs', async () => {
  const ran = await cli('mirrors', 'quay.invalid/a/x:1', '--for', 'node', '-o', 'json');
  assert.match(ran.stdout, /"code": ?"MirrorsServeDigestsOnly"/);
});

test('verify names the mirror', async () => {
  const ran = await cli('verify', '--all-in-use', '--timeout', '2');
  assert.match(ran.stdout, PASSED);
});
