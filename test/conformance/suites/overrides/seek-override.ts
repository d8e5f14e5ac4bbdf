import { resolveMirrors } from '../../../../runtime/core/mirrors/resolve.ts';
import { FactCache } from '../../../../runtime/engine/lookups.ts';
import { lookUpRelease } from '../../../../runtime/registry-overrides/planes.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, type OverrideCase, placesOf, readCases, textOf, toConformance } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

/** Whether a probe fails: by a list of failures, a list of successes, or a map. Without any, every probe succeeds. */
function isDown(input: Input, reference: string): boolean {
  const { unavailable, available } = input;
  if (Array.isArray(unavailable)) return unavailable.includes(reference);
  if (Array.isArray(available)) return !available.includes(reference);
  return typeof available === 'object' && (available as Input | null)?.[reference] === false;
}

/** Looks up a reference in the same way as a release image. */
async function seek(input: Input): Promise<unknown> {
  const image = textOf(input, 'image');
  const found = await lookUpRelease(image, placesOf(input['overrides']), (reference) =>
    isDown(input, reference) ? Promise.reject(new Error('down')) : Promise.resolve(reference),
  );
  const asked = input['asked'] as readonly string[];
  return { result: found.from, ...(await remembered(input, asked)) };
}

/** Results of repeated look-ups by one reconciler, with its cache. */
async function remembered(input: Input, asked: readonly string[]): Promise<object> {
  const { mirrors } = placesOf(input['overrides']);
  const places = resolveMirrors(mirrors, textOf(input, 'image')).candidates.filter(
    ({ kind }) => kind === 'mirror',
  );
  const needs = places.map(({ reference }) => ({ kind: 'registry-digest', image: reference }) as const);
  let probes = 0;
  const known = new FactCache(({ image }) => {
    probes += 1;
    return Promise.resolve(isDown(input, image) ? { ok: false, reason: 'down' } : { ok: true, value: '' });
  });
  for (let call = 0; call < Number(input['calls'] ?? 1); call += 1) {
    known.request(needs, () => undefined);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const cached = Object.fromEntries(needs.map((need) => [need.image, known.get(need)?.ok]));
  return {
    ...(asked.includes('probes') ? { probes } : {}),
    ...(asked.includes('cached') ? { cached } : {}),
  };
}

const NEED = { kind: 'registry-digest', image: 'm.example.com/r:1' } as const;

async function cache(input: Input): Promise<unknown> {
  let now = 1_000_000;
  const { set } = input;
  const known = new FactCache(
    () => Promise.resolve(set === true ? { ok: true, value: '' } : { ok: false, reason: 'down' }),
    () => now,
  );
  if (typeof set === 'boolean') {
    known.request([NEED], () => undefined);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const asked = input['asked'] as readonly string[];
  if (asked.includes('ttlSeconds')) {
    const start = now;
    while (known.get(NEED) !== undefined) now += 1000;
    return { ttlSeconds: (now - start) / 1000 };
  }
  now += Number(input['ageSeconds'] ?? 0) * 1000;
  const fact = known.get(NEED);
  return {
    found: fact !== undefined,
    ...(fact === undefined ? {} : { available: fact.ok }),
    ...(asked.includes('entryRemoved') ? { entryRemoved: fact === undefined } : {}),
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
        asked: Object.keys(one.expected ?? {}),
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
    file: 'runtime/engine/lookups.ts',
    replace: 'fact.ok ? GOOD_MS : BAD_MS',
    by: 'fact.ok ? BAD_MS : GOOD_MS',
  },
};
