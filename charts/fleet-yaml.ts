/** Parses a fleet from YAML text: its value, and the position of each field. */
import { type Document, isMap, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import { scalarText } from '../runtime/core/record.ts';
import { yamlExcesses, yamlMistake } from '../runtime/kube/yaml.ts';
import type { FieldPath, FleetProblem, LocatedProblem } from './fleet-problems.ts';

/** Result of {@link readFleetYaml}. */
export interface FleetYaml {
  /** Undefined when the text is not valid YAML. */
  readonly value: unknown;
  /** Problems of the text: tabs, duplicate keys, more than one document. */
  readonly problems: readonly LocatedProblem[];
  /** Adds line and column of the field, or of the nearest existing parent. */
  locate(problem: FleetProblem): LocatedProblem;
}

/**
 * Parses YAML text. Never throws.
 *
 * @example
 * ```ts
 * import { readFleetYaml } from './fleet-yaml.ts';
 * import assert from 'node:assert/strict';
 *
 * const fleet = readFleetYaml('clusters:\n  - name: a\n');
 * const { line, column } = fleet.locate({ path: ['clusters', 0, 'name'], text: '' });
 * assert.deepEqual([line, column], [2, 11]);
 * ```
 */
export function readFleetYaml(text: string): FleetYaml {
  const lines = new LineCounter();
  const documents: readonly Document[] = parseAllDocuments(text, {
    lineCounter: lines,
    uniqueKeys: false,
    logLevel: 'error',
  });
  const [document, second] = documents;
  const at = (offset: number): { line: number; column: number } => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const locate = (problem: FleetProblem): LocatedProblem => ({
    ...problem,
    ...at(offsetOf(document, problem.path)),
  });
  if (document === undefined)
    return { value: undefined, problems: [{ path: [], text: 'the file is empty' }], locate };
  const found = (text: string, offset: number): LocatedProblem => ({ path: [], text, ...at(offset) });
  const problems = [
    ...document.errors.map((error) => found(fleetMistake(error), error.pos[0])),
    ...yamlExcesses(document).repeatedKeys.map(([start]) => found('duplicate key', start)),
    ...(second === undefined
      ? []
      : [found(`the file has ${documents.length} documents, expected one`, startOf(second))]),
  ];
  return { ...valueOf(document, problems), locate };
}

function valueOf(document: Document, problems: readonly LocatedProblem[]): Omit<FleetYaml, 'locate'> {
  // The document is readable despite a duplicate key. Other syntax errors would only cause follow-up errors.
  if (document.errors.length > 0) return { value: undefined, problems };
  let text = 'more than 100 aliases are not allowed';
  try {
    if (yamlExcesses(document).aliasTooMany === undefined) return { value: document.toJS(), problems };
  } catch (error) {
    // Aliases of aliases: more than 100 when resolved; or an alias without an anchor.
    if (error instanceof Error && error.message.startsWith('Unresolved'))
      text = `not valid YAML: ${yamlMistake(error)}`;
  }
  return { value: undefined, problems: [...problems, { path: [], text }] };
}

function fleetMistake(error: { readonly code: string; readonly message: string }): string {
  if (error.code === 'TAB_AS_INDENT') return 'a tab as indentation, expected spaces';
  return `not valid YAML: ${yamlMistake(error)}`;
}

/** Start offset of the key at `path`, or of its deepest existing parent. */
function offsetOf(document: Document | undefined, path: FieldPath): number {
  let node: unknown = document?.contents;
  let offset = 0;
  for (const part of path) {
    const step = stepInto(node, part);
    if (step === undefined) break;
    offset = step.offset;
    node = step.node;
  }
  return offset;
}

function stepInto(node: unknown, part: string | number) {
  if (isSeq(node)) {
    const item = node.items[Number(part)];
    return item === undefined ? undefined : { node: item, offset: startOf(item) };
  }
  if (!isMap(node)) return undefined;
  const pair = node.items.find((one) => isScalar(one.key) && scalarText(one.key.value) === scalarText(part));
  if (pair === undefined) return undefined;
  return { node: pair.value, offset: isScalar(pair.value) ? startOf(pair.value) : startOf(pair.key) };
}

function startOf(node: unknown): number {
  return (node as { range?: readonly number[] | null }).range?.[0] ?? 0;
}
