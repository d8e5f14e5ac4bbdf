/**
 * Which credentials the kubelet tries for an image, in which order.
 *
 * The keyrings of the pod's secrets, of the node's file and of the credential provider plugins are consulted one after the other
 * and all that match are tried. Within a keyring longer keys come first (keys sorted backwards by their bytes), equal keys
 * in the order of the secrets. When a single credential matched, there is no anonymous attempt. One unreadable secret in the
 * list fails the pod for every image.
 *
 * Source of the rule: BasicDockerKeyring, UnionDockerKeyring and MakeDockerKeyring of k8s.io/kubernetes 1.36.
 */

import { compareBytes, fromByteText, toByteText } from '../go/text.ts';
import { parseGoUrlBytes } from '../go/url.ts';
import { oncePer } from '../record.ts';
import type { TextPosition } from '../text.ts';
import { parseSchemelessBytes, parseSchemelessUrl, type SchemelessUrl, urlsMatch } from './match-images.ts';
import { type AuthSource, type KubeletCredential, readAuthSource } from './pull-secret.ts';

/** All that the kubelet looks at for one pod. */
export interface KubeletSources {
  /** `imagePullSecrets`, in the order of the pod. Secrets of other types or without data are skipped by {@link pullSecretSource}. */
  readonly secrets: readonly AuthSource[];
  /** The node's file: the first valid one, since files are not merged. */
  readonly node?: AuthSource;
  /** What plugins returned for the image, in their order. */
  readonly plugins?: readonly AuthSource[];
}

/** An entry of a keyring. */
export interface KeyringEntry {
  readonly source: string;
  /** Key as written. */
  readonly written: string;
  readonly position: TextPosition;
  /** Key as compared with the image; undefined when the kubelet passes the entry over. */
  readonly key: string | undefined;
  readonly credential: KubeletCredential;
}

/** A credential that is tried. */
export interface TriedCredential extends KeyringEntry {
  /** `hub`: the key `index.docker.io`, which counts for Docker Hub when nothing else matches. */
  readonly by: 'match' | 'hub';
}

export type KubeletKeyring =
  | {
      readonly ok: true;
      /** Keyrings in the order in which they are consulted. */
      readonly rings: readonly Ring[];
    }
  /** The pod can pull no image at all, public ones included. */
  | { readonly ok: false; readonly source: string; readonly goText: string };

/** Entries in the order of their keys. */
export interface Ring {
  readonly entries: readonly IndexedEntry[];
}

/** An entry, and what its key is compared by. */
export interface IndexedEntry {
  readonly entry: KeyringEntry;
  /** Host that the key is meant for. */
  readonly registry: string;
  /** Undefined when nothing can match. */
  readonly url: SchemelessUrl | undefined;
  readonly bytes: string;
}

/**
 * Reads all sources. An unreadable node file or plugin answer is skipped, as the kubelet does.
 */
export function kubeletKeyring(sources: KubeletSources): KubeletKeyring {
  const ofSecrets: (readonly IndexedEntry[])[] = [];
  for (const source of sources.secrets) {
    const entries = entriesOf(source);
    if (typeof entries === 'string') return { ok: false, source: source.name, goText: entries };
    ofSecrets.push(entries);
  }
  const passedOver = (source: AuthSource): readonly IndexedEntry[] => {
    const entries = entriesOf(source);
    return typeof entries === 'string' ? [] : entries;
  };
  const ofNode = sources.node === undefined ? [] : [passedOver(sources.node)];
  const ofPlugins = (sources.plugins ?? []).map(passedOver);
  return { ok: true, rings: [ofSecrets, ofNode, ofPlugins].map(makeRing) };
}

/** Entries in the order of their keys, or the kubelet's error: taken apart once for all images, as long as there is the source. */
const entriesOf = oncePer(indexEntries);

function indexEntries(source: AuthSource): readonly IndexedEntry[] | string {
  const parsed = readAuthSource(source);
  if (!parsed.ok) return parsed.problem.kubeletFault ?? [];
  if (parsed.config.kubeletFault !== undefined) return parsed.config.kubeletFault;
  return (
    parsed.config.entries
      .flatMap(({ key: { written, meaning }, position, kubelet }): IndexedEntry[] => {
        if (kubelet === undefined) return [];
        const bytes = kubeletKey(written);
        const key = bytes === undefined ? undefined : fromByteText(bytes);
        const parsedKey = bytes === undefined ? undefined : parseSchemelessBytes(bytes);
        const entry = { source: source.name, written, position, key, credential: kubelet };
        const [registry = ''] = meaning.split('/', 1);
        return [{ entry, registry, url: parsedKey?.ok ? parsedKey.url : undefined, bytes: bytes ?? '' }];
      })
      // Go's order of equal keys is random here.
      .sort((a, b) => compareBytes(a.entry.written, b.entry.written))
      .sort(byKey)
  );
}

/** The key that the kubelet makes of a written one, as a byte text; undefined when it ignores the entry. */
export function kubeletKey(written: string): string | undefined {
  const bytes = toByteText(written);
  const withScheme = /^https?:\/\//.test(bytes) ? bytes : `https://${bytes}`;
  const parsed = parseGoUrlBytes(withScheme);
  if (!parsed.ok) return undefined;
  const path = parsed.url.path.replace(/^\/v[12](?=\/)/, '');
  return path === '/' ? parsed.url.host : parsed.url.host + path;
}

/** Equal keys keep the order of the sources. */
function makeRing(sources: readonly (readonly IndexedEntry[])[]): Ring {
  const [only = [], ...more] = sources;
  return { entries: more.length === 0 ? only : sources.flat().sort(byKey) };
}

/** Backwards. */
function byKey(a: IndexedEntry, b: IndexedEntry): number {
  if (a.bytes === b.bytes) return 0;
  return a.bytes < b.bytes ? 1 : -1;
}

/**
 * The credentials that are tried for `repository`, in order. When the list is empty, one anonymous attempt follows.
 *
 * @param repository as `ImageReference.repository` has it: without tag and digest, `docker.io/library/nginx`
 */
export function lookupForKubelet(rings: readonly Ring[], repository: string): readonly TriedCredential[] {
  const target = parseSchemelessUrl(repository);
  return rings.flatMap((ring) => lookupInRing(ring, repository, target.ok ? target.url : undefined));
}

function lookupInRing(
  ring: Ring,
  repository: string,
  target: SchemelessUrl | undefined,
): readonly TriedCredential[] {
  const matching = ring.entries.filter(
    ({ url }) => url !== undefined && target !== undefined && urlsMatch(url, target),
  );
  if (matching.length > 0) return matching.map(({ entry }) => ({ ...entry, by: 'match' }));
  if (!isHubImage(repository)) return [];
  const hub = ring.entries.filter(
    ({ entry, bytes }) => entry.key !== undefined && bytes === 'index.docker.io',
  );
  return hub.map(({ entry }) => ({ ...entry, by: 'hub' }));
}

/** Whether the kubelet takes `repository` for one of Docker Hub. */
function isHubImage(repository: string): boolean {
  const slash = repository.indexOf('/');
  const first = slash < 0 ? repository : repository.slice(0, slash);
  if (first === '') return false;
  return slash < 0 || first === 'docker.io' || first === 'index.docker.io' || !/[.:]/.test(first);
}
