/** Docker configs that the existing node agent accepts. */
import { upstreamAgentFault } from '../../../../runtime/core/docker-config/pull-secret.ts';
import { redact } from '../../../../runtime/core/redacted.ts';
import { type ConformanceSuite, rows } from '../../suite.ts';

interface Input {
  readonly content: string;
}

interface Answer {
  readonly error: string | null;
}

export const suite: ConformanceSuite<Input, Answer> = {
  cases: rows,
  answer: ({ content }) => ({ error: upstreamAgentFault(redact(content)) ?? null }),
  mutation: {
    file: 'runtime/core/docker-config/pull-secret.ts',
    replace: "member.key === 'auths') ? undefined",
    by: "member.key.toLowerCase() === 'auths') ? undefined",
  },
};
