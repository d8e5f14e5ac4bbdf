/** Pairs of patterns that can match one image, by the kubelet's matching. */
import { patternsMeet } from '../../../../runtime/credential-provider/merge.ts';
import { scopesConflict } from '../../../credential-provider/support/scope-rule.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Pair {
  readonly user: string;
  readonly provider: string;
}

interface Judged {
  readonly kubeletCanMatchBoth: boolean;
  /** The other rule, of the test's own, which decides where we deviate elsewhere. */
  readonly mcoSaysConflict: boolean;
}

export const suite: ConformanceSuite<Pair, Judged> = {
  cases(document) {
    const { pairs } = document as { pairs: readonly (Pair & Judged)[] };
    return pairs.map(({ user, provider, kubeletCanMatchBoth, mcoSaysConflict }) => ({
      name: `${user} and ${provider}`,
      input: { user, provider },
      expected: { kubeletCanMatchBoth, mcoSaysConflict },
    }));
  },
  answer: ({ user, provider }) => ({
    kubeletCanMatchBoth: patternsMeet(user, provider),
    mcoSaysConflict: scopesConflict(user, provider),
  }),
  mutation: {
    file: 'runtime/credential-provider/merge.ts',
    replace: 'port !== theirs.value.port ||',
    by: '',
  },
};
