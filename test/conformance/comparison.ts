/** Compares answers, and finds what a case expects but nothing compares. */
import { isDeepStrictEqual } from 'node:util';
import type { ConformanceCase, ConformanceSuite } from './suite.ts';

/** Whether the suite accepts `answer` for the expected answer of the case. */
export function isAccepted(suite: ConformanceSuite, answer: unknown, one: ConformanceCase): boolean {
  return (
    suite.accepts?.(answer, one.expected, one.input) ??
    isDeepStrictEqual(strict(suite, answer), strict(suite, one.expected))
  );
}

/** The compared part of an answer: all but its loose fields. */
function strict({ loose }: ConformanceSuite, value: unknown): unknown {
  if (loose === undefined || typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).filter(([field]) => !loose.includes(field)));
}

/** The loose fields that the answer or the case has, each with whether they agree. */
export function looseFields(
  suite: ConformanceSuite,
  answer: unknown,
  { expected }: ConformanceCase,
): readonly (readonly [field: string, agrees: boolean])[] {
  const [actual, wanted] = [answer, expected] as readonly Readonly<Record<string, unknown>>[];
  return (suite.loose ?? [])
    .filter((field) => actual?.[field] !== undefined || wanted?.[field] !== undefined)
    .map((field) => [field, isDeepStrictEqual(actual?.[field], wanted?.[field])]);
}

/** Why any answer would do for this case; undefined when that is not so. */
export function idleFields(suite: ConformanceSuite, one: ConformanceCase): string | undefined {
  if (one.expected === undefined) return 'the case has no expected answer';
  const nonsense: readonly unknown[] = [{}, { 'no such field': 'of any answer' }, 'no answer of ours'];
  const any = nonsense.some(
    (answer) => !isDeepStrictEqual(answer, one.expected) && !refuses(suite, answer, one),
  );
  return any ? 'the case expects nothing: any answer would do' : undefined;
}

/** The fields of the expected answer that could say anything else, and the same answer would do; undefined when there is none. */
export function ignoredFields(
  suite: ConformanceSuite,
  answer: unknown,
  one: ConformanceCase,
): string | undefined {
  const ignored = fieldsOf(one.expected).filter(
    (field) =>
      suite.loosens?.includes(field) !== true &&
      suite.loose?.includes(field) !== true &&
      !refuses(suite, answer, { ...one, expected: altered(one.expected, field) }),
  );
  return ignored.length === 0 ? undefined : `nothing compares ${ignored.join(', ')} of the expected answer`;
}

/** Fields of the row's expected answer (`wanted` if present) that have no effect on the resulting case. */
export function unmappedFields(
  cases: (row: unknown) => readonly ConformanceCase[],
  row: unknown,
): readonly string[] {
  const whole = (row ?? {}) as Readonly<Record<string, unknown>>;
  const part = fieldsOf(whole['wanted']).some((field) => field !== 'why') ? 'wanted' : 'expected';
  const before = cases(row);
  return fieldsOf(whole[part]).filter((field) => {
    if (field === 'why') return false;
    try {
      return isDeepStrictEqual(cases({ ...whole, [part]: altered(whole[part], field) }), before);
    } catch {
      return false;
    }
  });
}

/** An acceptor that cannot make anything of an answer does not take it. */
function refuses(suite: ConformanceSuite, answer: unknown, one: ConformanceCase): boolean {
  try {
    return !isAccepted(suite, answer, one);
  } catch {
    return true;
  }
}

function fieldsOf(expected: unknown): readonly string[] {
  if (typeof expected !== 'object' || expected === null || Array.isArray(expected)) return [];
  return Object.entries(expected).flatMap(([field, value]) => (value === undefined ? [] : [field]));
}

function altered(expected: unknown, field: string): unknown {
  const whole = expected as Readonly<Record<string, unknown>>;
  return { ...whole, [field]: another(whole[field]) };
}

/** Text differs at its start: what comes after a colon or is only looked for within a longer text counts less. */
function another(value: unknown): unknown {
  if (typeof value === 'string') return `altered ${value}`;
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  if (Array.isArray(value)) return [...(value as unknown[]), 'altered'];
  return { ...(value as object | null), altered: true };
}
