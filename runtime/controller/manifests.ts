/**
 * Text of manifests to objects: multi-document YAML, JSON, `List` kinds, as `kubectl get -o yaml` prints them. Pure: text in,
 * objects and problems out.
 */

import { LineCounter } from 'yaml';
import { decodeObject } from '../kube/decode.ts';
import { yamlDocument } from '../kube/yaml-documents.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { isRecord, scalarText } from '../rules/record.ts';
import { yamlMistake } from '../rules/text/yaml-mistake.ts';
import { shapeFault } from './object-shape.ts';

/** An object, and where it stands. */
export interface Manifest {
  readonly object: KubeObject;
  readonly file: string;
  /** First line of the document, from 1. */
  readonly line: number;
}

/** Something that could not be read. */
export interface ManifestProblem {
  readonly file: string;
  readonly line: number;
  readonly message: string;
  /** The object is good, and given before: where. */
  readonly first?: { readonly file: string; readonly line: number };
}

export interface Manifests {
  readonly manifests: readonly Manifest[];
  readonly problems: readonly ManifestProblem[];
  /** Documents of kinds that nobody reads, passed over unparsed. */
  readonly skipped: number;
}

/**
 * Parses every document of `text`.
 *
 * @param text content of one file
 * @param file name for messages
 * @param kinds parse only documents of these kinds (and lists); undefined parses all. A document says its kind on a line of
 *   its own, so that the others need not be parsed.
 *
 * @example
 * ```ts
 * import { parseManifests } from './manifests.ts';
 * import assert from 'node:assert/strict';
 *
 * const { manifests, problems } = parseManifests('apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\nkind: 7\n', 'a.yaml');
 * assert.equal(manifests[0]?.object.metadata.name, 'a');
 * assert.equal(problems[0]?.line, 6);
 * ```
 */
export function parseManifests(text: string, file: string, kinds?: ReadonlySet<string>): Manifests {
  const manifests: Manifest[] = [];
  const problems: ManifestProblem[] = [];
  let skipped = 0;
  for (const document of splitDocuments(text)) {
    if (kinds !== undefined && isUnread(document.text, kinds)) {
      skipped += 1;
      continue;
    }
    const parsed = parseOne(document.text, document.line);
    if ('problem' in parsed) problems.push({ file, ...parsed.problem });
    else collect(parsed.value, { file, line: document.line }, manifests, problems);
  }
  return { manifests, problems, skipped };
}

interface Piece {
  readonly text: string;
  readonly line: number;
}

/** A line of three dashes cannot occur inside a document at column 0, so the text can be cut before it is parsed. */
function splitDocuments(text: string): Piece[] {
  const clean = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const pieces: Piece[] = [];
  let start = 0;
  let line = 1;
  const push = (end: number): void => {
    const piece = clean.slice(start, end);
    if (!isBlank(piece)) pieces.push({ text: piece, line });
  };
  for (const marker of clean.matchAll(/^---(?=[ \t\r\n]|$)[^\n]*(?:\n|$)/gm)) {
    push(marker.index);
    line += countLines(clean, start, marker.index) + 1;
    start = marker.index + marker[0].length;
    // What stands on the marker's own line belongs to the document, unless it is a comment.
    const rest = marker[0].slice(3).trim();
    if (rest !== '' && !rest.startsWith('#')) {
      start = marker.index + 3;
      line -= 1;
    }
  }
  push(clean.length);
  return pieces;
}

