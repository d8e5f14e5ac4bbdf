import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { RegistryError } from '../../runtime/registry/registry-error.ts';
import { credentialsOf } from '../../runtime/registry/token.ts';
import { RegistryTransport } from '../../runtime/registry/transport.ts';
import { type ImageReference, parseImageReference } from '../../runtime/rules/image-reference.ts';
import { redact } from '../../runtime/rules/redacted.ts';
import { plantedAuth, plantedPassword } from '../support/canary.ts';
import { makeCertificates } from '../support/certificates.ts';
import { suite, table } from '../support/suite.ts';
import { certificates, type Seen, startServer, type TestServer } from './https-server.ts';

const test = suite('RegistryClient');
const BODY = Buffer.from('{"schemaVersion":2}');
const DIGEST = `sha256:${createHash('sha256').update(BODY).digest('hex')}`;
const CREDENTIAL = credentialsOf({ username: 'robot', password: redact(plantedPassword('client')) });
const BASIC = `Basic ${plantedAuth('client')}`;

const servers: TestServer[] = [];
async function server(
  handle: (request: Seen, response: ServerResponse) => void,
  own = certificates,
): Promise<TestServer> {
  const started = await startServer(handle, own);
  servers.push(started);
  return started;
}

function client(
  hosts: readonly string[],
  options: { timeoutMs?: number; credential?: typeof CREDENTIAL | 'none'; now?: () => number } = {},
): RegistryClient {
  return new RegistryClient({
    transport: new RegistryTransport({ allowHosts: hosts, ca: [certificates.ca] }),
    credentialFor: () => (options.credential === 'none' ? undefined : (options.credential ?? CREDENTIAL)),
    timeoutMs: options.timeoutMs ?? 5000,
    ...(options.now === undefined ? {} : { now: options.now }),
  });
}

function image(host: string, name = 'team/app:1'): ImageReference {
  const parsed = parseImageReference(`${host}/${name}`);
  assert.ok(parsed.ok);
  return parsed.reference;
}

function give(response: ServerResponse, body: Buffer = BODY, headers: Record<string, string> = {}): void {
  const type = 'application/vnd.oci.image.manifest.v1+json';
  response.writeHead(200, { 'content-type': type, 'docker-content-digest': DIGEST, ...headers }).end(body);
}

function challenge(response: ServerResponse, header: string): void {
  response.writeHead(401, { 'www-authenticate': header }).end('{"errors":[{"code":"UNAUTHORIZED"}]}');
}

