/**
 * What may stand as source and as mirror: `host[:port][/path]`, and for a source also `*.domain`.
 *
 * Source of the rule: the patterns in the CRDs of ImageDigestMirrorSet and ImageTagMirrorSet, which the Machine Config
 * Operator also demands of an ImageContentSourcePolicy (whose CRD has none).
 */

const LABEL = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const HOST_TEXT = `${LABEL}(?:\\.${LABEL})*(?::[0-9]+)?`;
const HOST: RegExp = new RegExp(`^${HOST_TEXT}$`);
const WILDCARD: RegExp = new RegExp(`^\\*(?:\\.${LABEL})+$`);
// Not the CRD's nested quantifiers: they accept the same texts, but take exponential time for some that do not match.
const SEGMENT_TEXT = '[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*';
const SEGMENT: RegExp = new RegExp(`^${SEGMENT_TEXT}$`);
const MIRROR: RegExp = new RegExp(`^${HOST_TEXT}(?:/${SEGMENT_TEXT})*$`);

/** What is wrong with `text` as a source; `undefined` when nothing is. */
export function sourceProblem(text: string): string | undefined {
  if (!text.startsWith('*')) return mirrorProblem(text);
  if (WILDCARD.test(text)) return undefined;
  return `"${text}" is no wildcard: expected "*.example.com", without port or path`;
}

/** What is wrong with `text` as a mirror; `undefined` when nothing is. */
export function mirrorProblem(text: string): string | undefined {
  if (MIRROR.test(text)) return undefined;
  if (text === '') return 'it is empty';
  if (/^[a-z]+:\/\//i.test(text))
    return `"${text}" has a scheme: expected a host with optional port and path`;
  if (text.includes('@')) return `"${text}" has a digest: expected a host with optional port and path`;
  const [host = '', ...path] = text.split('/');
  if (!HOST.test(host))
    return `"${text}" does not start with a host name: expected a host with optional port and path`;
  const wrong = path.find((segment) => !SEGMENT.test(segment)) ?? '';
  if (/^[^:]+:[^:]*$/.test(wrong) && wrong === path.at(-1))
    return `"${text}" has a tag: expected a host with optional port and path`;
  return `"${text}" has the path part "${wrong}": expected lower-case letters and digits, joined by ".", "_", "__" or "-"`;
}
