/**
 * What a value of `OPENSHIFT_IMG_OVERRIDES` means, so that texts are compared by what their readers do and not by their letters.
 *
 * Source of the rule: HyperShift's readers. The order of sources, repeated pairs and empty ones mean nothing. The order of the
 * mirrors of one source is the order in which they are asked; HyperShift itself wrote the administrator's until mid-2026 and sorts
 * since, so that what it wrote is compared without it.
 */
import { type OverrideMap, parseImageOverrides } from './registry-overrides.ts';

export interface MeaningOptions {
  /** Whether another order of the mirrors of a source is another meaning. @default {false} */
  readonly ordered?: boolean;
  /**
   * Pairs that may be there or not: HyperShift appends the targets of `--registry-overrides` to the value of what it starts, not
   * to its own. Absent: none.
   */
  readonly beside?: ReadonlyMap<string, string>;
}

/**
 * Whether two values mean the same.
 *
 * @example
 * ```ts
 * import { sameOverrides } from './meaning.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(sameOverrides('a=z,a=y,b=n', 'b=n,a=y,a=z,a=y'), true);
 * assert.equal(sameOverrides('a=z,a=y', 'a=y,a=z', { ordered: true }), false);
 * assert.equal(sameOverrides('a=m', 'a=m,a=flag', { beside: new Map([['a', 'flag']]) }), true);
 * ```
 */
export function sameOverrides(one: string, other: string, options: MeaningOptions = {}): boolean {
  return meaningOf(one, options) === meaningOf(other, options);
}

function meaningOf(text: string, { ordered = false, beside }: MeaningOptions): string {
  const read: OverrideMap = parseImageOverrides(text) ?? new Map();
  const sources = new Set([...read.keys(), ...(beside?.keys() ?? [])]);
  const pairs = [...sources].sort().flatMap((source) => {
    const extra = beside?.get(source);
    const mirrors = [...new Set([...(read.get(source) ?? []), ...(extra === undefined ? [] : [extra])])];
    return source === '' ? [] : [[source, ordered ? mirrors : mirrors.sort()]];
  });
  return JSON.stringify(pairs);
}
