// deadline: 120 s
// needs: registry
/** A real registry that takes tokens, and a service of ours that signs them as the registry checks them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createPrivateKey, randomUUID, sign, X509Certificate } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plantedAuth } from '../support/canary.ts';
import { freePort } from '../support/loopback.ts';
import { type ProcessResult, runMain } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { authFile, scratch, USER, untilListening } from './docker-registry.ts';
import { certificates, startServer } from './https-server.ts';

const folder = scratch();

function cli(args: readonly string[]): Promise<ProcessResult> {
  return runMain(args, { deadlineMs: 60_000 });
}
test('a token of a real token service opens a real registry', async () => {
  const issuer = await startServer((request, response) => {
    if (request.authorization !== `Basic ${plantedAuth('tokens', USER)}`) {
      response.writeHead(401).end();
      return;
    }
    const scope = new URL(request.url, 'https://x').searchParams.get('scope') ?? '';
    response.end(JSON.stringify({ token: tokenFor(scope), expires_in: 300 }));
  });
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  const registry = await startTokenRegistry(port, `https://${issuer.host}/token`);
  try {
    const wrong = authFile(join(folder, 'wrong.json'), { [host]: `${USER}:wrong` });
    const right = authFile(join(folder, 'right.json'), {
      [host]: Buffer.from(plantedAuth('tokens', USER), 'base64').toString(),
    });
    const args = [
      'mirrors',
      `${host}/team/app:1`,
      '--probe',
      '--ca',
      join(folder, 'ca.crt'),
      '--allow-host',
      host,
      '--allow-host',
      issuer.host,
    ];
    assert.match((await cli([...args, '--authfile', wrong])).stdout, /Invalid: the token service/);
    // The token is good: the registry says that there is no such image, and not that we may not ask.
    assert.match((await cli([...args, '--authfile', right])).stdout, /NotFound: .*manifest unknown/);
  } finally {
    registry.stop();
    issuer.stop();
  }
});

test.lastly('the folder is removed', () => rmSync(folder, { recursive: true }));

async function startTokenRegistry(port: number, realm: string): Promise<{ stop(): void }> {
  writeFileSync(join(folder, 'server.crt'), certificates.cert);
  writeFileSync(join(folder, 'server.key'), certificates.key, { mode: 0o600 });
  writeFileSync(join(folder, 'ca.crt'), certificates.ca);
  const config = join(folder, 'tokens.yml');
  writeFileSync(
    config,
    JSON.stringify({
      version: 0.1,
      storage: { inmemory: {} },
      auth: {
        token: { realm, service: 'test', issuer: 'test-issuer', rootcertbundle: join(folder, 'ca.crt') },
      },
      http: {
        addr: `127.0.0.1:${port}`,
        tls: { certificate: join(folder, 'server.crt'), key: join(folder, 'server.key') },
      },
    }),
  );
  const child = spawn('docker-registry', ['serve', config], { stdio: 'ignore' });
  await untilListening(port, child);
  return { stop: () => child.kill('SIGKILL') };
}

/** A JWT as the registry checks it: signed by the server's key, with its certificate chain. */
function tokenFor(scope: string): string {
  const [type = '', name = '', actions = ''] = scope.split(':');
  const key = createPrivateKey(certificates.key);
  const rsa = key.asymmetricKeyType === 'rsa';
  const now = Math.floor(Date.now() / 1000);
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const header = {
    typ: 'JWT',
    alg: rsa ? 'RS256' : 'ES256',
    x5c: [new X509Certificate(certificates.cert).raw.toString('base64')],
  };
  const claims = {
    iss: 'test-issuer',
    sub: USER,
    aud: 'test',
    exp: now + 300,
    nbf: now - 10,
    iat: now,
    jti: randomUUID(),
    access: [{ type, name, actions: actions.split(',') }],
  };
  const head = `${encode(header)}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(head), rsa ? key : { key, dsaEncoding: 'ieee-p1363' });
  return `${head}.${signature.toString('base64url')}`;
}
