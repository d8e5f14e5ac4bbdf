/** What can be said of a Secret value without showing it: which registries a pull secret names, what was added, what rotated. */
import { readEntryMembers } from '../../rules/docker-config/entry-members.ts';
import { secretDataText } from '../../rules/docker-config/secret-text.ts';
import { digestOfNode } from '../../rules/docker-config/usable.ts';
import { type Redacted, reveal } from '../../rules/redacted.ts';

/**
 * Describes the change of one `data` value (base64) of a Secret.
 *
 * @example
 * ```ts
 * import { describeSecretValue } from './secret-summary.ts';
 * import { redact } from '../../rules/redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const value = (auths: object) => redact(Buffer.from(JSON.stringify({ auths })).toString('base64'));
 * const before = value({ 'quay.io': { auth: 'b2xkOm9sZA==' }, 'old.example': {} });
 * const after = value({ 'quay.io': { auth: 'bmV3Om5ldw==' }, 'new.example': {} });
 * assert.equal(describeSecretValue(before, after), 'pull secret: added new.example; removed old.example; changed quay.io');
 * assert.equal(describeSecretValue(undefined, redact('AAAA')), '[redacted] (3 bytes)');
 * ```
 */
export function describeSecretValue(
  before: Redacted<string> | undefined,
  after: Redacted<string> | undefined,
): string {
  const [old, next] = [entriesOf(before), entriesOf(after)];
  if (next !== undefined && old === undefined)
    return `pull secret for ${[...next.keys()].join(', ') || 'no registry'}`;
  if (next !== undefined && old !== undefined) return describeEntries(old, next);
  if (after === undefined) return 'removed';
  const size = Buffer.from(reveal(after), 'base64').length;
  return before === undefined ? `[redacted] (${size} bytes)` : `[redacted] (changed, ${size} bytes)`;
}

function describeEntries(old: ReadonlyMap<string, string>, next: ReadonlyMap<string, string>): string {
  const lists = {
    added: [...next.keys()].filter((key) => !old.has(key)),
    removed: [...old.keys()].filter((key) => !next.has(key)),
    changed: [...next].flatMap(([key, entry]) => (old.has(key) && old.get(key) !== entry ? [key] : [])),
  };
  const parts = Object.entries(lists).flatMap(([word, keys]) =>
    keys.length === 0 ? [] : [`${word} ${keys.join(', ')}`],
  );
  return `pull secret: ${parts.join('; ') || 'the same entries, written otherwise'}`;
}

/** Registry to the digest of its entry, or undefined when the value is no pull secret. */
function entriesOf(value: Redacted<string> | undefined): ReadonlyMap<string, string> | undefined {
  if (value === undefined) return undefined;
  const found = readEntryMembers(reveal(secretDataText(value)), 'config.json');
  if (found?.present !== true) return undefined;
  return new Map([...found.entries].map(([key, member]) => [key, digestOfNode(member.value)]));
}
