/**
 * Where the container runtime really pulls an image from: each mirror, then the location itself, with the repository
 * rewritten. Credentials are looked up for these names, not for the image's.
 *
 * Source of the rule: containers/image `PullSourcesFromReference`; the kubelet names no tag or digest, so mirrors for tags
 * and mirrors for digests both count.
 */
import type { Registry } from './registries-conf.ts';
import { findRegistry, matchedLength } from './registry-prefix.ts';

export interface PullSource {
  /** Host and path, no tag, no digest. */
  readonly repository: string;
  readonly kind: 'mirror' | 'primary';
}

/**
 * The sources in the order in which the runtime tries them. Empty when the registries change nothing for the image: then
 * the kubelet's own credentials are the right ones. Blocked places are left out, since no credential should go there.
 *
 * @example
 * ```ts
 * import { pullSources } from './pull-sources.ts';
 * import assert from 'node:assert/strict';
 *
 * const mirror = { location: 'mirror.example.com/hub', pullFrom: 'all' } as const;
 * const registry = { prefix: 'docker.io', location: 'docker.io', blocked: false, insecure: false, mirrors: [mirror] };
 * assert.deepEqual(pullSources([registry], 'docker.io/library/nginx').map((source) => source.repository), [
 *   'mirror.example.com/hub/library/nginx',
 *   'docker.io/library/nginx',
 * ]);
 * ```
 */
export function pullSources(registries: readonly Registry[], image: string): readonly PullSource[] {
  const registry = findRegistry(registries, image);
  if (registry === undefined) return [];
  const rest = withoutTag(image).slice(matchedLength(image, registry.prefix));
  const primary = registry.location === '' ? withoutTag(image) : registry.location + rest;
  if (registry.mirrors.length === 0 && primary === withoutTag(image)) return [];
  const sources: PullSource[] = registry.mirrors.map((mirror) => ({
    repository: mirror.location + rest,
    kind: 'mirror',
  }));
  sources.push({ repository: primary, kind: 'primary' });
  const blocked = registries.filter((other) => other.blocked);
  if (blocked.length === 0) return sources;
  return sources.filter(({ repository }) => !isBlocked(registries, blocked, repository));
}

/** Most places match no blocked registry, so that the long list is searched only for those that do. */
function isBlocked(all: readonly Registry[], blocked: readonly Registry[], repository: string): boolean {
  return findRegistry(blocked, repository) !== undefined && findRegistry(all, repository)?.blocked === true;
}

/** `host:5000/a/b:tag@sha256:...` without tag and digest. */
function withoutTag(image: string): string {
  const at = image.indexOf('@');
  const name = at === -1 ? image : image.slice(0, at);
  const colon = name.lastIndexOf(':');
  return colon > name.lastIndexOf('/') && name.includes('/') ? name.slice(0, colon) : name;
}
