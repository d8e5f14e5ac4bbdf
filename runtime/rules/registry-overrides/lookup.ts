/**
 * Which references the existing system's two look-ups would ask for, answered by the one resolver: the release look-up (text
 * of the whole pull spec) and the metadata look-up of single components (repository, with tag and digest of the rule ignored).
 *
 * Source of the rule: HyperShift's `ProviderWithOpenShiftImageRegistryOverridesDecorator` and `SeekOverride`. Theirs match
 * text anywhere, compare hosts only sometimes and try sources in random order; here the longest source decides.
 */
import { compileMirrors, type MirrorOptions, resolveMirrors } from '../mirrors/mirrors.ts';
import { joinReference, splitReference } from './reference.ts';
import type { OverrideMap } from './registry-overrides.ts';

/**
 * What to try for a release image before the image itself, in order. Empty when no source matches.
 *
 * @example
 * ```ts
 * import { releaseCandidates } from './lookup.ts';
 * import assert from 'node:assert/strict';
 *
 * const overrides = new Map([['quay.io/o/r', ['m.example.com/o/r']], ['', ['']]]);
 * assert.deepEqual(releaseCandidates('quay.io/o/r:1', overrides), ['m.example.com/o/r:1']);
 * ```
 */
export function releaseCandidates(image: string, overrides: OverrideMap): readonly string[] {
  return mirrorsOf(image, overrides, { ports: 'text' });
}

export interface MetadataCandidates {
  /** The image as it is asked for: by digest when it has both. */
  readonly image: string;
  readonly candidates: readonly string[];
  /** Sources and mirrors that are no references, and so no rules. */
  readonly problems: readonly string[];
}

/**
 * What to try for the metadata of a component image before the image itself, in order. Tags and digests of sources and mirrors
 * are ignored; a host without port does not cover one with. Gives an error for an image that is no reference.
 */
export function metadataCandidates(
  image: string,
  overrides: OverrideMap,
): MetadataCandidates | { readonly error: string } {
  const parts = splitReference(image);
  if ('error' in parts) return parts;
  const problems: string[] = [];
  const usable = (role: string, place: string): boolean => {
    const split = splitReference(place.startsWith('*.') ? place.slice(2) : place);
    if ('error' in split) problems.push(`failed to parse ${role} image reference "${place}": ${split.error}`);
    return !('error' in split);
  };
  const repositories = new Map<string, readonly string[]>();
  for (const [source, mirrors] of overrides) {
    if (!usable('source', source)) continue;
    const key = withoutTagAndDigest(source);
    const good = mirrors.filter((mirror) => usable('mirror', mirror)).map(withoutTagAndDigest);
    repositories.set(key, [...(repositories.get(key) ?? []), ...good]);
  }
  const hub = parts.registry === 'docker.io' && parts.namespace === '';
  const asked = joinReference(hub ? { ...parts, namespace: 'library' } : parts);
  return { image: asked, candidates: mirrorsOf(asked, repositories, { ports: 'exact' }), problems };
}

function mirrorsOf(image: string, overrides: OverrideMap, options: MirrorOptions): readonly string[] {
  const rules = [...overrides].map(([source, mirrors]) => ({
    prefix: source,
    location: source.startsWith('*.') ? '' : source,
    blocked: false,
    insecure: false,
    mirrors: mirrors
      .filter((mirror) => mirror !== '')
      .map((location) => ({ location, pullFrom: 'all' as const })),
  }));
  return resolveMirrors(compileMirrors(rules, options), image)
    .candidates.filter((candidate) => candidate.kind === 'mirror')
    .map((candidate) => candidate.reference);
}

/** A bare `host:port` keeps its port: as a source or mirror it is never a name with a tag. */
function withoutTagAndDigest(place: string): string {
  const name = place.split('@')[0] ?? '';
  const colon = name.lastIndexOf(':');
  if (colon <= name.lastIndexOf('/') || /^[^/]*:[0-9]+$/.test(name)) return name;
  return name.slice(0, colon);
}
