/** The hash that existing clusters carry in a pod label. */

import { redact } from '../../../../runtime/core/redacted.ts';
import { configHash } from '../../../../runtime/global-pull-secret/eligibility.ts';
import { type ConformanceSuite, rows } from '../../suite.ts';

export const suite: ConformanceSuite<{ readonly content: string }, { readonly hash: string }> = {
  cases: rows,
  answer: ({ content }) => ({ hash: configHash(redact(content)) }),
  mutation: {
    file: 'runtime/global-pull-secret/eligibility.ts',
    replace: "join(' ')",
    by: "join(',')",
  },
};
