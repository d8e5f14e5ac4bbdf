/**
 * `matchImages` patterns, as the kubelet compares them with an image.
 *
 * Host labels are compared one by one with shell patterns (`*` never spans a dot), the number of labels and the port must be
 * equal, and the path of the pattern must be a plain text prefix of the image's path: `r.io/team` matches `r.io/team-b`.
 *
 * Source of the rule: URLsMatchStr and ParseSchemelessURL of k8s.io/kubernetes/pkg/credentialprovider 1.36.
 */

import { toByteText } from '../go/text.ts';
import { parseGoUrlBytes, splitHostPort } from '../go/url.ts';

/** A pattern or an image, taken apart once. Byte texts. */
export interface SchemelessUrl {
  readonly labels: readonly string[];
  readonly port: string;
  readonly path: string;
}

export type SchemelessUrlResult =
  | { readonly ok: true; readonly url: SchemelessUrl }
  | { readonly ok: false; readonly goText: string };

/** Takes a text without scheme apart: `*.quay.io:443/team`. */
export function parseSchemelessUrl(text: string): SchemelessUrlResult {
  return parseSchemelessBytes(toByteText(text));
}

/** The same for a byte text. */
export function parseSchemelessBytes(bytes: string): SchemelessUrlResult {
  const parsed = parseGoUrlBytes(`https://${bytes}`);
  if (!parsed.ok) return parsed;
  const { host, port } = splitHostPort(parsed.url.host);
  return { ok: true, url: { labels: host.split('.'), port, path: parsed.url.path } };
}

/** Compares two texts that are taken apart. */
export function urlsMatch(glob: SchemelessUrl, target: SchemelessUrl): boolean {
  return (
    glob.port === target.port &&
    glob.labels.length === target.labels.length &&
    target.path.startsWith(glob.path) &&
    glob.labels.every((label, index) => labelMatches(label, target.labels[index] ?? ''))
  );
}

/** A label of a host has at most 63 bytes, and 255 are the longest name there is. */
const LONGEST_LABEL = 255;

/**
 * The kubelet tries a star at every position of a label, which takes quadratic time. Nothing can be pulled from a host with so long a
 * label, so only the label itself is compared.
 */
function labelMatches(pattern: string, label: string): boolean {
  return label.length > LONGEST_LABEL ? pattern === label : matchesGlob(pattern, label);
}

/**
 * Whether `name` as a whole matches a shell pattern, as Go's filepath.Match has it for names without a slash: `*` is any text, `?`
 * one character. Brackets stand in a host only around an address, which no host can match.
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
      // The last star stands for one character more; none before it has to be tried again.
      from += 1;
      [at, part] = [from, star];
    }
  }
  return /^\**$/.test(pattern.slice(part));
}

/** Whether `image` (a repository such as `quay.io/team/app`) is matched by `pattern`; not when one of the two does not parse. */
export function matchesImage(pattern: string, image: string): boolean {
  const [glob, target] = [parseSchemelessUrl(pattern), parseSchemelessUrl(image)];
  return glob.ok && target.ok && urlsMatch(glob.url, target.url);
}

/**
 * Why the kubelet refuses `pattern` in a CredentialProviderConfig, in its words; undefined when it is accepted. A pattern
 * that is accepted may still be malformed as a glob: it then never matches (see {@link matchImageHint}).
 */
export function matchImageFault(pattern: string): string | undefined {
  const parsed = parseSchemelessUrl(pattern);
  return parsed.ok ? undefined : `match image is invalid: ${parsed.goText}`;
}

/** What is probably not meant in a pattern that the kubelet accepts: a sentence for its author, or undefined. */
export function matchImageHint(pattern: string): string | undefined {
  if (/^[a-zA-Z]+:\/\//.test(pattern)) return 'A scheme is taken as a host: leave it out';
  const parsed = parseSchemelessUrl(pattern);
  if (!parsed.ok) return undefined;
  const { labels, path } = parsed.url;
  if (labels.some((label) => label.includes('[')))
    return 'An IPv6 address matches with a port only: without one, the kubelet reads its brackets as a shell pattern';
  if (path.includes('*')) return 'A star in the path is taken as it is: wildcards work in the host only';
  if (labels.length === 1 && labels[0] === '*') return 'A lone star matches hosts without a dot only';
  return /[?#]/.test(pattern) ? 'What follows ? or # is skipped' : undefined;
}
