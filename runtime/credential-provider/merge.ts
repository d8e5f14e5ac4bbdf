/**
 * `CRIOCredentialProviderConfig` into the kubelet's file: each entry of `matchImages` judged, the rest of the file kept.
 *
 * An entry is left out when a provider of the platform can be asked for the same image (by the kubelet's own matching, not by
 * comparing texts), because two providers for one image contradict each other; and when no image can match it.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig"; the rendering of the Machine Config Operator.
 */
import { matchImageFault, parseSchemelessUrl } from '../core/docker-config/match-images.ts';
import { formatGoDuration, parseGoDuration } from '../core/go/duration.ts';
import {
  CONFIG_API_VERSION,
  CONFIG_KIND,
  type CredentialProviderConfig,
  PLUGIN_API_VERSION,
  type ProviderEntry,
} from './config.ts';
import { CREDENTIAL_PROVIDER } from './platform.ts';

// Whether two `matchImages` patterns of the kubelet can match the same image: the question behind "who is asked for this
// image's credentials?".
// Source of the rule: the kubelet's `URLsMatch`: equal ports, as many host labels, each label by Go's `filepath.Match`, path
// by plain string prefix. So two patterns meet when the ports are equal, every pair of labels has a common text, and one path
// is a prefix of the other.

/**
 * Whether some image is matched by both patterns.
 */
export function patternsMeet(a: string, b: string): boolean {
  const [first, second] = [parseSchemelessUrl(a), parseSchemelessUrl(b)];
  // What the kubelet cannot parse it never matches.
  if (!first.ok || !second.ok) return false;
  const [left, right] = [first.url, second.url];
  if (left.port !== right.port || left.labels.length !== right.labels.length) return false;
  if (!left.path.startsWith(right.path) && !right.path.startsWith(left.path)) return false;
  return left.labels.every((label, index) => globsMeet(label, right.labels[index] ?? ''));
}

/** One position of a glob: `*`, or a set of characters. */
type Token = '*' | ((code: number) => boolean);

/** Whether some text without `/` is matched by both globs of Go's `filepath.Match`. A malformed glob matches nothing. */
export function globsMeet(a: string, b: string): boolean {
  const left = tokens(a);
  const right = tokens(b);
  if (left === undefined || right === undefined) return false;
  // One row per position in `left`, kept as the set of positions in `right` that are reachable with the same text.
  const seen = new Set<number>();
  const open = [[0, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [i = 0, j = 0] = next;
    if (i === left.length && j === right.length) return true;
    const key = i * (right.length + 1) + j;
    if (seen.has(key)) continue;
    seen.add(key);
    open.push(...steps(left, right, i, j));
  }
  return false;
}

/** Positions reachable from (i, j): a star may end, or swallow what the other side needs; two sets need a common character. */
function steps(left: readonly Token[], right: readonly Token[], i: number, j: number): number[][] {
  const a = left[i];
  const b = right[j];
  const next: number[][] = [];
  if (a === '*') next.push([i + 1, j]);
  if (b === '*') next.push([i, j + 1]);
  if (a === '*' && b !== undefined && b !== '*') next.push([i, j + 1]);
  if (b === '*' && a !== undefined && a !== '*') next.push([i + 1, j]);
  if (typeof a === 'function' && typeof b === 'function' && haveCommon(a, b)) next.push([i + 1, j + 1]);
  return next;
}

// Labels hold neither dot nor slash; one character stands for all beyond ASCII.
const ALPHABET: readonly number[] = [...Array.from({ length: 95 }, (_, index) => 0x20 + index), 0x100].filter(
  (code) => code !== 0x2e && code !== 0x2f,
);

function haveCommon(a: (code: number) => boolean, b: (code: number) => boolean): boolean {
  return ALPHABET.some((code) => a(code) && b(code));
}

function tokens(glob: string): readonly Token[] | undefined {
  const found: Token[] = [];
  for (let at = 0; at < glob.length; ) {
    const char = glob[at];
    if (char === '[') {
      const set = charset(glob, at);
      if (set === undefined) return undefined;
      found.push(set.token);
      at = set.end;
      continue;
    }
    if (char === '\\') at += 1;
    const code = glob.codePointAt(at);
    if (code === undefined) return undefined;
    if (char === '*') found.push('*');
    else found.push(char === '?' ? () => true : (other) => other === code);
    at += code > 0xffff ? 2 : 1;
  }
  return found;
}

/** `[a-z]` or `[^a-z]` from `start`; `undefined` when it is malformed. */
function charset(glob: string, start: number): { readonly token: Token; readonly end: number } | undefined {
  const match = /^\[(\^?)((?:\\.|[^\]\\])+)\]/u.exec(glob.slice(start));
  if (match === null) return undefined;
  const chars = [...(match[2] ?? '').matchAll(/\\?(.)/gu)].map((one) => one[0]);
  const ranges: (readonly [number, number])[] = [];
  for (let at = 0; at < chars.length; at += 1) {
    const low = chars[at] ?? '';
    const isRange = chars[at + 1] === '-';
    const high = isRange ? chars[at + 2] : low;
    if (low === '-' || high === undefined || high === '-') return undefined;
    ranges.push([codeOf(low), codeOf(high)]);
    if (isRange) at += 2;
  }
  const negated = match[1] === '^';
  const token = (code: number): boolean =>
    ranges.some(([low, high]) => code >= low && code <= high) !== negated;
  return { token, end: start + match[0].length };
}

