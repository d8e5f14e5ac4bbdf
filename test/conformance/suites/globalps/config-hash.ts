/** The hash that existing clusters carry in a pod label. */

import { redact } from '../../../../runtime/core/redacted.ts';
import { configHash } from '../../../../runtime/global-pull-secret/eligibility.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Row {
  readonly name: string;
  readonly input: { readonly content: string };
  readonly expected: { readonly hash: string };
}

export const suite: ConformanceSuite<Row['input'], Row['expected']> = {
  cases: (document) => (document as { cases: readonly Row[] }).cases,
  answer: ({ content }) => ({ hash: configHash(redact(content)) }),
  mutation: {
    file: 'runtime/global-pull-secret/eligibility.ts',
    replace: "join(' ')",
    by: "join(',')",
  },
};
