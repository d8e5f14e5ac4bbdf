/**
 * How an image matches the `prefix` of a registry: on whole path segments, or any subdomain for `*.example.org`; the longest
 * prefix wins.
 *
 * Source of the rule: containers/image `sysregistriesv2.FindRegistry`, with its quirk that `example.com` also matches
 * `example.com:5000/x`.
 */
import type { Registry } from './registries-conf.ts';

/**
 * How many characters of `image` the prefix covers, -1 when it does not match. What follows them is appended to a location.
 *
 * @example
 * ```ts
 * import { matchedLength } from './registry-prefix.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(matchedLength('docker.io/library/nginx', 'docker.io'), 9);
 * assert.equal(matchedLength('docker.io/library/nginx', 'docker.io/lib'), -1);
 * assert.equal(matchedLength('a.b.example.org/x', '*.example.org'), 15);
 * ```
 */
export function matchedLength(image: string, prefix: string): number {
  const end = prefix.startsWith('*.') ? wildcardEnd(image, prefix.slice(1)) : plainEnd(image, prefix);
  return end === image.length || (end !== -1 && isBoundary(image, end)) ? end : -1;
}

function plainEnd(image: string, prefix: string): number {
  return image.startsWith(prefix) ? prefix.length : -1;
}

function wildcardEnd(image: string, suffix: string): number {
  const at = image.indexOf(suffix);
  return at === -1 || image.lastIndexOf('/', at) !== -1 ? -1 : at + suffix.length;
}

function isBoundary(image: string, at: number): boolean {
  const next = image[at];
  return next === '/' || next === ':' || next === '@';
}

/** Every prefix that can match `image`, so that a file can be searched for them. */
export function possiblePrefixes(image: string): readonly string[] {
  const ends = [...image.matchAll(/[/:@]/g)].map((boundary) => boundary.index);
  const plain = [...ends, image.length].map((end) => image.slice(0, end));
  const host = image.slice(0, ends[0] ?? image.length);
  const wildcards = [...host.matchAll(/\./g)].map((dot) => `*${host.slice(dot.index)}`);
  return [...plain, ...wildcards].filter((prefix) => matchedLength(image, prefix) !== -1);
}

/**
 * The registry that decides about `image`: longest prefix; among equally long ones the one that sorts first, so a wildcard.
 * `undefined` when none matches.
 */
export function findRegistry(registries: readonly Registry[], image: string): Registry | undefined {
  let best: Registry | undefined;
  for (const registry of registries) {
    if (matchedLength(image, registry.prefix) === -1) continue;
    if (best === undefined || isBetter(registry.prefix, best.prefix)) best = registry;
  }
  return best;
}

function isBetter(a: string, b: string): boolean {
  return a.length === b.length ? a < b : a.length > b.length;
}

/**
 * One list out of several files, later ones over earlier ones: an entry replaces the whole entry of the same prefix.
 */
export function mergeRegistries(files: readonly (readonly Registry[])[]): readonly Registry[] {
  if (files.length === 1) return files[0] ?? [];
  return [...new Map(files.flat().map((registry) => [registry.prefix, registry])).values()];
}
