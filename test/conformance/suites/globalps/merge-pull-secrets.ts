/** The merge as the existing operator does it. */
import { configHash } from '../../../../runtime/global-pull-secret/reconciler/config-hash.ts';
import { mergeAsUpstream } from '../../../../runtime/rules/docker-config/upstream.ts';
import { redact, reveal } from '../../../../runtime/rules/redacted.ts';
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
  readonly panic: string;
}

interface Row {
  readonly name: string;
  readonly input: Input;
  readonly expected: Answer;
  readonly wanted?: { readonly error: string };
}

const ANY_ERROR = 'typed validation error, no crash';

export const suite: ConformanceSuite<Input, Answer> = {
  cases(document) {
    return (document as { cases: readonly Row[] }).cases.map(({ name, input, expected, wanted }) => {
      if (expected.panic !== '' && wanted === undefined)
        throw new Error(`case "${name}" panics and wants nothing`);
      return { name, input, expected: { ...expected, ...wanted, panic: '' } };
    });
  },
  answer({ original, additional }) {
    const merged = mergeAsUpstream(redact(original), redact(additional));
    const output = merged.ok ? reveal(merged.text) : '';
    return {
      configHash: configHash(redact(output)),
      conflicts: merged.ok && merged.conflicts.length > 0 ? merged.conflicts : null,
      error: merged.ok ? null : merged.message,
      output,
      panic: '',
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
    file: 'runtime/rules/docker-config/upstream.ts',
    replace: '[...tenant.members, ...platform.members]',
    by: '[...platform.members, ...tenant.members]',
  },
};

/** Compared up to the second colon: what is behind it depends on the parser. */
function sameError(actual: string | null, expected: string | null): boolean {
  if (actual === null || expected === null) return actual === expected;
  const front = (text: string): string => text.split(':', 2).slice(0, 2).join(':');
  return expected === ANY_ERROR || actual === expected || front(actual) === front(expected);
}
