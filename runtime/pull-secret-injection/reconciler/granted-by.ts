/**
 * What a copy says its sources were granted by. It is written on the copy because a grant that was withdrawn takes the copy away, and
 * one that was lost with what held it, or that the labels of the namespace no longer meet, does not.
 */
import { createHash } from 'node:crypto';
import type { LabelRequirement } from '../../rules/kubernetes/label-selector.ts';
import type { SecretObject } from '../../rules/kubernetes/object.ts';

/**
 * On a copy, separated by `, `: `<namespace>/<name> grant/<grant>@<uid of its namespace>` or
 * `<namespace>/<name> annotation/<uid of the source>`, and behind either `#<selector>` where a selector gave it and not a name.
 */
export const GRANTED_BY_ANNOTATION = 'pullwright.dev/granted-by';

/** What a copy says its sources were granted by: of each source, the text that {@link readGiver} reads. */
export type GrantRecord = ReadonlyMap<string, string>;

/** Who gave one source to a copy. */
export interface Giver {
  readonly kind: 'grant' | 'annotation' | 'unknown';
  /** Of the grant. */
  readonly name: string;
  /** Of the namespace of the grant, or of the annotated Secret; undefined when it was not known. */
  readonly uid: string | undefined;
  /** {@link selectorMark}; undefined when a name gave it. */
  readonly selector: string | undefined;
}

/** Reads the record of a copy. */
export function grantRecordOf(copy: SecretObject | undefined): GrantRecord {
  const text = copy?.metadata.annotations?.[GRANTED_BY_ANNOTATION];
  const entries = typeof text === 'string' && text !== '' ? text.split(', ') : [];
  return new Map(
    entries.map((entry): [string, string] => {
      const [source = '', by = ''] = entry.split(' ');
      return [source, by];
    }),
  );
}

/** The annotation that {@link grantRecordOf} reads. */
export function grantRecordText(record: GrantRecord): string {
  return [...record].map(([source, by]) => `${source} ${by}`).join(', ');
}

/** One element of a record. */
export function giverText({ kind, name, uid, selector }: Giver): string {
  const behind = selector === undefined ? '' : `#${selector}`;
  return kind === 'annotation'
    ? `annotation/${uid ?? ''}${behind}`
    : `grant/${name}${uid === undefined ? '' : `@${uid}`}${behind}`;
}

/** Reads one element of a record. Total: what nobody wrote so is `unknown`. */
export function readGiver(text: string): Giver {
  const [by = '', selector] = text.split('#');
  if (by.startsWith('annotation/'))
    return { kind: 'annotation', name: '', uid: by.slice('annotation/'.length), selector };
  if (!by.startsWith('grant/')) return { kind: 'unknown', name: '', uid: undefined, selector: undefined };
  const [name = '', uid] = by.slice('grant/'.length).split('@');
  return { kind: 'grant', name, uid, selector };
}

const marks = new WeakMap<readonly LabelRequirement[], string>();

/** A short text that is another one when the selector is. */
export function selectorMark(requirements: readonly LabelRequirement[]): string {
  const known = marks.get(requirements);
  if (known !== undefined) return known;
  const mark = createHash('sha256').update(JSON.stringify(requirements)).digest('hex').slice(0, 8);
  marks.set(requirements, mark);
  return mark;
}
