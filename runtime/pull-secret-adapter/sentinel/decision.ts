/**
 * When Sentinel sends an event about a cluster. Two rules: `reconcile` as the running system decides (generation and age, strict), and
 * `dependencies` as the requirement has it.
 */
import type { ApiCondition } from '../cluster.ts';

/** Ages in seconds. */
export interface SentinelAges {
  /** @default {1800} */
  readonly reconciled: number;
  /** @default {10} */
  readonly notReconciled: number;
}

export const DEFAULT_AGES: SentinelAges = { reconciled: 1800, notReconciled: 10 };

export interface SentinelDecision {
  readonly publish: boolean;
  readonly reason: string;
}

/** What the decision looks at. */
export interface SentinelResource {
  readonly generation: number;
  readonly conditions: readonly ApiCondition[];
}

/**
 * @param now undefined: the clock is not known, and nothing is sent
 *
 * @example
 * ```ts
 * import { decideToPublish } from './decision.ts';
 * import assert from 'node:assert/strict';
 *
 * const now = new Date('2026-01-01T00:00:11Z');
 * const conditions = [{ type: 'Reconciled', status: 'False', observed_generation: 1, last_updated_time: '2026-01-01T00:00:00Z' }];
 * assert.equal(decideToPublish({ generation: 1, conditions }, now).publish, true);
 * ```
 */
export function decideToPublish(
  resource: SentinelResource,
  now: Date | undefined,
  ages: SentinelAges = DEFAULT_AGES,
): SentinelDecision {
  if (now === undefined) return { publish: false, reason: 'now time is zero' };
  const condition = resource.conditions.find((candidate) => candidate.type === 'Reconciled');
  const age = (now.getTime() - Date.parse(condition?.last_updated_time ?? '')) / 1000;
  const publish =
    resource.generation > (condition?.observed_generation ?? 0) ||
    isOld(age, resource.generation, limitOf(condition, ages));
  return { publish, reason: publish ? 'message decision matched' : 'message decision result is false' };
}

function limitOf(condition: ApiCondition | undefined, ages: SentinelAges): number {
  return condition?.status === 'True' ? ages.reconciled : ages.notReconciled;
}

/** @param age NaN when nothing was reported yet: then only a new resource counts */
function isOld(age: number, generation: number, limit: number): boolean {
  return Number.isNaN(age) ? generation === 1 : age > limit;
}

/** The `search` parameter that selects clusters by label: sorted, quotes doubled. */
export function searchByLabels(selector: Readonly<Record<string, string>>): string {
  return Object.keys(selector)
    .sort()
    .map((key) => `labels.${key}='${(selector[key] ?? '').replaceAll("'", "''")}'`)
    .join(' and ');
}
