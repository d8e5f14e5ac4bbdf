/**
 * Keys that stand twice in a map of YAML. The library compares each key with all before it, so that a megabyte of them takes minutes.
 */

/** A node as the library gives it. Only a map holds pairs, and only a pair has a key. */
interface YamlNode {
  readonly items?: readonly unknown[];
  readonly key?: unknown;
  readonly value?: unknown;
  readonly range?: readonly [number, number, number] | null;
}

/**
 * Where the second of two equal keys of one map begins and ends, in the order of the text. Linear in the document, and as deep as that is.
 *
 * @param contents of a document of the library, which was told not to look for them itself
 *
 * @example
 * ```ts
 * import { repeatedKeys } from './repeated-keys.ts';
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

function isNode(value: unknown): value is YamlNode {
  return typeof value === 'object' && value !== null;
}

function isScalar(key: unknown): key is YamlNode {
  return isNode(key) && key.items === undefined && 'value' in key;
}
