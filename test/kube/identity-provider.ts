/** An OpenID Connect provider with one user, whose refresh tokens are good for once. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Authority, newKey, pemOf, signToken } from '../control-plane/x509.ts';

export interface IdentityProvider {
  readonly issuer: string;
  /** Path of its CA. */
  readonly ca: string;
  /** A signed token of `ann` for the client `pullwright` that ends after so many seconds. */
  idToken(seconds: number): string;
  /** How many tokens were refreshed; the first refresh token is `refresh-0`. */
  refreshes(): number;
  close(): void;
}

export async function startIdentityProvider(folder: string): Promise<IdentityProvider> {
  const authority = new Authority('idp-ca');
  const serving = authority.issue({ commonName: 'idp', hosts: ['127.0.0.1'] });
  const signing = newKey();
  let refreshes = 0;
  const server = createServer({ cert: serving.certificate, key: serving.key });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const idToken = (seconds: number): string => {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, aud: 'pullwright', sub: 'ann', iat: now - 600, exp: now + seconds };
    return signToken(pemOf(signing.privateKey), claims);
  };
  const answer = (path: string, body: string): unknown => {
    if (path === '/.well-known/openid-configuration') return discovery(issuer);
    if (path === '/keys') return { keys: [{ ...signing.publicKey.export({ format: 'jwk' }), use: 'sig' }] };
    const given = new URLSearchParams(body).get('refresh_token');
    if (path !== '/token' || given !== `refresh-${refreshes}`) return undefined;
    refreshes += 1;
    return {
      access_token: 'unused',
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: `refresh-${refreshes}`,
      id_token: idToken(3600),
    };
  };
  server.on('request', (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const given = answer(request.url ?? '', Buffer.concat(chunks).toString());
      response.writeHead(given === undefined ? 400 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(given ?? { error: 'invalid_grant' }));
    });
  });
  const ca = join(folder, 'idp.crt');
  writeFileSync(ca, authority.certificate);
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { issuer, ca, idToken, refreshes: () => refreshes, close };
}

function discovery(issuer: string): object {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
  };
}
