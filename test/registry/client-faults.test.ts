import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import type { RegistryError } from '../../runtime/registry/transport.ts';
import { type Case, table, test } from '../support/suite.ts';
import { challenge, client, DIGEST, failure, give, image } from './asker.ts';
import { answering, type Seen, startServer, stopServers } from './https-server.ts';

interface Fault extends Case {
  readonly handle: (request: Seen, response: ServerResponse) => void;
  readonly failure: RegistryError['failure'];
  readonly says: RegExp;
}

const FAULTS: readonly Fault[] = [
  {
    name: '401 without challenge',
    handle: answering(401),
    failure: 'Invalid',
    says: /credential of unknown scheme/,
  },
  {
    name: '401 again',
    reason: 'the credential is wrong',
    handle: answering(401, { 'www-authenticate': 'Basic realm="x"' }),
    failure: 'Invalid',
    says: /rejects the credential/,
  },
  {
    name: '403',
    reason: 'right, but not enough',
    handle: answering(403, {}, '{"errors":[{"code":"DENIED","message":"secret"}]}'),
    failure: 'Forbidden',
    says: /403 DENIED$/,
  },
  {
    name: '404',
    handle: answering(404, {}, '{"errors":[{"code":"MANIFEST_UNKNOWN"}]}'),
    failure: 'NotFound',
    says: /manifest unknown.*MANIFEST_UNKNOWN/,
  },
  {
    name: '429',
    reason: 'says when to come back',
    handle: answering(429, { 'retry-after': '17' }),
    failure: 'RateLimited',
    says: /limits the request rate, retry after 17 s: 429/,
  },
  {
    name: '429 until a date',
    reason: 'a date is as good as seconds',
    handle: (_, response) =>
      response.writeHead(429, { 'retry-after': new Date(Date.now() + 17_000).toUTCString() }).end(),
    failure: 'RateLimited',
    says: /limits the request rate, retry after 1?\d s: 429/,
  },
  {
    name: '429 of the token service',
    reason: 'it asks to wait, too',
    handle: (request, response) => {
      if (request.url.startsWith('/token')) response.writeHead(429, { 'retry-after': '17' }).end();
      else challenge(response, `Bearer realm="https://${request.host}/token"`);
    },
    failure: 'RateLimited',
    says: /the token service .* did not return a token: 429/,
  },
  {
    name: '500',
    reason: 'the registry is broken',
    handle: answering(500, {}, '<html>stack trace</html>'),
    failure: 'Unreachable',
    says: /returned 500$/,
  },
  {
    name: 'another manifest than asked for',
    handle: (_, response) => give(response, Buffer.from('{}')),
    failure: 'Damaged',
    says: /have the digest/,
  },
  {
    name: 'half a manifest',
    handle: (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"sche');
      setImmediate(() => response.destroy());
    },
    failure: 'Damaged',
    says: /is incomplete/,
  },
  {
    name: 'a manifest without end',
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
  { name: 'silence', handle: () => undefined, failure: 'Unreachable', says: /did not answer in time/ },
  {
    name: 'a hang-up',
    handle: (_, response) => response.destroy(),
    failure: 'Unreachable',
    says: /cannot be reached/,
  },
  {
    name: 'a redirect without end',
    handle: (request, response) => response.writeHead(302, { location: `${request.url}0` }).end(),
    failure: 'Refused',
    says: /redirects more than 5 times/,
  },
  {
    name: 'a redirect to http',
    reason: 'TLS is not given up',
    handle: answering(302, { location: 'http://example.com/' }),
    failure: 'Refused',
    says: /must use TLS/,
  },
  { name: 'a redirect to nothing', handle: answering(302), failure: 'Refused', says: /invalid URL/ },
  {
    name: 'a realm without TLS',
    reason: 'it would get the credential in clear',
    handle: answering(401, { 'www-authenticate': 'Bearer realm="http://example.com/token"' }),
    failure: 'Refused',
    says: /URL is not https/,
  },
  {
    name: 'a realm with a user',
    reason: 'invalid URL that is meant',
    handle: answering(401, { 'www-authenticate': 'Bearer realm="https://user:pw@example.com/token"' }),
    failure: 'Refused',
    says: /URL is not https/,
  },
];

table(test, FAULTS, async (row) => {
  const registry = await startServer(row.handle);
  const error = await failure(
    client([registry.host], { timeoutMs: 1500 }).manifest(image(registry.host, `team/app@${DIGEST}`)),
  );
  assert.equal(error.failure, row.failure, error.message);
  assert.match(error.message, row.says);
  assert.ok(!error.message.includes('secret') && !error.message.includes('stack trace'));
  const wait = error.retryAfterSeconds ?? 0;
  if (row.failure === 'RateLimited') assert.ok(wait > 10 && wait <= 17, `${wait} s`);
});

const ELSEWHERE: readonly { readonly digest: string; readonly reason: string }[] = [
  { digest: 'sha256:../../../v2/_catalog', reason: 'a way up' },
  { digest: `sha256:${'a'.repeat(64)}?n=1`, reason: 'a query' },
  { digest: `sha256:${'A'.repeat(64)}`, reason: 'no digest is written so' },
  { digest: `md5:${'a'.repeat(32)}`, reason: 'nothing that it says could be checked' },
  { digest: '', reason: 'the list of blobs is none' },
  { digest: '\u001b[2J', reason: 'what a terminal would obey' },
];

for (const { digest, reason } of ELSEWHERE)
  test(`${JSON.stringify(digest.slice(0, 30))} in place of a digest is asked for nowhere: ${reason}`, async () => {
    const seen: string[] = [];
    const registry = await startServer(({ url }, response) => {
      seen.push(url);
      give(response);
    });
    const [asker, reference] = [client([registry.host]), image(registry.host)];
    for (const asked of [
      () => asker.manifest({ ...reference, digest }),
      () => asker.headManifest({ ...reference, digest }),
    ]) {
      const { failure: is, message } = await failure(asked());
      assert.equal(is, 'Damaged');
      assert.match(message, /is not a digest \(.*\), expected sha256, sha384 or sha512/);
      assert.ok(!message.includes('\u001b'));
    }
    assert.deepEqual(seen, []);
  });

test.lastly('the servers are stopped', stopServers);
