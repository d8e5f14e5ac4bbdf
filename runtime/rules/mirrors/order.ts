/**
 * Several lists of mirrors for one source become one list, in the order that the nodes get.
 *
 * Source of the rule: openshift/runtime-utils `pkg/registries` (`addMirrorSet`, `topoGraph.Sorted`), recorded in
 * test/conformance/cases/mco-registries: a topological sort, level by level, with ties and loops decided by name.
 */

/** The merged order, and the first pair that the lists put in opposite orders, if any. */
export interface MergedOrder {
  /** Without the source where that comes last: the runtime asks it last anyway. */
  readonly order: readonly string[];
  readonly conflict?: readonly [string, string];
}

/**
 * Merges the mirrors that several entries list for `source`. Neither the order of the lists nor their repetition matters: a
 * mirror comes before another where a list says so, and by name where none does. A list that holds nothing but the source counts
 * for nothing. Where lists contradict each other, or one repeats a mirror, the loop is broken by name, and the source may come to
 * stand among its mirrors.
 *
 * @example
 * ```ts
 * import { mergeOrders } from './order.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(mergeOrders('src', [['b', 'a'], ['d', 'c']]).order, ['b', 'd', 'a', 'c']);
 * assert.deepEqual(mergeOrders('src', [['src', 'b'], ['a']]).order, ['a', 'src', 'b']);
 * assert.deepEqual(mergeOrders('src', [['a', 'b'], ['b', 'a']]), { order: ['a', 'b'], conflict: ['b', 'a'] });
 * ```
 */
export function mergeOrders(source: string, lists: readonly (readonly string[])[]): MergedOrder {
  const counting = lists.filter((list) => list.some((mirror) => mirror !== source));
  const [only] = counting;
  // One list without repetition is a chain, which sorts to itself.
  const isChain = counting.length === 1 && only !== undefined && new Set(only).size === only.length;
  const { order, conflict }: MergedOrder = isChain ? { order: only } : sorted(graphOf(source, counting));
  const mirrors = order.at(-1) === source ? order.slice(0, -1) : order;
  return conflict === undefined ? { order: mirrors } : { order: mirrors, conflict };
}

interface Node {
  readonly after: Set<string>;
  /** How many others have to come first. */
  waits: number;
}

type Graph = ReadonlyMap<string, Node>;

function graphOf(source: string, lists: readonly (readonly string[])[]): Graph {
  const graph = new Map<string, Node>();
  const nodeOf = (name: string): Node => {
    const node = graph.get(name) ?? { after: new Set(), waits: 0 };
    graph.set(name, node);
    return node;
  };
  for (const list of lists) {
    const whole = list.includes(source) ? list : [...list, source];
    for (const [at, name] of whole.entries()) {
      const { after } = nodeOf(name);
      const next = whole[at + 1];
      if (next === undefined || after.has(next)) continue;
      after.add(next);
      nodeOf(next).waits += 1;
    }
  }
  return graph;
}

function sorted(graph: Graph): MergedOrder {
  const names = [...graph.keys()].sort(byText);
  const queue = names.filter((name) => graph.get(name)?.waits === 0);
  const used = new Set<string>();
  let conflict: readonly [string, string] | undefined;
  let cursor = 0;
  for (let at = 0; used.size < names.length; at += 1) {
    if (at === queue.length) {
      while (used.has(names[cursor] ?? '')) cursor += 1;
      const next = names[cursor] ?? '';
      conflict ??= conflictAt(graph, next, used);
      queue.push(next);
    }
    const name = queue[at] ?? '';
    used.add(name);
    queue.push(...released(graph, name, used));
  }
  return conflict === undefined ? { order: queue } : { order: queue, conflict };
}

/** What would have to come before `name`, which is next only because nothing else is; a mirror listed twice is no conflict. */
function conflictAt(
  graph: Graph,
  name: string,
  used: ReadonlySet<string>,
): readonly [string, string] | undefined {
  for (const [earlier, { after }] of graph)
    if (earlier !== name && !used.has(earlier) && after.has(name)) return [earlier, name];
  return undefined;
}

/** What may come as soon as `name` is out. */
function released(graph: Graph, name: string, used: ReadonlySet<string>): readonly string[] {
  const free: string[] = [];
  for (const next of graph.get(name)?.after ?? []) {
    const node = graph.get(next);
    if (node === undefined) continue;
    node.waits -= 1;
    if (node.waits === 0 && !used.has(next)) free.push(next);
  }
  return free.sort(byText);
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
