/** The reference page of permissions, from golden lists. A live test verifies these with the token of each account. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeSpan, table } from './markdown.ts';

const LISTS = join(import.meta.dirname, '../../test/golden/rbac');

/** Lists for one kind of cluster: permissions by account and namespace, and successful attempts by account. */
interface Lists {
  readonly rights: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  readonly through: Readonly<Record<string, readonly string[]>>;
}

/** `docs/reference/rights.md` */
export function rightsPage(): string {
  const read = <Kind extends keyof Lists>(kind: Kind, file: string): Lists[Kind] =>
    JSON.parse(readFileSync(join(LISTS, kind, file), 'utf8')) as Lists[Kind];
  const lines = (texts: readonly string[]): string => texts.map(codeSpan).join('<br>') || 'nothing';
  return [
    '# Rights of accounts',
    '',
    'What a stolen token of each account can do, in clusters with all systems. `*` is every namespace. RBAC admits nothing else; of writes, admission policies refuse what is not rendered. Attempts are those of a thief: to read',
    'credentials, run pods, or gain rights. A test tries them on a real API server and fails on anything that is not listed here.',
    ...readdirSync(join(LISTS, 'rights')).flatMap((file) => [
      '',
      `## ${file.replace('.json', '')}`,
      '',
      ...table(
        ['account', 'namespace', 'RBAC'],
        Object.entries(read('rights', file)).flatMap(([account, places]) =>
          Object.entries(places).map(([where, rules]) => [codeSpan(account), codeSpan(where), lines(rules)]),
        ),
      ),
      '',
      ...table(
        ['account', 'attempts that succeed'],
        Object.entries(read('through', file)).map(([account, done]) => [codeSpan(account), lines(done)]),
      ),
    ]),
  ].join('\n');
}
