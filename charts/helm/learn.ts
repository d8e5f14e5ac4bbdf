/**
 * From what a program renders for many inputs to one structure that says which part depends on which setting. Where the rendered
 * values agree, they are constant; where maps and lists differ, each entry has its own condition; what is left is a decision
 * by the settings that change it.
 */
import { PullwrightError } from '../../runtime/rules/errors.ts';
import type { ChartValue, Picked } from './settings.ts';

/** A decision: a value, or the setting that decides and for some of its samples what follows. */
export type Tree = { readonly is: string } | { readonly by: number; readonly cases: readonly Case[] };
export type Case = readonly [samples: readonly number[], then: Tree];

export interface Entry {
  /** Key of a map; of a list, what tells the item from the others. */
  readonly key: string;
  /** `true` or `false`. */
  readonly when: Tree;
  readonly node: Node;
}

export type Node =
  /** JSON texts. */
  | { readonly kind: 'value'; readonly tree: Tree }
  /** `filled`: whether any entry is there. */
  | { readonly kind: 'map' | 'list'; readonly entries: readonly Entry[]; readonly filled: Tree };

/** What was rendered for an input. */
export interface Row<T = ChartValue> {
  readonly given: Picked;
  readonly value: T;
}

type Map_ = Readonly<Record<string, ChartValue>>;

/**
 * @example
 * ```ts
 * import { learn } from './learn.ts';
 * import assert from 'node:assert/strict';
 *
 * const node = learn([{ given: [0], value: { a: 1 } }, { given: [1], value: { a: 1, b: 2 } }]);
 * assert.ok(node.kind === 'map');
 * assert.deepEqual(node.entries.map(({ key }) => key), ['a', 'b']);
 * assert.deepEqual(node.entries[1]?.when, { by: 0, cases: [[[0], { is: 'false' }], [[1], { is: 'true' }]] });
 * ```
 */
export function learn(rows: readonly Row[], learned?: Learned): Node {
  const texts = rows.map(({ given, value }) => ({ given, value: JSON.stringify(value) }));
  const isConstant = new Set(texts.map(({ value }) => value)).size === 1;
  if (!isConstant && rows.every(({ value }) => isMap(value)))
    return entries('map', rows as readonly Row<Map_>[], learned);
  if (!isConstant && rows.every(({ value }) => Array.isArray(value))) {
    const keyed = rows.map(({ given, value }) => ({ given, value: byKey(value as readonly ChartValue[]) }));
    if (keyed.every((row): row is Row<Map_> => row.value !== undefined) && ordered(keyed) !== undefined)
      return entries('list', keyed, learned);
  }
  return { kind: 'value', tree: decisionOf(texts, learned) };
}

function entries(kind: 'map' | 'list', rows: readonly Row<Map_>[], learned: Learned | undefined): Node {
  const keys = ordered(rows) ?? [...new Set(rows.flatMap(({ value }) => Object.keys(value)))];
  return {
    kind,
    filled: decisionOf(
      rows.map(({ given, value }) => ({ given, value: `${Object.keys(value).length > 0}` })),
      learned,
    ),
    entries: keys.map((key) => ({
      key,
      when: decisionOf(
        rows.map(({ given, value }) => ({ given, value: `${key in value}` })),
        learned,
      ),
      node: learn(
        rows.flatMap(({ given, value }) => (key in value ? [{ given, value: value[key] ?? null }] : [])),
        learned,
      ),
    })),
  };
}

/** Items by what tells them apart; undefined when two are alike. The letter before a key keeps numbers in their place. */
function byKey(list: readonly ChartValue[]): Map_ | undefined {
  const map = Object.fromEntries(list.map((item) => [`i${keyOf(item)}`, item]));
  return Object.keys(map).length === list.length ? map : undefined;
}

function keyOf(item: ChartValue): string {
  if (typeof item === 'string' && item.startsWith('--')) return item.split('=', 1)[0] ?? item;
  if (isMap(item) && typeof item['name'] === 'string') return item['name'];
  return JSON.stringify(item);
}

