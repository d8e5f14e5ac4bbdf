/** The permissions of every command as a Markdown table: the one in the README is this text. */
import type { Command } from './command.ts';

/**
 * Renders one row per command, sorted by name. `none` where a command touches nothing of a kind.
 *
 * @example
 * ```ts
 * import { permissionsTable } from './permissions-table.ts';
 * import { NOTHING } from './permissions.ts';
 * import assert from 'node:assert/strict';
 *
 * const row = { name: 'demo', permissions: { ...NOTHING, reads: ['<FILE>'] } };
 * assert.match(permissionsTable([row]), /\| `demo` \| `<FILE>` \| none \| none \| none \|/);
 * ```
 */
export function permissionsTable(commands: readonly Pick<Command, 'name' | 'permissions'>[]): string {
  const rows = [...commands]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(
      ({ name, permissions: { reads, writes, hosts, api } }) =>
        `| \`${name}\` | ${code(reads)} | ${code(writes)} | ${plain(hosts)} | ${plain(api)} |`,
    );
  return ['| command | reads | writes | hosts | API verbs |', '|---|---|---|---|---|', ...rows].join('\n');
}

function code(items: readonly string[]): string {
  return items.length === 0 ? 'none' : items.map((item) => `\`${item}\``).join(' ');
}

function plain(items: readonly string[]): string {
  return items.length === 0
    ? 'none'
    : items.map((item) => item.replaceAll('|', '\\|').replaceAll('<', '&lt;')).join('; ');
}
