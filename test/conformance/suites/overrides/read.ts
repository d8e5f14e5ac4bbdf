/** Reads the case files of this folder: `wanted` counts where a case is marked as a defect of the existing system. */
import { isDeepStrictEqual } from 'node:util';
import { compileMirrors } from '../../../../runtime/core/mirrors/resolve.ts';
import {
  lookUpRelease,
  lookUpRules,
  type ReleasePlaces,
} from '../../../../runtime/registry-overrides/planes.ts';
import { mirrorSet } from '../../../registry-overrides/run-once.ts';
import type { ConformanceCase } from '../../suite.ts';

export interface OverrideCase {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly expected: Readonly<Record<string, unknown>> | null;
  readonly defect?: boolean;
  readonly wanted?: Readonly<Record<string, unknown>>;
}

/** The answer must match every field of `wanted`, which may be partial. */
export const PARTIAL = '(partial)';

export function readCases(document: unknown, list = 'cases'): readonly OverrideCase[] {
  const cases = (document as Readonly<Record<string, unknown>>)[list];
  if (!Array.isArray(cases)) throw new TypeError(`no list "${list}"`);
  return cases as readonly OverrideCase[];
}

export function toConformance(
  one: OverrideCase,
  input: Readonly<Record<string, unknown>> = one.input,
): ConformanceCase<Readonly<Record<string, unknown>>> {
  const wanted = one.defect === true ? one.wanted : undefined;
  return {
    name: one.name,
    input,
    expected: wanted === undefined ? one.expected : { [PARTIAL]: wanted },
  };
}

/** Whole values must be equal, except where the case names only a part. */
export function acceptsPartial(actual: unknown, expected: unknown): boolean {
  const part = (expected as Readonly<Record<string, unknown>> | null)?.[PARTIAL];
  if (part === undefined) return isDeepStrictEqual(actual, expected);
  const got = actual as Readonly<Record<string, unknown>>;
  const entries = Object.entries(part as object);
  return entries.length > 0 && entries.every(([key, value]) => isDeepStrictEqual(got[key], value));
}

/** Like {@link acceptsPartial}; of an error, what comes after the first colon is worded by Go's parsers and does not count. */
export function acceptsErrorHead(actual: unknown, expected: unknown): boolean {
  const head = (value: unknown): unknown => {
    const error = (value as Readonly<Record<string, unknown>> | null)?.['error'];
    return typeof error === 'string' ? { ...(value as object), error: error.split(':')[0] } : value;
  };
  return acceptsPartial(head(actual), head(expected));
}

/** The answer says more than the case asks about: every field that the case names must be right. */
export function acceptsNamed(actual: unknown, expected: unknown): boolean {
  const part = (expected as Readonly<Record<string, unknown>>)[PARTIAL] ?? expected;
  return acceptsPartial(actual, { [PARTIAL]: part });
}

export function toMap<T>(record: unknown): ReadonlyMap<string, T> {
  return new Map(Object.entries((record ?? {}) as Readonly<Record<string, T>>));
}

/** Object of a map, with every key an own property. */
export function toRecord(map: ReadonlyMap<string, unknown> | undefined): unknown {
  return map === undefined ? null : Object.fromEntries(map);
}

/** A field that holds text; `otherwise` when it is not there. */
export function textOf(input: Readonly<Record<string, unknown>>, field: string, otherwise = ''): string {
  const value = input[field];
  return typeof value === 'string' ? value : otherwise;
}

/** Pull sources of a look-up, for the mirrors of the cluster and the targets of the flag. */
export function placesOf(mirrors: unknown, targets?: unknown): ReleasePlaces {
  const entries = [...toMap<readonly string[]>(mirrors)].map(([source, places]) => ({
    source,
    mirrors: places,
  }));
  const rules = lookUpRules([mirrorSet('ImageDigestMirrorSet', 'all', entries)]);
  return { mirrors: compileMirrors(rules, 'text'), overrides: toMap<string>(targets) };
}

/** The reference at which a release is found that every place has. */
export async function firstPlace(image: string, places: ReleasePlaces): Promise<string> {
  return (await lookUpRelease(image, places, (reference) => Promise.resolve(reference))).from;
}

/** Expands the abbreviated digests of the cases, such as `sha256:abc`, to full length. */
export function wholeDigests(document: unknown): unknown {
  const text = JSON.stringify(document).replace(
    /@sha256:([0-9a-f]{1,63})(?![0-9a-f])/g,
    (_, start: string) => `@sha256:${start.padEnd(64, '0')}`,
  );
  return JSON.parse(text) as unknown;
}
