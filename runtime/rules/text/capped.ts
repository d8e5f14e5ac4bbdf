/** Long lists for people: the beginning, and how many more there are. */

/**
 * The first `most` of `lines`, then one that counts the rest.
 *
 * @param hint how to see them all, e.g. `--output json shows them`
 *
 * @example
 * ```ts
 * import { capped } from './capped.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(capped(['a', 'b', 'c'], 2, '--verbose shows them'), ['a', '... and 2 more: --verbose shows them']);
 * assert.deepEqual(capped(['a', 'b'], 2, ''), ['a', 'b']);
 * ```
 */
export function capped(lines: readonly string[], most: number, hint: string): readonly string[] {
  if (lines.length <= most) return lines;
  const kept = lines.slice(0, most - 1);
  return [...kept, `... and ${lines.length - kept.length} more: ${hint}`];
}
