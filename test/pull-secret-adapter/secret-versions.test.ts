/** Lists of versions that do not end. That every page is read shows where the Job meets 250 versions. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { redact } from '../../runtime/core/redacted.ts';
import { openHttpClient } from '../../runtime/http/open.ts';
import { SecretManager } from '../../runtime/pull-secret-adapter/job/secret-manager.ts';
import { listen } from '../support/loopback.ts';
import { test } from '../support/suite.ts';

test('a place that comes again ends the list: it was asked, and its answers kept, until the Job was ended', async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const place = new URL(request.url ?? '', 'http://localhost').searchParams.get('pageToken') ?? '';
    seen.push(place);
    response.setHeader('content-type', 'application/json');
    const name = `projects/1/secrets/a/versions/${seen.length}`;
    response.end(JSON.stringify({ versions: [{ name }], nextPageToken: 'b' }));
  });
  const endpoint = `http://127.0.0.1:${await listen(server)}`;
  const manager = new SecretManager({
    endpoint,
    resourceManagerEndpoint: endpoint,
    project: 'p',
    location: undefined,
    token: () => Promise.resolve(redact('token')),
    http: openHttpClient({}, [endpoint]),
    timeoutMs: 10_000,
    signal: new AbortController().signal,
  });
  await assert.rejects(manager.versions('a', 'ENABLED'), /ListSecretVersions failed: UNKNOWN/);
  assert.deepEqual(seen, ['', 'b']);
  server.close();
});
