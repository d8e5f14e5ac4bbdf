import { mergeImagePullSecrets } from '../../../../runtime/pull-secret-injection/plan/plan.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface MergeCase {
  readonly name: string;
  readonly pod: readonly string[] | null;
  readonly sidecarSet: readonly string[] | null;
  readonly expected: readonly string[];
}

export const suite: ConformanceSuite<MergeCase, readonly string[]> = {
  cases: (document) =>
    (document as { cases: readonly MergeCase[] }).cases.map((one) => ({
      name: one.name,
      input: one,
      expected: one.expected,
    })),
  answer: ({ pod, sidecarSet }) =>
    mergeImagePullSecrets(
      (pod ?? []).map((name) => ({ name })),
      sidecarSet ?? [],
    ).merged,
  mutation: {
    file: 'runtime/pull-secret-injection/plan/plan.ts',
    replace: '[...own, ...injected]',
    by: '[...injected, ...own]',
  },
};
