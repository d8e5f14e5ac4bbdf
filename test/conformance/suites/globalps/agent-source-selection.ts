/** Which mounted pull secret the node agent takes. */

import { redact } from '../../../../runtime/core/redacted.ts';
import { choosePullSecret, type MountedFile } from '../../../../runtime/global-pull-secret/agent/sources.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly global?: string | null;
  readonly globalError?: string;
  readonly original?: string | null;
  readonly originalError?: string;
}

type Answer = Readonly<Record<string, string>>;

interface Row {
  readonly name: string;
  readonly input: Input;
  readonly expected: Answer;
  readonly wanted?: Answer;
}

const FIELDS = new Set(['used', 'log', 'errorContains']);

export const suite: ConformanceSuite<Input, Answer> = {
  cases(document) {
    return (document as { cases: readonly Row[] }).cases.map(({ name, input, expected, wanted }) => {
      const answer = wanted ?? expected;
      const unknown = Object.keys(answer).find((field) => !FIELDS.has(field));
      if (unknown !== undefined) throw new Error(`case "${name}" expects an unknown field "${unknown}"`);
      return { name, input, expected: answer };
    });
  },
  answer(input) {
    const choice = choosePullSecret(
      mounted(input.global, input.globalError),
      mounted(input.original, input.originalError),
    );
    return choice.ok ? { used: choice.used, log: choice.message } : { errorContains: choice.message };
  },
  accepts(actual, expected) {
    return Object.entries(expected).every(([field, wanted]) => {
      const given = actual[field];
      return field === 'errorContains' ? given?.includes(wanted) === true : given === wanted;
    });
  },
  mutation: {
    file: 'runtime/global-pull-secret/agent/sources.ts',
    replace: "if (global.state === 'unreadable')",
    by: 'if (false as boolean)',
  },
};

function mounted(content: string | null | undefined, error: string | undefined): MountedFile {
  if (error !== undefined) return { state: 'unreadable', reason: error };
  return content === null || content === undefined
    ? { state: 'absent' }
    : { state: 'present', content: redact(content) };
}
