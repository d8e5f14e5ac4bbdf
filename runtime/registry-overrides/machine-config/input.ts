/**
 * The clusters in a set of objects, each with the objects that its nodes follow.
 *
 * A HostedCluster's nodes follow `spec.imageContentSources` and `spec.configuration.image` alone: HyperShift renders them into
 * the ImageDigestMirrorSet `cluster` and the Image `cluster` of the hosted cluster, and forbids others there. Mirror sets beside
 * a HostedCluster belong to the management cluster.
 *
 * Source of the rule: HyperShift's hosted cluster config operator; in a folder, the layout of an offline reconcile
 * (`management/`, `hosted/<namespace>/<name>/`).
 */
import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import { recordOf, valueAt } from '../../core/record.ts';
import { isOf, MIRROR_SET_KINDS, setEntries } from '../mirror-sets/collect.ts';

// Input of the operator: the mirror sets, not validated, the registries of `image.config.openshift.io/cluster`, and the release
// image of the ClusterVersion. Source of the rule: the Machine Config Operator's `syncImageConfig`. No mirror set is ignored
// here, because one invalid entry makes the operator reject all of them.

export type NodeInput = Readonly<ReturnType<typeof readNodeInput>>;

/** The Image object that the operator reads. */
export const IMAGE_CONFIG = { apiVersion: 'config.openshift.io/v1', kind: 'Image', name: 'cluster' } as const;
export const CLUSTER_VERSION = {
  apiVersion: 'config.openshift.io/v1',
  kind: 'ClusterVersion',
  name: 'version',
} as const;
/** Kinds that determine the pull sources of a cluster's nodes; the last two are singletons. */
export const NODE_KINDS = [...MIRROR_SET_KINDS, IMAGE_CONFIG, CLUSTER_VERSION] as const;

/**
 * Reads the input from the objects of one cluster; ignores other kinds. Sorts each kind by name, so that the order of the objects
 * does not matter.
 */
export function readNodeInput(objects: readonly KubeObject[]) {
  const one = (wanted: typeof IMAGE_CONFIG | typeof CLUSTER_VERSION): KubeObject | undefined =>
    objects.find((object) => isOf(object, wanted) && object.metadata.name === wanted.name);
  return {
    entries: setEntries(objects),
    /** Whether an object of the three kinds exists, with or without entries. */
    hasSets: objects.some((object) => MIRROR_SET_KINDS.some((set) => isOf(object, set))),
    sources: sourcesOf(one(IMAGE_CONFIG)),
    /** Image of the release; undefined where no ClusterVersion is known. */
    release: releaseOf(one(CLUSTER_VERSION)),
  };
}

/** Lists of the Image object. Of two lists, an absent one differs from an empty one. */
function sourcesOf(image: KubeObject | undefined) {
  const written = recordOf(valueAt(image?.spec, 'registrySources'));
  return {
    insecure: texts(written['insecureRegistries']),
    blocked: texts(written['blockedRegistries']) ?? [],
    allowed: texts(written['allowedRegistries']) ?? [],
    search: texts(written['containerRuntimeSearchRegistries']),
  };
}

function releaseOf(version: KubeObject | undefined): string | undefined {
  const image = valueAt(version?.status, 'desired.image');
  return typeof image === 'string' ? image : undefined;
}

function texts(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.map((item) => (typeof item === 'string' ? item : ''));
}

/** An object and its file; without a file when it was read from a cluster. */
export interface Located {
  readonly object: KubeObject;
  readonly file?: string | undefined;
  /** The same, relative to the given folder; absent when unknown. */
  readonly within?: string;
}

export interface ClusterObjects {
  /** `<namespace>/<name>` of a HostedCluster, `management`, a folder, or `local`. */
  readonly name: string;
  /** Objects that its nodes follow. */
  readonly objects: readonly KubeObject[];
  /** For a hosted cluster, the objects of the cluster that runs its control plane. */
  readonly management?: readonly KubeObject[];
  readonly hostedCluster?: KubeObject;
  /** For a hosted cluster, the other objects in its own folder. */
  readonly inside?: readonly KubeObject[];
}

/**
 * Groups objects by cluster. Never empty.
 *
 * @param twice names (`Kind/namespace/name`) of other singleton objects that are in several folders
 */