function codeOf(char: string): number {
  return (char.length > 1 && char.startsWith('\\') ? char.slice(1) : char).codePointAt(0) ?? 0;
}

/** Judgement on one entry. */
export interface MatchImageVerdict {
  readonly pattern: string;
  readonly verdict: 'Rendered' | 'Conflict' | 'Unusable';
  /** What is the case; empty for a rendered entry. */
  readonly message: string;
}

export interface MergeOptions {
  /** Annotation keys of service accounts that the kubelet hands over when they are there. */
  readonly optionalAnnotationKeys?: readonly string[];
  /** Arguments of our own executable; another one of this name may know none. Absent: as they are. */
  readonly args?: readonly string[];
}

export interface MergedAuthFile {
  /** The file to write; absent when no entry is left, and then the platform's own file stays as it is. */
  readonly config: CredentialProviderConfig | undefined;
  /** In the order of `matchImages`. */
  readonly verdicts: readonly MatchImageVerdict[];
}

/**
 * Merges. `template` is the platform's own file, absent where it has none.
 */
export function mergeCredentialProviderConfig(
  template: CredentialProviderConfig | undefined,
  matchImages: readonly string[],
  options: MergeOptions = {},
): MergedAuthFile {
  const present = template?.providers ?? [];
  const others = present.filter(({ name }) => name !== CREDENTIAL_PROVIDER.name);
  const verdicts = matchImages.map((pattern) => judge(pattern, others));
  const kept = verdicts.filter(({ verdict }) => verdict === 'Rendered').map(({ pattern }) => pattern);
  if (kept.length === 0) return { config: undefined, verdicts };
  const own = present.find(({ name }) => name === CREDENTIAL_PROVIDER.name) ?? ownProvider(options);
  const { args } = options;
  const rendered: ProviderEntry = {
    ...own,
    ...(args === undefined || args.length === 0 ? {} : { args }),
    matchImages: [...new Set(kept)].sort(),
  };
  const isThere = present.some(({ name }) => name === CREDENTIAL_PROVIDER.name);
  const providers = isThere
    ? present.map((provider) => (provider.name === CREDENTIAL_PROVIDER.name ? rendered : provider))
    : [...present, rendered];
  return {
    config: {
      ...(template ?? { apiVersion: CONFIG_API_VERSION, kind: CONFIG_KIND }),
      providers: providers.map(withGoDuration),
    },
    verdicts,
  };
}

function ownProvider({ optionalAnnotationKeys = [] }: MergeOptions): ProviderEntry {
  return {
    name: CREDENTIAL_PROVIDER.name,
    apiVersion: PLUGIN_API_VERSION,
    // Required by the kubelet; without effect, since every response says for how long it holds.
    defaultCacheDuration: '1s',
    tokenAttributes: {
      serviceAccountTokenAudience: CREDENTIAL_PROVIDER.audience,
      cacheType: 'Token',
      requireServiceAccount: false,
      ...(optionalAnnotationKeys.length === 0
        ? {}
        : { optionalServiceAccountAnnotationKeys: [...optionalAnnotationKeys].sort() }),
    },
  };
}

/** As the Machine Config Operator writes them, so that taking over from it changes no byte and restarts no kubelet. */
function withGoDuration(provider: ProviderEntry): ProviderEntry {
  const duration = parseGoDuration(provider.defaultCacheDuration ?? '');
  return duration === undefined
    ? provider
    : { ...provider, defaultCacheDuration: formatGoDuration(duration) };
}

function judge(pattern: string, others: readonly ProviderEntry[]): MatchImageVerdict {
  const fault = unusable(pattern);
  if (fault !== undefined) return { pattern, verdict: 'Unusable', message: fault };
  for (const { name = '', matchImages = [] } of others) {
    const met = matchImages.find((other) => patternsMeet(pattern, other));
    if (met !== undefined)
      return {
        pattern,
        verdict: 'Conflict',
        message: `images that match it can also match "${met}" of provider "${name}"`,
      };
  }
  return { pattern, verdict: 'Rendered', message: '' };
}

/** Why no image can match a pattern that the CRD lets through. */
function unusable(pattern: string): string | undefined {
  const parsed = parseSchemelessUrl(pattern);
  if (!parsed.ok) return matchImageFault(pattern) ?? 'the kubelet cannot read it';
  const { labels, port, path } = parsed.url;
  if (labels.join('') === '') return 'it has no host';
  if (labels.length === 1 && labels[0] === '*')
    return 'a lone star matches only hosts without a dot: name the host';
  if (labels.some((label) => label.length > 63) || labels.join('.').length > 253)
    return 'a label of its host is longer than 63 characters, or the host longer than 253';
  if (port !== '' && (Number(port) < 1 || Number(port) > 65535)) return `port ${port} does not exist`;
  if (/\/\/|\/\.\.?(\/|$)/.test(path)) return `no image has the path "${path}"`;
  return undefined;
}
