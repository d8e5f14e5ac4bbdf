// deadline: 240 s
/** What `pullwright verify` says of registries that misbehave. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { answering, type Seen, startServer } from '../registry/https-server.ts';
import { plantedAuth } from '../support/canary.ts';
import { test } from '../support/suite.ts';
import { allow, asked, deployment, dump, LABEL, secret, tidy } from './verify-scene.ts';

/** A token that has ended, as an `auth` field. */
function endedToken(): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const token = `${part({ alg: 'RS256' })}.${part({ exp: 1_600_000_000 })}.${part({ s: plantedAuth(LABEL) })}`;
  return Buffer.from(`builder:${token}`).toString('base64');
}

interface Fault {
  readonly name: string;
  readonly reason: string;
  readonly handle: (request: Seen, response: ServerResponse) => void;
  readonly auth?: string;
  readonly verdict: string;
  readonly says: RegExp;
}

const faults: readonly Fault[] = [
  {
    name: '401 to the credential',
    reason: 'it is wrong',
    handle: answering(401, { 'www-authenticate': 'Basic realm="x"' }),
    verdict: 'Invalid',
    says: /rejects the credential/,
  },
  {
    name: '401 to a token that has ended',
    reason: 'it can be said why',
    handle: answering(401, { 'www-authenticate': 'Basic realm="x"' }),
    auth: endedToken(),
    verdict: 'Expired',
    says: /expired at 2020-09-13T12:26:40Z/,
  },
  {
    name: '403',
    reason: 'right, and not enough',
    handle: answering(403),
    verdict: 'Forbidden',
    says: /denies pulling/,
  },
  {
    name: '404',
    reason: 'absent',
    handle: answering(404),
    verdict: 'NotFound',
    says: /not found \(manifest unknown\)/,
  },
  {
    name: '429',
    reason: 'too many questions',
    handle: answering(429, { 'retry-after': '7' }),
    verdict: 'RateLimited',
    says: /limits the request rate/,
  },
  {
    name: 'a token service without TLS elsewhere',
    reason: 'a password would cross the network in clear',
    handle: answering(401, { 'www-authenticate': 'Bearer realm="http://tokens.example.com/t",service="x"' }),
    verdict: 'Unreachable',
    says: /token service whose URL is not https/,
  },
  {
    name: 'a token service at the metadata address',
    reason: 'a tenant could reach it through us',
    handle: answering(401, {
      'www-authenticate': 'Bearer realm="https://169.254.169.254/latest",service="x"',
    }),
    verdict: 'NotAsked',
    says: /"169\.254\.169\.254" has an address that is .* a metadata service/,
  },
];

test('every fault of a registry has its verdict', async () => {
  const started = await Promise.all(faults.map(({ handle }) => startServer(handle)));
  const images = started.map(({ host }) => `${host}/team/app:1`);
  const from = dump(
    'faults',
    secret(
      'web',
      'pull',
      Object.fromEntries(started.map(({ host }, at) => [host, faults[at]?.auth ?? plantedAuth(LABEL)])),
    ),
    deployment('web', 'all', images, ['pull']),
  );
  const { report } = await asked(
    '--all-in-use',
    '--from',
    from,
    ...allow(...started.map(({ host }) => host)),
  );
  faults.forEach(({ name, reason, verdict, says }, at) => {
    const found = report.images.find(({ image }) => image === images[at])?.attempts[0];
    assert.equal(found?.verdict, verdict, `${name}: ${reason}: ${found?.message}`);
    assert.match(found.message, says, name);
  });
});

test('a credential that has ended, and is taken all the same, is no failure', async () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const { host } = await startServer((_, response) =>
    response.writeHead(200, { 'docker-content-digest': digest, 'content-type': 'application/json' }).end(),
  );
  const from = dump(
    'ended',
    secret('web', 'pull', { [host]: endedToken() }),
    deployment('web', 'all', [`${host}/team/app:1`], ['pull']),
  );
  const { code, report } = await asked('--all-in-use', '--from', from, ...allow(host));
  assert.equal(report.images[0]?.attempts[0]?.verdict, 'Valid');
  assert.equal(code, 0);
});

test('a registry that is silent is given up in time', async () => {
  const silent = await startServer(() => undefined);
  const from = dump('silent', deployment('web', 'all', [`${silent.host}/team/app:1`], []));
  const { report } = await asked('--all-in-use', '--from', from, ...allow(silent.host), '--timeout', '2');
  const found = report.images[0]?.attempts[0];
  assert.equal(found?.verdict, 'Unreachable');
  assert.match(found.message, /did not answer in time/);
});

test.lastly('servers stop', tidy);
