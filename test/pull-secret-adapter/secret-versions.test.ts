/** Lists of versions: every page is read, and a place that comes again ends them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { redact } from '../../runtime/core/redacted.ts';
import { openHttpClient } from '../../runtime/http/open.ts';
import { SecretManager } from '../../runtime/pull-secret-adapter/job/secret-manager.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  /** The token of the page after the one of this token; none after the last. */
  readonly next: Readonly<Record<string, string>>;
  readonly asked: readonly string[];
  readonly fails?: RegExp;
}

table(
  test,
  [
    { name: 'one page', reason: 'there are few', next: {}, asked: [''] },
    { name: 'three pages', reason: 'each has its place', next: { '': 'b', b: 'c' }, asked: ['', 'b', 'c'] },
    {
      name: 'a place that comes again',
      reason: 'it was asked, and its answers kept, until the Job was ended',
      next: { '': 'b', b: 'b' },
      asked: ['', 'b'],
      fails: /ListSecretVersions failed: UNKNOWN/,
    },
  ] satisfies readonly Row[],
  async ({ next, asked, fails }: Row) => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      const place = new URL(request.url ?? '', 'http://localhost').searchParams.get('pageToken') ?? '';
      seen.push(place);
      response.setHeader('content-type', 'application/json');
      const name = `projects/1/secrets/a/versions/${seen.length}`;
      response.end(JSON.stringify({ versions: [{ name }], nextPageToken: next[place] }));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
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
    const found = manager.versions('a', 'ENABLED');
    if (fails === undefined) assert.equal((await found).length, asked.length);
    else await assert.rejects(found, fails);
    assert.deepEqual(seen, asked);
    server.close();
  },
);
