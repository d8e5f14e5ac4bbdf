/** The page of permissions: what each command may touch, out of the tables that its container, its roles and the tests are held against. */
import type { CommandPage } from './cli.ts';
import { codeSpan, prose, table } from './markdown.ts';

/** `docs/reference/permissions.md` */
export function permissionsPage(pages: readonly CommandPage[]): string {
  return [
    '# Permissions',
    '',
    'What each command may read, write and ask for, and nothing else: Roles, containers and the `--permission` line of Node are made of the same table or held',
    'against it. A name in angle brackets is what the flag or the argument of that name says.',
    '',
    ...table(
      ['command', 'reads', 'writes', 'hosts', 'API verbs'],
      pages.map(({ spec, permissions: { reads, writes, hosts, api } }) => [
        `[${codeSpan(spec.name)}](cli.md#${spec.name})`,
        reads.map(codeSpan).join('<br>'),
        writes.map(codeSpan).join('<br>'),
        hosts.map(prose).join('<br>'),
        api.map(prose).join('<br>'),
      ]),
    ),
  ].join('\n');
}
