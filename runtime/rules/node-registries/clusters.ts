/**
 * The clusters that a set of objects is about, each with the objects that its nodes go by.
 *
 * A HostedCluster's nodes follow `spec.imageContentSources` and `spec.configuration.image` alone: HyperShift makes the
 * ImageDigestMirrorSet `cluster` and the Image `cluster` of the guest of them, and forbids others there. The mirror sets beside
 * it are those of the management cluster.
 *
 * Source of the rule: HyperShift's hosted cluster config operator; in a folder, the layout of an offline reconcile
 * (`management/`, `hosted/<namespace>/<name>/`).
 */
import { describeObject, type KubeObject } from '../kubernetes/object.ts';
import { MIRROR_SET_KINDS } from '../mirrors/collect.ts';
import { CLUSTER_VERSION, IMAGE_CONFIG } from './input.ts';

/** An object, and the file where it stands; without a file where it comes from a cluster. */
export interface Located {
  readonly object: KubeObject;
  readonly file?: string | undefined;
  /** The same, from the folder on that was given; absent where that is no longer known. */
  readonly within?: string;
}

export interface ClusterObjects {
  /** `<namespace>/<name>` of a HostedCluster, `management`, a folder, or `local`. */
  readonly name: string;
  /** What its nodes go by. */
  readonly objects: readonly KubeObject[];
  /** For a hosted cluster, the objects of the cluster that runs its control plane. */
  readonly management?: readonly KubeObject[];
  readonly hostedCluster?: KubeObject;
  /** For a hosted cluster, whatever else lies in its own folder. */
  readonly inside?: readonly KubeObject[];
}

/**
 * Never empty.
 *
 * @param twice names (`Kind/namespace/name`) of other objects that a cluster has once and that stand in several folders
 * @example
 * ```ts
 * import { clustersIn } from './clusters.ts';
 * import assert from 'node:assert/strict';
 *
 * const hosted = {
 *   apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedCluster', metadata: { name: 'prod', namespace: 'clusters' },
 *   spec: { imageContentSources: [{ source: 'quay.io/ocp', mirrors: ['mirror.example.com/ocp'] }] },
 * };
 * const found = clustersIn([{ object: hosted }]);
 * assert.deepEqual(found.map(({ name }) => name), ['management', 'clusters/prod']);
 * assert.equal(found[1]?.objects[0]?.kind, 'ImageDigestMirrorSet');
 * ```
 */
export function clustersIn(
  found: readonly Located[],
  twice: ReadonlySet<string> = new Set(),
): readonly ClusterObjects[] {
  const outside = found.filter((one) => hostedFolder(one) === undefined);
  const inside = byHostedFolder(found);
  const hosted = outside.flatMap(({ object }) => (object.kind === 'HostedCluster' ? [object] : []));
  const folders = outside.length === 0 && inside.size > 0 ? [] : byFolder(outside, twice);
  const [first] = folders;
  const own = folders.length === 1 && first !== undefined ? first.objects : undefined;
  const management = own ?? outside.map(({ object }) => object);
  const declared = hosted.map((object): ClusterObjects => {
    const name = `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
    const others = inside.get(name) ?? [];
    return { name, objects: guestObjects(object), management, hostedCluster: object, inside: others };
  });
  const known = new Set(declared.map(({ name }) => name));
  const others = [...inside]
    .filter(([name]) => !known.has(name))
    .map(([name, objects]) => ({ name, objects }));
  if (declared.length + others.length === 0 || own === undefined) return [...folders, ...declared, ...others];
  return [{ name: 'management', objects: own }, ...declared, ...others];
}

/** `<namespace>/<name>` of the hosted cluster in whose folder a file lies. */
function hostedFolder({ file = '', within = file }: Located): string | undefined {
  return /(?:^|\/)hosted\/([^/]+\/[^/]+)\//.exec(within)?.[1];
}

function byHostedFolder(found: readonly Located[]): ReadonlyMap<string, readonly KubeObject[]> {
  const folders = new Map<string, KubeObject[]>();
  for (const one of found) {
    const name = hostedFolder(one);
    if (name === undefined) continue;
    const objects = folders.get(name);
    if (objects === undefined) folders.set(name, [one.object]);
    else objects.push(one.object);
  }
  return folders;
}

interface HostedSpec {
  readonly imageContentSources?: unknown;
  readonly configuration?: { readonly image?: unknown };
  readonly release?: { readonly image?: unknown };
}

/** What HyperShift makes of a HostedCluster for its nodes. */
function guestObjects(cluster: KubeObject): readonly KubeObject[] {
  const spec = (cluster.spec ?? {}) as HostedSpec;
  const sources = Array.isArray(spec.imageContentSources) ? (spec.imageContentSources as unknown[]) : [];
  const objects: unknown[] = [
    {
      ...IMAGE_CONFIG,
      metadata: { name: IMAGE_CONFIG.name },
      spec: spec.configuration?.image ?? {},
    },
    {
      ...CLUSTER_VERSION,
      metadata: { name: CLUSTER_VERSION.name },
      status: { desired: { image: spec.release?.image } },
    },
  ];
  if (sources.length > 0)
    objects.unshift({
      apiVersion: 'config.openshift.io/v1',
      kind: 'ImageDigestMirrorSet',
      metadata: { name: 'cluster' },
      spec: { imageDigestMirrors: sources },
    });
  return objects as readonly KubeObject[];
}

/** One cluster, unless an object that a cluster has once stands in several folders: then each of these is one. */
function byFolder(found: readonly Located[], twice: ReadonlySet<string>): readonly ClusterObjects[] {
  const depth = splitDepth(found, twice);
  if (depth === undefined) return [{ name: 'local', objects: found.map(({ object }) => object) }];
  const folders = new Map<string, KubeObject[]>();
  const common: KubeObject[] = [];
  for (const { object, file = '' } of found) {
    const parts = file.split('/');
    if (parts.length <= depth + 1) {
      common.push(object);
      continue;
    }
    const name = parts.slice(0, depth + 1).join('/');
    const objects = folders.get(name);
    if (objects === undefined) folders.set(name, [object]);
    else objects.push(object);
  }
  return [...folders].map(([name, objects]) => ({ name, objects: [...common, ...objects] }));
}

const ONCE: ReadonlySet<string> = new Set([
  ...MIRROR_SET_KINDS.map(({ kind }) => kind),
  IMAGE_CONFIG.kind,
  CLUSTER_VERSION.kind,
]);

/** Number of the first part of the path that tells the clusters apart; undefined where all is of one. */
function splitDepth(found: readonly Located[], twice: ReadonlySet<string>): number | undefined {
  const places = new Map<string, readonly string[]>();
  let depth: number | undefined;
  for (const { object, file = '' } of found) {
    const { namespace, name } = object.metadata;
    const id = describeObject({ kind: object.kind, namespace, name });
    if (!ONCE.has(object.kind) && !twice.has(id)) continue;
    const parts = file.split('/').slice(0, -1);
    const other = places.get(id);
    if (other === undefined) {
      places.set(id, parts);
      continue;
    }
    const end = Math.max(parts.length, other.length);
    for (let at = 0; at < end; at += 1)
      if (parts[at] !== other[at]) {
        depth = Math.min(depth ?? at, at);
        break;
      }
  }
  return depth;
}
