/** `mirrors --probe` asks with the credentials that nodes have: those of the Secrets of the folder. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { certificates, startServer, stopServers } from '../registry/https-server.ts';
import { plantedAuth } from '../support/canary.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { type ProcessResult, runMain } from '../support/process.ts';
import { table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { idms } from './mirror-objects.ts';

const folder = tempFolder();
const ca = join(folder, 'ca.crt');
writeFileSync(ca, certificates.ca);
const DIGEST = `sha256:${'a'.repeat(64)}`;
const AUTH = plantedAuth('probe', 'robot');

const { host } = await startServer(({ authorization, url }, response) => {
  const isIn = authorization === `Basic ${AUTH}`;
  if (isIn && url.startsWith('/v2/gone/')) response.writeHead(404);
  else if (isIn) response.writeHead(200, { 'docker-content-digest': DIGEST });
  else response.writeHead(401, { 'www-authenticate': 'Basic realm="team"' });
  response.end();
});

const secret = (namespace: string, name: string): object =>
  pullSecretObject({ name, namespace }, { auths: { [host]: { auth: AUTH } } });
const HOSTED = {
  ...meta('hypershift.openshift.io/v1beta1 HostedCluster', { name: 'prod', namespace: 'clusters' }),
  spec: {
    pullSecret: { name: 'prod-pull' },
    imageContentSources: [{ source: 'quay.invalid/a', mirrors: [`${host}/a`] }],
  },
};
const MIRRORS = idms('release', 'quay.invalid/a', `${host}/a`);

function probe(objects: readonly object[], ...args: readonly string[]): Promise<ProcessResult> {
  const stdin = objects.map((object) => JSON.stringify(object)).join('\n---\n');
  const image = `quay.invalid/a/x@${DIGEST}`;
  const flags = ['--from', '-', '--probe', '--timeout', '20', '--ca', ca, '--allow-host', host];
  return runMain(['mirrors', image, ...flags, ...args], { stdin });
}

table(
  test,
  [
    {
      name: 'the pull secret of the cluster',
      reason: 'nodes boot with it',
      objects: [MIRRORS, secret('openshift-config', 'pull-secret')],
      args: [],
      says: /Valid: sha256:/,
    },
    {
      name: 'the global pull secret',
      reason: 'it is synced to the nodes',
      objects: [MIRRORS, secret('kube-system', 'global-pull-secret')],
      args: [],
      says: /Valid: sha256:/,
    },
    {
      name: 'the Secret that a HostedCluster names',
      reason: 'nodes of the hosted cluster boot with it',
      objects: [HOSTED, secret('clusters', 'prod-pull')],
      args: ['--cluster', 'clusters/prod'],
      says: /Valid: sha256:/,
    },
    {
      name: 'a Secret of some namespace',
      reason: 'no node sends it to a mirror',
      objects: [MIRRORS, secret('web', 'pull')],
      args: [],
      says: /Invalid: .*requires a credential/,
    },
  ],
  async ({ objects, args, says }) => {
    const ran = await probe(objects, '--for', 'node', ...args);
    assert.match(ran.stdout, says, ran.stderr);
    assert.doesNotMatch(ran.stdout + ran.stderr, new RegExp(AUTH));
  },
);

table(
  test,
  [
    {
      name: 'the second mirror has it',
      reason:
        'a release is looked up at each mirror in turn; a component is renamed to the first without asking',
      mirrors: [`${host}/gone`, 'rename.invalid/a'],
      lookUp: { release: `${host}/a/x@${DIGEST}`, component: `${host}/gone/x@${DIGEST}` },
    },
    {
      name: 'no mirror has it',
      reason: 'nothing is found',
      mirrors: [`${host}/gone`],
      lookUp: { component: `${host}/gone/x@${DIGEST}` },
    },
  ],
  async ({ mirrors, lookUp }) => {
    const ran = await probe(
      [HOSTED, secret('clusters', 'prod-pull'), idms('release', 'quay.invalid/a', ...mirrors)],
      '--cluster',
      'clusters/prod',
      '--registry-overrides',
      `rename.invalid=${host}`,
      '--output',
      'json',
    );
    const { reports } = JSON.parse(ran.stdout) as { reports: { for: string[]; lookUp?: object }[] };
    for (const report of reports) {
      const isLookedUp = report.for.includes('control-plane-operator');
      assert.equal(report.for.includes('ignition-server'), isLookedUp);
      assert.deepEqual(report.lookUp, isLookedUp ? lookUp : undefined);
    }
    assert.ok(reports.some((report) => report.lookUp !== undefined));
  },
);

test.lastly('the server stops', () => {
  stopServers();
});
