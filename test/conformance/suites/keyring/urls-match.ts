/** Shared by the two suites of glob matches. */
import { matchesImage, parseSchemelessUrl } from '../../../../runtime/core/docker-config/match-images.ts';
import type { ConformanceCase, ConformanceSuite } from '../../suite.ts';

interface GlobInput {
  readonly glob: string;
  readonly target: string;
}

interface GlobAnswer {
  readonly match: boolean;
  /** Whether there is an error; its text where the case has one. */
  readonly error: boolean | string;
}

interface Row {
  readonly glob: string;
  readonly target?: string;
  readonly image?: string;
  readonly match: boolean;
  readonly error?: boolean | string;
}

function globCases(document: unknown): readonly ConformanceCase<GlobInput, GlobAnswer>[] {
  return (document as { cases: readonly Row[] }).cases.map((row) => {
    const target = row.target ?? row.image;
    if (target === undefined) throw new Error(`case "${row.glob}" has neither target nor image`);
    const expected = { match: row.match, error: row.error ?? false };
    return { name: `${row.glob} against ${target}`, input: { glob: row.glob, target }, expected };
  });
}

function globAnswer({ glob, target }: GlobInput): GlobAnswer {
  const wrong = [glob, target].map(parseSchemelessUrl).find(({ ok }) => !ok);
  return { match: matchesImage(glob, target), error: wrong?.ok === false && wrong.goText };
}

/** An error text must be equal; `true` accepts any. */
function globAccepts(actual: GlobAnswer, expected: GlobAnswer): boolean {
  if (actual.match !== expected.match) return false;
  if (typeof expected.error === 'string' && expected.error !== '') return actual.error === expected.error;
  return (actual.error !== false) === (expected.error === true);
}

export type GlobSuite = ConformanceSuite<GlobInput, GlobAnswer>;

/** A suite, with the edit that must make it fail. */
export function globSuite(replace: string, by: string): GlobSuite {
  const mutation = { file: 'runtime/core/docker-config/match-images.ts', replace, by };
  return { cases: globCases, answer: globAnswer, accepts: globAccepts, mutation };
}
