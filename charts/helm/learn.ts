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
export function learn(rows: readonly Row[], learned?: Learned, kin: Kin = kinOf(rows)): Node {
  const texts = rows.map(({ given, value }) => ({ given, value: textOf(value) }));
  const isConstant = new Set(texts.map(({ value }) => value)).size === 1;
  if (!isConstant && rows.every(({ value }) => isMap(value)))
    return entries('map', rows as readonly Row<Map_>[], learned, kin);
  if (!isConstant && rows.every(({ value }) => Array.isArray(value))) {
    const keyed = rows.map(({ given, value }) => ({ given, value: byKey(value as readonly ChartValue[]) }));
    if (keyed.every((row): row is Row<Map_> => row.value !== undefined) && ordered(keyed) !== undefined)
      return entries('list', keyed, learned, kin);
  }
  return { kind: 'value', tree: decisionOf(texts, learned, kin) };
}

/** The same value is asked for at many rows, and many times. */
const TEXTS = new WeakMap<object, string>();

function textOf(value: ChartValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const text = TEXTS.get(value) ?? JSON.stringify(value);
  TEXTS.set(value, text);
  return text;
}

function entries(
  kind: 'map' | 'list',
  rows: readonly Row<Map_>[],
  learned: Learned | undefined,
  kin: Kin,
): Node {
  const keys = ordered(rows) ?? [...new Set(rows.flatMap(({ value }) => Object.keys(value)))];
  return {
    kind,
    filled: decisionOf(
      rows.map(({ given, value }) => ({ given, value: `${Object.keys(value).length > 0}` })),
      learned,
      kin,
    ),
    entries: keys.map((key) => ({
      key,
      when: decisionOf(
        rows.map(({ given, value }) => ({ given, value: `${key in value}` })),
        learned,
        kin,
      ),
      node: learn(
        rows.flatMap(({ given, value }) => (key in value ? [{ given, value: value[key] ?? null }] : [])),
        learned,
        kin,
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
export function decisionOf(rows: readonly Row<string>[], learned?: Learned, kin: Kin = kinOf(rows)): Tree {
  const [first] = rows;
  if (first === undefined || rows.every(({ value }) => value === first.value))
    return { is: first?.value ?? 'false' };
  const by = enough(rows, changing(rows, kin));
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

/** For what was given, by setting: the number of those that differ from it in this setting alone, itself among them. */
export type Kin = ReadonlyMap<Picked, readonly (readonly [by: number, family: number])[]>;

/** Worked out once for many decisions: it depends on what was given alone. */
export function kinOf(rows: readonly { readonly given: Picked }[]): Kin {
  const families = new Map<string, { readonly by: number; readonly members: Picked[] }>();
  const varied = (rows[0]?.given ?? []).flatMap((sample, by) =>
    rows.some(({ given }) => given[by] !== sample) ? [by] : [],
  );
  for (const { given } of rows) {
    const key = String.fromCharCode(...given);
    for (const by of varied) {
      const others = `${by} ${key.slice(0, by)}${key.slice(by + 1)}`;
      const family = families.get(others);
      if (family === undefined) families.set(others, { by, members: [given] });
      else family.members.push(given);
    }
  }
  const kin = new Map<Picked, (readonly [number, number])[]>(rows.map(({ given }) => [given, []]));
  for (const [family, { by, members }] of [...families.values()].entries())
    if (members.length > 1) for (const given of members) kin.get(given)?.push([by, family]);
  return kin;
}

/** The settings for which two rows that differ in nothing else have different values. */
function changing(rows: readonly Row<string>[], kin: Kin): readonly number[] {
  const seen = new Map<number, string>();
  const found = new Set<number>();
  for (const { given, value } of rows)
    for (const [by, family] of kin.get(given) ?? []) {
      const before = seen.get(family);
      if (before === undefined) seen.set(family, value);
      else if (before !== value) found.add(by);
    }
  return [...found].sort((a, b) => a - b);
}

function isMap(value: ChartValue): value is Map_ {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
