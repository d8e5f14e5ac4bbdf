/** Markdown out of rows. */

/** A table, or nothing where there is no row. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line), ''];
}

/** Text as a span of code in a cell. */
export function codeSpan(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

/**
 * Text as prose in a cell: what looks like a tag is none, and a line is one line.
 *
 * @example
 * ```ts
 * import { prose } from './markdown.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(prose('a|b <c>\n d'), 'a\\|b &lt;c> d');
 * ```
 */
export function prose(text: string): string {
  return text
    .replaceAll('<', '&lt;')
    .replaceAll('{{', '&#123;&#123;')
    .replaceAll('|', '\\|')
    .replaceAll('*', '\\*')
    .replace(/\s*\n\s*/g, ' ')
    .trim();
}

/** Entries in groups by name, sorted by it. */
export function grouped<T>(
  entries: readonly T[],
  nameOf: (entry: T) => string,
): readonly (readonly [string, readonly T[]])[] {
  const groups = new Map<string, T[]>();
  for (const entry of entries) groups.set(nameOf(entry), [...(groups.get(nameOf(entry)) ?? []), entry]);
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}
