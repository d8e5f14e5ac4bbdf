/** Where a value of the chart stands in what was rendered: marks in place of the samples of free settings. */
import { createHash } from 'node:crypto';
import type { ChartValue, Picked, Setting } from './settings.ts';

/** Around the number of a setting, or around `.` for an item of a list. Private characters of Unicode: no object has them. */
export const MARK: RegExp = /\uE000([^\uE000\uE001]*)\uE001/g;
/** Key of an item that stands for all items of a list setting: `{[REPEAT]: setting, item}`. */
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
  const texts = present.flatMap(({ type, index, sample }) =>
    type === 'text' ? [{ index, sample: textOf(sample) }] : [],
  );
  const numbers = present.filter(({ type }) => type === 'number');
  const lists = present.filter(({ type }) => type === 'list');
  const text = (one: string): string => {
    const free = texts.reduce((done, { index, sample }) => done.replaceAll(sample, markOf(index)), one);
    return numbers.reduce((done, { index, sample }) => done.replaceAll(textOf(sample), markOf(index)), free);
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

/** A run of items, one for each item of a list setting, as one item. */
function repeated(list: readonly ChartValue[], lists: readonly GivenList[]): readonly ChartValue[] {
  return lists.reduce<readonly ChartValue[]>((items, { index, sample }) => {
    const wanted = sample as readonly string[];
    const start = firstOf(items, wanted);
    if (start === -1) return items;
    const run = items.slice(start, start + wanted.length).map((item, at) => templateOf(item, wanted[at]));
    if (run.length < wanted.length || new Set(run.map((one) => JSON.stringify(one))).size > 1) return items;
    return [
      ...items.slice(0, start),
      { [REPEAT]: index, item: run[0] ?? null },
      ...items.slice(start + wanted.length),
    ];
  }, list);
}

function firstOf(items: readonly ChartValue[], wanted: readonly string[]): number {
  return items.findIndex((item) => JSON.stringify(item).includes(wanted[0] ?? '\uE004'));
}

function templateOf(item: ChartValue, sample: string | undefined): ChartValue {
  if (sample === undefined) return item;
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
