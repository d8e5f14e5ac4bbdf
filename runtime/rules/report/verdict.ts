/** Which of several verdicts is the worst. */
import type { ReportVerdict } from './types.ts';

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
