/** What the existing node agent takes for a docker config. */
import { upstreamAgentFault } from '../../../../runtime/core/docker-config/pull-secret.ts';
import { redact } from '../../../../runtime/core/redacted.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly content: string;
}

interface Answer {
  readonly error: string | null;
}

interface Row {
  readonly name: string;
  readonly input: Input;
  readonly expected: Answer;
  readonly wanted?: Answer;
}

export const suite: ConformanceSuite<Input, Answer> = {
  cases(document) {
    return (document as { cases: readonly Row[] }).cases.map(({ name, input, expected, wanted }) => ({
      name,
      input,
      expected: wanted ?? expected,
    }));
  },
  answer: ({ content }) => ({ error: upstreamAgentFault(redact(content)) ?? null }),
  mutation: {
    file: 'runtime/core/docker-config/pull-secret.ts',
    replace: "member.key === 'auths') ? undefined",
    by: "member.key.toLowerCase() === 'auths') ? undefined",
  },
};