/** An order of all keys that is that of every row; undefined when there is none. */
function ordered(rows: readonly Row<Map_>[]): readonly string[] | undefined {
  const after = new Map<string, Set<string>>();
  for (const { value } of rows) {
    const keys = Object.keys(value);
    for (const [index, key] of keys.entries()) {
      const set = after.get(key) ?? new Set<string>();
      after.set(key, index === 0 ? set : set.add(keys[index - 1] ?? ''));
    }
  }
  const order: string[] = [];
  while (after.size > 0) {
    const next = [...after].find(([, before]) => [...before].every((key) => !after.has(key)));
    if (next === undefined) return undefined;
    order.push(next[0]);
    after.delete(next[0]);
  }
  return order;
}

/**
 * The decision that gives each row its value, by the settings that change it: those for which two rows that differ in nothing else
 * have different values.
 *
 * @throws PullwrightError `ChartUndecided` when rows that agree in all these settings differ
 */
export function decisionOf(rows: readonly Row<string>[], learned?: Learned): Tree {
  const [first] = rows;
  if (first === undefined || rows.every(({ value }) => value === first.value))
    return { is: first?.value ?? 'false' };
  const keyed = rows.map((row) => ({ ...row, key: String.fromCharCode(...row.given) }));
  const by = enough(
    rows,
    first.given.flatMap((_, one) => (changes(keyed, one) ? [one] : [])),
  );
  if (learned !== undefined) {
    learned.set(by.join(), by);
    return { is: first.value };
  }
  return split(rows, by);
}

/** With what else it takes to tell rows apart: settings that only count together are changed by no single step. */
function enough(rows: readonly Row<string>[], by: readonly number[]): readonly number[] {
  const mixed = [...Map.groupBy(rows, ({ given }) => by.map((one) => given[one]).join()).values()].find(
    (group) => new Set(group.map(({ value }) => value)).size > 1,
  );
  const [first] = mixed ?? [];
  if (mixed === undefined || first === undefined) return by;
  const kinds = (one: number): number =>
    new Set(mixed.map(({ given, value }) => `${given[one]} ${value}`)).size;
  const samples = (one: number): number => new Set(mixed.map(({ given }) => given[one])).size;
  // The fewest values for each of its samples: the one that explains most.
  const [best] = first.given
    .flatMap((_, one) => (samples(one) > 1 ? [{ one, rest: kinds(one) / samples(one) }] : []))
    .sort((a, b) => a.rest - b.rest || a.one - b.one);
  return best === undefined
    ? by
    : enough(
        rows,
        [...by, best.one].sort((a, b) => a - b),
      );
}

/** The sets of settings that decide something together. */
export type Learned = Map<string, readonly number[]>;

function split(rows: readonly Row<string>[], [by, ...rest]: readonly number[]): Tree {
  const [first] = rows;
  if (first === undefined || rows.every(({ value }) => value === first.value))
    return { is: first?.value ?? 'false' };
  if (by === undefined)
    throw new PullwrightError(
      `The chart cannot tell what decides between ${first.value.slice(0, 200)} and others`,
      {
        code: 'ChartUndecided',
      },
    );
  const cases = new Map<string, { samples: number[]; next: Tree }>();
  for (const [sample, some] of [...Map.groupBy(rows, ({ given }) => given[by] ?? 0)].sort(
    ([a], [b]) => a - b,
  )) {
    const next = split(some, rest);
    const same = cases.get(JSON.stringify(next)) ?? { samples: [], next };
    same.samples.push(sample);
    cases.set(JSON.stringify(next), same);
  }
  const [only, ...others] = cases.values();
  if (only !== undefined && others.length === 0) return only.next;
  return { by, cases: [...cases.values()].map(({ samples, next }): Case => [samples, next]) };
}

type KeyedRow = Row<string> & { readonly key: string };

/** Whether two rows that differ in this setting alone differ in value. */
function changes(rows: readonly KeyedRow[], by: number): boolean {
  const seen = new Map<string, string>();
  return rows.some(({ key, value }) => {
    const others = key.slice(0, by) + key.slice(by + 1);
    const before = seen.get(others);
    seen.set(others, value);
    return before !== undefined && before !== value;
  });
}

function isMap(value: ChartValue): value is Map_ {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
