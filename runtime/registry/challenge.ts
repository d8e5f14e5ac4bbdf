/** The header `WWW-Authenticate` of a registry. Source of the rule: RFC 9110, and the distribution token specification. */

export type Challenge =
  | { readonly scheme: 'basic' }
  | { readonly scheme: 'bearer'; readonly realm: string; readonly service?: string; readonly scope?: string };

/**
 * The first challenge that we can answer: Bearer before Basic. Undefined when there is none.
 *
 * @example
 * ```ts
 * import { parseChallenge } from './challenge.ts';
 * import assert from 'node:assert/strict';
 *
 * const text = 'Bearer realm="https://auth.example.com/token",service="registry",scope="repository:a/b:pull,push"';
 * assert.deepEqual(parseChallenge(text), {
 *   scheme: 'bearer', realm: 'https://auth.example.com/token', service: 'registry', scope: 'repository:a/b:pull,push',
 * });
 * assert.deepEqual(parseChallenge('Basic realm="x"'), { scheme: 'basic' });
 * ```
 */
export function parseChallenge(header: string): Challenge | undefined {
  const bearer = /(?:^|,\s*)bearer\s+/i.exec(header);
  if (bearer !== null) {
    const fields = parameters(header.slice(bearer.index + bearer[0].length));
    const { realm, service, scope } = fields;
    if (realm !== undefined)
      return {
        scheme: 'bearer',
        realm,
        ...(service === undefined ? {} : { service }),
        ...(scope === undefined ? {} : { scope }),
      };
  }
  return /(?:^|,\s*)basic(?:\s|$|,)/i.test(header) ? { scheme: 'basic' } : undefined;
}

/** `key="value"` pairs up to the next scheme. */
function parameters(text: string): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  const pair = /\s*([A-Za-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)/y;
  for (let match = pair.exec(text); match !== null; match = pair.exec(text)) {
    const name = (match[1] ?? '').toLowerCase();
    fields[name] ??= match[2]?.replace(/\\(.)/g, '$1') ?? match[3] ?? '';
  }
  return fields;
}
