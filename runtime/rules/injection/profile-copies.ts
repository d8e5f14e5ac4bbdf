/** `spec.copies` of a profile: what its copies carry besides the credential, and what becomes of them when a source is deleted. */

import { parseGoDuration } from '../go/duration.ts';
import { isLabelKey, isLabelValue } from '../kubernetes/label-selector.ts';
import { LAST_APPLIED } from '../kubernetes/object.ts';
import type { Shape } from '../kubernetes/shape.ts';
import { scalarText } from '../record.ts';

/** Read. */
export interface ProfileCopies {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** How long after a source was deleted its entries leave the copies; undefined: they stay. */
  readonly removeAfterMs: number | undefined;
}

/** What a profile without `spec.copies` says. */
export const PLAIN_COPIES: ProfileCopies = { labels: {}, annotations: {}, removeAfterMs: undefined };

export const ON_SOURCE_DELETED: readonly ['Keep', 'Remove'] = ['Keep', 'Remove'];
export const DEFAULT_REMOVE_AFTER = '24h';
/** Labels, and annotations. */
export const MAX_COPY_MARKS = 16;
export const MAX_ANNOTATION_LENGTH = 1024;
/** Ours, by which copies are found and pruned. */
export const RESERVED_PREFIX = 'pullwright.dev/';
export const RESERVED_KEYS: readonly string[] = ['app.kubernetes.io/managed-by', LAST_APPLIED];

export const COPIES_SHAPE: Shape = {
  fields: {
    labels: { map: 'string' },
    annotations: { map: 'string' },
    onSourceDeleted: 'string',
    removeAfter: 'string',
  },
};

type Raw = Readonly<Record<string, unknown>>;

/**
 * Reads `spec.copies`, whose shape was checked. Total; adds what is wrong to `problems`, each with its path.
 *
 * @example
 * ```ts
 * import { readCopies } from './profile-copies.ts';
 * import assert from 'node:assert/strict';
 *
 * const problems: string[] = [];
 * const copies = readCopies({ labels: { team: 'red' }, onSourceDeleted: 'Remove', removeAfter: '1h' }, 'spec.copies', problems);
 * assert.deepEqual([copies.labels, copies.removeAfterMs, problems], [{ team: 'red' }, 3_600_000, []]);
 * readCopies({ labels: { 'pullwright.dev/owner': 'me' } }, 'spec.copies', problems);
 * assert.deepEqual(problems, ['spec.copies.labels: "pullwright.dev/owner" is reserved']);
 * ```
 */
export function readCopies(value: unknown, path: string, problems: string[]): ProfileCopies {
  if (value === undefined || value === null) return PLAIN_COPIES;
  const raw = value as Raw;
  const labels = marksOf(raw['labels'], `${path}.labels`, problems);
  for (const [key, text] of Object.entries(labels))
    if (!isLabelValue(text)) problems.push(`${path}.labels: "${key}" has a value that is no label value`);
  const annotations = marksOf(raw['annotations'], `${path}.annotations`, problems);
  for (const [key, text] of Object.entries(annotations))
    if (text.length > MAX_ANNOTATION_LENGTH)
      problems.push(
        `${path}.annotations: "${key}" has ${text.length} characters, at most ${MAX_ANNOTATION_LENGTH} are allowed`,
      );
  return { labels, annotations, removeAfterMs: removeAfterOf(raw, path, problems) };
}

function marksOf(value: unknown, path: string, problems: string[]): Readonly<Record<string, string>> {
  const marks = (value ?? {}) as Readonly<Record<string, string>>;
  const keys = Object.keys(marks);
  if (keys.length > MAX_COPY_MARKS)
    problems.push(`${path}: ${keys.length} entries, at most ${MAX_COPY_MARKS} are allowed`);
  for (const key of keys) {
    if (!isLabelKey(key)) problems.push(`${path}: ${JSON.stringify(key.slice(0, 80))} is no valid key`);
    else if (key.startsWith(RESERVED_PREFIX) || RESERVED_KEYS.includes(key))
      problems.push(`${path}: "${key}" is reserved`);
  }
  return marks;
}

function removeAfterOf(raw: Raw, path: string, problems: string[]): number | undefined {
  const { onSourceDeleted = 'Keep', removeAfter } = raw;
  if (!(ON_SOURCE_DELETED as readonly unknown[]).includes(onSourceDeleted))
    problems.push(
      `${path}.onSourceDeleted: ${JSON.stringify(scalarText(onSourceDeleted).slice(0, 80))} is none of ${ON_SOURCE_DELETED.join(', ')}`,
    );
  const given = removeAfter ?? DEFAULT_REMOVE_AFTER;
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === undefined || nanoseconds < 0)
    problems.push(
      `${path}.removeAfter: invalid value ${JSON.stringify(text.slice(0, 80))}: must be a duration such as "30m" or "24h"`,
    );
  if (onSourceDeleted !== 'Remove') {
    if (removeAfter !== undefined && removeAfter !== null)
      problems.push(`${path}.removeAfter: has no meaning without onSourceDeleted: Remove`);
    return undefined;
  }
  return (nanoseconds ?? 0) / 1e6;
}
