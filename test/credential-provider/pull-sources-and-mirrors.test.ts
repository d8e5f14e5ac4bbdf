/**
 * The places that the provider looks for credentials for are those that the mirror rules try: two readings of one
 * registries.conf, of which one is written for a start in milliseconds and the other for explanations.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseImageReference } from '../../runtime/core/image-reference.ts';
import type { Registry } from '../../runtime/core/mirrors/registries-conf.ts';
import { compileMirrors, resolveMirrors } from '../../runtime/core/mirrors/resolve.ts';
import { type PullSource, pullSources } from '../../runtime/credential-provider/auth-file.ts';
import { registriesFor } from '../../runtime/credential-provider/plugin/conf-files.ts';
import { formatRegistriesConf } from '../../runtime/registry-overrides/mirror-sets/fix.ts';
import { test } from '../support/suite.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

// Few names, so that prefixes meet images, each other and mirrors.
const host = fc.constantFrom('a.example.com', 'b.example.com:5000', 'deep.a.example.com', 'docker.io');
const path = fc.constantFrom('', '/team', '/team/app', '/te', '/library');
const place = fc.tuple(host, path).map(([name, below]) => name + below);
const mirror = fc.record({
  location: place,
  pullFrom: fc.constantFrom('all' as const, 'digest-only' as const, 'tag-only' as const),
});
const registry: fc.Arbitrary<Registry> = fc
  .record({
    prefix: fc.oneof({ arbitrary: place, weight: 5 }, fc.constantFrom('*.example.com', '*.a.example.com')),
    moved: fc.option(place, { nil: undefined, freq: 3 }),
    blocked: fc.nat({ max: 5 }).map((roll) => roll === 0),
    mirrors: fc.array(mirror, { maxLength: 3 }),
  })
  .map(({ prefix, moved, blocked, mirrors }) => ({
    prefix,
    location: prefix.startsWith('*') ? '' : (moved ?? prefix),
    blocked,
    insecure: false,
    mirrors,
  }));

/** A location with two different switches would be refused, as would a prefix twice be passed over. */
const file = fc.uniqueArray(registry, {
  maxLength: 6,
  selector: ({ location, prefix }) => location || prefix,
});
const rules = file.map((all) => [...new Map(all.map((one) => [one.prefix, one])).values()]);
const image = fc
  .tuple(place, fc.constantFrom('/app', '/team', '/nginx'))
  .map(([name, below]) => name + below);

/** What is no name of a repository in full: the runtime gives up on it, and no credential is sent. */
function isRepository(name: string): boolean {
  const parsed = parseImageReference(name);
  return parsed.ok && parsed.reference.repository === name && parsed.reference.tag === undefined;
}

/** What the mirror rules try for the image by tag or by digest, or would if the runtime did not give up on it before. */
function tried(registries: readonly Registry[], name: string): readonly string[] {
  const index = compileMirrors(registries);
  const references = [`${name}:1`, `${name}@${DIGEST}`].flatMap((reference) => {
    const { candidates, skipped } = resolveMirrors(index, reference);
    const places = [...candidates, ...skipped.filter(({ reason }) => reason === 'GivenUp')];
    return places.map((place) => place.reference);
  });
  return references.map((reference) => reference.replace(/(?::1|@sha256:a+)$/, ''));
}

function sorted(names: Iterable<string>): readonly string[] {
  return [...new Set(names)].sort();
}

test('both name the same places', async () => {
  let withMirrors = 0;
  await fc.assert(
    fc.asyncProperty(rules, image, async (registries, name) => {
      const text = formatRegistriesConf(registries);
      const found = registriesFor([{ path: '/registries.conf', text }]);
      const sources: readonly PullSource[] = pullSources(found, name);
      const places = sorted(tried(registries, name).filter(isRepository));
      if (sources.length > 0) withMirrors += 1;
      // The provider has nothing to do where only the image's own name is left.
      const own = sources.length === 0 ? places.filter((one) => one !== name) : places;
      const wanted = sources.map(({ repository }) => repository).filter(isRepository);
      assert.deepEqual(sorted(wanted), own, text);
    }),
    { numRuns: 1500 },
  );
  assert.ok(withMirrors > 300, `only ${withMirrors} cases with mirrors`);
});
