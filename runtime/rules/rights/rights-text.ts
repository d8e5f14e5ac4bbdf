/** Rights as lines for people and as a table for documents. */
import { onOneLine } from '../text/printable.ts';
import { textTable } from '../text/table.ts';
import type { Right } from './right.ts';

/**
 * One row for each right: account, what it can do, where, and what binds it; below each account the rules that say so.
 *
 * @param columns width of the terminal; undefined: nothing is cut
 *
 * @example
 * ```ts
 * import { rightsText } from './rights-text.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(rightsText([], undefined), 'No account has a right of this kind.\n');
 * ```
 */
export function rightsText(rights: readonly Right[], columns: number | undefined): string {
  if (rights.length === 0) return 'No account has a right of this kind.\n';
  const rows = rights.map((right) => [
    right.account,
    right.can,
    placeText(right),
    right.boundBy.map(({ policy }) => policy).join(', '),
    right.by.join('; '),
  ]);
  return textTable([['ACCOUNT', 'CAN', 'WHERE', 'BOUND BY', 'BY'], ...rows], columns);
}

/**
 * A table of Markdown for the same rights, with the reasons of those that are wide.
 *
 * @example
 * ```ts
 * import { rightsMarkdown } from './rights-text.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.match(rightsMarkdown([]), /^\| account \| can \|/);
 * ```
 */
export function rightsMarkdown(rights: readonly Right[]): string {
  const rows = rights.map((right) => [
    `\`${right.account.replace('ServiceAccount ', '')}\``,
    right.can,
    placeText(right),
    right.by.map((by) => `\`${by.split(' through ')[0]}\``).join(', '),
    boundText(right),
    right.reason ?? '',
  ]);
  return [HEAD, HEAD.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |\n`).join('');
}

const HEAD = ['account', 'can', 'where', 'by', 'bound by policy', 'why so wide'];

function cell(text: string): string {
  return onOneLine(text).replaceAll('|', '\\|');
}

/** e.g. `kube-system: global-pull-secret`. */
function placeText({ namespace, names }: Right): string {
  const place = namespace ?? 'everywhere';
  return names === undefined ? place : `${place}: ${names.join(', ')}`;
}

function boundText({ boundBy }: Right): string {
  return boundBy
    .map(({ policy, unless }) =>
      unless.length === 0
        ? `\`${policy}\``
        : `\`${policy}\`, where ${unless.map((one) => `\`${one}\``).join(', ')}`,
    )
    .join('; ');
}
