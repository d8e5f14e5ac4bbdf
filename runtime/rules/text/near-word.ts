/** What somebody who mistyped a word may have meant. */

/**
 * The word of `known` that is nearest to `word`, at most two letters away (added, missing, changed, or two that changed places
 * count as one); undefined when none is near.
 *
 * @example
 * ```ts
 * import { nearWord } from './near-word.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(nearWord('explian', ['reconcile', 'explain']), 'explain');
 * assert.equal(nearWord('Stauts', ['status', 'statuses']), 'status');
 * assert.equal(nearWord('xy', ['go', 'explain']), undefined);
 * ```
 */
export function nearWord(word: string, known: readonly string[]): string | undefined {
  // Nobody mistypes a word of that length: it is a value in the wrong place, and the comparison is quadratic.
  if (word.length > LONGEST) return undefined;
  // Of a short word two letters are all of it.
  const most = word.length < 4 ? 1 : 2;
  let best: { readonly candidate: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = distanceOf(word.toLowerCase(), candidate.toLowerCase());
    if (distance <= most && distance < (best?.distance ?? Infinity)) best = { candidate, distance };
  }
  return best?.candidate;
}

/** Longer than any word that is known here. */
const LONGEST = 128;

/** Optimal string alignment distance, given up at 3. */
function distanceOf(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  const cell = (i: number, j: number): number => rows[i]?.[j] ?? 3;
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    rows.push(next);
    for (let j = 1; j <= b.length; j++) {
      const changed = cell(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? cell(i - 2, j - 2) + 1 : 3;
      next.push(Math.min(cell(i - 1, j) + 1, (next[j - 1] ?? 0) + 1, changed, swapped));
    }
  }
  return cell(a.length, b.length);
}
