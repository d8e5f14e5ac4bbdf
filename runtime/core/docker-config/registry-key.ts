/**
 * The meaning of an `auths` key. A registry has many spellings, and each consumer normalizes them differently:
 *
 * - kubelet: drops `https://` or `http://`, user info, query, fragment and a leading `/v1/` or `/v2/`, and unescapes `%xx`. The
 *   host keeps its case. `index.docker.io` is a fallback for images of Docker Hub.
 * - containers/image (CRI-O, podman): takes the key as it is. In a second pass, keys with a scheme are reduced to their host,
 *   and `docker.io`, `index.docker.io` and `registry-1.docker.io` are equal.
 *
 * Source of the rule: BasicDockerKeyring.Add of k8s.io/kubernetes 1.36; normalizeAuthFileKey of go.podman.io/image v5.42.
 */
import { fromByteText, toByteText } from '../go/text.ts';
import { parseGoUrl } from '../go/url.ts';

/** A key of `auths`, validated. */
export interface RegistryKey {
  readonly written: string;
  /** Equal for all spellings of one registry or namespace: `quay.io`, `quay.io/team`, `docker.io`. */
  readonly meaning: string;
  /** Keys that share one of these conflict: the meaning, and for `http://` the meaning without port 80. */
  readonly identities: readonly string[];
  /**
   * The spelling that works for the kubelet and containers/image: no scheme, no trailing slash, Docker Hub as `docker.io`.
   * Case and port of the host stay, because both compare them literally with the image.
   */
  readonly portable: string;
  /** Why no image can match; completes a sentence about the key. */
  readonly fault?: string;
}

/** A host with an optional namespace that needs no normalization. */
const SIMPLE = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?:\/(?!v[12]\/)[a-z0-9._-]+)*$/;

const HUB = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);

/** Parses and validates a key. */
export function registryKey(written: string): RegistryKey {
  if (SIMPLE.test(written) && !written.includes('docker.io')) {
    return { written, meaning: written, identities: [written], portable: written };
  }
  const [, scheme = '', rest = ''] =
    /^(?:([A-Za-z][A-Za-z0-9+.-]*):\/\/)?([\s\S]*)$/.exec(written.trim()) ?? [];
  const parsed = parseGoUrl(toByteText(`https://${rest}`));
  if (!parsed.ok) {
    const meaning = rest.toLowerCase();
    const fault = 'is not a host with an optional path';
    return { written, meaning, identities: [meaning], portable: written, fault };
  }
  const host = fromByteText(parsed.value.host);
  const plain = withoutPort(host.toLowerCase(), '443');
  const isHub = HUB.has(plain);
  const path = namespaceOf(fromByteText(parsed.value.path), scheme !== '' || isHub);
  const below = path === '' ? '' : `/${path}`;
  const meaning = hubName(plain) + below;
  const withPort = scheme.toLowerCase() === 'http' ? hubName(withoutPort(plain, '80')) + below : meaning;
  const fault = keyFault(written, host, path);
  return {
    written,
    meaning,
    identities: [...new Set([meaning, withPort])],
    portable: (isHub ? 'docker.io' : host) + below,
    ...(fault === undefined ? {} : { fault }),
  };
}

/** Path without leading and trailing slashes, and without the API version that clients used to store. */
function namespaceOf(path: string, apiUrl: boolean): string {
  const versionless = path.replace(apiUrl ? /^\/v[12](?=\/|$)/ : /^\/v[12](?=\/)/, '');
  return versionless
    .split('/')
    .filter((segment) => segment !== '')
    .join('/');
}

function hubName(host: string): string {
  return HUB.has(host) ? 'docker.io' : host;
}

/** Removes the default port, an empty port, and the trailing dot of a fully qualified name. */
function withoutPort(host: string, port: string): string {
  const name = host.endsWith(`:${port}`) ? host.slice(0, -port.length - 1) : host.replace(/:$/, '');
  return name.replace(/\.$/, '');
}

function keyFault(written: string, host: string, path: string): string | undefined {
  if (host === '') return 'has no registry';
  if (written !== written.trim()) return 'has leading or trailing blanks';
  if (/[@:]/.test(path)) return 'has a tag or a digest; images are matched without it';
  // Decoded from %20 or %3F in a URL: without the escape, the key would have another meaning.
  if (/[\s\p{Cc}?#%]/u.test(path))
    return 'has a blank, a control character or one of ? # % in its path, which no image has';
  // Wildcards in the path are literal, so nothing can match them.
  if (path.includes('*')) return 'has a wildcard in its path; wildcards work only in the host';
  return path === path.toLowerCase() ? undefined : 'has capital letters in its path, which no image has';
}
