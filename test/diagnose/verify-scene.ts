/** Folders of manifests, servers and calls for the tests of `pullwright verify`. */
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { VerifyReport } from '../../runtime/diagnose/model/verification.ts';
import { scratch } from '../registry/docker-registry.ts';
import { certificates, stopServers } from '../registry/https-server.ts';
import { meta, pullSecretObject } from '../support/meta.ts';
import { type ProcessResult, runMain } from '../support/process.ts';

export const folder: string = scratch();
export const ca: string = join(folder, 'ca.crt');
writeFileSync(ca, certificates.ca);

export const LABEL = 'verify';

/** One of the objects of a folder. */
export const yaml = (object: object): string => `${JSON.stringify(object)}\n---\n`;

export function secret(namespace: string, name: string, auths: Readonly<Record<string, string>>): string {
  const config = { auths: Object.fromEntries(Object.entries(auths).map(([key, auth]) => [key, { auth }])) };
  return yaml(pullSecretObject({ name, namespace }, config));
}

export function deployment(
  namespace: string,
  name: string,
  images: readonly string[],
  secrets: readonly string[],
): string {
  const spec = {
    imagePullSecrets: secrets.map((one) => ({ name: one })),
    containers: images.map((image, at) => ({ name: `c${at}`, image })),
  };
  return yaml({ ...meta('apps/v1 Deployment', { name, namespace }), spec: { template: { spec } } });
}

export function dump(name: string, ...objects: readonly string[]): string {
  const dir = join(folder, name);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'objects.yaml'), objects.join(''));
  return dir;
}

export const verify = (...args: readonly string[]): Promise<ProcessResult> =>
  runMain(['verify', '--ca', ca, '--timeout', '40', ...args]);

export const allow = (...hosts: readonly string[]): readonly string[] =>
  hosts.flatMap((host) => ['--allow-host', host]);

export async function asked(
  ...args: readonly string[]
): Promise<{ code: number; report: VerifyReport; stderr: string }> {
  const ran = await verify(...args, '--output', 'json');
  assert.ok(ran.stdout !== '', ran.stderr);
  return { code: ran.code, report: JSON.parse(ran.stdout) as VerifyReport, stderr: ran.stderr };
}

/** Other servers that must be stopped. */
export const others: { stop(): void }[] = [];

/** Stops all servers, and removes the folders. */
export function tidy(): void {
  stopServers();
  for (const one of others) one.stop();
  rmSync(folder, { recursive: true, force: true });
}
