/** Registries that are only reached through a proxy: TLS stays with the registry, and the guard of addresses stays. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { redact } from '../../runtime/core/redacted.ts';
import { registryClient } from '../../runtime/diagnose/model/registries.ts';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { RegistryTransport } from '../../runtime/registry/transport.ts';
import { plantedPassword } from '../support/canary.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { type ConnectProxy, startProxy } from '../support/connect-proxy.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { BASIC, CREDENTIAL, challenge, DIGEST, failure, give, image } from './asker.ts';
import { startServer, stopServers, type TestServer } from './https-server.ts';

const NAME = 'registry.pullwright.test';
const OWN: Certificates = makeCertificates({ hosts: [NAME] });

const leadingTo = ({ host }: TestServer): Promise<ConnectProxy> =>
  startProxy(() => host.replace('localhost', '127.0.0.1'));
const leadingNowhere = (): Promise<ConnectProxy> => startProxy(() => '127.0.0.1:1');
/** With a password. */
const urlOf = ({ host }: ConnectProxy): string => `http://robot:${plantedPassword('proxy')}@${host}`;

function client(proxy: ConnectProxy, ca: string = OWN.ca): RegistryClient {
  const transport = new RegistryTransport({ ca: [ca], proxyFor: () => redact(urlOf(proxy)) });
  return new RegistryClient({ transport, credentialFor: () => CREDENTIAL, timeoutMs: 10_000 });
}

test('a registry is reached, asked for its challenge, and given the credential; the proxy only sees its name', async () => {
  const registry = await startServer(
    (request, response) =>
      request.authorization === BASIC ? give(response) : challenge(response, 'Basic realm="test"'),
    OWN,
  );
  const proxy = await leadingTo(registry);
  assert.equal(await client(proxy).manifest(image(NAME)), DIGEST);
  proxy.stop();
  assert.deepEqual(
    registry.seen.map((one) => one.authorization),
    [undefined, BASIC],
  );
  assert.deepEqual([...new Set(proxy.asked)], [`${NAME}:443`]);
  assert.ok(proxy.credentials.every((credential) => credential !== undefined));
});

test('the certificate is verified behind the proxy, whatever the environment says', async () => {
  const registry = await startServer((_request, response) => give(response), OWN);
  const proxy = await leadingTo(registry);
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  try {
    const error = await failure(client(proxy, makeCertificates().ca).headManifest(image(NAME)));
    assert.equal(error.failure, 'Untrusted', error.message);
  } finally {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    proxy.stop();
  }
  assert.deepEqual(registry.seen, []);
});

test('a proxy that refuses is named, without its password', async () => {
  const proxy = await startProxy(() => undefined, '407 Proxy Authentication Required');
  const error = await failure(client(proxy).headManifest(image(NAME)));
  proxy.stop();
  assert.equal(error.failure, 'Unreachable', error.message);
  assert.ok(error.message.includes(`"${NAME}"`) && error.message.includes(`"${proxy.host}"`), error.message);
});

test('a proxy that is down is named', async () => {
  const proxy = await leadingNowhere();
  proxy.stop();
  const error = await failure(client(proxy).headManifest(image(NAME)));
  assert.equal(error.failure, 'Unreachable', error.message);
  assert.ok(error.message.includes(`through the proxy "${proxy.host}"`), error.message);
});

test('forbidden addresses stay forbidden: the proxy is not even asked', async () => {
  const proxy = await leadingNowhere();
  for (const host of ['169.254.169.254', '[fd00:ec2::254]', 'localhost']) {
    const error = await failure(client(proxy).headManifest(image(host)));
    assert.equal(error.failure, 'Refused', error.message);
  }
  proxy.stop();
  assert.deepEqual(proxy.asked, []);
});

test('commands follow HTTPS_PROXY and NO_PROXY', async () => {
  const registry = await startServer((_request, response) => give(response), OWN);
  const proxy = await leadingTo(registry);
  const folder = tempFolder();
  const ca = join(folder, 'ca.crt');
  writeFileSync(ca, OWN.ca);
  const through = await registryClient({ ca, timeout: 10_000 }, { HTTPS_PROXY: urlOf(proxy) });
  assert.equal(await through.headManifest(image(NAME)), DIGEST);
  const past = await registryClient(
    { ca, timeout: 10_000 },
    { HTTPS_PROXY: urlOf(proxy), NO_PROXY: '.test' },
  );
  assert.match((await failure(past.headManifest(image(NAME)))).message, /cannot be reached: ENOTFOUND/);
  proxy.stop();
  assert.equal(proxy.asked.length, 1);
});

test.lastly('the servers are stopped', stopServers);
