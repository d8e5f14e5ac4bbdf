/** A client with a planted credential, and what servers say to it. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { type ImageReference, parseImageReference } from '../../runtime/core/image-reference.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { RegistryClient } from '../../runtime/registry/client.ts';
import { credentialsOf, type RegistryCredentials } from '../../runtime/registry/token.ts';
import { RegistryError, RegistryTransport } from '../../runtime/registry/transport.ts';
import { plantedAuth, plantedPassword } from '../support/canary.ts';
import { certificates } from './https-server.ts';

export const BODY: Buffer<ArrayBuffer> = Buffer.from('{"schemaVersion":2}');
export const DIGEST: string = `sha256:${createHash('sha256').update(BODY).digest('hex')}`;
export const CREDENTIAL: RegistryCredentials = credentialsOf({
  username: 'robot',
  password: redact(plantedPassword('client')),
});
export const BASIC: string = `Basic ${plantedAuth('client')}`;

export function client(
  hosts: readonly string[],
  options: { timeoutMs?: number; credential?: RegistryCredentials | 'none'; now?: () => number } = {},
): RegistryClient {
  return new RegistryClient({
    transport: new RegistryTransport({ allowHosts: hosts, ca: [certificates.ca] }),
    credentialFor: () => (options.credential === 'none' ? undefined : (options.credential ?? CREDENTIAL)),
    timeoutMs: options.timeoutMs ?? 5000,
    ...(options.now === undefined ? {} : { now: options.now }),
  });
}

export function image(host: string, name = 'team/app:1'): ImageReference {
  const parsed = parseImageReference(`${host}/${name}`);
  assert.ok(parsed.ok);
  return parsed.reference;
}

export function give(
  response: ServerResponse,
  body: Buffer = BODY,
  headers: Record<string, string> = {},
): void {
  const type = 'application/vnd.oci.image.manifest.v1+json';
  response.writeHead(200, { 'content-type': type, 'docker-content-digest': DIGEST, ...headers }).end(body);
}

export function challenge(response: ServerResponse, header: string): void {
  response.writeHead(401, { 'www-authenticate': header }).end('{"errors":[{"code":"UNAUTHORIZED"}]}');
}

export async function failure(promise: Promise<unknown>): Promise<RegistryError> {
  const error: unknown = await promise.then(
    () => assert.fail('it should have failed'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof RegistryError, String(error));
  return error;
}
