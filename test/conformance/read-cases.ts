/** Reads a case file case by case, so that one of unknown shape does not hide the others. */
import { unmappedFields } from './comparison.ts';
import type { ConformanceCase, ConformanceSuite } from './suite.ts';

export interface ReadCases {
  readonly cases: readonly ConformanceCase[];
  /** One line for each case that the suite does not understand. */
  readonly unreadable: readonly string[];
}

type Document = Readonly<Record<string, unknown>>;

/**
 * The cases of `document`. Each row of each of its lists is tried alone, and what is read without the rows that fail counts.
 * Throws when that fails too: then it is the document that is not understood.
 */
export function readCases(suite: ConformanceSuite, document: unknown): ReadCases {
  if (typeof document !== 'object' || document === null)
    return { cases: suite.cases(document), unreadable: [] };
  const { rest, unreadable } = withoutUnreadable(suite, document as Document);
  return { cases: suite.cases(rest), unreadable };
}

function withoutUnreadable(
  suite: ConformanceSuite,
  document: Document,
): { rest: Document; unreadable: readonly string[] } {
  const lists = Object.entries(document).filter((entry): entry is [string, unknown[]] =>
    Array.isArray(entry[1]),
  );
  const empty: Document = { ...document, ...Object.fromEntries(lists.map(([name]) => [name, []])) };
  const unreadable: string[] = [];
  const good = lists.map(([name, rows]) => {
    const read = rows.filter((row, index) => {
      const reason = faultOf((one) => suite.cases({ ...empty, [name]: [one] }), row);
      if (reason !== undefined) unreadable.push(`${titleOf(row, `${name}[${index}]`)}: ${reason}`);
      return reason === undefined;
    });
    return [name, read] as const;
  });
  return { rest: { ...document, ...Object.fromEntries(good) }, unreadable };
}

function faultOf(cases: (row: unknown) => readonly ConformanceCase[], row: unknown): string | undefined {
  try {
    const fields = unmappedFields(cases, row);
    return fields.length === 0 ? undefined : `the suite knows no ${fields.join(', ')} in "expected"`;
  } catch (error) {
    return `cannot read the case: ${messageOf(error)}`;
  }
}

function titleOf(row: unknown, otherwise: string): string {
  const { name, id } = (row ?? {}) as { readonly name?: unknown; readonly id?: unknown };
  return [name, id].find((value) => typeof value === 'string') ?? otherwise;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
