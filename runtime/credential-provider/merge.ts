/**
 * `CRIOCredentialProviderConfig` into the kubelet's file: each entry of `matchImages` validated, the rest of the file kept.
 *
 * An entry is ignored when a provider of the platform can be called for the same image (by the kubelet's own matching, not by
 * comparing texts), because two providers for one image contradict each other; and when no image can match it.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig"; the rendering of the Machine Config Operator.
 */
import { matchesGlob, matchImageFault, parseSchemelessUrl } from '../core/docker-config/match-images.ts';
import { formatGoDuration, parseGoDuration } from '../core/go/duration.ts';
import {
  CONFIG_API_VERSION,
  CONFIG_KIND,
  type CredentialProviderConfig,
  PLUGIN_API_VERSION,
  type ProviderEntry,
} from './config.ts';
import { CREDENTIAL_PROVIDER } from './platform.ts';

/**
 * Whether some image is matched by both patterns: by one of a CRIOCredentialProviderConfig, whose labels are a star or a text, and by
 * one of another provider. A label that is not a valid glob matches nothing.
 *
 * Source of the rule: the kubelet's `URLsMatch`: equal ports, as many host labels, each label by Go's `filepath.Match`, path by
 * plain string prefix.
 */
export function patternsMeet(pattern: string, other: string): boolean {
  const [ours, theirs] = [parseSchemelessUrl(pattern), parseSchemelessUrl(other)];
  // What the kubelet cannot parse it never matches.
  if (!ours.ok || !theirs.ok) return false;
  const { labels, port, path } = ours.url;
  if (port !== theirs.url.port || labels.length !== theirs.url.labels.length) return false;
  if (!path.startsWith(theirs.url.path) && !theirs.url.path.startsWith(path)) return false;
  return labels.every((label, index) => {
    const glob = theirs.url.labels[index] ?? '';
    return matchesGlob(glob, label) || (label === '*' && !glob.includes('['));
  });
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
  readonly optionalAnnotationKeys?: readonly string[] | undefined;
  /** Arguments of our own executable; another one of this name may know none. Absent: as they are. */
  readonly args?: readonly string[] | undefined;
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
  const at = present.findIndex(({ name }) => name === CREDENTIAL_PROVIDER.name);
  const own = present[at] ?? ownProvider(options);
  const { args } = options;
  const rendered: ProviderEntry = {
    ...own,
    ...(args === undefined || args.length === 0 ? {} : { args }),
    matchImages: [...new Set(kept)].sort(),
  };
  const providers = at === -1 ? [...present, rendered] : present.with(at, rendered);
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
