/** Credentials of requests and their targets: redirects, other identities, limits of Retry-After, network addresses. */
import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { redact } from '../../runtime/core/redacted.ts';
import { addressKind, isNetwork, networksOf } from '../../runtime/http/addresses.ts';
import { HttpClient, redirectOf, retry, retryAfterMs } from '../../runtime/http/client.ts';
import { HttpsEngine } from '../../runtime/http/engine.ts';
import { Authority } from '../control-plane/x509.ts';
import { listen } from '../support/loopback.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Redirect extends Case {
  readonly location?: string;
  readonly method?: string;
  readonly status?: number;
  /** The URL and the headers of the next request, undefined where there is none, or the failure. */
  readonly next: readonly [url: string, headers: readonly string[]] | undefined | 'RedirectRefused';
}

const ALL = ['authorization', 'Cookie', 'Proxy-Authorization', 'accept'];
const redirects: readonly Redirect[] = [
  { name: 'a path', reason: 'the same origin', location: '/b', next: ['https://r.example.com/b', ALL] },
  {
    name: 'another port',
    reason: 'another origin: another program answers there',
    location: 'https://r.example.com:8443/b',
    next: ['https://r.example.com:8443/b', ['accept']],
  },
  {
    name: 'the same host without TLS',
    reason: 'another origin, which the client refuses for other reasons later',
    location: 'http://r.example.com/b',
    next: ['http://r.example.com/b', ['accept']],
  },
  {
    name: 'a user in the target',
    reason: 'a credential that the server chose',
    location: 'https://user@cdn.example.com/b',
    next: 'RedirectRefused',
  },
  {
    name: 'a password in the target',
    reason: 'as a user',
    location: 'https://:password@cdn.example.com/b',
    next: 'RedirectRefused',
  },
  { name: 'no target', reason: 'nowhere to go', next: 'RedirectRefused' },
  { name: 'no URL', reason: 'nowhere to go', location: 'https://[', next: 'RedirectRefused' },
  {
    name: 'of a POST',
    reason: 'what was asked stays unasked elsewhere',
    method: 'POST',
    location: '/b',
    next: undefined,
  },
  { name: 'of a PATCH, 308', method: 'PATCH', status: 308, location: '/b', next: undefined },
  {
    name: '304',
    reason: 'no redirect, whatever its headers say',
    status: 304,
    location: '/b',
    next: undefined,
  },
];

table(test, redirects, ({ location, method = 'GET', status = 302, next }) => {
  const answer = { status, header: () => location };
  const headers = Object.fromEntries(ALL.map((name) => [name, 'x']));
  const ask = (): ReturnType<typeof redirectOf> =>
    redirectOf(answer, { method, url: 'https://r.example.com/a', headers });
  if (next === 'RedirectRefused') assert.throws(ask, { failure: next });
  else {
    const found = ask();
    assert.deepEqual(found && [found.url, Object.keys(found.headers ?? {})], next);
  }
});

test('another client certificate goes over another connection, and none over one that had one', async () => {
  const authority = new Authority('identities');
  const { certificate: cert, key } = authority.issue({ commonName: 'server', hosts: ['127.0.0.1'] });
  const server = createServer(
    { cert, key, ca: authority.certificate, requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      const { subject } = (request.socket as TLSSocket).getPeerCertificate();
      response.end(String((subject as typeof subject | undefined)?.CN));
    },
  );
  const url = `https://127.0.0.1:${await listen(server)}/`;
  const client = new HttpClient(new HttpsEngine({ ca: authority.certificate }));
  const [one, two] = ['one', 'two'].map((commonName) => {
    const issued = authority.issue({ commonName });
    return { certificate: issued.certificate, key: redact(issued.key) };
  });
  const seen: string[] = [];
  for (const identity of [one, one, two, undefined, one]) {
    const request = { method: 'GET', url, ...(identity === undefined ? {} : { identity }) };
    seen.push((await client.ask(request, 100)).text);
  }
  assert.deepEqual(seen, ['one', 'one', 'two', 'undefined', 'one']);
  client.close();
  server.close();
});

test('retry(): who wants to be left alone for longer than is waited for is not asked again', async () => {
  for (const [afterMs, calls] of [
    [10_000, 3],
    [10_001, 1],
  ] as const) {
    let asked = 0;
    const paused: number[] = [];
    const attempt = (): Promise<number> => Promise.resolve((asked += 1));
    await retry(attempt, {
      tries: 3,
      waitMs: () => 5,
      longestWaitMs: 10_000,
      again: () => ({ afterMs }),
      pause: (ms) => Promise.resolve(void paused.push(ms)),
    });
    assert.equal(asked, calls);
    assert.deepEqual(paused, Array<number>(calls - 1).fill(afterMs + 5));
  }
});

test('retryAfterMs(): a number of any length is a time', () => {
  assert.equal(retryAfterMs('9'.repeat(400), 0), 1_000_000_000_000);
  assert.equal(retryAfterMs('Thu, 01 Jan 1970 00:00:01 GMT', 5000), 0, 'a date that is over');
});

test('isNetwork(), networksOf(), addressKind(): what is no address leads nowhere', () => {
  for (const text of ['10.0.0.0/8', '10.1.2.3', 'fd00::/8', '::1', '0.0.0.0/0', 'fd00::/128'])
    assert.equal(isNetwork(text), true, text);
  for (const text of [
    '10.0.0.0/33',
    'fd00::/129',
    'fe80::1%eth0',
    '10.0.0.0/8/8',
    '10.0.0.0/',
    '/8',
    'host',
    '10.0.0.0/+8',
    '10.0.0/8',
  ])
    assert.equal(isNetwork(text), false, text);
  for (const text of ['localhost', '', '10.0.0', '0x7f.1', '169.254.169.254.'])
    assert.equal(addressKind(text), 'own', text);
  assert.equal(addressKind('fe80::1%eth0'), 'metadata');
  assert.equal(networksOf(['fd00::/8']).check('fd12::1', 'ipv6'), true);
  assert.equal(networksOf(['10.1.2.3']).check('10.1.2.4', 'ipv4'), false);
});
