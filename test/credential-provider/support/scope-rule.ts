/**
 * The Machine Config Operator's rule for conflicts: scopes of registries.conf, compared as text. Shows where the kubelet's own
 * matching, which we use, differs.
 */

/** Whether one scope is the other, a path below it, or a host below its wildcard. */
function isNested(inner: string, outer: string): boolean {
  if (inner === outer || inner.startsWith(`${outer}/`)) return true;
  if (!outer.startsWith('*.')) return false;
  const host = inner.split(/[/:]/)[0] ?? '';
  return host.endsWith(outer.slice(1));
}

export function scopesConflict(user: string, provider: string): boolean {
  return isNested(user, provider) || isNested(provider, user);
}
