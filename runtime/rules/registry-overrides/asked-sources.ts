/**
 * Which sources the components of a control plane can ask for at all, for a value that would be too long with all of them.
 *
 * Source of the rule: HyperShift. What reads `OPENSHIFT_IMG_OVERRIDES` (control plane operator, its config operator, ignition
 * server) looks up releases, the components that a release lists, and catalogs. Releases and their components are in the registry
 * of the release or in those that OpenShift and OKD are published in; catalogs in that of Red Hat. The text is compared as text,
 * so that no image contains a wildcard source.
 */
import { parseImageReference } from '../auth-lookup/image-reference.ts';
import type { OverrideMap } from './registry-overrides.ts';

/** Where releases, their components and catalogs are published. */
const PUBLISHED: readonly string[] = ['quay.io', 'registry.ci.openshift.org', 'registry.redhat.io'];

export interface AskedSources {
  readonly asked: OverrideMap;
  /** Sources that nobody asks for, in their order. */
  readonly never: readonly string[];
}

/**
 * Parts `overrides`. `images`: every image that the control plane was told of by name, as references or as pairs of an annotation;
 * what is no reference says nothing.
 *
 * @example
 * ```ts
 * import { askedSources } from './asked-sources.ts';
 * import assert from 'node:assert/strict';
 *
 * const overrides = new Map([
 *   ['quay.io/openshift-release-dev', ['m.example.com/ocp']], ['*.example.org', ['m.example.com']],
 *   ['docker.io/library', ['m.example.com/hub']], ['ghcr.io/team', ['m.example.com/team']],
 * ]);
 * const { asked, never } = askedSources(overrides, ['ghcr.io/team/release:1']);
 * assert.deepEqual([...asked.keys()], ['quay.io/openshift-release-dev', 'ghcr.io/team']);
 * assert.deepEqual(never, ['*.example.org', 'docker.io/library']);
 * ```
 */
export function askedSources(overrides: OverrideMap, images: readonly string[]): AskedSources {
  const hosts = new Set([...PUBLISHED, ...images.flatMap((image) => hostOf(image) ?? [])].map(withoutPort));
  const isAsked = (source: string): boolean =>
    !source.startsWith('*.') && hosts.has(withoutPort(source.split('/', 1)[0] ?? ''));
  const all = [...overrides];
  return {
    asked: new Map(all.filter(([source]) => isAsked(source))),
    never: all.flatMap(([source]) => (isAsked(source) ? [] : [source])),
  };
}

function hostOf(image: string): string | undefined {
  const parsed = parseImageReference(image);
  return parsed.ok ? parsed.reference.repository.split('/', 1)[0] : undefined;
}

/** A source without port covers the host's other ports, and is contained in their text. */
function withoutPort(host: string): string {
  return host.replace(/:\d+$/, '');
}
