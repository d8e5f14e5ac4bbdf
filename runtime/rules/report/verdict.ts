/** Which of several verdicts is the worst, and what people are told of them. */
import { counted } from '../text/counted.ts';
import type { Report, ReportChange, ReportVerdict } from './types.ts';

const WORST_FIRST: readonly ReportVerdict[] = ['broken', 'attention', 'unknown', 'ok'];

/**
 * Orders verdicts, the worst first.
 *
 * @example
 * ```ts
 * import { byVerdict } from './verdict.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual((['ok', 'broken', 'unknown'] as const).toSorted(byVerdict), ['broken', 'unknown', 'ok']);
 * ```
 */
export function byVerdict(a: ReportVerdict, b: ReportVerdict): number {
  return WORST_FIRST.indexOf(a) - WORST_FIRST.indexOf(b);
}

/**
 * The worst; `otherwise` where there is none.
 *
 * @example
 * ```ts
 * import { worstOf } from './verdict.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(worstOf(['ok', 'attention', 'unknown'], 'ok'), 'attention');
 * assert.equal(worstOf([], 'unknown'), 'unknown');
 * ```
 */
export function worstOf(verdicts: Iterable<ReportVerdict>, otherwise: ReportVerdict): ReportVerdict {
  let worst: ReportVerdict | undefined;
  for (const verdict of verdicts) if (worst === undefined || byVerdict(verdict, worst) < 0) worst = verdict;
  return worst ?? otherwise;
}

/** One sentence: how many problems there are, and in how many clusters. */
export function headline({ problems, clusters }: Report): string {
  const count = problems.reduce((sum, { cases }) => sum + cases.length, 0);
  const where = new Set(problems.flatMap((problem) => problem.clusters)).size;
  const all = counted(clusters.length, 'cluster');
  if (count > 0) return `${counted(count, 'problem')} in ${where} of ${all}`;
  const unknown = clusters.filter(({ verdict }) => verdict === 'unknown').length;
  return unknown === 0
    ? `Nothing is wrong in ${all}`
    : `No problem is known in ${all}; of ${unknown} nothing has shown that they are in order`;
}

/** `2 new, 1 gone`. */
export function countText(list: readonly ReportChange[]): string {
  const parts = (['new', 'gone', 'changed'] as const).flatMap((change) => {
    const count = list.filter((one) => one.change === change).length;
    return count === 0 ? [] : [`${count} ${change}`];
  });
  return parts.length === 0 ? 'nothing is different' : parts.join(', ');
}

/** What a verdict is called where people read it. */
export const VERDICT_WORDS: Readonly<Record<ReportVerdict, string>> = {
  broken: 'Broken',
  attention: 'Attention',
  unknown: 'Not known',
  ok: 'In order',
};
