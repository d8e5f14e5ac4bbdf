/** Registries that are only reached through a proxy: TLS stays with the registry, and the guard of addresses stays. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { redact } from '../../runtime/core/redacted.ts';
import { registryClient } from '../../runtime/diagnose/model/registries.ts';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { RegistryTransport } from '../../runtime/registry/transport.ts';
import { plantedPassword } from '../support/canary.ts';
import { type Certificates, makeCertificates } from '../support/certificates.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { BASIC, CREDENTIAL, challenge, DIGEST, failure, give, image } from './asker.ts';
import { startServer, stopServers } from './https-server.ts';

const NAME = 'registry.pullwright.test';
const OWN: Certificates = makeCertificates({ hosts: [NAME] });

interface TestProxy {
  /** With a password. */
  readonly url: string;
  readonly host: string;
  /** What it was asked to connect to. */
  readonly asked: string[];
  stop(): void;
}

/** Connects everything to the port of `target` on loopback, or refuses. */
async function startProxy(target: string, refuse?: string): Promise<TestProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const proxy = createServer();
  proxy.on('connect', (request: IncomingMessage, client: Socket) => {
    asked.push(
      `${request.url} ${request.headers['proxy-authorization'] === undefined ? 'nobody' : 'somebody'}`,
    );
    sockets.add(client.on('error', () => undefined));
    if (refuse !== undefined) {
      client.end(`HTTP/1.1 ${refuse}\r\n\r\n`);
      return;
    }
    const upstream = connect(Number(target.split(':').at(-1)), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(client);
      client.pipe(upstream);
    });
    sockets.add(upstream.on('error', () => client.destroy()));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as AddressInfo;
  return {
    url: `http://robot:${plantedPassword('proxy')}@127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    asked,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}

function client(proxy: TestProxy, ca: string = OWN.ca): RegistryClient {
  const transport = new RegistryTransport({ ca: [ca], proxyFor: () => redact(proxy.url) });
  return new RegistryClient({ transport, credentialFor: () => CREDENTIAL, timeoutMs: 10_000 });
}

test('a registry is reached, asked for its challenge, and given the credential; the proxy only sees its name', async () => {
  const registry = await startServer(
    (request, response) =>
      request.authorization === BASIC ? give(response) : challenge(response, 'Basic realm="test"'),
    OWN,
  );
  const proxy = await startProxy(registry.host);
  assert.equal(await client(proxy).manifest(image(NAME)), DIGEST);
  proxy.stop();
  assert.deepEqual(
    registry.seen.map((one) => one.authorization),
    [undefined, BASIC],
  );
  assert.deepEqual([...new Set(proxy.asked)], [`${NAME}:443 somebody`]);
});

test('the certificate is verified behind the proxy, whatever the environment says', async () => {
  const registry = await startServer((_request, response) => give(response), OWN);
  const proxy = await startProxy(registry.host);
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
  const proxy = await startProxy('127.0.0.1:1', '407 Proxy Authentication Required');
  const error = await failure(client(proxy).headManifest(image(NAME)));
  proxy.stop();
  assert.equal(error.failure, 'Unreachable', error.message);
  assert.ok(error.message.includes(`"${NAME}"`) && error.message.includes(`"${proxy.host}"`), error.message);
});

test('a proxy that is down is named', async () => {
  const proxy = await startProxy('127.0.0.1:1');
  proxy.stop();
  const error = await failure(client(proxy).headManifest(image(NAME)));
  assert.equal(error.failure, 'Unreachable', error.message);
  assert.ok(error.message.includes(`through the proxy "${proxy.host}"`), error.message);
});

test('forbidden addresses stay forbidden: the proxy is not even asked', async () => {
  const proxy = await startProxy('127.0.0.1:1');
  for (const host of ['169.254.169.254', '[fd00:ec2::254]', 'localhost']) {
    const error = await failure(client(proxy).headManifest(image(host)));
    assert.equal(error.failure, 'Refused', error.message);
  }
  proxy.stop();
  assert.deepEqual(proxy.asked, []);
});

test('commands follow HTTPS_PROXY and NO_PROXY', async () => {
  const registry = await startServer((_request, response) => give(response), OWN);
  const proxy = await startProxy(registry.host);
  const folder = tempFolder();
  const ca = join(folder, 'ca.crt');
  writeFileSync(ca, OWN.ca);
  const through = await registryClient({ ca, timeout: 10_000 }, { HTTPS_PROXY: proxy.url });
  assert.equal(await through.headManifest(image(NAME)), DIGEST);
  const past = await registryClient({ ca, timeout: 10_000 }, { HTTPS_PROXY: proxy.url, NO_PROXY: '.test' });
  assert.match((await failure(past.headManifest(image(NAME)))).message, /cannot be reached: ENOTFOUND/);
  proxy.stop();
  assert.equal(proxy.asked.length, 1);
});

test.lastly('the servers are stopped', stopServers);
