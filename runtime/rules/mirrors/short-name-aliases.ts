/**
 * The table `aliases` of a `registries.conf`: short names, and the repositories that they stand for. They play no part where an
 * image is named in full, as the kubelet does, but one that is wrong makes the runtime refuse the file.
 *
 * Source of the rule: containers/image `sysregistriesv2` (`validateShortName`, `parseShortNameValue`).
 */

import { parseWrittenReference } from '../auth-lookup/image-reference.ts';
import { goQuote } from '../go/quote.ts';
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
  if (typeof aliases !== 'object' || aliases === null || Array.isArray(aliases))
    throw mismatch('aliases', 'table', aliases);
  for (const [name, value] of Object.entries(aliases as Table)) {
    if (typeof value !== 'string') throw mismatch(`aliases.${name}`, 'string', value);
    const fault = nameFault(name) ?? valueFault(value);
    if (fault !== undefined) throw refuse(`validating short-name aliases: ${fault}`);
  }
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
