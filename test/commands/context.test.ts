/** `--context` counts for every command that asks the cluster of a person. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runMain } from '../support/process.ts';
import { table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const folder = tempFolder();
const kubeconfig = join(folder, 'kubeconfig.json');
writeFileSync(
  kubeconfig,
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'alpha',
    clusters: [{ name: 'alpha', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'alpha', user: {} }],
    contexts: [{ name: 'alpha', context: { cluster: 'alpha', user: 'alpha' } }],
  }),
);

table(
  test,
  [
    { name: 'explain', args: ['quay.io/acme/web:1'] },
    { name: 'doctor', args: ['web'] },
    { name: 'status', args: [] },
    { name: 'verify', args: ['--all-in-use'] },
    { name: 'uninstall', args: ['--dry-run'] },
  ].map((row) => ({ ...row, reason: 'a flag that is not looked at would ask, or change, another cluster' })),
  async ({ name, args }) => {
    const flags = ['--kubeconfig', kubeconfig, '--context', 'beta'];
    const ran = await runMain([name, ...args, ...flags]);
    assert.equal(ran.code, 2, ran.stdout);
    assert.match(ran.stderr, /Cannot use context "beta": the kubeconfig has "alpha"/);
  },
);