export function clustersIn(
  found: readonly Located[],
  twice: ReadonlySet<string> = new Set(),
): readonly ClusterObjects[] {
  const byHostedCluster = Map.groupBy(found, hostedFolder);
  const outside = byHostedCluster.get(undefined) ?? [];
  const inside = new Map(
    [...byHostedCluster].flatMap(([name, all]) =>
      name === undefined ? [] : [[name, all.map(({ object }) => object)] as const],
    ),
  );
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

/** `<namespace>/<name>` of the hosted cluster whose folder contains the file. */
function hostedFolder({ file = '', within = file }: Located): string | undefined {
  return /(?:^|\/)hosted\/([^/]+\/[^/]+)\//.exec(within)?.[1];
}

/** Objects that HyperShift renders from a HostedCluster for its nodes. */
function guestObjects(cluster: KubeObject): readonly KubeObject[] {
  const sources = valueAt(cluster.spec, 'imageContentSources');
  const image = valueAt(cluster.spec, 'configuration.image') ?? {};
  const release = valueAt(cluster.spec, 'release.image');
  const objects: readonly KubeObject[] = [
    { ...IMAGE_CONFIG, metadata: { name: IMAGE_CONFIG.name }, spec: image },
    { ...CLUSTER_VERSION, metadata: { name: CLUSTER_VERSION.name }, status: { desired: { image: release } } },
  ];
  if (!Array.isArray(sources) || sources.length === 0) return objects;
  const { apiVersion } = IMAGE_CONFIG;
  const spec = { imageDigestMirrors: sources };
  return [{ apiVersion, kind: 'ImageDigestMirrorSet', metadata: { name: 'cluster' }, spec }, ...objects];
}

/** One cluster, or one per folder when a singleton object is in several folders, or per file when only files differ. */
function byFolder(found: readonly Located[], twice: ReadonlySet<string>): readonly ClusterObjects[] {
  const others = ofOthers(found);
  const isTwice = ({ kind }: KubeObject, id: string) => ONCE.has(kind) || twice.has(id) || others.has(id);
  let pathOf = folderOf;
  let depth = splitDepth(found, isTwice, pathOf);
  if (depth === undefined) {
    pathOf = ({ file = '' }) => inspected(file) ?? file.split('/');
    depth = splitDepth(found, (_, id) => others.has(id), pathOf);
  }
  if (depth === undefined) return [{ name: 'local', objects: found.map(({ object }) => object) }];
  const end = depth + 1;
  const folders = Map.groupBy(found, (one) => {
    const parts = pathOf(one);
    // A tree of `oc adm inspect` is one cluster, even if another lies in it.
    if (parts.length >= end || inspected(one.file) !== undefined) return parts.slice(0, end).join('/') || '.';
    return '';
  });
  const common = folders.get('') ?? [];
  folders.delete('');
  return [...folders].map(([name, own]) => ({
    name,
    objects: [...common, ...own].map(({ object }) => object),
  }));
}

const ONCE: ReadonlySet<string> = new Set(NODE_KINDS.map(({ kind }) => kind));

/** Path of the tree of `oc adm inspect` or must-gather that holds the file; undefined outside such trees. */
export function inspected(file = '', of = ['cluster-scoped-resources', 'namespaces']) {
  const parts = file.split('/');
  const at = parts.findIndex((part) => of.includes(part));
  return at === -1 ? undefined : parts.slice(0, at);
}

function folderOf({ file = '' }: Located): readonly string[] {
  return inspected(file) ?? file.split('/').slice(0, -1);
}

/** Names of the objects that have several UIDs: they are of several clusters. */
function ofOthers(found: readonly Located[]): ReadonlySet<string> {
  const uids = new Map<string, string>();
  const others = new Set<string>();
  for (const { object } of found) {
    const { uid } = object.metadata;
    if (uid === undefined) continue;
    const id = describeObject(object);
    const key = `${object.apiVersion} ${id}`;
    if ((uids.get(key) ?? uid) !== uid) others.add(id);
    uids.set(key, uid);
  }
  return others;
}

/** Index of the first path segment that differs between clusters; undefined for one cluster. */
function splitDepth(
  found: readonly Located[],
  isTwice: (object: KubeObject, id: string) => boolean,
  pathOf: (one: Located) => readonly string[],
): number | undefined {
  const places = new Map<string, readonly string[]>();
  let depth: number | undefined;
  for (const one of found) {
    const ids = inspected(one.file, ['cluster-scoped-resources']) === undefined ? [] : ['tree'];
    const id = describeObject(one.object);
    if (isTwice(one.object, id)) ids.push(id);
    const parts = pathOf(one);
    for (const of of ids) {
      const other = places.get(of);
      if (other === undefined) {
        places.set(of, parts);
        continue;
      }
      const [longer, shorter] = parts.length > other.length ? [parts, other] : [other, parts];
      const at = longer.findIndex((part, index) => part !== shorter[index]);
      if (at !== -1) depth = Math.min(depth ?? at, at);
    }
  }
  return depth;
}

// Scopes of the operator: `host[:port][/path]`, or `*.example.org` for every host below a domain; and their nesting.
// Source of the rule: openshift/runtime-utils `ScopeIsNestedInsideScope` and `IsValidRegistriesConfScope`. The runtime differs in
// one case: there `host` also covers `host:5000`.

/**
 * Every scope that contains `scope`, itself first: those with a host or a path from narrow to wide, then the wildcards.
 */
export function scopesAround(scope: string): readonly string[] {
  const found = [scope];
  for (let end = scope.lastIndexOf('/'); end > 0; end = scope.lastIndexOf('/', end - 1))
    found.push(scope.slice(0, end));
  const host = hostOf(scope);
  for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1)) {
    const wildcard = `*${host.slice(dot)}`;
    if (wildcard !== scope) found.push(wildcard);
  }
  return found;
}

/**
 * Whether `outer` is or contains `inner`, a repository or a source. For those it is the operator's rule. A source with a tag, which
 * the operator rejects, is inside the wildcards of its host, so that hosted clusters which follow these hear of it.
 */
export function isInside(inner: string, outer: string): boolean {
  if (inner === outer || inner.startsWith(`${outer}/`)) return true;
  const host = (inner.split('/', 1)[0] ?? '').replace(/:\d+$/, '');
  return outer.startsWith('*.') && host.endsWith(outer.slice(1));
}

/** The host that wildcards are compared with; empty when a colon follows a slash. */
function hostOf(scope: string): string {
  const colon = scope.indexOf(':');
  if (colon === -1) return scope.split('/', 1)[0] ?? '';
  const host = scope.slice(0, colon);
  return host.includes('/') ? '' : host;
}

/** Whether the operator accepts `scope` as an insecure, blocked or allowed registry. It checks wildcards only. */
export function isScope(scope: string): boolean {
  if (scope === '') return false;
  if (!scope.includes('*')) return true;
  return scope.startsWith('*.') && !/[/@:*]/.test(scope.slice(2));
}
