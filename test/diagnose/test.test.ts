/** `pullwright test`, as a pipeline runs it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expectPull, standInSecret } from '../../runtime/diagnose/commands/test.ts';
import { plantedAuth } from '../support/canary.ts';
import { runInProcess } from '../support/in-process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const file = join(folder, 'pull.test.yaml');
const data = Buffer.from(
  JSON.stringify({ auths: { 'quay.io': { auth: plantedAuth('test', 'me') } } }),
).toString('base64');

writeFileSync(
  join(folder, 'secret.yaml'),
  `apiVersion: v1\nkind: Secret\nmetadata: {name: global-pull-secret, namespace: kube-system}\ntype: kubernetes.io/dockerconfigjson\ndata: {.dockerconfigjson: ${data}}\n`,
);
const run = (text: string, ...args: readonly string[]) => {
  writeFileSync(file, text);
  return runInProcess(['test', file, ...args]);
};

test('folders are relative to the file; all that holds passes', async () => {
  const ran = await run(
    'from: secret.yaml\ntests:\n  - {image: quay.io/a, expect: {username: me}}\n  - {image: r.io/a, expect: denied}\n',
  );
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /2 passed, 0 failed/);
});

test('what does not hold is told, in JUnit too', async () => {
  const text =
    'tests:\n  - {name: "a <b>", image: quay.io/a, expect: denied}\n  - {image: "r.io//", expect: denied}\n';
  const ran = await run(text, '--from', join(folder, 'secret.yaml'), '--output', 'junit');
  assert.equal(ran.code, 1);
  assert.match(ran.stdout, /<testsuites tests="2" failures="2">/);
  assert.match(
    ran.stdout,
    /name="a &lt;b&gt;">\n {6}<failure message="expected no credential, found user &quot;me&quot;/,
  );
});

test('a file with mistakes and wrong use', async () => {
  const mistakes = await run('tests:\n  - {imag: a}\n');
  assert.equal(mistakes.code, 1);
  assert.match(
    mistakes.stderr,
    /tests\[0\]\.image: required value[\s\S]*tests\[0\]\.expect[\s\S]*tests\[0\]\.imag: unknown field/,
  );
  assert.match((await run('a: [')).stderr, /invalid YAML/);
  assert.equal((await run('tests: [{image: a, expect: denied}]')).code, 2);
  assert.equal((await runInProcess(['test'])).code, 2);
});

test('expectPull takes charts, alone and in a list, and names an argument that is neither', () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { imagePullSecrets: [{ name: 'team' }], containers: [{ name: 'web', image: 'quay.io/x' }] },
  };
  const chart = { toJson: () => [pod] };
  const secret = standInSecret('shop', 'team', ['quay.io']);
  for (const source of [chart, [chart], [pod]])
    expectPull(source, [secret]).pod('web').pulls('quay.io/x').with('team');
  const wrong = 'manifests' as unknown as readonly unknown[];
  assert.throws(
    () => expectPull([pod], wrong),
    /^TypeError: Cannot read argument 2 of expectPull: .*, got string$/,
  );
});
