/**
 * The table `aliases` of a `registries.conf`: short names, and the repositories that they stand for. They play no part where an
 * image is named in full, as the kubelet does, but one that is wrong makes the runtime refuse the file.
 *
 * Source of the rule: containers/image `sysregistriesv2` (`validateShortName`, `parseShortNameValue`).
 */

import { parseWrittenReference } from '../auth-lookup/image-reference.ts';
import { goQuote } from '../go/quote.ts';
import { isRecord } from '../record.ts';
import { mismatch, refuse, type Table } from './registries-conf-table.ts';

/**
 * Throws a PullwrightError, in the words of the runtime, for the first alias that it would refuse.
 *
 * @param file the tables of the whole file
 * @example
 * ```ts
 * import { checkAliases } from './short-name-aliases.ts';
 * import assert from 'node:assert/strict';
 *
 * checkAliases({ aliases: { nginx: 'docker.io/library/nginx', app: '' } });
 * assert.throws(() => checkAliases({ aliases: { nginx: 'library/nginx' } }), /must contain registry and repository/);
 * ```
 */
export function checkAliases(file: Table): void {
  const aliases = file['aliases'];
  if (aliases === undefined) return;
  if (!isRecord(aliases)) throw mismatch('aliases', 'table', aliases);
  for (const [name, value] of Object.entries(aliases)) {
    if (typeof value !== 'string') throw mismatch(`aliases.${name}`, 'string', value);
    const fault = nameFault(name) ?? valueFault(value);
    if (fault !== undefined) throw refuse(`validating short-name aliases: ${fault}`);
  }
}

/**
 * The images that CRI-O tries for a short name, in order: what its alias stands for, else each registry for unqualified names.
 *
 * @param name as a pod has it: `nginx`, `team/app:1`
 * @param aliases of the files of a node, later ones over earlier ones; an empty value takes one back
 * @param search `unqualified-search-registries`
 * @example
 * ```ts
 * import { shortNameCandidates } from './short-name-aliases.ts';
 * import assert from 'node:assert/strict';
 *
 * const aliases = new Map([['ubi9', 'registry.access.redhat.com/ubi9']]);
 * assert.deepEqual(shortNameCandidates('ubi9:1', aliases, ['docker.io']), ['registry.access.redhat.com/ubi9:1']);
 * assert.deepEqual(shortNameCandidates('nginx', aliases, ['a.example.com', 'docker.io']), [
 *   'a.example.com/nginx', 'docker.io/library/nginx',
 * ]);
 * ```
 */
export function shortNameCandidates(
  name: string,
  aliases: ReadonlyMap<string, string>,
  search: readonly string[],
): readonly string[] {
  const end = /[:@]/.exec(name)?.index ?? name.length;
  const alias = aliases.get(name.slice(0, end)) ?? '';
  if (alias !== '') return [alias + name.slice(end)];
  return search.map((registry) =>
    registry === 'docker.io' && !name.includes('/') ? `docker.io/library/${name}` : `${registry}/${name}`,
  );
}

/** Aliases of one file that {@link checkAliases} takes. */
export function aliasesOf(file: Table): ReadonlyMap<string, string> {
  return new Map(Object.entries((file['aliases'] ?? {}) as Readonly<Record<string, string>>));
}

function nameFault(name: string): string | undefined {
  const parsed = parseWrittenReference(name);
  if (!parsed.ok) return `cannot parse short name: ${goQuote(name)}: ${parsed.goText}`;
  const { domain, tag, digest } = parsed.reference;
  const wrong = (reason: string): string => `invalid short name ${goQuote(name)}: must not contain ${reason}`;
  if (digest !== undefined) return wrong('digest');
  if (tag !== undefined) return wrong('tag');
  return isRegistry(domain) ? wrong('registry') : undefined;
}

/** An empty value takes an alias of an earlier file back. */
function valueFault(value: string): string | undefined {
  if (value === '') return undefined;
  const parsed = parseWrittenReference(value);
  if (!parsed.ok) return `parsing alias ${goQuote(value)}: ${parsed.goText}`;
  const { domain, tag, digest } = parsed.reference;
  const wrong = (reason: string): string => `invalid alias ${goQuote(value)}: must ${reason}`;
  if (digest !== undefined) return wrong('not contain digest');
  if (tag !== undefined) return wrong('not contain tag');
  return isRegistry(domain) ? undefined : wrong('contain registry and repository');
}

function isRegistry(domain: string): boolean {
  return /[.:]/.test(domain) || domain === 'localhost';
}
