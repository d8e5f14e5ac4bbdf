import { isDeepStrictEqual } from 'node:util';
import {
  admitPullSecrets,
  ENFORCE_MOUNTABLE_SECRETS,
} from '../../../../runtime/rules/injection/service-account-pull-secrets.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface LiveCase {
  readonly pod: readonly string[] | null;
  readonly serviceAccount: readonly string[] | null;
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
  readonly expected?: readonly string[];
  readonly expectedError?: string;
}

interface LiveInput extends LiveCase {
  readonly add: readonly string[];
}

type Answer = { readonly imagePullSecrets: readonly string[] } | { readonly error: string };

export const suite: ConformanceSuite<LiveInput, Answer> = {
  cases: (document) => {
    const { add, cases } = document as { add: readonly string[]; cases: readonly LiveCase[] };
    return cases.map((one) => ({
      name: `${JSON.stringify(one.pod)} with account ${JSON.stringify(one.serviceAccount)}`,
      input: { ...one, add },
      expected: expectedOf(one),
    }));
  },
  answer: ({ pod, serviceAccount, serviceAccountAnnotations, add }) => {
    const account = {
      name: 'account',
      imagePullSecrets: references(serviceAccount),
      enforceMountable: serviceAccountAnnotations?.[ENFORCE_MOUNTABLE_SECRETS] === 'true',
    };
    const admitted = admitPullSecrets(references(pod), account, add);
    return admitted.ok ? { imagePullSecrets: admitted.imagePullSecrets } : { error: admitted.error };
  },
  accepts: (actual, expected) => isDeepStrictEqual(withoutAccount(actual), withoutAccount(expected)),
  mutation: {
    file: 'runtime/rules/injection/service-account-pull-secrets.ts',
    replace: 'pod.length > 0 ? pod :',
    by: 'pod.length < 0 ? pod :',
  },
};

function expectedOf({ expected, expectedError }: LiveCase): Answer {
  if (expectedError !== undefined) return { error: expectedError };
  if (expected === undefined) throw new Error('a case has neither expected nor expectedError');
  return { imagePullSecrets: expected };
}

function references(names: readonly string[] | null): readonly { name: string }[] {
  return (names ?? []).map((name) => ({ name }));
}

/** The case does not say how the account is called. */
function withoutAccount(answer: Answer): Answer {
  return 'error' in answer
    ? { error: answer.error.replace(/service account \S+/, 'service account') }
    : answer;
}
