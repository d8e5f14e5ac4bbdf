/** What the tests of the merge share. */
import assert from 'node:assert/strict';
import { lookupForContainers } from '../../runtime/core/docker-config/containers-keyring.ts';
import { kubeletKeyring, lookupForKubelet } from '../../runtime/core/docker-config/kubelet-keyring.ts';
import { type MergeResult, mergePullSecrets } from '../../runtime/core/docker-config/merge.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { plantedAuth } from '../support/canary.ts';

export const PLATFORM: string = plantedAuth('platform', 'platform');
export const TENANT: string = plantedAuth('tenant', 'tenant');

/** A document with these keys, all with the same `auth`. */
export function config(
  auth: string,
  keys: readonly string[],
  more: Readonly<Record<string, unknown>> = {},
): string {
  return JSON.stringify({ auths: Object.fromEntries(keys.map((key) => [key, { auth }])), ...more });
}

/** Merges two documents of good entries. */
export function merge(
  platform: readonly string[],
  tenant: readonly string[],
): Extract<MergeResult, { ok: true }> {
  const merged = mergePullSecrets({
    original: redact(config(PLATFORM, platform)),
    additional: redact(config(TENANT, tenant)),
  });
  assert.ok(merged.ok);
  return merged;
}

/** User names that the kubelet and CRI-O would use. */
export function users(text: string, repository: string): { kubelet: readonly string[]; crio: string } {
  const source = { name: 'merged', format: 'config.json', text: redact(text) } as const;
  const keyring = kubeletKeyring({ secrets: [], node: source });
  assert.ok(keyring.ok);
  const found = lookupForContainers([source], repository);
  return {
    kubelet: lookupForKubelet(keyring.rings, repository).map(({ credential }) => credential.username),
    crio: found.found === 'credential' ? found.credential.username : found.found,
  };
}
