/**
 * Rules as a drop-in for `/etc/containers/registries.conf.d`, in the plain form that registries-conf-plain.ts reads without a
 * TOML parser.
 *
 * Source of the rule: containers-registries.conf(5).
 */
import type { MirrorRule } from './mirrors.ts';

/**
 * @example
 * ```ts
 * import { formatRegistriesConf } from './conf.ts';
 * import { parseRegistriesConf } from './registries-conf.ts';
 * import { parsePlain } from './registries-conf-plain.ts';
 * import assert from 'node:assert/strict';
 *
 * const rule = {
 *   prefix: 'quay.io', location: 'quay.io', blocked: false, insecure: false,
 *   mirrors: [{ location: 'mirror.example.com', pullFrom: 'digest-only' as const }],
 * };
 * assert.deepEqual(parseRegistriesConf(formatRegistriesConf([rule]), parsePlain), [rule]);
 * ```
 */
export function formatRegistriesConf(rules: readonly MirrorRule[]): string {
  return rules.map(tableOf).join('\n');
}

function tableOf(rule: MirrorRule): string {
  const lines = [
    '[[registry]]',
    // Without a location, a wildcard is not rewritten.
    ...(rule.prefix === rule.location ? [] : [`prefix = ${quoted(rule.prefix)}`]),
    ...(rule.location === '' ? [] : [`location = ${quoted(rule.location)}`]),
    ...(rule.blocked ? ['blocked = true'] : []),
    ...(rule.insecure ? ['insecure = true'] : []),
  ];
  for (const mirror of rule.mirrors) {
    lines.push('[[registry.mirror]]', `location = ${quoted(mirror.location)}`);
    if (mirror.pullFrom !== 'all') lines.push(`pull-from-mirror = ${quoted(mirror.pullFrom)}`);
  }
  return `${lines.join('\n')}\n`;
}

/** A TOML basic string. What comes from a mirror set needs no escape; what comes from elsewhere may. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}
