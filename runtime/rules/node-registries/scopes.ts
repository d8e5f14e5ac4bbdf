/**
 * Scopes of the operator: `host[:port][/path]`, or `*.example.org` for every host below a domain; and which lie inside which.
 *
 * Source of the rule: openshift/runtime-utils `ScopeIsNestedInsideScope` and `IsValidRegistriesConfScope`. The runtime sees one
 * case differently: for it, `host` also covers `host:5000`.
 */

/**
 * Every scope that `scope` lies in, itself first. Those that hold a host or a path come from the narrowest to the widest, then the
 * wildcards.
 *
 * @example
 * ```ts
 * import { scopesAround } from './scopes.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(scopesAround('a.example.com/team/app'), [
 *   'a.example.com/team/app', 'a.example.com/team', 'a.example.com', '*.example.com', '*.com',
 * ]);
 * assert.deepEqual(scopesAround('localhost:5000'), ['localhost:5000']);
 * ```
 */
export function scopesAround(scope: string): readonly string[] {
  const found = [scope];
  for (let end = scope.lastIndexOf('/'); end > 0; end = scope.lastIndexOf('/', end - 1))
    found.push(scope.slice(0, end));
  const host = hostOf(scope);
  for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1)) {
    const wildcard = `*${host.slice(dot)}`;
    if (wildcard !== scope) found.push(wildcard);
  }
  return found;
}

/** Whether `inner` is `outer` or lies in it. */
export function isInside(inner: string, outer: string): boolean {
  if (inner === outer || inner.startsWith(`${outer}/`)) return true;
  return outer.startsWith('*.') && hostOf(inner).endsWith(outer.slice(1));
}

/** What a wildcard is compared with: nothing when a colon comes after a slash. */
function hostOf(scope: string): string {
  const colon = scope.indexOf(':');
  if (colon === -1) return scope.split('/', 1)[0] ?? '';
  const host = scope.slice(0, colon);
  return host.includes('/') ? '' : host;
}

/** Whether the operator takes `scope` as an insecure, blocked or allowed registry. It looks at wildcards only. */
export function isScope(scope: string): boolean {
  if (scope === '') return false;
  if (!scope.includes('*')) return true;
  return scope.startsWith('*.') && !/[/@:*]/.test(scope.slice(2));
}
