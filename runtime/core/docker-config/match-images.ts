/**
 * `matchImages` patterns, compared with an image like the kubelet.
 *
 * Host labels are compared one by one with shell patterns (`*` never matches a dot). The number of labels and the port must be
 * equal. The pattern's path must be a plain prefix of the image's path: `r.io/team` matches `r.io/team-b`.
 *
 * Source of the rule: URLsMatchStr and ParseSchemelessURL of k8s.io/kubernetes/pkg/credentialprovider 1.36.
 */

import { toByteText } from '../go/text.ts';
import { parseGoUrl, splitHostPort } from '../go/url.ts';

type ParsedUrl = ReturnType<typeof parseSchemelessBytes>;

/** A parsed pattern or image, as byte texts. */
export type SchemelessUrl = Readonly<Extract<ParsedUrl, { ok: true }>['value']>;

/** Parses a text without a scheme: `*.quay.io:443/team`. */
export function parseSchemelessUrl(text: string): ParsedUrl {
  return parseSchemelessBytes(toByteText(text));
}

/** Like {@link parseSchemelessUrl}, for a byte text. */
export function parseSchemelessBytes(bytes: string) {
  const parsed = parseGoUrl(`https://${bytes}`);
  if (!parsed.ok) return parsed;
  const { host, port } = splitHostPort(parsed.value.host);
  return { ok: true as const, value: { labels: host.split('.'), port, path: parsed.value.path } };
}

/** Whether a parsed pattern matches a parsed image. */
export function urlsMatch(glob: SchemelessUrl, target: SchemelessUrl): boolean {
  return (
    glob.port === target.port &&
    glob.labels.length === target.labels.length &&
    target.path.startsWith(glob.path) &&
    glob.labels.every((label, index) => labelMatches(label, target.labels[index] ?? ''))
  );
}

/** A DNS label has at most 63 bytes, and a whole name at most 255. */
const LONGEST_LABEL = 255;

/**
 * The kubelet tries a star at every position of a label, in quadratic time. No image can be pulled from a host with so long a
 * label, so it is only compared literally.
 */
function labelMatches(pattern: string, label: string): boolean {
  return label.length > LONGEST_LABEL ? pattern === label : matchesGlob(pattern, label);
}

/**
 * Whether a shell pattern matches the whole of `name`, like Go's filepath.Match for names without a slash: `*` is any text, `?`
 * one character. Brackets occur in a host only around an IP address; such a pattern never matches.
 */
export function matchesGlob(pattern: string, name: string): boolean {
  if (pattern.includes('[')) return false;
  let part = 0;
  let star = -1;
  let from = 0;
  for (let at = 0; at < name.length; part += 1) {
    const wanted = pattern[part];
    if (wanted === '*') [star, from] = [part, at];
    else if (wanted === '?' || wanted === name[at]) at += 1;
    else if (star === -1) return false;
    else {
      // Let the last star match one more character; earlier stars need no retry.
      from += 1;
      [at, part] = [from, star];
    }
  }
  return /^\**$/.test(pattern.slice(part));
}

/** Whether `pattern` matches `image` (a repository such as `quay.io/team/app`); false if either cannot be parsed. */
export function matchesImage(pattern: string, image: string): boolean {
  const [glob, target] = [parseSchemelessUrl(pattern), parseSchemelessUrl(image)];
  return glob.ok && target.ok && urlsMatch(glob.value, target.value);
}

/**
 * Why the kubelet rejects `pattern` in a CredentialProviderConfig, in its wording; undefined if it accepts it. An accepted
 * pattern may still be malformed as a glob and never match (see {@link matchImageHint}).
 */
export function matchImageFault(pattern: string): string | undefined {
  const parsed = parseSchemelessUrl(pattern);
  return parsed.ok ? undefined : `match image is invalid: ${parsed.goText}`;
}

/** A probable mistake in a pattern that the kubelet accepts; undefined if none. */
export function matchImageHint(pattern: string): string | undefined {
  if (/^[a-zA-Z]+:\/\//.test(pattern)) return 'A scheme is read as a host: remove it';
  const parsed = parseSchemelessUrl(pattern);
  if (!parsed.ok) return undefined;
  const { labels, path } = parsed.value;
  if (labels.some((label) => label.includes('[')))
    return 'An IPv6 address matches with a port only: without one, the kubelet reads its brackets as a shell pattern';
  if (path.includes('*')) return 'A star in the path is literal: wildcards work only in the host';
  if (labels.length === 1 && labels[0] === '*') return 'A lone star matches hosts without a dot only';
  return /[?#]/.test(pattern) ? 'Text after ? or # is ignored' : undefined;
}
