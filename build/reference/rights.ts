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
    'What an attacker with the token of an account can do, in clusters with all systems. `*` is every namespace. RBAC allows nothing else, and admission policies deny writes of anything that is not rendered. The attempts are',
    'to read credentials, run pods, or gain rights. A test makes them on a real API server and fails on any that is not listed here.',
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
