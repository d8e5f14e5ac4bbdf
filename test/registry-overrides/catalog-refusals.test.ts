/** A mirror that denies access counts as without the catalog: the next one is tried, by real responses to HEAD requests. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { registryLookUp } from '../../runtime/diagnose/model/registries.ts';
import type { LookupResult } from '../../runtime/engine/contract.ts';
import { IS_REGISTRY_OVERRIDES } from '../../runtime/registry-overrides/olm-catalogs.ts';
import { certificates, startServer, stopServers, type TestServer } from '../registry/https-server.ts';
import { table, test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { CATALOGS, DIGEST, images, OTHER_STREAM } from './catalog-objects.ts';
import { hostedCluster, run, statusOf } from './run-once.ts';

const folder = tempFolder();
const ca = join(folder, 'ca.crt');
writeFileSync(ca, certificates.ca);

/** Responds to HEAD requests as registries do: a status without a body. */
function registry(refusal: number): Promise<TestServer> {
  return startServer(({ url }, response) => {
    const status = url.startsWith('/v2/open/') ? 200 : refusal;
    response.writeHead(status, {
      ...(status === 200 ? { 'docker-content-digest': DIGEST } : {}),
      ...(status === 401 ? { 'www-authenticate': 'Basic realm="closed"' } : {}),
    });
    response.end();
  });
}

/** Answers the reconciler's look-ups until it has no more. */
async function settled(host: string): Promise<ReturnType<typeof run>> {
  const lookUp = await registryLookUp({
    authfile: undefined,
    readSecret: () => Promise.reject(new Error('no test reads one')),
    env: {},
    access: { 'allow-host': [host], ca },
  });
  const pairs = ['closed', 'open'].map((path) => `registry.redhat.io/redhat=${host}/${path}`);
  const cluster = hostedCluster({ [IS_REGISTRY_OVERRIDES]: pairs.join(',') });
  const facts: Record<string, LookupResult> = {};
  for (;;) {
    const out = run([cluster, OTHER_STREAM], { ...CATALOGS, facts });
    if (out.needs.length === 0) return out;
    for (const { image, kind } of out.needs) facts[image] = await lookUp({ kind, image, asked: true });
  }
}

table(
  test,
  [
    { name: '401', reason: 'the credential is wrong, or missing', refusal: 401 },
    { name: '403', reason: 'the credential is right, and not enough', refusal: 403 },
    { name: '404', reason: 'the mirror has no such image', refusal: 404 },
  ],
  async ({ refusal }) => {
    const { host } = await registry(refusal);
    const out = await settled(host);
    assert.equal(images(out).length, 3);
    for (const image of images(out)) assert.match(image, /\/open\/.*-index(:v4\.22|@)/);
  },
);

test('a mirror that is down is no mirror without the catalog', async () => {
  const { host } = await registry(503);
  const out = await settled(host);
  assert.equal(images(out).length, 0);
  assert.match(JSON.stringify(statusOf(out)), /failed to get image digest of/);
});

test.lastly('the servers stop', () => {
  stopServers();
});
