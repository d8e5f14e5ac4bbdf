/**
 * The rule by which the Machine Config Operator finds conflicts: scopes of registries.conf, compared as texts. Written down to
 * tell where the kubelet's own matching, which we go by, answers differently.
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
