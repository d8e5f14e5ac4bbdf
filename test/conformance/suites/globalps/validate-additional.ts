/** The validation of the additional secret as the existing operator does it. */
import { upstreamAdditionalFault } from '../../../../runtime/rules/docker-config/upstream.ts';
import { redact } from '../../../../runtime/rules/redacted.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly data: Readonly<Record<string, string>> | null;
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
  answer({ data }) {
    const texts = Object.entries(data ?? {}).map(([key, value]) => [key, redact(value)] as const);
    return { error: upstreamAdditionalFault(Object.fromEntries(texts)) ?? null };
  },
  mutation: {
    file: 'runtime/rules/docker-config/upstream.ts',
    replace: 'entries > 0 ?',
    by: 'entries >= 0 ?',
  },
};
