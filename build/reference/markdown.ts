/** Renders rows as Markdown. */

/** Renders a table; empty without rows. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line), ''];
}

/** Formats text as code in a table cell. */
export function codeSpan(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

/**
 * Formats text as prose in a table cell: escapes HTML and Markdown, and joins lines.
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

/** Groups entries by name, sorted by name. */
export function grouped<T>(entries: readonly T[], nameOf: (entry: T) => string): [string, T[]][] {
  return [...Map.groupBy(entries, nameOf)].sort(([a], [b]) => (a < b ? -1 : 1));
}
