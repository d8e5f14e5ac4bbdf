/** Selection of the mounted pull secret by the node agent. */

import { PullwrightError } from '../../../../runtime/core/errors.ts';
import { redact } from '../../../../runtime/core/redacted.ts';
import {
  choosePullSecret,
  type MountedSecret,
} from '../../../../runtime/global-pull-secret/agent/sources.ts';
import { type ConformanceSuite, rows } from '../../suite.ts';

interface Input {
  readonly global?: string | null;
  readonly globalError?: string;
  readonly original?: string | null;
  readonly originalError?: string;
}

type Answer = Readonly<Record<string, string>>;

export const suite: ConformanceSuite<Input, Answer> = {
  cases: rows,
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
    replace: 'if (global.error !== undefined)',
    by: 'if (false as boolean)',
  },
};

function mounted(
  content: string | null | undefined,
  code: string | undefined,
): Pick<MountedSecret, 'bytes' | 'error'> {
  if (code !== undefined) return { error: new PullwrightError('', { code }) };
  return content === null || content === undefined
    ? {}
    : { bytes: redact(new Uint8Array(Buffer.from(content))) };
}
