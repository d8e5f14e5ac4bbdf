import {
  absenceFromError,
  type Catalog,
  catalogCandidates,
  catalogsOf,
  chooseCandidate,
} from '../../../../runtime/registry-overrides/olm-catalogs.ts';
import type { ConformanceSuite } from '../../suite.ts';
import { acceptsPartial, readCases, textOf, toConformance, toMap } from './read.ts';

type Input = Readonly<Record<string, unknown>>;

/** The cases are of a commit with three catalogs, or of a release before it with four. */
function catalogs(input: Input): readonly Catalog[] {
  return catalogsOf(input['four'] === true ? '4.21.0' : '4.22.0');
}

function images(input: Input): unknown {
  const existing = new Set(input['existing'] as readonly string[]);
  const overrides = toMap<readonly string[]>(input['overrides']);
  const found: Record<string, string> = {};
  for (const catalog of catalogs(input)) {
    const state = chooseCandidate(
      catalog,
      catalogCandidates(catalog, textOf(input, 'version'), overrides),
      (image) => (input['placement'] === 'guest' || existing.has(image) ? 'there' : 'absent'),
    );
    if ('error' in state) return { error: state.error };
    if ('image' in state) found[catalog.name] = state.image;
  }
  return found;
}

function exists({ placement, error }: Input): unknown {
  if (placement === 'guest') return { exists: true, checked: false };
  if (typeof error !== 'string') return { exists: true };
  return absenceFromError(error) ? { exists: false } : { error: true };
}

/** A case that says `<catalog>` means any of them. */
function anyCatalog(actual: unknown, expected: unknown): unknown {
  const { error } = actual as { readonly error?: unknown };
  const wanted = (expected as { readonly error?: unknown } | null)?.error;
  if (typeof error !== 'string' || typeof wanted !== 'string' || !wanted.endsWith('<catalog>')) return actual;
  return { error: error.replace(/\S+$/, '<catalog>') };
}

export const suite: ConformanceSuite<Input> = {
  cases: (document) => {
    const { suite: title, existsCases } = document as { suite: string; existsCases?: readonly Input[] };
    const four = /four/.test(title);
    const checks = (existsCases ?? []).map(({ expected, ...input }) => ({
      name: `exists: ${JSON.stringify(input)}`,
      input,
      expected,
    }));
    return [...readCases(document).map((one) => toConformance(one, { ...one.input, four })), ...checks];
  },
  answer: (input) => ('version' in input ? images(input) : exists(input)),
  accepts: (actual, expected) => acceptsPartial(anyCatalog(actual, expected), expected),
  mutation: {
    file: 'runtime/registry-overrides/olm-catalogs.ts',
    replace: 'const TRIED_MINORS = 4',
    by: 'const TRIED_MINORS = 3',
  },
};
