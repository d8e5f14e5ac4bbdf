// deadline: 120 s
// needs: registry
/** Registries are asked with each hosted cluster's own pull secret, and with the file for what that does not cover. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PullwrightError } from '../../runtime/core/errors.ts';
import type { SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { type RegistryLookUpOptions, registryLookUp } from '../../runtime/diagnose/model/registries.ts';
import type { Lookup } from '../../runtime/engine/contract.ts';
import { FactCache, NOT_ASKED } from '../../runtime/engine/lookups.ts';
import { decodeObject } from '../../runtime/kube/decode.ts';
import { ociLayout, push, scratch, startRegistry, USER } from '../registry/docker-registry.ts';
import { certificates } from '../registry/https-server.ts';
import { plantedPassword } from '../support/canary.ts';
import { test } from '../support/suite.ts';

const folder = scratch();
const path = (name: string): string => join(folder, name);
for (const [name, text] of Object.entries({
  'server.crt': certificates.cert,
  'server.key': certificates.key,
  'ca.crt': certificates.ca,
}))
  writeFileSync(path(name), text, { mode: 0o600 });
const registry = await startRegistry(folder, 'catalogs', {
  certificate: path('server.crt'),
  key: path('server.key'),
});
const layout = ociLayout(path('layout'), { 'configs/a': 'a' });
const image = `${registry.host}/redhat/index:v4.22`;
push(layout, registry, 'redhat/index:v4.22', folder);
const { digest } = layout;

const document = (password: string): string =>
  JSON.stringify({
    auths: { [registry.host]: { auth: Buffer.from(`${USER}:${password}`).toString('base64') } },
  });
const secret = (text: string, type = 'kubernetes.io/dockerconfigjson'): SecretObject =>
  decodeObject({
    apiVersion: 'v1',
    kind: 'Secret',
    type,
    metadata: { name: 'pull-secret' },
    data: { '.dockerconfigjson': Buffer.from(text).toString('base64') },
  }) as SecretObject;
const secrets = new Map<string, SecretObject | PullwrightError>();
const options: RegistryLookUpOptions = {
  authfile: undefined,
  readSecret: ({ namespace }) => {
    const found = secrets.get(namespace);
    return found instanceof PullwrightError ? Promise.reject(found) : Promise.resolve(found);
  },
  env: {},
  access: { 'allow-host': [registry.host], ca: path('ca.crt') },
};
const file = path('auth.json');
writeFileSync(file, document(registry.password));
const need = (cluster: string, more: Partial<Lookup> = { asked: true }): Lookup => ({
  kind: 'registry-digest',
  image,
  pullSecret: { namespace: `clusters-${cluster}`, name: 'pull-secret' },
  ...more,
});
const good = secret(document(registry.password));
const bad = secret(document(plantedPassword('wrong')));

test('each cluster is asked for with its own Secret; a right one does not open the door for a wrong one', async () => {
  secrets.set('clusters-a', good).set('clusters-b', bad);
  const lookUp = await registryLookUp(options);
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(await lookUp(need('a')), { ok: true, value: digest });
    const refused = await lookUp(need('b'));
    assert.equal(refused.ok, false);
    assert.match(refused.ok ? '' : refused.reason, /^Invalid: /);
  }
});

test('the facts of two clusters are two', async () => {
  const cache = new FactCache(await registryLookUp(options));
  await new Promise<void>((answered) => cache.request([need('a')], answered));
  assert.deepEqual(cache.get(need('a')), { ok: true, value: digest });
  assert.equal(cache.get(need('b')), undefined);
});

test('a rotated Secret is used from the next look-up on', async () => {
  const lookUp = await registryLookUp(options);
  secrets.set('clusters-b', bad);
  assert.equal((await lookUp(need('b'))).ok, false);
  secrets.set('clusters-b', good);
  assert.equal((await lookUp(need('b'))).ok, true);
});

test('the file adds to what the Secret does not cover, and never goes before it', async () => {
  const lookUp = await registryLookUp({ ...options, authfile: file });
  secrets.set('clusters-a', secret('{"auths":{"quay.io":{"auth":"dTpw"}}}')).set('clusters-b', bad);
  assert.equal((await lookUp(need('a', {}))).ok, true);
  assert.equal((await lookUp(need('b', {}))).ok, false);
});

test('a Secret that cannot be used: said, unless there is a file', async () => {
  const forbidden = new PullwrightError(
    'Cannot get "Secret/clusters-e/pull-secret": the API server returned 403 Forbidden',
    { code: 'Forbidden' },
  );
  secrets
    .set('clusters-c', secret('{"auths":'))
    .set('clusters-d', secret('{}', 'Opaque'))
    .set('clusters-e', forbidden);
  secrets.delete('clusters-f');
  const [alone, withFile] = [
    await registryLookUp(options),
    await registryLookUp({ ...options, authfile: file }),
  ];
  for (const [cluster, says] of Object.entries({
    c: /^PullSecretUnusable: Cannot contact registries with "Secret\/clusters-c\/pull-secret": /,
    d: /^PullSecretUnusable: .*it is not a pull secret/,
    e: /^PullSecretUnusable: .*403/,
    f: /^PullSecretUnusable: .*it does not exist/,
  })) {
    const answer = await alone(need(cluster));
    assert.match(answer.ok ? '' : answer.reason, says);
    assert.deepEqual(await withFile(need(cluster)), { ok: true, value: digest });
  }
});

test('nobody is asked where nobody said so', async () => {
  const lookUp = await registryLookUp(options);
  assert.deepEqual(await lookUp(need('a', {})), { ok: false, reason: NOT_ASKED });
});

test.lastly('the registry stops', () => {
  registry.stop();
  rmSync(folder, { recursive: true });
});
