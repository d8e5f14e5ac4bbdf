/**
 * Merges a `CRIOCredentialProviderConfig` into the kubelet's file: validates each entry of `matchImages`, keeps the rest of the
 * file.
 *
 * Ignores an entry when a provider of the platform can match the same image (by the kubelet's own matching, not as text), because
 * two providers for one image contradict each other; and when no image can match it.
 *
 * Source of the rule: requirement "CRIOCredentialProviderConfig"; the rendering of the Machine Config Operator.
 */
import { matchesGlob, matchImageFault, parseSchemelessUrl } from '../core/docker-config/match-images.ts';
import { formatGoDuration, parseGoDuration } from '../core/go/duration.ts';
import type { EntryStatus } from '../core/kubernetes/pull-status.ts';
import {
  CONFIG_API_VERSION,
  CONFIG_KIND,
  type CredentialProviderConfig,
  PLUGIN_API_VERSION,
  type ProviderEntry,
} from './config.ts';
import { CREDENTIAL_PROVIDER } from './platform.ts';

/**
 * Whether an image can match both patterns: `pattern` of a CRIOCredentialProviderConfig, whose labels are a star or plain text,
 * and `other` of another provider. An invalid glob matches nothing.
 *
 * Source of the rule: the kubelet's `URLsMatch`: equal ports, as many host labels, each label by Go's `filepath.Match`, path by
 * plain string prefix.
 */
export function patternsMeet(pattern: string, other: string): boolean {
  const [ours, theirs] = [parseSchemelessUrl(pattern), parseSchemelessUrl(other)];
  // The kubelet never matches a pattern that it cannot parse.
  if (!ours.ok || !theirs.ok) return false;
  const { labels, port, path } = ours.value;
  if (port !== theirs.value.port || labels.length !== theirs.value.labels.length) return false;
  if (!path.startsWith(theirs.value.path) && !theirs.value.path.startsWith(path)) return false;
  return labels.every((label, index) => {
    const glob = theirs.value.labels[index] ?? '';
    return matchesGlob(glob, label) || (label === '*' && !glob.includes('['));
  });
}

/** Verdict on one entry. */
export interface MatchImageVerdict {
  readonly pattern: string;
  readonly verdict: 'Rendered' | 'Conflict' | 'Unusable';
  /** Why it is not rendered; empty for a rendered entry. */
  readonly message: string;
}

/** The verdict for a PullStatus. `well`: message for a rendered entry. */
export function entryVerdict({ pattern, verdict, message }: MatchImageVerdict, well: string): EntryStatus {
  return verdict === 'Rendered'
    ? { subject: pattern, verdict: 'Accepted', reason: verdict, message: well }
    : { subject: pattern, verdict: 'Rejected', reason: verdict, message };
}

export interface MergeOptions {
  /** Keys of optional ServiceAccount annotations that the kubelet passes to the provider. */
  readonly optionalAnnotationKeys?: readonly string[] | undefined;
  /** Arguments of our own executable; upstream's has none. Absent: unchanged. */
  readonly args?: readonly string[] | undefined;
}

/**
 * Merges. `template`: the platform's own file, if any. Returns the file to write, undefined when no entry is rendered, so that the
 * platform's own file stays unchanged; and the verdicts in the order of `matchImages`.
 */
export function mergeCredentialProviderConfig(
  template: CredentialProviderConfig | undefined,
  matchImages: readonly string[],
  options: MergeOptions = {},
) {
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
  const config: CredentialProviderConfig = {
    ...(template ?? { apiVersion: CONFIG_API_VERSION, kind: CONFIG_KIND }),
    providers: providers.map(withGoDuration),
  };
  return { config, verdicts };
}

function ownProvider({ optionalAnnotationKeys = [] }: MergeOptions): ProviderEntry {
  return {
    name: CREDENTIAL_PROVIDER.name,
    apiVersion: PLUGIN_API_VERSION,
    // Required by the kubelet; without effect, since every response has a cacheDuration.
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

/** Same format as the Machine Config Operator, so that a takeover changes no byte and restarts no kubelet. */
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

/** Why no image can match a pattern that the CRD accepts. */
function unusable(pattern: string): string | undefined {
  const parsed = parseSchemelessUrl(pattern);
  if (!parsed.ok) return matchImageFault(pattern) ?? 'the kubelet cannot parse it';
  const { labels, port, path } = parsed.value;
  if (labels.join('') === '') return 'it has no host';
  if (labels.length === 1 && labels[0] === '*')
    return '"*" alone matches only hosts without a dot: name the host';
  if (labels.some((label) => label.length > 63) || labels.join('.').length > 253)
    return 'a label of its host is longer than 63 characters, or the host longer than 253';
  if (port !== '' && (Number(port) < 1 || Number(port) > 65535)) return `port ${port} is out of range`;
  if (/\/\/|\/\.\.?(\/|$)/.test(path)) return `no image has the path "${path}"`;
  return undefined;
}
