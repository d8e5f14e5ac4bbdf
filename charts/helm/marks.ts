/** Where a value of the chart stands in what was rendered: marks in place of the samples of free settings. */
import { createHash } from 'node:crypto';
import type { ChartValue, Picked, Setting } from './settings.ts';

/** Around the number of a setting, or around `.` for an item of a list. Private characters of Unicode: no object has them. */
export const MARK: RegExp = /\uE000([^\uE000\uE001]*)\uE001/g;
/** Key of an item that stands for what a list setting makes, item by item: `{[REPEAT]: setting, items}`. */
export const REPEAT: string = '\uE002';
/** Key of a map that is rendered as YAML text. */
export const YAML_TEXT: string = '\uE003';
/** What stands for the digest of that text. */
export const DIGEST: string = markOf('digest');

/** `\uE000<name>\uE001` */
export function markOf(name: string | number): string {
  return `\uE000${name}\uE001`;
}

/** `value` with marks where samples stand. */
export function withMarks(value: ChartValue, all: readonly Setting[], given: Picked): ChartValue {
  const present = all.flatMap((setting, index) => {
    const sample = setting.samples[(given[index] ?? 0) - 1];
    return sample === undefined ? [] : [{ type: setting.type, index, sample }];
  });
  const numbers = present.filter(({ type }) => type === 'number');
  const marked = [...present.filter(({ type }) => type === 'text'), ...numbers].map(
    ({ index, sample }) => [textOf(sample), markOf(index)] as const,
  );
  const lists = present.filter(({ type }) => type === 'list');
  // Most texts of a rendered cluster are there many times, as keys of maps are.
  const known = new Map<string, string>();
  const text = (one: string): string => {
    const before = known.get(one);
    if (before !== undefined) return before;
    const free = marked.reduce((done, [sample, mark]) => done.replaceAll(sample, mark), one);
    known.set(one, free);
    return free;
  };
  const walk = (one: ChartValue): ChartValue => {
    if (typeof one === 'string') return text(one);
    if (typeof one === 'number') {
      const found = numbers.find(({ sample }) => sample === one);
      return found === undefined ? one : markOf(`#${found.index}`);
    }
    if (Array.isArray(one)) return repeated(one as readonly ChartValue[], lists).map(walk);
    if (typeof one !== 'object' || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, inner]) => [text(key), walk(inner)]));
  };
  return walk(value);
}

function textOf(sample: ChartValue): string {
  return typeof sample === 'string' ? sample : JSON.stringify(sample);
}

interface GivenList {
  readonly index: number;
  readonly sample: ChartValue;
}

/** A run of items, as many for each item of a list setting, as one item. */
function repeated(list: readonly ChartValue[], lists: readonly GivenList[]): readonly ChartValue[] {
  return lists.reduce<readonly ChartValue[]>((items, { index, sample }) => {
    const wanted = sample as readonly string[];
    const [first = -1, second = first + 1] = wanted.map((one) => placeOf(items, one));
    // A flag stands before each: its value is the last of the items that belong together.
    const step = second - first;
    const start = first - step + 1;
    if (first === -1 || step < 1 || start < 0) return items;
    const runs = wanted.map((one, at) =>
      items.slice(start + at * step, start + (at + 1) * step).map((item) => templateOf(item, one)),
    );
    if (new Set(runs.map((one) => JSON.stringify(one))).size > 1) return items;
    return [
      ...items.slice(0, start),
      { [REPEAT]: index, items: runs[0] ?? [] },
      ...items.slice(start + wanted.length * step),
    ];
  }, list);
}

function placeOf(items: readonly ChartValue[], wanted: string): number {
  return items.findIndex((item) => JSON.stringify(item).includes(wanted));
}

function templateOf(item: ChartValue, sample: string): ChartValue {
  return JSON.parse(JSON.stringify(item).replaceAll(sample, markOf('.'))) as ChartValue;
}

/** `objects` with the text of the reconciler's configuration as a map, and a mark in place of its digest. */
export function withoutDigest(
  objects: ChartValue,
  text: string | undefined,
  parse: (text: string) => ChartValue,
): ChartValue {
  if (text === undefined) return objects;
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const walk = (one: ChartValue): ChartValue => {
    if (one === text) return { [YAML_TEXT]: parse(text) };
    if (typeof one === 'string') return one.replaceAll(digest, DIGEST);
    if (Array.isArray(one)) return (one as readonly ChartValue[]).map(walk);
    if (typeof one !== 'object' || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, inner]) => [key, walk(inner)]));
  };
  return walk(objects);
}
