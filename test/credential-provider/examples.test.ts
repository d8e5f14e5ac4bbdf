// deadline: 60 s
/** The examples in the documents work as documented. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = join(import.meta.dirname, '../..');
const request = readFileSync(join(root, 'examples/request.json'), 'utf8');

test('provider --dry-run prints sources, choices and the file without its values', async () => {
  const ran = await runMain(['provider', '--dry-run'], { stdin: request });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(
    ran.stdout,
    /mirror\.example\.com\/hub\/library\/nginx\s+mirror\.example\.com\/hub of secret mirror-pull-secret/,
  );
  assert.match(ran.stdout, /docker\.io\/library\/nginx\s+docker\.io of secret old-mirror-pull-secret/);
  assert.match(ran.stdout, /"auth": "\[redacted\]"/);
  for (const { data } of JSON.parse(request).dryRun.secrets) {
    const { auths } = JSON.parse(Buffer.from(data['.dockerconfigjson'], 'base64').toString('utf8'));
    for (const { auth } of Object.values<{ auth?: string }>(auths))
      assert.ok(auth === undefined || !ran.stdout.includes(auth));
  }
});

test('provider --dry-run --output json is JSON', async () => {
  const ran = await runMain(['provider', '--dry-run', '--output', 'json'], { stdin: request });
  assert.equal(JSON.parse(ran.stdout).sources.length, 3);
});

test('reconcile --from renders the MachineConfig and names the conflict', async () => {
  const ran = await runMain(['reconcile', '--from', 'examples/credential-provider', '--dry-run'], {
    cwd: root,
  });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /created\s+MachineConfig\/97-worker-generated-credentialproviderconfig/);
  assert.match(ran.stdout, /Rejected\s+123456789\.dkr\.ecr\.us-east-1\.amazonaws\.com/);
});

test('a folder with nothing but the object makes nothing of other systems', async () => {
  const folder = tempFolder();
  writeFileSync(
    join(folder, 'cluster.yaml'),
    'apiVersion: config.openshift.io/v1\nkind: CRIOCredentialProviderConfig\nmetadata: { name: cluster }\nspec: { matchImages: [docker.io] }\n',
  );
  const ran = await runMain(['reconcile', '--from', folder, '--dry-run']);
  assert.equal(ran.code, 0, ran.stderr);
  assert.deepEqual(
    [...ran.stdout.matchAll(/^ {2}(created|configured|removed) +(\S+) \(dry run\)$/gm)].map(
      ([, verb, name]) => [verb, name],
    ),
    [
      ['created', 'PullStatus/openshift-config/criocredentialproviderconfig-cluster'],
      ['configured', 'CRIOCredentialProviderConfig/cluster'],
    ],
  );
});
