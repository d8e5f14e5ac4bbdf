// deadline: 240 s
/** What `explain` prints where: narrow terminals, pipes that break, clusters that do not answer, dumps that are large. */
import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { certificates } from '../registry/https-server.ts';
import { plantedAuth } from '../support/canary.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { runMain, runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const main = new URL('../../main.ts', import.meta.url).pathname;
const folder = tempFolder();

const auths = {
  'quay.io/other': { auth: plantedAuth('terminal') },
  'quay.io': { auth: plantedAuth('terminal') },
};
const secret = pullSecretObject({ name: 'pull', namespace: 'shop' }, { auths });
const account = {
  ...meta('v1 ServiceAccount', { name: 'default', namespace: 'shop' }),
  imagePullSecrets: [{ name: 'pull' }],
};
writeFileSync(join(folder, 'a.yaml'), `${JSON.stringify(secret)}\n---\n${JSON.stringify(account)}\n`);

const command = ['explain', 'quay.io/shop/web:1', '-n', 'shop', '--from', folder];
const explain = (env: NodeJS.ProcessEnv, ...more: readonly string[]) =>
  runMain([...command, ...more], { env: { ...process.env, ...env } });

for (const columns of [20, 40, 80])
  test(`wraps at ${columns} columns; only single words are longer`, async () => {
    const { stdout } = await explain({ COLUMNS: `${columns}` });
    const wide = stdout.split('\n').filter((line) => line.length > columns);
    // Narrower than sixteen characters, a deep branch would be a column of words.
    for (const line of wide)
      assert.match(line, columns < 40 ? /^[│├└─ ]*.{0,16}\S*$/ : /^[│├└─ ]*\S+$/, line);
    const { stdout: whole } = await explain({ COLUMNS: '' });
    const words = (text: string): string => text.replace(/[│├└─\s]+/g, ' ').trim();
    assert.equal(words(stdout), words(whole), 'nothing is lost');
    assert.ok(whole.split('\n').some((line) => line.length > 80));
  });

test('a width of zero, or one that is no number, is no width', async () => {
  const { stdout: whole } = await explain({ COLUMNS: '' });
  for (const COLUMNS of ['0', '-3', 'wide', '1e999'])
    assert.equal((await explain({ COLUMNS })).stdout, whole, COLUMNS);
});

test('no colours without a terminal, and none with NO_COLOR', async () => {
  for (const env of [{}, { NO_COLOR: '1' }, { FORCE_COLOR: '1' }])
    assert.equal((await explain(env)).stdout.includes('\u001b'), false);
});

test('a pipe that breaks ends it in silence', async () => {
  const text = [process.execPath, main, ...command].map((word) => `'${word}'`).join(' ');
  const ran = await runProcess(['bash', '-c', `set -o pipefail; ${text} --output json | head -c 1`]);
  assert.equal(ran.stdout, '[');
  assert.equal(ran.stderr, '');
});

function kubeconfig(port: number): string {
  const file = join(folder, `kubeconfig-${port}`);
  const ca = Buffer.from(certificates.ca).toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'c', cluster: { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': ca } },
    ],
    users: [{ name: 'u', user: { token: 'none' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

test('a cluster that refuses, and one that is silent: one line, in time', async () => {
  const server = createServer((socket) => socket.resume().on('error', () => undefined));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const ask = (file: string) => runMain(['explain', 'quay.io/a', '--kubeconfig', file]);
  const silent = await ask(kubeconfig(port));
  assert.equal(silent.code, 1);
  assert.match(silent.stderr, /^Cannot \w+ "[^"]+": no response within 10000 ms \(127\.0\.0\.1:\d+\)\n$/);
  await new Promise((resolve) => server.close(resolve));
  const refusing = await ask(kubeconfig(port));
  assert.equal(refusing.code, 1);
  assert.match(refusing.stderr, /^Cannot \w+ "[^"]+": the connection was refused \(127\.0\.0\.1:\d+\)\n$/);
});

test('a dump of 100,000 objects', async () => {
  const dump = mkdtempSync(join(folder, 'large-'));
  const other = (index: number): string =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: object-${index}\n  namespace: shop\ndata:\n  value: ${'x'.repeat(100)}\n`;
  const objects = Array.from({ length: 100_000 }, (_, index) => other(index));
  writeFileSync(join(dump, 'large.yaml'), [...objects, `${JSON.stringify(secret)}\n`].join('---\n'));
  const ran = await explain({}, '--from', dump);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /1\. robot {2}"quay\.io" in Secret\/shop\/pull/);
});
