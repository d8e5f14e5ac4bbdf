/** Numbers before nouns: one thing is not "1 things". */

/**
 * The number and the noun in the form that goes with it; a verb may stand behind both forms.
 *
 * @param many the form for every other number
 * @default many {one with an s}
 *
 * @example
 * ```ts
 * import { counted } from './counted.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(counted(1, 'namespace'), '1 namespace');
 * assert.equal(counted(0, 'namespace'), '0 namespaces');
 * assert.equal(counted(2, 'copy', 'copies'), '2 copies');
 * assert.equal(counted(1, 'node is eligible', 'nodes are eligible'), '1 node is eligible');
 * ```
 */
export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/**
 * Some of all: the noun goes with all of them, the verb with those that it speaks of.
 *
 * @param nouns of one, and of many
 * @param verbs of one, and of many
 *
 * @example
 * ```ts
 * import { countedOf } from './counted.ts';
 * import assert from 'node:assert/strict';
 *
 * const holding = (some: number, all: number) => countedOf(some, all, ['namespace', 'namespaces'], ['holds', 'hold']);
 * assert.equal(holding(1, 1), '1 of 1 namespace holds');
 * assert.equal(holding(1, 2), '1 of 2 namespaces holds');
 * assert.equal(holding(0, 1), '0 of 1 namespace hold');
 * ```
 */
export function countedOf(
  some: number,
  all: number,
  nouns: readonly [one: string, many: string],
  verbs: readonly [one: string, many: string],
): string {
  return `${some} of ${counted(all, ...nouns)} ${verbs[some === 1 ? 0 : 1]}`;
}
