/**
 * Which credential containers/image (CRI-O, podman, skopeo) uses for a repository: at most one.
 *
 * Files are read in order; the first one with a credential wins. Within a file, `credHelpers` has precedence, then the keys from
 * the repository up to its host, by whole path segments. In a second pass, keys with a scheme are reduced to their host, and all
 * names of Docker Hub are equal. An entry without a credential ends the search of its file.
 *
 * Source of the rule: pkg/docker/config of go.podman.io/image v5.42 (GetCredentials, findCredentialsInFile).
 */

import type { JsonNode } from '../go/json.ts';
import { compareBytes } from '../go/text.ts';
import { oncePer } from '../record.ts';
import { reveal } from '../redacted.ts';
import type { TextPosition } from '../text.ts';
import { fieldOf } from './fields.ts';
import {
  type AuthSource,
  type ContainersCredential,
  containersCredential,
  type DockerConfig,
  type DockerConfigEntry,
  readAuthSource,
} from './pull-secret.ts';

/** Result of a look-up. */
export type ContainersLookup =
  /** The pull is anonymous. `stoppedBy` is an entry without a credential that ended the search of a file. */
  | { readonly found: 'nothing'; readonly stoppedBy?: FoundEntry }
  | { readonly found: 'credential'; readonly entry: FoundEntry; readonly credential: ContainersCredential }
  /** The runtime runs a credential helper program. */
  | { readonly found: 'helper'; readonly source: string; readonly helper: string }
  /** The look-up fails, and so does the pull. */
  | { readonly found: 'error'; readonly source?: string; readonly goText: string };

/** The entry that matched. */
export interface FoundEntry {
  readonly source: string;
  readonly written: string;
  readonly position: TextPosition;
  /** `exact`: the key is the repository, a parent, or the host. `host`: matched only after both were reduced to hosts. */
  readonly by: 'exact' | 'host';
  /** Other keys that match equally; Go picks one at random. */
  readonly rivals: readonly string[];
}

/**
 * Looks up the credential for `key`.
 *
 * @param files in the order they are read, without files that do not exist
 * @param key a repository, a namespace or a host, without tag and digest
 */
export function lookupForContainers(files: readonly AuthSource[], key: string): ContainersLookup {
  const wrong = keyFault(key);
  if (wrong !== undefined) return { found: 'error', goText: wrong };
  let stoppedBy: FoundEntry | undefined;
  for (const file of files) {
    const found = lookupInFile(file, key);
    if (found.found !== 'nothing') return found;
    stoppedBy ??= found.stoppedBy;
  }
  return stoppedBy === undefined ? { found: 'nothing' } : { found: 'nothing', stoppedBy };
}

function keyFault(key: string): string | undefined {
  if (/^https?:\/\//.test(key)) return `key ${key} contains http[s]:// prefix`;
  if (key.includes('@')) return `key ${key} contains a '@' character`;
  const slash = key.indexOf('/');
  if (slash < 0 || !key.includes(':', slash)) return undefined;
  return `key ${key} contains a ':' character after host[:port]`;
}

function lookupInFile(file: AuthSource, key: string): ContainersLookup {
  const parsed = readAuthSource(file);
  const fault = parsed.ok ? parsed.config.containersFault : parsed.problem.containersFault;
  if (fault !== undefined) {
    const goText = `reading JSON file "${file.name}": unmarshaling JSON at "${file.name}": ${fault}`;
    return { found: 'error', source: file.name, goText };
  }
  if (!parsed.ok) return { found: 'nothing' };
  const [registry = ''] = key.split('/', 1);
  const helper = helperFor(reveal(parsed.config.fields), registry);
  if (helper !== undefined) return { found: 'helper', source: file.name, helper };
  const { written, byHost } = indexOf(parsed.config);
  for (const candidate of lookupOrder(key, file.format)) {
    const entry = written.get(candidate);
    if (entry !== undefined) return decode(file, entry, 'exact', []);
  }
  const same = (byHost.get(normalizedHost(registry)) ?? []).toSorted(
    (a, b) => Number(isUsable(b)) - Number(isUsable(a)) || compareBytes(a.key.written, b.key.written),
  );
  const [first, ...rivals] = same;
  return first === undefined ? { found: 'nothing' } : decode(file, first, 'host', rivals);
}

/** The entries of a file by key and by host: built once per config and shared by all images. */
const indexOf = oncePer(({ entries, format }: DockerConfig) => ({
  written: new Map(entries.map((entry) => [entry.key.written, entry])),
  byHost: Map.groupBy(entries, ({ key }) => normalizedKey(key.written, format)),
}));

/** The last `credHelpers` value for the host, as Go merges them. */
function helperFor(
  fields: readonly { readonly key: string; readonly value: JsonNode }[],
  registry: string,
): string | undefined {
  let helper: string | undefined;
  for (const { key, value } of fields) {
    if (fieldOf(key, ['credHelpers']) === undefined) continue;
    if (value.kind === 'null') helper = undefined;
    for (const member of value.kind === 'object' ? value.members : []) {
      if (member.key === registry) helper = member.value.kind === 'string' ? member.value.value : '';
    }
  }
  return helper;
}

/** The repository, each parent, and the host; the legacy format supports only hosts. */
function lookupOrder(key: string, format: AuthSource['format']): readonly string[] {
  if (format === 'dockercfg') return key.split('/', 1);
  const keys = [key];
  for (let end = key.lastIndexOf('/'); end !== -1; end = end === 0 ? -1 : key.lastIndexOf('/', end - 1))
    keys.push(key.slice(0, end));
  return keys;
}

function normalizedKey(written: string, format: AuthSource['format']): string {
  const bare = written.replace(/^http:\/\//, '').replace(/^https:\/\//, '');
  const hostOnly = format === 'dockercfg' || bare !== written;
  return normalizedHost(hostOnly ? (bare.split('/', 1)[0] ?? '') : bare);
}

function normalizedHost(host: string): string {
  return host === 'docker.io' || host === 'registry-1.docker.io' ? 'index.docker.io' : host;
}

function decode(
  file: AuthSource,
  { key: { written }, position, value }: DockerConfigEntry,
  by: FoundEntry['by'],
  rivals: readonly DockerConfigEntry[],
): ContainersLookup {
  const decoded = containersCredential(reveal(value));
  if (!decoded.ok) return { found: 'error', source: file.name, goText: decoded.goText };
  const entry = { source: file.name, written, position, by, rivals: rivals.map(({ key }) => key.written) };
  return isEmpty(decoded.value)
    ? { found: 'nothing', stoppedBy: entry }
    : { found: 'credential', entry, credential: decoded.value };
}

/** Go picks one of equal keys at random; this prefers one with a credential. */
function isUsable({ containers }: DockerConfigEntry): boolean {
  return containers !== undefined && !isEmpty(containers);
}

function isEmpty(credential: ContainersCredential): boolean {
  return (
    credential.username === '' &&
    reveal(credential.password) === '' &&
    reveal(credential.identityToken) === ''
  );
}
