/** Lines and columns of a text, both counted from 1, columns in UTF-16 units. */

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/**
 * Makes a function from offsets to positions; many look-ups cost one pass over the text.
 *
 * @example
 * ```ts
 * import { positionsOf } from './position.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(positionsOf('ab\ncd')(4), { line: 2, column: 2 });
 * ```
 */
export function positionsOf(text: string): (offset: number) => TextPosition {
  let starts: readonly number[] | undefined;
  return (offset) => {
    starts ??= [0, ...Array.from(text.matchAll(/\n/g), (match) => match.index + 1)];
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}
