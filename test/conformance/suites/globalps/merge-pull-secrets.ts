/** The merge that the reconciler writes, held against that of the existing operator. */

import { mergePullSecrets } from '../../../../runtime/core/docker-config/merge.ts';
import { redact, reveal } from '../../../../runtime/core/redacted.ts';
import { configHash } from '../../../../runtime/global-pull-secret/eligibility.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Input {
  readonly original: string;
  readonly additional: string;
}

interface Answer {
  readonly configHash: string;
  readonly conflicts: readonly string[] | null;
  readonly error: string | null;
  readonly output: string;
}

interface Row {
  readonly name: string;
  readonly input: Input;
  readonly expected: Answer & { readonly panic: string };
  readonly wanted?: { readonly error: string };
}

const ANY_ERROR = 'typed validation error, no crash';

export const suite: ConformanceSuite<Input, Answer> = {
  cases(document) {
    return (document as { cases: readonly Row[] }).cases.map(({ name, input, expected, wanted }) => {
      const { panic, ...answer } = expected;
      if (panic !== '' && wanted === undefined) throw new Error(`case "${name}" panics and wants nothing`);
      return { name, input, expected: { ...answer, ...wanted } };
    });
  },
  answer({ original, additional }) {
    const merged = mergePullSecrets({ original: redact(original), additional: redact(additional) });
    const output = merged.ok ? reveal(merged.text) : '';
    const conflicts = merged.ok ? merged.conflicts.map(({ registry }) => registry) : [];
    return {
      configHash: configHash(redact(output)),
      conflicts: conflicts.length > 0 ? conflicts : null,
      error: errorOf(merged),
      output,
    };
  },
  accepts(actual, expected) {
    return (
      sameError(actual.error, expected.error) &&
      actual.output === expected.output &&
      actual.configHash === expected.configHash &&
      JSON.stringify(actual.conflicts) === JSON.stringify(expected.conflicts?.toSorted() ?? null)
    );
  },
  mutation: {
    file: 'runtime/core/docker-config/merge.ts',
    replace: '...platform.entries, ...tenant.added',
    by: '...platform.entries.slice(1), ...tenant.added',
  },
};

/** The peer's name for the document that cannot be used; the reason is in our words. */
function errorOf(merged: ReturnType<typeof mergePullSecrets>): string | null {
  if (!merged.ok) return `invalid original pull secret format: ${merged.problem.message}`;
  if (merged.additionalProblem === undefined) return null;
  return `invalid user provided pull secret format: ${merged.additionalProblem.message}`;
}

/** Compared up to the first colon: what is behind it depends on the parser. */
function sameError(actual: string | null, expected: string | null): boolean {
  if (actual === null || expected === null) return actual === expected;
  const front = (text: string): string => text.split(':', 1)[0] ?? '';
  return expected === ANY_ERROR || front(actual) === front(expected);
}
