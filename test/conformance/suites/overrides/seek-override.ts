import { AvailabilityCache } from '../../../../runtime/registry/availability-cache.ts';
import { metadataCandidates } from '../../../../runtime/rules/registry-overrides/lookup.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, type OverrideCase, readCases, textOf, toConformance, toMap } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

/** Which probes fail: those of a list, all but those of another, or as a map says. Without any, every probe succeeds. */
function isDown(input: Input, reference: string): boolean {
  const { unavailable, available } = input;
  if (Array.isArray(unavailable)) return unavailable.includes(reference);
  if (Array.isArray(available)) return !available.includes(reference);
  return typeof available === 'object' && (available as Input | null)?.[reference] === false;
}

function seek(input: Input): unknown {
  const answer = metadataCandidates(textOf(input, 'image'), toMap<readonly string[]>(input['overrides']));
  if ('error' in answer) return { error: answer.error };
  return { result: answer.candidates.find((candidate) => !isDown(input, candidate)) ?? answer.image };
}

function cache(input: Input): unknown {
  let now = 1_000_000;
  const known = new AvailabilityCache(() => now);
  const asked = input['asked'] as readonly string[];
  if (typeof input['set'] === 'boolean') known.set('m.example.com/r:1', 'fingerprint', input['set']);
  if (asked.includes('ttlSeconds'))
    return { ttlSeconds: known.secondsLeft('m.example.com/r:1', 'fingerprint') };
  now += Number(input['ageSeconds'] ?? 0) * 1000;
  const available = known.get('m.example.com/r:1', 'fingerprint');
  return {
    found: available !== undefined,
    ...(available === undefined ? {} : { available }),
    ...(asked.includes('entryRemoved') ? { entryRemoved: known.size === 0 } : {}),
  };
}

export const suite: ConformanceSuite<Input> = {
  cases: (document) => {
    const { fakeOverrides, cacheCases } = document as {
      fakeOverrides: unknown;
      cacheCases?: readonly OverrideCase[];
    };
    const seeks = readCases(document).map((one) =>
      toConformance(one, {
        ...one.input,
        overrides: one.input['overridesRef'] === 'fake' ? fakeOverrides : one.input['overrides'],
      }),
    );
    const caches = (cacheCases ?? []).map((one) => {
      const { name, expected, ...input } = one;
      return { name: `cache: ${name}`, input: { ...input, asked: Object.keys(expected ?? {}) }, expected };
    });
    return [...seeks, ...caches];
  },
  answer: (input) => (input['image'] === undefined ? cache(input) : seek(input)),
  accepts: acceptsPartial,
  mutation: {
    file: 'runtime/rules/mirrors/mirrors.ts',
    replace: 'for (const mirror of rule.mirrors) {',
    by: 'for (const mirror of rule.mirrors.toReversed()) {',
  },
};
