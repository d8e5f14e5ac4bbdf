/**
 * What the YAML library takes minutes for in a megabyte: keys that stand twice, for which it compares each with all before it, and
 * aliases, each of which it looks up in the whole document.
 */

/** Far more than any manifest has, and few enough to look up. */
export const MOST_ALIASES = 1000;

/** A node as the library gives it. Only a map holds pairs, only a pair has a key, and an alias names its anchor and has no value. */
interface YamlNode {
  readonly items?: readonly unknown[];
  readonly key?: unknown;
  readonly value?: unknown;
  readonly source?: unknown;
  readonly range?: readonly [number, number, number] | null;
}

/**
 * Where the second of two equal keys of one map begins and ends, in the order of the text. Linear in the document, and as deep as that is.
 *
 * @param contents of a document of the library, which was told not to look for them itself
 *
 * @example
 * ```ts
 * import { repeatedKeys } from './yaml-nodes.ts';
 * import assert from 'node:assert/strict';
 * import { parseDocument } from 'yaml';
 *
 * const { contents } = parseDocument('a: {b: 1, b: 2}\nc: 1\n', { uniqueKeys: false });
 * assert.deepEqual(repeatedKeys(contents), [[10, 11]]);
 * ```
 */
export function repeatedKeys(contents: unknown): readonly (readonly [start: number, end: number])[] {
  const found: (readonly [number, number])[] = [];
  const open: YamlNode[] = isNode(contents) ? [contents] : [];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const seen = new Set<unknown>();
    for (const item of node.items ?? []) {
      const { key, value } = isNode(item) ? item : {};
      if (isScalar(key) && seen.size === seen.add(key.value).size && key.range)
        found.push([key.range[0], key.range[1]]);
      open.push(...[item, key, value].filter(isNode).filter(({ items }) => items !== undefined));
    }
  }
  return found.sort(([a], [b]) => a - b);
}

/**
 * Where the first alias too many begins and ends; undefined where there are no more than {@link MOST_ALIASES}. Linear in the document.
 *
 * @param contents of a document of the library
 *
 * @example
 * ```ts
 * import { aliasTooMany, MOST_ALIASES } from './yaml-nodes.ts';
 * import assert from 'node:assert/strict';
 * import { parseDocument } from 'yaml';
 *
 * const document = (aliases: number) => parseDocument(`a: &x 1\nb: [${'*x, '.repeat(aliases)}]`);
 * assert.equal(aliasTooMany(document(MOST_ALIASES).contents), undefined);
 * assert.deepEqual(aliasTooMany(document(MOST_ALIASES + 1).contents), [4012, 4014]);
 * ```
 */
export function aliasTooMany(contents: unknown): readonly [start: number, end: number] | undefined {
  const found: (readonly [number, number])[] = [];
  const open: unknown[] = [contents];
  while (open.length > 0) {
    const node = open.pop();
    if (!isNode(node)) continue;
    if (typeof node.source === 'string' && !('value' in node))
      found.push([node.range?.[0] ?? 0, node.range?.[1] ?? 0]);
    for (const item of node.items ?? []) open.push(item);
    open.push(node.key, node.value);
  }
  return found.sort(([a], [b]) => a - b)[MOST_ALIASES];
}

function isNode(value: unknown): value is YamlNode {
  return typeof value === 'object' && value !== null;
}

function isScalar(key: unknown): key is YamlNode {
  return isNode(key) && key.items === undefined && 'value' in key;
}
