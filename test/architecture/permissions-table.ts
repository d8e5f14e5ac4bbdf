/** The permissions of every command as a Markdown table: the one in the README is this text. */
import type { Command } from '../../runtime/commands/command.ts';

/**
 * Renders one row per command, sorted by name. `none` where a command touches nothing of a kind.
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
