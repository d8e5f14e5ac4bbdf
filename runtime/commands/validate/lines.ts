/** Lines of the places within objects: an object's own line helps little where it has a thousand entries. */
import { isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml';
import { KUBERNETES_SCHEMA } from '../../kube/yaml-schema.ts';
import { describeObject } from '../../rules/kubernetes/object.ts';

/** Finds the line of `path` within the object that {@link describeObject} calls `subject`; undefined where the text does not have it. */
export type LineFinder = (subject: string, path: string) => number | undefined;

/**
 * Reads a text of manifests for its lines. A path that goes deeper than the text leads to the last part that is there.
 *
 * @example
 * ```ts
 * import { lineFinder } from './lines.ts';
 * import assert from 'node:assert/strict';
 *
 * const lines = lineFinder('kind: A\nmetadata:\n  name: a\nspec:\n  list:\n    - x\n    - y\n');
 * assert.equal(lines('A/a', 'spec.list[1]'), 7);
 * ```
 */
export function lineFinder(text: string): LineFinder {
  const counter = new LineCounter();
  const documents = parseAllDocuments(text, {
    ...KUBERNETES_SCHEMA,
    uniqueKeys: false,
    lineCounter: counter,
    logLevel: 'silent',
    prettyErrors: false,
  });
  const roots = new Map<string, Node>();
  for (const root of Array.isArray(documents)
    ? documents.flatMap(({ contents }) => objectsIn(contents))
    : []) {
    const subject = subjectOf(root);
    if (!roots.has(subject)) roots.set(subject, root);
  }
  return (subject, path) => {
    const root = roots.get(subject);
    const start = root === undefined ? undefined : startOf(root, partsOf(path));
    return start === undefined ? undefined : counter.linePos(start).line;
  };
}

function subjectOf(root: Node): string {
  const namespace = textAt(root, ['metadata', 'namespace']);
  const name = textAt(root, ['metadata', 'name']) ?? '';
  return describeObject({ kind: textAt(root, ['kind']) ?? '', namespace, name });
}

/** The object, or those of a list. */
function objectsIn(node: unknown): readonly Node[] {
  if (!isMap(node)) return [];
  const items = node.get('items', true);
  return isSeq(items) ? items.items.flatMap(objectsIn) : [node];
}

function textAt(node: Node, path: readonly string[]): string | undefined {
  const found = isMap(node) ? node.getIn(path) : undefined;
  return typeof found === 'string' ? found : undefined;
}

/** `spec.list[1].mirrors` and `data[".dockerconfigjson"]`, up to what is no such part. */
function partsOf(path: string): readonly (string | number)[] {
  const parts: (string | number)[] = [];
  let rest = path;
  for (;;) {
    const found = /^(?:\.?([A-Za-z_][\w-]*)|\[(\d+)\]|\["([^"]*)"\])/.exec(rest);
    if (found === null) return parts;
    const [whole, name, index, key] = found;
    parts.push(index === undefined ? (name ?? key ?? '') : Number(index));
    rest = rest.slice(whole.length);
  }
}

function startOf(root: Node, parts: readonly (string | number)[]): number | undefined {
  let node: Node | undefined = root;
  let start = root.range?.[0];
  for (const part of parts) {
    const step = stepInto(node, part);
    if (step === undefined) break;
    start = step.at.range?.[0] ?? start;
    node = step.value;
  }
  return start;
}

interface Step {
  /** Where the part begins: its key, or the item. */
  readonly at: Node;
  readonly value: Node | undefined;
}

function stepInto(node: Node | undefined, part: string | number): Step | undefined {
  if (isSeq(node)) {
    const item = typeof part === 'number' ? node.items[part] : undefined;
    return isNode(item) ? { at: item, value: item } : undefined;
  }
  const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && key.value === part) : undefined;
  if (pair === undefined || !isNode(pair.key)) return undefined;
  return { at: pair.key, value: isNode(pair.value) ? pair.value : undefined };
}
