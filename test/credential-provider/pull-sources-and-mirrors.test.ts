/**
 * The provider's pull sources equal those of the mirror rules: two implementations for one registries.conf, one for a start in
 * milliseconds, one for explanations.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseImageReference } from '../../runtime/core/image-reference.ts';
import { parseRegistriesConf, type Registry } from '../../runtime/core/mirrors/registries-conf.ts';
import { compileMirrors, resolveMirrors } from '../../runtime/core/mirrors/resolve.ts';
import { type PullSource, pullSources } from '../../runtime/credential-provider/auth-file.ts';
import { registriesFor } from '../../runtime/credential-provider/plugin/conf-files.ts';
import { PULL_QUESTION } from '../oracle/container-image/pull-questions.ts';
import { test } from '../support/suite.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

/** Invalid repository names, which the runtime rejects without sending a credential. */
function isRepository(name: string): boolean {
  const parsed = parseImageReference(name);
  return parsed.ok && parsed.reference.repository === name && parsed.reference.tag === undefined;
}

/** Pull sources of the image by tag or digest, including those that the runtime rejects. */
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
    fc.asyncProperty(PULL_QUESTION, async ({ conf: text, image }) => {
      const name = image.replace(/(?::1|@.*)$/, '');
      const found = registriesFor([{ path: '/registries.conf', text }]);
      const sources: readonly PullSource[] = pullSources(found, name);
      const places = sorted(tried(parseRegistriesConf(text), name).filter(isRepository));
      if (sources.length > 0) withMirrors += 1;
      // Without a mirror or rewrite the provider has nothing to do.
      const own = sources.length === 0 ? places.filter((one) => one !== name) : places;
      const wanted = sources.map(({ repository }) => repository).filter(isRepository);
      assert.deepEqual(sorted(wanted), own, text);
    }),
    { numRuns: 1500 },
  );
  assert.ok(withMirrors > 300, `only ${withMirrors} cases with mirrors`);
});
