/**
 * Which of a management cluster's mirror sets one hosted cluster follows, by annotations on its HostedCluster.
 *
 * Source of the rule: ours. The existing system gives every mirror to every hosted cluster, and a private one breaks the
 * installation of those that cannot reach it.
 */
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { MIRROR_SET_KINDS } from '../rules/mirrors/collect.ts';
import { sourceProblem } from '../rules/mirrors/syntax.ts';
import { scalarText } from '../rules/record.ts';

/** `off`: follow no mirror set. */
export const SWITCH_ANNOTATION = 'pullwright.dev/registry-overrides';
/** Follow only these: sources (with all below them) or mirror sets as `Kind/name`, joined by commas. */
export const ALLOW_ANNOTATION = 'pullwright.dev/registry-overrides-allow';
/** Do not follow these; stronger than the list of allowed ones. */
export const DENY_ANNOTATION = 'pullwright.dev/registry-overrides-deny';

export interface ImageSelection {
  readonly off: boolean;
  /** Absent: everything is allowed. */
  readonly allow?: readonly string[];
  readonly deny: readonly string[];
  /** What is wrong with the annotations, each as a sentence that names the annotation. */
  readonly problems: readonly string[];
}

/**
 * Reads the annotations. An entry that means nothing is left out and reported, the others count.
 *
 * @example
 * ```ts
 * import { readSelection, isSelected } from './selection.ts';
 * import assert from 'node:assert/strict';
 *
 * const selection = readSelection({ 'pullwright.dev/registry-overrides-deny': 'quay.io/private, ImageDigestMirrorSet/lab' });
 * assert.equal(isSelected(selection, 'quay.io/private/app', 'ImageDigestMirrorSet/release'), false);
 * assert.equal(isSelected(selection, 'quay.io', 'ImageDigestMirrorSet/release'), true);
 * assert.equal(isSelected(selection, 'quay.io', 'ImageDigestMirrorSet/lab'), false);
 * ```
 */
export function readSelection(annotations: Readonly<Record<string, unknown>>): ImageSelection {
  const problems: string[] = [];
  const state = annotations[SWITCH_ANNOTATION] ?? 'on';
  if (state !== 'on' && state !== 'off')
    problems.push(`${SWITCH_ANNOTATION} is ${quoted(state)}: expected "on" or "off"`);
  const allow = readList(annotations, ALLOW_ANNOTATION, problems);
  const deny = readList(annotations, DENY_ANNOTATION, problems);
  return { off: state === 'off', ...(allow === undefined ? {} : { allow }), deny: deny ?? [], problems };
}

/** Whether the hosted cluster follows the entry for `source` of the mirror set `object` (`Kind/name`). */
export function isSelected(selection: ImageSelection, source: string, object: string): boolean {
  if (selection.off) return false;
  const named = (entry: string): boolean => entry === object || isBelow(source, entry);
  if (selection.deny.some(named)) return false;
  return selection.allow === undefined || selection.allow.some(named);
}

/** The mirror sets with only the entries that the hosted cluster follows. Others come back as they are. */
export function selectEntries(
  objects: readonly KubeObject[],
  selection: ImageSelection,
): readonly KubeObject[] {
  if (!selection.off && selection.allow === undefined && selection.deny.length === 0) return objects;
  return objects.map((object) => {
    const list = MIRROR_SET_KINDS.find((set) => set.kind === object.kind)?.list;
    const spec = object.spec as Readonly<Record<string, unknown>> | null | undefined;
    const entries = list === undefined ? undefined : spec?.[list];
    if (list === undefined || !Array.isArray(entries)) return object;
    const name = `${object.kind}/${object.metadata.name}`;
    const kept = (entries as readonly ({ source?: unknown } | null)[]).filter((entry) =>
      isSelected(selection, typeof entry?.source === 'string' ? entry.source : '', name),
    );
    return { ...object, spec: { ...spec, [list]: kept } };
  });
}

function isBelow(source: string, entry: string): boolean {
  if (source === entry || source.startsWith(`${entry}/`)) return true;
  if (!entry.startsWith('*.')) return false;
  const host = (source.split('/')[0] ?? '').replace(/:\d+$/, '');
  return host.endsWith(entry.slice(1));
}

function readList(
  annotations: Readonly<Record<string, unknown>>,
  name: string,
  problems: string[],
): readonly string[] | undefined {
  const text = annotations[name];
  if (typeof text !== 'string') return undefined;
  const entries = text.split(',').map((entry) => entry.trim());
  const usable = entries.filter((entry) => {
    const reason = problemOf(entry);
    if (reason !== undefined) problems.push(`${name} has the entry ${quoted(entry)}: ${reason}`);
    return reason === undefined;
  });
  return usable;
}

function problemOf(entry: string): string | undefined {
  if (MIRROR_SET_KINDS.some((set) => entry.startsWith(`${set.kind}/`) && entry.length > set.kind.length + 1))
    return undefined;
  const reason = sourceProblem(entry);
  return reason === undefined
    ? undefined
    : `expected a source such as "quay.io/team" or "ImageDigestMirrorSet/name"`;
}

function quoted(value: unknown): string {
  return JSON.stringify(typeof value === 'string' ? value.slice(0, 100) : scalarText(value));
}
