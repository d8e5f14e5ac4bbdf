/**
 * One entry of an auth file: its key as the container runtime looks it up, and its credential as the runtime reads it.
 *
 * Source of the rule: containers/image `pkg/docker/config` (`authKeyLookupOrder`, `decodeDockerAuth`), Docker's habit of API
 * addresses as keys, and the kubelet keyring, which treats `/v1/` and `/v2/` as the host.
 *
 * The complete rule of keys (registry-key.ts, with the URL parser of Go behind it) takes longer to load than a run lasts, so
 * this file spells keys its own short way. A test holds it against the complete one over all combinations of scheme, host, port
 * and path. Documents are read by the reader that everything else has.
 */

import { readTexts } from '../docker-config/fields.ts';
import type { JsonNode } from '../go/json.ts';
import { type Redacted, redact, reveal } from '../redacted.ts';
import { trimEndOf, trimStartOf } from '../text/trim.ts';

/** What an auth file holds for one key. */
export interface RegistryCredential {
  /** Padded base64 of `user:password`. */
  readonly auth: Redacted<string>;
  readonly identityToken?: Redacted<string>;
}

/** Hosts that mean the same registry, and the name under which the runtime looks it up. */
const DOCKER_HUB = /^(?:index\.docker\.io|registry-1\.docker\.io|docker\.io)(?=\/|$)/;

/**
 * The spelling under which the runtime finds the key: no scheme, no API path, no trailing slash, host in lower case, Docker
 * Hub as `docker.io`. Text that cannot be a key gives text that matches nothing.
 *
 * @example
 * ```ts
 * import { canonicalKey } from './auth-file-entry.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(canonicalKey('https://index.docker.io/v1/'), 'docker.io');
 * assert.equal(canonicalKey('Mirror.example.com:5000/team/'), 'mirror.example.com:5000/team');
 * ```
 */
export function canonicalKey(spelled: string): string {
  if (SIMPLE_KEY.test(spelled) && !spelled.endsWith('docker.io')) return spelled;
  const bare = spelled.replace(/^https?:\/\//i, '');
  const slash = bare.indexOf('/');
  const host = (slash === -1 ? bare : bare.slice(0, slash)).toLowerCase();
  const isUrl = bare.length !== spelled.length || DOCKER_HUB.test(host);
  // `/v2/` begins an API address; `quay.io/v2` without a scheme is a namespace of that name, not all of the host.
  const version = isUrl ? /^\/v[12](?=\/|$)/ : /^\/v[12](?=\/)/;
  const path = slash === -1 ? '' : trimEndOf(bare.slice(slash).replace(version, ''), '/');
  return (host + path).replace(DOCKER_HUB, 'docker.io');
}

const SIMPLE_KEY = /^[a-z0-9][a-z0-9.-]*(?::[0-9]+)?$/;

/**
 * The first key for which `has` holds of those that the runtime tries for a repository, most specific first: the repository,
 * each parent, the host.
 *
 * @example
 * ```ts
 * import { firstLookupKey } from './auth-file-entry.ts';
 * import assert from 'node:assert/strict';
 *
 * const tried: string[] = [];
 * firstLookupKey('host:5000/a/b', (key) => tried.push(key) < 0);
 * assert.deepEqual(tried, ['host:5000/a/b', 'host:5000/a', 'host:5000']);
 * ```
 */
export function firstLookupKey(repository: string, has: (key: string) => boolean): string | undefined {
  for (let key = repository; ; ) {
    if (has(key)) return key;
    const slash = key.lastIndexOf('/');
    if (slash <= 0) return undefined;
    key = key.slice(0, slash);
  }
}

/**
 * The credential of an entry, or why the runtime would not use it. A usable `auth` wins over `username` and `password`, as
 * in the kubelet; unpadded and URL-safe base64 are accepted and written in the form that the runtime reads.
 */
export function credentialOf(entry: JsonNode): RegistryCredential | string {
  if (entry.kind !== 'object') return 'it is no object';
  const { texts } = readTexts(entry, FIELDS);
  const { auth = '', username = '', password = '', identitytoken: token = '' } = texts;
  const pair = pairOfAuth(auth) ?? pairOfFields(username, password);
  if (token !== '') {
    // The runtime reads an identity token only beside a decodable pair.
    return { auth: redact(pair ?? base64(`${username || '<token>'}:`)), identityToken: redact(token) };
  }
  if (pair !== undefined) return { auth: redact(pair) };
  return auth === ''
    ? 'it has neither auth nor username and password'
    : '"auth" is no base64 of "user:password"';
}

const FIELDS = ['auth', 'username', 'password', 'identitytoken'];

/** Canonical base64 of the pair in `auth`; undefined when the runtime would send nothing for it. */
function pairOfAuth(auth: string): string | undefined {
  const bytes = decodeBase64(auth);
  const colon = bytes?.indexOf(':') ?? -1;
  if (bytes === undefined || colon <= 0) return undefined;
  const password = bytes.slice(colon + 1);
  // The runtime trims NUL bytes, which some tools append.
  const trimmed = trimStartOf(trimEndOf(password, '\0'), '\0');
  if (trimmed === '') return undefined;
  return trimmed === password && CANONICAL_BASE64.test(auth)
    ? auth
    : btoa(`${bytes.slice(0, colon)}:${trimmed}`);
}

const CANONICAL_BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function pairOfFields(username: string, password: string): string | undefined {
  // A colon in the name would move the border between name and password.
  if (username === '' || password === '' || username.includes(':')) return undefined;
  return base64(`${username}:${password}`);
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Bytes as a string of code units below 256. */
function decodeBase64(text: string): string | undefined {
  try {
    return atob(text);
  } catch {
    return decodeUrlSafe(text);
  }
}

function decodeUrlSafe(text: string): string | undefined {
  if (!/^[A-Za-z0-9_-]+=*$/.test(text)) return undefined;
  try {
    return atob(trimEndOf(text.replaceAll('-', '+').replaceAll('_', '/'), '='));
  } catch {
    return undefined;
  }
}

/** Whether the runtime would send the same, without showing either. */
export function sameCredential(a: RegistryCredential, b: RegistryCredential): boolean {
  return reveal(a.auth) === reveal(b.auth) && tokenOf(a) === tokenOf(b);
}

function tokenOf(credential: RegistryCredential): string | undefined {
  return credential.identityToken === undefined ? undefined : reveal(credential.identityToken);
}
