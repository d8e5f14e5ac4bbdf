/**
 * Which credentials the kubelet tries for an image, in which order.
 *
 * The kubelet consults the keyrings of the pod's secrets, of the node's file and of the credential provider plugins, and tries
 * all matches. Within a keyring, keys are sorted in descending byte order, so that longer keys come first. Equal keys keep the
 * order of the secrets. If any credential matches, the kubelet does not try anonymously. One unreadable secret in the list fails
 * every pull of the pod.
 *
 * Source of the rule: BasicDockerKeyring, UnionDockerKeyring and MakeDockerKeyring of k8s.io/kubernetes 1.36.
 */

import { compareBytes, toByteText } from '../go/text.ts';
import { parseGoUrl } from '../go/url.ts';
import { oncePer } from '../record.ts';
import { parseSchemelessBytes, parseSchemelessUrl, urlsMatch } from './match-images.ts';
import { type AuthSource, readAuthSource } from './pull-secret.ts';

/** All credential sources of the kubelet for one pod. */
export interface KubeletSources {
  /** `imagePullSecrets` in pod order. {@link pullSecretSource} skips Secrets of other types or without data. */
  readonly secrets: readonly AuthSource[];
  /** The node's file: the first valid one, as the kubelet does not merge files. */
  readonly node?: AuthSource;
  /** Responses of the plugins for the image, in their order. */
  readonly plugins?: readonly AuthSource[];
}

/** A credential that the kubelet tries. */
export interface TriedCredential extends Readonly<Ring[number]> {
  /** `hub`: the key `index.docker.io`, used for Docker Hub if nothing else matches. */
  readonly by: 'match' | 'hub';
}

/** Entries in key order, each with its parsed key. */
export type Ring = Readonly<Exclude<ReturnType<typeof indexEntries>, string>>;

/**
 * Reads all sources. Skips an unreadable node file or plugin response, like the kubelet.
 *
 * @returns the keyrings in the order the kubelet consults them; not `ok` if the pod cannot pull any image, not even public ones
 */
export function kubeletKeyring(sources: KubeletSources) {
  const ofSecrets: Ring[] = [];
  for (const source of sources.secrets) {
    const entries = entriesOf(source);
    if (typeof entries === 'string') return { ok: false as const, source: source.name, goText: entries };
    ofSecrets.push(entries);
  }
  const passedOver = (source: AuthSource): Ring => {
    const entries = entriesOf(source);
    return typeof entries === 'string' ? [] : entries;
  };
  const ofNode = sources.node === undefined ? [] : [passedOver(sources.node)];
  const ofPlugins = (sources.plugins ?? []).map(passedOver);
  // Equal keys keep the order of the sources.
  return { ok: true as const, rings: [ofSecrets, ofNode, ofPlugins].map((ring) => ring.flat().sort(byKey)) };
}

/** Entries in key order, or the kubelet's error. Parsed once per source and shared by all images. */
const entriesOf = oncePer(indexEntries);

function indexEntries(source: AuthSource) {
  const parsed = readAuthSource(source);
  if (!parsed.ok) return parsed.problem.kubeletFault ?? [];
  if (parsed.config.kubeletFault !== undefined) return parsed.config.kubeletFault;
  return (
    parsed.config.entries
      .flatMap(({ key: { written, meaning }, position, kubelet: credential }) => {
        if (credential === undefined) return [];
        const bytes = kubeletKey(written);
        const parsedKey = bytes === undefined ? undefined : parseSchemelessBytes(bytes);
        const url = parsedKey?.ok ? parsedKey.value : undefined;
        // The host.
        const [registry = ''] = meaning.split('/', 1);
        return [{ source: source.name, written, position, credential, registry, url, bytes: bytes ?? '' }];
      })
      // Go's order of equal keys is random; by spelling, it is stable.
      .sort((a, b) => byKey(a, b) || compareBytes(a.written, b.written))
  );
}

/** The key that the kubelet derives from a written one, as byte text; undefined if it ignores the entry. */
export function kubeletKey(written: string): string | undefined {
  const bytes = toByteText(written);
  const withScheme = /^https?:\/\//.test(bytes) ? bytes : `https://${bytes}`;
  const parsed = parseGoUrl(withScheme);
  if (!parsed.ok) return undefined;
  const { host, path } = parsed.value;
  const below = path.replace(/^\/v[12](?=\/)/, '');
  return below === '/' ? host : host + below;
}

/** Descending. */
function byKey(a: { readonly bytes: string }, b: { readonly bytes: string }): number {
  if (a.bytes === b.bytes) return 0;
  return a.bytes < b.bytes ? 1 : -1;
}

/**
 * The credentials that the kubelet tries for `repository`, in order. If empty, it makes one anonymous attempt.
 *
 * @param repository like `ImageReference.repository`, without tag and digest: `docker.io/library/nginx`
 */
export function lookupForKubelet(rings: readonly Ring[], repository: string): readonly TriedCredential[] {
  const target = parseSchemelessUrl(repository);
  return rings.flatMap((ring): readonly TriedCredential[] => {
    const matching = ring.filter(({ url }) => url !== undefined && target.ok && urlsMatch(url, target.value));
    if (matching.length > 0) return matching.map((entry) => ({ ...entry, by: 'match' }));
    if (!isHubImage(repository)) return [];
    const hub = ring.filter(({ bytes }) => bytes === 'index.docker.io');
    return hub.map((entry) => ({ ...entry, by: 'hub' }));
  });
}

/** Whether the kubelet treats `repository` as an image of Docker Hub. */
function isHubImage(repository: string): boolean {
  const slash = repository.indexOf('/');
  const first = slash < 0 ? repository : repository.slice(0, slash);
  if (first === '') return false;
  return slash < 0 || first === 'docker.io' || first === 'index.docker.io' || !/[.:]/.test(first);
}
