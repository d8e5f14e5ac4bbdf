/**
 * The text formats of the existing system: the value of `OPENSHIFT_IMG_OVERRIDES` (source to many mirrors) and of the flag
 * `--registry-overrides` (source to one target), and the strict rewriting that the flag stands for.
 *
 * Source of the rule: HyperShift's control plane operator, byte for byte, with two of its defects left out: an empty pair is
 * no rule, and writing the text does not reorder the map that is written.
 */
import { parseImageReference } from '../core/image-reference.ts';
import { compileMirrors, findRule } from '../core/mirrors/resolve.ts';
import { trimEndOf, trimStartOf } from '../core/text.ts';

/** Source to mirrors, in the order in which they are tried. */
export type OverrideMap = ReadonlyMap<string, readonly string[]>;

/** Environment variable of the control plane operator and of everything it starts. */
export const OVERRIDES_ENV = 'OPENSHIFT_IMG_OVERRIDES';

/** What stands for "no overrides": an empty value would be taken for a variable that was forgotten. */
export const NO_OVERRIDES = '=';

/**
 * Reads a value of `OPENSHIFT_IMG_OVERRIDES`. Gives undefined for no value (`""` and `"="`); otherwise a map, which may be
 * empty: pairs without `=` or with an empty side are skipped. Nothing is trimmed, nothing can be escaped.
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
 * Writes a value of `OPENSHIFT_IMG_OVERRIDES`: sources in byte order, so that an unchanged map never changes the text.
 *
 * @param order of the mirrors of one source: `given`, in which they are asked, or `bytes`, as the existing system sorts them since
 *   2026-06. @default {'bytes'}
 */
export function formatImageOverrides(
  overrides: OverrideMap | undefined,
  order: 'bytes' | 'given' = 'bytes',
): string {
  const pairs = [...(overrides ?? [])]
    .sort(([a], [b]) => compareBytes(a, b))
    .flatMap(([source, mirrors]) =>
      (order === 'given' ? mirrors : [...mirrors].sort(compareBytes)).map((mirror) => `${source}=${mirror}`),
    );
  return pairs.length === 0 ? NO_OVERRIDES : pairs.join(',');
}

/**
 * Reads a value of `--registry-overrides`, as Go's string-to-string flags do: with exactly one `=` the whole text is one
 * pair, without the quotes around it; with more it is one CSV record. Gives undefined for text that the flag refuses. The
 * default `=` gives the empty pair, which nothing that reads the map takes for a rule.
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

/** One record: fields that start with a quote end with one, and a doubled quote within stands for one. */
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

/**
 * Rewrites `image` by the longest source that it equals or continues with `/` or `@` (or with `:` after a repository). Text
 * only: a short name is not expanded, a mirror is not rewritten again, a host without port does not match one with.
 */
export function replaceRegistry(image: string, overrides: ReadonlyMap<string, string>): string {
  const rules = [...overrides.keys()]
    // The flag knows no wildcards: such a source is text like any other, and no image starts with it.
    .filter((source) => !source.startsWith('*.'))
    .map((source) => ({ prefix: source, location: source, blocked: false, insecure: false, mirrors: [] }));
  const found = findRule(compileMirrors(rules, { ports: 'exact' }), image);
  if (found === undefined) return image;
  return (overrides.get(found.rule.prefix) ?? '') + image.slice(found.length);
}

