/**
 * The query of a URL; empty without parameters. Those that are undefined are left out.
 *
 * @example
 * ```ts
 * import { queryText } from './query-text.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(queryText({ limit: 500, continue: undefined, fieldSelector: 'a=b' }), '?limit=500&fieldSelector=a%3Db');
 * ```
 */
export function queryText(query: Readonly<Record<string, string | number | undefined>> = {}): string {
  const parameters = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`);
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`;
}
