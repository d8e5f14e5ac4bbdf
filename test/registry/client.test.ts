import assert from 'node:assert/strict';
import { redact } from '../../runtime/core/redacted.ts';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { credentialsOf } from '../../runtime/registry/token.ts';
import { RegistryTransport } from '../../runtime/registry/transport.ts';
import { plantedPassword } from '../support/canary.ts';
import { makeCertificates } from '../support/certificates.ts';
import { test } from '../support/suite.ts';
import { BASIC, challenge, client, DIGEST, failure, give, image } from './asker.ts';
import { startServer, stopServers } from './https-server.ts';

test('answers Basic only after the registry asked for it', async () => {
  const registry = await startServer((request, response) =>
    request.authorization === BASIC ? give(response) : challenge(response, 'Basic realm="test"'),
  );
  assert.equal(await client([registry.host]).headManifest(image(registry.host)), DIGEST);
  assert.deepEqual(
    registry.seen.map((one) => one.authorization),
    [undefined, BASIC],
  );
  assert.equal(registry.seen[0]?.method, 'HEAD');
});

test('brings the credential to the token realm and only the token to the registry, and keeps the token', async () => {
  const realm = await startServer((_request, response) => response.end('{"token":"t0ken","expires_in":300}'));
  const registry = await startServer((request, response) =>
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
  const realm = await startServer((_request, response) => response.end('{"access_token":"t0ken"}'));
  const registry = await startServer((request, response) =>
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
  const elsewhere = await startServer((_request, response) => give(response));
  const registry = await startServer((request, response) =>
    request.authorization === undefined
      ? challenge(response, 'Basic realm="test"')
      : response.writeHead(307, { location: `https://${elsewhere.host}/blob` }).end(),
  );
  assert.equal(await client([registry.host, elsewhere.host]).manifest(image(registry.host)), DIGEST);
  assert.deepEqual(
    elsewhere.seen.map((one) => one.authorization),
    [undefined],
  );
});

test('does not follow a redirect of the token realm', async () => {
  const thief = await startServer((_request, response) => response.end('{"token":"x"}'));
  const realm = await startServer((_request, response) =>
    response.writeHead(307, { location: `https://${thief.host}/` }).end(),
  );
  const registry = await startServer((_request, response) =>
    challenge(response, `Bearer realm="https://${realm.host}/token"`),
  );
  const error = await failure(
    client([registry.host, realm.host, thief.host]).headManifest(image(registry.host)),
  );
  assert.equal(error.failure, 'Refused');
  assert.deepEqual(thief.seen, []);
});

test('a loopback address is contacted only when its host is configured', async () => {
  const registry = await startServer((_request, response) => give(response));
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
    const registry = await startServer((_request, response) =>
      challenge(response, `Bearer realm="${target}"`),
    );
    assert.equal(
      (await failure(client([registry.host]).headManifest(image(registry.host)))).failure,
      'Refused',
    );
    const redirecting = await startServer((_request, response) =>
      response.writeHead(302, { location: target }).end(),
    );
    assert.equal(
      (await failure(client([redirecting.host]).headManifest(image(redirecting.host)))).failure,
      'Refused',
    );
  }
});

test('a certificate of another authority is not trusted, whatever the environment says', async () => {
  const registry = await startServer((_request, response) => give(response), makeCertificates());
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
  const registry = await startServer((_request, response) => give(response), other);
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
    const realm = await startServer((_request, response) => response.end(answer));
    const registry = await startServer((_request, response) =>
      challenge(response, `Bearer realm="https://${realm.host}/"`),
    );
    const error = await failure(client([registry.host, realm.host]).headManifest(image(registry.host)));
    assert.equal(error.failure, 'Damaged');
    assert.ok(!error.message.includes(answer));
  }
});

test.lastly('the servers are stopped', stopServers);