/** Order of the bytes of the UTF-8 form, as Go sorts strings. */
function compareBytes(a: string, b: string): number {
  if (a === b) return 0;
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

// Which sources the components of a control plane can ask for at all, for a value that would be too long with all of them.
// Source of the rule: HyperShift. What reads `OPENSHIFT_IMG_OVERRIDES` (control plane operator, its config operator, ignition
// server) looks up releases, the components that a release lists, and catalogs. Releases and their components are in the registry
// of the release or in those that OpenShift and OKD are published in; catalogs in that of Red Hat. The text is compared as text,
// so that no image contains a wildcard source.

/** Where releases, their components and catalogs are published. */
const PUBLISHED: readonly string[] = ['quay.io', 'registry.ci.openshift.org', 'registry.redhat.io'];

export interface AskedSources {
  readonly asked: OverrideMap;
  /** Sources that nobody asks for, in their order. */
  readonly never: readonly string[];
}

/**
 * Parts `overrides`. `images`: every image that the control plane was told of by name, as references or as pairs of an annotation;
 * what is no reference says nothing.
 */
export function askedSources(overrides: OverrideMap, images: readonly string[]): AskedSources {
  const hosts = new Set([...PUBLISHED, ...images.flatMap((image) => hostOf(image) ?? [])].map(withoutPort));
  const isAsked = (source: string): boolean =>
    !source.startsWith('*.') && hosts.has(withoutPort(source.split('/', 1)[0] ?? ''));
  const all = [...overrides];
  return {
    asked: new Map(all.filter(([source]) => isAsked(source))),
    never: all.flatMap(([source]) => (isAsked(source) ? [] : [source])),
  };
}

function hostOf(image: string): string | undefined {
  const parsed = parseImageReference(image);
  return parsed.ok ? parsed.reference.repository.split('/', 1)[0] : undefined;
}

/** A source without port covers the host's other ports, and is contained in their text. */
function withoutPort(host: string): string {
  return host.replace(/:\d+$/, '');
}

// What a value of `OPENSHIFT_IMG_OVERRIDES` means, so that texts are compared by what their readers do and not by their letters.
// Source of the rule: HyperShift's readers. The order of sources, repeated pairs and empty ones mean nothing. The order of the
// mirrors of one source is the order in which they are asked; HyperShift itself wrote the administrator's until mid-2026 and sorts
// since, so that what it wrote is compared without it.

export interface MeaningOptions {
  /** Whether another order of the mirrors of a source is another meaning. @default {false} */
  readonly ordered?: boolean;
  /**
   * Pairs that may be there or not: HyperShift appends the targets of `--registry-overrides` to the value of what it starts, not
   * to its own. Absent: none.
   */
  readonly beside?: ReadonlyMap<string, string>;
}

/**
 * Whether two values mean the same.
 */
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

// An image reference split as the existing system splits it: registry, first path element, the rest, tag and digest. Only the
// text formats need it; everything else uses whole repositories.
// Source of the rule: library-go `reference.Parse` over the grammar of distribution/reference.

export interface SplitReference {
  /** Host with port; empty when the first element has neither "." nor ":" and is not "localhost". */
  readonly registry: string;
  /** First path element, empty when the path has one element only. */
  readonly namespace: string;
  readonly name: string;
  readonly tag: string;
  /** `algorithm:hex`, or empty. */
  readonly digest: string;
}

const PART = '[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*';
const LABEL = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const HOST = `${LABEL}(?:\\.${LABEL})*(?::[0-9]+)?`;
const REFERENCE: RegExp = new RegExp(
  `^((?:${HOST}/)?${PART}(?:/${PART})*)(?::([\\w][\\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?$`,
);
const DIGEST_LENGTHS: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };
const INVALID = 'invalid reference format';

/**
 * Gives the parts, or the reason that the existing system gives.
 */
export function splitReference(text: string): SplitReference | { readonly error: string } {
  const match = REFERENCE.exec(text);
  if (match === null) return { error: reasonOf(text) };
  const [, whole = '', tag = '', digest = ''] = match;
  if (whole.length > 255) return { error: 'repository name must not be more than 255 characters' };
  const digestError = digest === '' ? undefined : digestProblem(digest);
  if (digestError !== undefined) return { error: digestError };
  return { ...splitPath(whole), tag, digest };
}

function splitPath(whole: string): Pick<SplitReference, 'registry' | 'namespace' | 'name'> {
  const slash = whole.indexOf('/');
  const first = whole.slice(0, Math.max(0, slash));
  const registry = /[.:]/.test(first) || first === 'localhost' ? first : '';
  const path = registry === '' ? whole : whole.slice(slash + 1);
  const cut = path.indexOf('/');
  return { registry, namespace: path.slice(0, Math.max(0, cut)), name: path.slice(cut + 1) };
}

/** What is wrong with `algorithm:hex`; undefined when nothing is. */
export function digestProblem(digest: string): string | undefined {
  const [algorithm = '', hex = ''] = digest.split(':');
  const length = Object.hasOwn(DIGEST_LENGTHS, algorithm) ? DIGEST_LENGTHS[algorithm] : undefined;
  if (length === undefined) return 'unsupported digest algorithm';
  if (hex.length !== length) return 'invalid checksum digest length';
  return /^[0-9a-f]+$/.test(hex) ? undefined : 'invalid checksum digest format';
}

function reasonOf(text: string): string {
  if (text === '') return 'repository name must have at least one component';
  return REFERENCE.test(text.toLowerCase()) ? 'repository name must be lowercase' : INVALID;
}