function isBlank(text: string): boolean {
  return !/^[ \t]*[^\s#]/m.test(text);
}

function countLines(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

function isUnread(text: string, kinds: ReadonlySet<string>): boolean {
  const kind = /^kind:[ \t]*["']?([A-Za-z0-9]+)["']?[ \t]*(?:#[^\n]*)?\r?$/m.exec(text)?.[1];
  return kind !== undefined && !kinds.has(kind) && !kind.endsWith('List');
}

function parseOne(
  text: string,
  line: number,
): { value: unknown } | { problem: { line: number; message: string } } {
  if (/^\s*[{[]/.test(text)) {
    try {
      return { value: JSON.parse(text) };
    } catch {
      // Flow-style YAML also starts with a brace: let the YAML parser judge.
    }
  }
  const lines = new LineCounter();
  const document = yamlDocument(text, lines);
  const error = document.errors[0];
  if (error !== undefined) {
    return {
      problem: {
        line: line + lines.linePos(error.pos[0]).line - 1,
        message: `not valid YAML: ${yamlMistake(error)}`,
      },
    };
  }
  try {
    return { value: document.toJS({ maxAliasCount: 100 }) as unknown };
  } catch (failure) {
    return {
      problem: {
        line,
        message: `not usable YAML: ${failure instanceof Error ? yamlMistake(failure) : 'unknown'}`,
      },
    };
  }
}

function collect(
  value: unknown,
  place: { file: string; line: number },
  manifests: Manifest[],
  problems: ManifestProblem[],
): void {
  if (value === null || value === undefined) return;
  const fault = faultOf(value);
  if (fault !== undefined) {
    problems.push({ ...place, message: fault });
    return;
  }
  const object = value as Readonly<Record<string, unknown>>;
  if (!scalarText(object['kind']).endsWith('List') || !Array.isArray(object['items'])) {
    manifests.push({ object: decodeObject(normalized(object)), ...place });
    return;
  }
  const itemKind = scalarText(object['kind']).slice(0, -'List'.length);
  for (const item of object['items'] as readonly unknown[]) {
    // Items of a typed list leave kind and apiVersion out.
    const whole =
      itemKind === '' || typeof item !== 'object' || item === null
        ? item
        : { apiVersion: object['apiVersion'], kind: itemKind, ...item };
    collect(whole, place, manifests, problems);
  }
}

/** `metadata: {creationTimestamp: null}` and the like come from typed printers, `status:` alone from people; null means absent. */
function normalized(object: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const metadata = object['metadata'] as Readonly<Record<string, unknown>>;
  return { ...withoutNulls(object), metadata: withoutNulls(metadata) };
}

function withoutNulls(map: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(map).filter(([, value]) => value !== null));
}

function faultOf(value: unknown): string | undefined {
  if (!isRecord(value)) return 'not a Kubernetes object: expected a map with apiVersion, kind and metadata';
  const object = value;
  if (typeof object['apiVersion'] !== 'string' || object['apiVersion'] === '') return 'has no apiVersion';
  if (typeof object['kind'] !== 'string' || object['kind'] === '') return 'has no kind';
  if (object['kind'].endsWith('List') && Array.isArray(object['items'])) return undefined;
  const kind = shownKind(object['kind']);
  const fault = metadataFault(kind, object['metadata']);
  if (fault !== undefined) return fault;
  const shape = shapeFault(object);
  return shape === undefined
    ? undefined
    : `${kind} "${(object['metadata'] as { name: string }).name}" has ${shape}`;
}

/** A kind as people write it; anything else is not shown, because a line that slipped may put a credential here. */
function shownKind(kind: string): string {
  return /^[A-Z][A-Za-z]{0,49}$/.test(kind) ? kind : 'an object';
}

function metadataFault(kind: string, metadata: unknown): string | undefined {
  if (typeof metadata !== 'object' || metadata === null) return `${kind} has no metadata`;
  const { name, namespace, labels, annotations } = metadata as Readonly<Record<string, unknown>>;
  if (typeof name !== 'string' || name === '') return `${kind} has no metadata.name`;
  if (!isTextOrAbsent(namespace)) return `${kind} "${name}" has a metadata.namespace that is no text`;
  return (
    textMapFault(`${kind} "${name}"`, 'labels', labels) ??
    textMapFault(`${kind} "${name}"`, 'annotations', annotations)
  );
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string';
}

function textMapFault(subject: string, field: string, map: unknown): string | undefined {
  if (map === undefined || map === null) return undefined;
  if (typeof map !== 'object' || Array.isArray(map)) return `${subject} has metadata.${field} that is no map`;
  const wrong = Object.entries(map).find(([, entry]) => typeof entry !== 'string');
  return wrong === undefined
    ? undefined
    : `${subject} has metadata.${field}["${wrong[0]}"] that is no text: quote it`;
}
