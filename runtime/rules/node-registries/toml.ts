/** The text of the operator's files, letter for letter: the daemon of a node compares them as text. */
import type { MirrorRule } from '../mirrors/mirrors.ts';

/**
 * `registries.conf` with these entries.
 *
 * @param search short names are looked up there; the template of the operator has two. @default {TEMPLATE_SEARCH}
 * @example
 * ```ts
 * import { registriesText } from './toml.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.match(registriesText([]), /^unqualified-search-registries = \["registry.access.redhat.com", "docker.io"\]\n/);
 * ```
 */
export function registriesText(
  rules: readonly MirrorRule[],
  search: readonly string[] = TEMPLATE_SEARCH,
): string {
  return [headText(search), ...rules.map(tableText)].join('\n');
}

/** The drop-in with the search registries of the Image object. */
export function headText(search: readonly string[]): string {
  return `unqualified-search-registries = [${search.map(quoted).join(', ')}]\nshort-name-mode = ""\nadditional-layer-store-auth-helper = ""\n`;
}

/** What the operator's template has where the Image object says nothing. */
export const TEMPLATE_SEARCH: readonly string[] = ['registry.access.redhat.com', 'docker.io'];

function tableText(rule: MirrorRule): string {
  const lines = [
    '[[registry]]',
    `  prefix = ${quoted(rule.prefix.startsWith('*.') ? rule.prefix : '')}`,
    ...(rule.location === '' ? [] : [`  location = ${quoted(rule.location)}`]),
    ...(rule.insecure ? ['  insecure = true'] : []),
    ...(rule.blocked ? ['  blocked = true'] : []),
  ];
  for (const mirror of rule.mirrors) {
    lines.push('', '  [[registry.mirror]]', `    location = ${quoted(mirror.location)}`);
    if (mirror.insecure === true) lines.push('    insecure = true');
    if (mirror.pullFrom !== 'all') lines.push(`    pull-from-mirror = ${quoted(mirror.pullFrom)}`);
  }
  return `${lines.join('\n')}\n`;
}

/** As BurntSushi/toml writes a string. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007f');
}
