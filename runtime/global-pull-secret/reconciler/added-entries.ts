/**
 * Which entries of a merged pull secret came from the additional one, as an annotation on the merge: one bit per entry, in the
 * order of the document. However many entries a tenant has, it stays far below what annotations may hold.
 */
import { parseDockerConfig } from '../../rules/docker-config/docker-config.ts';
import type { MergedEntry } from '../../rules/docker-config/merge.ts';
import { compareBytes } from '../../rules/go/bytes.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Redacted } from '../../rules/redacted.ts';

/** On `global-pull-secret`: `<number of entries>:<base64 of the bits>`. */
export const ADDED_ENTRIES_ANNOTATION = 'pullwright.dev/additional-entries';

/** What releases before wrote: the keys themselves, as JSON. */
export const ADDITIONAL_KEYS_ANNOTATION = 'pullwright.dev/additional-keys';

/**
 * The value of the annotation for a merge.
 *
 * @param entries of the merge, sorted by key
 * @example
 * ```ts
 * import { addedEntries } from './added-entries.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(addedEntries([{ key: 'a.io', source: 'additional' }, { key: 'b.io', source: 'original' }]), '2:AQ==');
 * ```
 */
export function addedEntries(entries: readonly MergedEntry[]): string {
  const bits = new Uint8Array(Math.ceil(entries.length / 8));
  for (const [at, { source }] of entries.entries()) {
    const byte = at >> 3;
    if (source !== 'original') bits[byte] = (bits[byte] ?? 0) | (1 << (at & 7));
  }
  return `${entries.length}:${Buffer.from(bits).toString('base64')}`;
}

/** The keys of the merge in `global` that came from the additional secret; undefined when it does not say. */
export function addedKeys(global: KubeObject, text: Redacted<string>): readonly string[] | undefined {
  const annotations = global.metadata.annotations ?? {};
  const marked = annotations[ADDED_ENTRIES_ANNOTATION];
  if (typeof marked === 'string') return keysOf(marked, text);
  const listed = annotations[ADDITIONAL_KEYS_ANNOTATION];
  return typeof listed === 'string' ? parseKeys(listed) : undefined;
}

/** Undefined when the document is not the one that was marked: somebody changed it since. */
function keysOf(marked: string, text: Redacted<string>): readonly string[] | undefined {
  const parsed = parseDockerConfig(text);
  if (!parsed.ok) return undefined;
  const keys = parsed.config.entries.map(({ key }) => key.written).sort(compareBytes);
  const [count, bits = ''] = marked.split(':');
  if (count !== String(keys.length)) return undefined;
  const bytes = Buffer.from(bits, 'base64');
  return keys.filter((_, at) => ((bytes[at >> 3] ?? 0) & (1 << (at & 7))) !== 0);
}

function parseKeys(annotation: string): readonly string[] {
  try {
    const keys: unknown = JSON.parse(annotation);
    return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [];
  } catch {
    return [];
  }
}
