/** Rows for a terminal: a table where its last column can be read, else one record below the other. */
import { textTable } from './table.ts';
import { wrapped } from './wrap.ts';

/** The last column, which holds the sentences, needs so much room. */
const ROOM = 24;

/**
 * Lines up `cells`, the first row being the head. Where the terminal is too narrow for that, each row becomes a record: its first
 * two cells, then the others on lines of their own under the name of their column, the last one without. Ends with a newline.
 *
 * @param columns width of the terminal; undefined: a table, and nothing is cut
 *
 * @example
 * ```ts
 * import { textRecords } from './records.ts';
 * import assert from 'node:assert/strict';
 *
 * const cells = [['STATE', 'PLACE', 'ENDS', 'WHY'], ['Invalid', 'registry.example.com/a/b', '-', 'it does not take the credential']];
 * assert.equal(textRecords(cells, 40), 'Invalid registry.example.com/a/b\n   it does not take the credential\n');
 * ```
 */
export function textRecords(cells: readonly (readonly string[])[], columns: number | undefined): string {
  const [head = [], ...rows] = cells;
  if (columns === undefined || lastColumnAt(cells) + ROOM <= columns) return textTable(cells, columns);
  return rows.map((row) => `${recordOf(head, row, columns).join('\n')}\n`).join('');
}

function lastColumnAt(cells: readonly (readonly string[])[]): number {
  const count = Math.max(...cells.map((row) => row.length));
  return Array.from({ length: count - 1 }, (_, index) =>
    Math.max(...cells.map((row) => row[index]?.length ?? 0)),
  ).reduce((sum, width) => sum + width + 2, 0);
}

function recordOf(head: readonly string[], row: readonly string[], columns: number): readonly string[] {
  const [first = '', second = '', ...rest] = row;
  const named = rest.flatMap((cell, index) => {
    if (cell === '' || cell === '-') return [];
    const name = (head[index + 2] ?? '').toLowerCase();
    return [index === rest.length - 1 ? cell : `${name}: ${cell}`];
  });
  const [title = '', ...more] = wrapped(`${first} ${second}`, columns);
  const below = [...more, ...named.flatMap((cell) => wrapped(cell, columns - 3))];
  return [title, ...below.map((line) => `   ${line}`)];
}
