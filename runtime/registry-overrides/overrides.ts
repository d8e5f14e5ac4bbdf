/**
 * The text formats of the existing system: the value of `OPENSHIFT_IMG_OVERRIDES` (source to many mirrors) and of the flag
 * `--registry-overrides` (source to one target), and the strict rewriting by the flag.
 *
 * Source of the rule: HyperShift's control plane operator, byte for byte, without two of its defects: an empty pair is ignored,
 * and formatting does not reorder the map.
 */
import { compareBytes } from '../core/go/text.ts';
import { compileMirrors, findRule } from '../core/mirrors/resolve.ts';
import { trimEndOf, trimStartOf } from '../core/text.ts';

/** Mirrors by source, in the order in which they are tried. */
export type OverrideMap = ReadonlyMap<string, readonly string[]>;

/** Environment variable of the control plane operator and its Deployments. */
export const OVERRIDES_ENV = 'OPENSHIFT_IMG_OVERRIDES';

/** Value for no overrides; an empty one would look like a forgotten variable. */
export const NO_OVERRIDES = '=';

/**
 * Reads a value of `OPENSHIFT_IMG_OVERRIDES`. Returns undefined for no value (`""` and `"="`), otherwise a map,
 * which may be empty: skips pairs without `=` or with an empty side. No trimming, no escapes.
 */
export function parseImageOverrides(text: string): OverrideMap | undefined {
  if (text === '' || text === NO_OVERRIDES) return undefined;
  const map = new Map<string, string[]>();
  for (const pair of text.split(',')) {
    const equals = pair.indexOf('=');
    const source = pair.slice(0, Math.max(0, equals));
    const mirror = pair.slice(equals + 1);
    if (source === '' || mirror === '') continue;
    const mirrors = map.get(source);
    if (mirrors === undefined) map.set(source, [mirror]);
    else mirrors.push(mirror);
  }
  return map;
}

/**
 * Writes a value of `OPENSHIFT_IMG_OVERRIDES`: sources in byte order, so that the text is deterministic.
 *
 * @param order of the mirrors of one source: `given`, in which they are tried, or `bytes`, as the existing system sorts them
 *   since 2026-06. @default {'bytes'}
 */
export function formatImageOverrides(overrides: OverrideMap | undefined, order: 'bytes' | 'given' = 'bytes') {
  const pairs = [...(overrides ?? [])]
    .sort(([a], [b]) => compareBytes(a, b))
    .flatMap(([source, mirrors]) =>
      (order === 'given' ? mirrors : [...mirrors].sort(compareBytes)).map((mirror) => `${source}=${mirror}`),
    );
  return pairs.length === 0 ? NO_OVERRIDES : pairs.join(',');
}

/**
 * Reads a value of `--registry-overrides`, as Go's string-to-string flags do: with exactly one `=` the whole text is one
 * pair, without the quotes around it; with more it is one CSV record. Returns undefined for text that the flag rejects.
 * The default `=` is one empty pair, which no reader of the map treats as a rule.
 */
export function parseOverridesFlag(text: string): ReadonlyMap<string, string> | undefined {
  const equals = text.split('=').length - 1;
  const fields = equals === 1 ? [trimStartOf(trimEndOf(text, '"'), '"')] : csvRecord(text);
  if (equals === 0) return text === '' ? new Map() : undefined;
  if (fields === undefined || fields.some((field) => !field.includes('='))) return undefined;
  const pairs = fields.map((field): [string, string] => {
    const at = field.indexOf('=');
    return [field.slice(0, at), field.slice(at + 1)];
  });
  return new Map(pairs);
}

/** Fields of one CSV record; a doubled quote in a quoted field is a quote. */
function csvRecord(text: string): readonly string[] | undefined {
  const fields: string[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  while (field.lastIndex <= text.length) {
    const match = field.exec(text);
    if (match === null) return undefined;
    fields.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    if (match[3] === '') return fields;
  }
  return fields;
}

/** Overrides as rules of a look-up without a container runtime: mirrors serve digests and tags alike. */
export function overrideRules(overrides: Iterable<readonly [string, readonly string[]]>) {
  return [...overrides].map(([source, mirrors]) => ({
    prefix: source,
    location: source.startsWith('*.') ? '' : source,
    blocked: false,
    insecure: false,
    mirrors: [...new Set(mirrors)].map((location) => ({ location, pullFrom: 'all' as const })),
  }));
}

/**
 * Rewrites `image` by the longest source that it equals or continues with `/` or `@` (or with `:` after a repository). As text:
 * a short name is not expanded, a mirror is not rewritten again, and a host without port does not match one with a port.
 */
export function replaceRegistry(image: string, overrides: ReadonlyMap<string, string>): string {
  // The flag has no wildcards: no image starts with such a text.
  const sources = [...overrides.keys()].filter((source) => !source.startsWith('*.'));
  const rules = overrideRules(sources.map((source) => [source, []]));
  const found = findRule(compileMirrors(rules, 'exact'), image);
  if (found === undefined) return image;
  return (overrides.get(found.rule.prefix) ?? '') + image.slice(found.length);
}

// Semantic comparison of values of `OPENSHIFT_IMG_OVERRIDES`. Source of the rule: HyperShift's readers. The order of sources,
// repeated pairs and empty pairs have no meaning. The mirrors of one source are tried in order; HyperShift kept the
// administrator's order until mid-2026 and sorts since, so its own values are compared without the order.

export interface MeaningOptions {
  /** Whether the order of a source's mirrors matters. @default {false} */
  readonly ordered?: boolean;
  /**
   * Optional pairs: HyperShift appends the targets of `--registry-overrides` to the value of its Deployments, not to its own.
   * Absent: none.
   */
  readonly beside?: ReadonlyMap<string, string>;
}

/** Whether two values have the same meaning. */
export function sameOverrides(one: string, other: string, options: MeaningOptions = {}): boolean {
  return meaningOf(one, options) === meaningOf(other, options);
}

function meaningOf(text: string, { ordered = false, beside }: MeaningOptions): string {
  const read: OverrideMap = parseImageOverrides(text) ?? new Map();
  const sources = new Set([...read.keys(), ...(beside?.keys() ?? [])]);
  const pairs = [...sources].sort().flatMap((source) => {
    const extra = beside?.get(source);
    const mirrors = [...new Set([...(read.get(source) ?? []), ...(extra === undefined ? [] : [extra])])];
    return source === '' ? [] : [[source, ordered ? mirrors : mirrors.sort()]];
  });
  return JSON.stringify(pairs);
}
