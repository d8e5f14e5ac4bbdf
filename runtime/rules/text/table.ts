/** Columns of text for people. */

import { onOneLine } from './printable.ts';

/**
 * Lines up `cells`, the first row being the head; each line is cut to `columns`. Ends with a newline.
 *
 * @param columns width of the terminal; undefined: nothing is cut
 *
 * @example
 * ```ts
 * import { textTable } from './table.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(textTable([['NAME', 'STATE'], ['a', 'a long story']], 14), 'NAME  STATE\na     a long …\n');
 * ```
 */
export function textTable(given: readonly (readonly string[])[], columns: number | undefined): string {
  // A name with a newline in it could pass for a row of ours.
  const cells = given.map((line) => line.map(onOneLine));
  const count = Math.max(...cells.map((line) => line.length));
  const widths = Array.from({ length: count }, (_, index) =>
    cells.reduce((widest, line) => Math.max(widest, line[index]?.length ?? 0), 0),
  );
  const lines = cells.map((line) =>
    line
      .map((cell, index) => (index === count - 1 ? cell : cell.padEnd(widths[index] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.map((line) => cut(line, columns)).join('\n')}\n`;
}

function cut(line: string, columns: number | undefined): string {
  return columns === undefined || line.length <= columns
    ? line
    : `${line.slice(0, Math.max(1, columns - 1))}…`;
}