async function failure(promise: Promise<unknown>): Promise<RegistryError> {
  const error: unknown = await promise.then(
    () => assert.fail('it should have failed'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof RegistryError, String(error));
  return error;
}

test('answers Basic only after the registry asked for it', async () => {
  const registry = await server((request, response) =>
    request.authorization === BASIC ? give(response) : challenge(response, 'Basic realm="test"'),
  );
  const found = await client([registry.host]).headManifest(image(registry.host));
  assert.equal(found.digest, DIGEST);
  assert.deepEqual(
    registry.seen.map((one) => one.authorization),
    [undefined, BASIC],
  );
  assert.equal(registry.seen[0]?.method, 'HEAD');
});

test('brings the credential to the token realm and only the token to the registry, and keeps the token', async () => {
  const realm = await server((_request, response) => response.end('{"token":"t0ken","expires_in":300}'));
  const registry = await server((request, response) =>
    request.authorization === 'Bearer t0ken'
      ? give(response)
      : challenge(
          response,
          `Bearer realm="https://${realm.host}/token",service="reg",scope="repository:team/app:pull"`,
        ),
  );
  let now = 0;
  const asker = client([registry.host, realm.host], { now: () => now });
  await asker.headManifest(image(registry.host));
  await asker.headManifest(image(registry.host));
  assert.deepEqual(
    realm.seen.map((one) => [one.url, one.authorization]),
    [['/token?service=reg&scope=repository%3Ateam%2Fapp%3Apull', BASIC]],
  );
  assert.ok(registry.seen.every((one) => one.authorization !== BASIC));
  now = 296_000;
  await asker.headManifest(image(registry.host));
  assert.equal(realm.seen.length, 2, 'a token is renewed before it ends');
});

test('exchanges an identity token in the body of a POST', async () => {
  const realm = await server((_request, response) => response.end('{"access_token":"t0ken"}'));
  const registry = await server((request, response) =>
    request.authorization === 'Bearer t0ken'
      ? give(response)
      : challenge(response, `Bearer realm="https://${realm.host}/token"`),
  );
  const credential = credentialsOf({
    username: '',
    password: redact(''),
    identityToken: redact(plantedPassword('identity')),
  });
  await client([registry.host, realm.host], { credential }).headManifest(image(registry.host));
  const [seen] = realm.seen;
  assert.equal(seen?.method, 'POST');
  assert.equal(new URLSearchParams(seen?.body).get('refresh_token'), plantedPassword('identity'));
  assert.ok(!seen?.url.includes(plantedPassword('identity')));
});

test('never gives a credential to the target of a redirect', async () => {
  const elsewhere = await server((_request, response) => give(response));
  const registry = await server((request, response) =>
    request.authorization === undefined
      ? challenge(response, 'Basic realm="test"')
      : response.writeHead(307, { location: `https://${elsewhere.host}/blob` }).end(),
  );
  const found = await client([registry.host, elsewhere.host]).manifest(image(registry.host));
  assert.equal(found.digest, DIGEST);
  assert.deepEqual(
    elsewhere.seen.map((one) => one.authorization),
    [undefined],
  );
});

test('does not follow a redirect of the token realm', async () => {
  const thief = await server((_request, response) => response.end('{"token":"x"}'));
  const realm = await server((_request, response) =>
    response.writeHead(307, { location: `https://${thief.host}/` }).end(),
  );
  const registry = await server((_request, response) =>
    challenge(response, `Bearer realm="https://${realm.host}/token"`),
  );
  const error = await failure(
    client([registry.host, realm.host, thief.host]).headManifest(image(registry.host)),
  );
  assert.equal(error.failure, 'Refused');
  assert.deepEqual(thief.seen, []);
});

test('a loopback address is contacted only when its host is configured', async () => {
  const registry = await server((_request, response) => give(response));
  const error = await failure(client([]).headManifest(image(registry.host)));
  assert.equal(error.failure, 'Refused');
  assert.match(error.message, /loopback, link-local or a metadata service/);
  assert.deepEqual(registry.seen, []);
});

test('a realm or a redirect at the metadata service gets nothing', async () => {
  for (const target of [
    'https://169.254.169.254/latest',
    'https://[fd00:ec2::254]/',
    'https://[::ffff:169.254.169.254]/',
  ]) {
    const registry = await server((_request, response) => challenge(response, `Bearer realm="${target}"`));
    assert.equal(
      (await failure(client([registry.host]).headManifest(image(registry.host)))).failure,
      'Refused',
    );
    const redirecting = await server((_request, response) =>
      response.writeHead(302, { location: target }).end(),
    );
    assert.equal(
      (await failure(client([redirecting.host]).headManifest(image(redirecting.host)))).failure,
      'Refused',
    );
  }
});

interface Fault {
  readonly name: string;
  readonly reason: string;
  readonly handle: (request: Seen, response: ServerResponse) => void;
  readonly failure: RegistryError['failure'];
  readonly says: RegExp;
}

const FAULTS: readonly Fault[] = [
  {
    name: '401 without challenge',
    reason: 'nothing can be answered',
    handle: (_, response) => response.writeHead(401).end(),
    failure: 'Invalid',
    says: /does not say which kind/,
  },
  {
    name: '401 again',
    reason: 'the credential is wrong',
    handle: (_, response) => challenge(response, 'Basic realm="x"'),
    failure: 'Invalid',
    says: /does not take the credential/,
  },
  {
    name: '403',
    reason: 'right, but not enough',
    handle: (_, response) => response.writeHead(403).end('{"errors":[{"code":"DENIED","message":"secret"}]}'),
    failure: 'Forbidden',
    says: /403 DENIED$/,
  },
  {
    name: '404',
    reason: 'absent',
    handle: (_, response) => response.writeHead(404).end('{"errors":[{"code":"MANIFEST_UNKNOWN"}]}'),
    failure: 'NotFound',
    says: /manifest unknown.*MANIFEST_UNKNOWN/,
  },
  {
    name: '429',
    reason: 'says when to come back',
    handle: (_, response) => response.writeHead(429, { 'retry-after': '17' }).end(),
    failure: 'RateLimited',
    says: /asks to wait/,
  },
  {
    name: '500',
    reason: 'the registry is broken',
    handle: (_, response) => response.writeHead(500).end('<html>stack trace</html>'),
    failure: 'Unreachable',
    says: /answers 500$/,
  },
  {
    name: 'another manifest than asked for',
    reason: 'the digest decides',
    handle: (_, response) => give(response, Buffer.from('{}')),
    failure: 'Damaged',
    says: /have the digest/,
  },
  {
    name: 'half a manifest',
    reason: 'the connection breaks',
    handle: (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"sche');
      setImmediate(() => response.destroy());
    },
    failure: 'Damaged',
    says: /breaks off/,
  },
  {
    name: 'a manifest without end',
    reason: 'memory is bounded',
    handle: (_, response) => {
      response.writeHead(200);
      const more = (): void => {
        if (!response.destroyed && response.write(Buffer.alloc(1 << 20))) setImmediate(more);
        else response.once('drain', more);
      };
      more();
    },
    failure: 'Damaged',
    says: /longer than/,
  },
  {
    name: 'silence',
    reason: 'the deadline holds',
    handle: () => undefined,
    failure: 'Unreachable',
    says: /did not answer in time/,
  },
  {
    name: 'a hang-up',
    reason: 'no answer',
    handle: (_, response) => response.destroy(),
    failure: 'Unreachable',
    says: /cannot be reached/,
  },
  {
    name: 'a redirect without end',
    reason: 'hops are counted',
    handle: (request, response) => response.writeHead(302, { location: `${request.url}0` }).end(),
    failure: 'Refused',
    says: /redirects more than 5 times/,
  },
  {
    name: 'a redirect to http',
    reason: 'TLS is not given up',
    handle: (_, response) => response.writeHead(302, { location: 'http://example.com/' }).end(),
    failure: 'Refused',
    says: /without TLS/,
  },
  {
    name: 'a redirect to nothing',
    reason: 'no URL',
    handle: (_, response) => response.writeHead(302).end(),
    failure: 'Refused',
    says: /no URL/,
  },
  {
    name: 'a realm without TLS',
    reason: 'it would get the credential in clear',
    handle: (_, response) => challenge(response, 'Bearer realm="http://example.com/token"'),
    failure: 'Refused',
    says: /no https URL/,
  },
  {
    name: 'a realm with a user',
    reason: 'no URL that is meant',
    handle: (_, response) => challenge(response, 'Bearer realm="https://user:pw@example.com/token"'),
    failure: 'Refused',
    says: /no https URL/,
  },
];

table(test, FAULTS, async (row) => {
  const registry = await server(row.handle);
  const error = await failure(
    client([registry.host], { timeoutMs: 1500 }).manifest(image(registry.host, `team/app@${DIGEST}`)),
  );
  assert.equal(error.failure, row.failure, error.message);
  assert.match(error.message, row.says);
  assert.ok(!error.message.includes('secret') && !error.message.includes('stack trace'));
  if (row.name === '429') assert.equal(error.retryAfterSeconds, 17);
});

test('a certificate of another authority is not trusted, whatever the environment says', async () => {
  const registry = await server((_request, response) => give(response), makeCertificates());
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
  try {
    const error = await failure(client([registry.host]).headManifest(image(registry.host)));
    assert.equal(error.failure, 'Untrusted');
  } finally {
    delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
  }
  assert.deepEqual(registry.seen, []);
});

test('a certificate for another name is not trusted', async () => {
  const other = makeCertificates({ hosts: ['registry.example.com'] });
  const registry = await server((_request, response) => give(response), other);
  const asker = new RegistryClient({
    transport: new RegistryTransport({ allowHosts: [registry.host], ca: [other.ca] }),
    credentialFor: () => undefined,
  });
  assert.equal((await failure(asker.headManifest(image(registry.host)))).failure, 'Untrusted');
});

test('a token service that answers nonsense is said, and nothing of its answer is shown', async () => {
  for (const answer of [
    'not json',
    '[]',
    '{"token":7}',
    '{"token":"with space"}',
    `{"token":"${'x'.repeat(70_000)}"}`,
  ]) {
    const realm = await server((_request, response) => response.end(answer));
    const registry = await server((_request, response) =>
      challenge(response, `Bearer realm="https://${realm.host}/"`),
    );
    const error = await failure(client([registry.host, realm.host]).headManifest(image(registry.host)));
    assert.equal(error.failure, 'Damaged');
    assert.ok(!error.message.includes(answer));
  }
});

test.lastly('the servers are stopped', () => {
  for (const one of servers) one.stop();
});

test.run();
