/**
 * Whether the runtime can load what the operator wrote: some scopes that the operator takes make CRI-O refuse the whole file, and
 * then it keeps the rules that it has, or does not start.
 */
import { PullwrightError } from '../errors.ts';
import type { MirrorRule } from '../mirrors/mirrors.ts';
import { registriesOf } from '../mirrors/registries-conf.ts';
import { trimEndOf } from '../text/trim.ts';

/**
 * The runtime's reason for refusing a file with these entries and this list of search registries; undefined where it loads.
 *
 * @example
 * ```ts
 * import { loadProblem } from './load.ts';
 * import assert from 'node:assert/strict';
 *
 * const rule = { prefix: 'https://a.example.com', location: 'https://a.example.com', blocked: true, insecure: false, mirrors: [] };
 * assert.match(loadProblem([rule]) ?? '', /URI schemes are not supported/);
 * ```
 */
export function loadProblem(
  rules: readonly MirrorRule[],
  search: readonly string[] = [],
): string | undefined {
  try {
    registriesOf({
      'unqualified-search-registries': search,
      registry: rules.map(({ prefix, location, blocked, insecure, mirrors }) => ({
        prefix: prefix.startsWith('*.') ? prefix : '',
        location,
        blocked,
        insecure,
        mirror: mirrors.map(({ pullFrom, ...mirror }) => ({
          location: mirror.location,
          'pull-from-mirror': pullFrom,
        })),
      })),
    });
    return undefined;
  } catch (error) {
    if (error instanceof PullwrightError) return error.message;
    throw error;
  }
}

/** The entries as the runtime has them when it has loaded the file: without trailing slashes, and of equal ones the first. */
export function loadedRules(rules: readonly MirrorRule[]): readonly MirrorRule[] {
  if (!rules.some(({ prefix }) => prefix.endsWith('/'))) return rules;
  const seen = new Set<string>();
  return rules
    .map((rule) => ({ ...rule, prefix: withoutSlash(rule.prefix), location: withoutSlash(rule.location) }))
    .filter(({ prefix }) => !seen.has(prefix) && seen.add(prefix));
}

function withoutSlash(place: string): string {
  return trimEndOf(place, '/');
}
