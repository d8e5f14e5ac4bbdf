/** The folders that `explain`, `doctor`, `verify` and `test` look into, as the one cluster that is meant. */
import { dirname } from 'node:path';
import { type Folder, readFolder } from '../../controller/folder.ts';
import { withIdentity } from '../../controller/identity.ts';
import { ObjectStore } from '../../controller/store.ts';
import { describeObject, type KubeObject } from '../../rules/kubernetes/object.ts';
import { MIRROR_SET_KINDS } from '../../rules/mirrors/collect.ts';
import { type ClusterObjects, clustersIn } from '../../rules/node-registries/clusters.ts';
import { CLUSTER_VERSION, IMAGE_CONFIG, isOf } from '../../rules/node-registries/input.ts';
import { chooseCluster } from '../choose-cluster.ts';
import type { SourceObjects } from '../object-source.ts';
import type { PodPuller } from '../pod-spec.ts';
import { bringCopies, INJECTION_FOLDER_KINDS } from './injected.ts';
import { FOLDER_KINDS } from './world.ts';

export interface ReadWorld {
  readonly store: ObjectStore;
  readonly problems: readonly string[];
  /** `Secret/web/pull` to `dump/secrets.yaml:12`. */
  readonly places: ReadonlyMap<string, string>;
  /** What keeps profiles of the folder from bringing what they name. */
  readonly notes: readonly string[];
  /** Whether it is a hosted cluster, whose nodes follow lists of the HostedCluster. */
  readonly hosted: boolean;
}

export interface FolderOptions {
  /** Kinds beside those of pulls. */
  readonly more?: readonly string[];
  /** The cluster that is meant, where there are several. */
  readonly cluster?: string | undefined;
}

/**
 * Reads all of `dirs`, with the copies that its profiles will bring; of an object that is given in several of them the last counts.
 *
 * @throws UsageError where it is not clear which cluster is meant
 */
export async function readFolders(
  dirs: readonly string[],
  { more = [], cluster }: FolderOptions = {},
): Promise<ReadWorld> {
  return worldIn(await locateAll(dirs, more), cluster);
}

/** A cluster of a folder, whole. */
export interface ReadCluster extends ReadWorld {
  readonly cluster: ClusterObjects;
}

/** The same for every cluster that is there. */
export async function readClusters(
  dirs: readonly string[],
  more: readonly string[],
): Promise<readonly ReadCluster[]> {
  const folders = await locateAll(dirs, more);
  return clustersOf(folders).map((cluster) => ({ cluster, ...worldOf(folders, cluster) }));
}

async function locateAll(
  dirs: readonly string[],
  more: readonly string[],
): Promise<readonly LocatedFolder[]> {
  const kinds = new Set([...FOLDER_WORLD_KINDS, ...more]);
  const folders: LocatedFolder[] = [];
  for (const dir of dirs) folders.push(locate(dir, await readFolder(dir, kinds), dirs.length === 1));
  return folders;
}

/** Kinds that say something about pulls. */
export const FOLDER_WORLD_KINDS: ReadonlySet<string> = new Set([
  ...FOLDER_KINDS,
  ...INJECTION_FOLDER_KINDS,
  'HostedCluster',
]);

/**
 * What is in `folders` of the cluster that is meant, with the copies that its profiles will bring.
 *
 * @throws UsageError where it is not clear which cluster is meant
 */
export function worldIn(folders: readonly LocatedFolder[], cluster?: string): ReadWorld {
  return worldOf(folders, chooseCluster(clustersOf(folders), cluster));
}

function clustersOf(folders: readonly LocatedFolder[]): readonly ClusterObjects[] {
  const found = folders.flatMap(({ manifests }) => manifests);
  return clustersIn(found, new Set(folders.flatMap(elsewhereAgain)));
}

function worldOf(folders: readonly LocatedFolder[], chosen: ClusterObjects): ReadWorld {
  const meant = objectsOf(chosen);
  const store = new ObjectStore();
  const places = new Map<string, string>();
  const lines = new Set<string>();
  for (const { manifests } of folders) {
    const first = new Set<string>();
    for (const { object, place } of manifests) {
      if (!meant.has(object)) continue;
      lines.add(place);
      const { name, namespace } = object.metadata;
      const id = describeObject({ kind: object.kind, namespace, name });
      const key = `${object.apiVersion} ${id}`;
      if (first.has(key)) continue;
      first.add(key);
      places.set(id, place);
      store.set(withIdentity(object));
    }
  }
  const hosted = chosen.hostedCluster !== undefined;
  if (hosted) for (const object of chosen.objects) store.set(withIdentity(object));
  const problems = folders.flatMap((folder) => problemsIn(folder, lines));
  return { store, problems, places, notes: bringCopies(store), hosted };
}

/** A folder whose objects know where they stand. */
export interface LocatedFolder {
  readonly manifests: readonly {
    readonly object: KubeObject;
    readonly file: string;
    readonly within: string;
    readonly place: string;
  }[];
  readonly problems: readonly {
    readonly place: string;
    readonly message: string;
    readonly first?: { readonly place: string; readonly file: string };
    readonly file: string;
  }[];
}

/** A single file is its own folder. Names of clusters are paths within `dir`, where it is the only one. */
export function locate(dir: string, { manifests, problems }: Folder, isOnly: boolean): LocatedFolder {
  const path = (file: string): string => (file === dir ? file : `${dir}/${file}`);
  return {
    manifests: manifests.map(({ object, file, line }) => ({
      object,
      file: isOnly ? file : path(file),
      within: file,
      place: `${path(file)}:${line}`,
    })),
    problems: problems.map(({ file, line, message, first }) => ({
      file: path(file),
      place: `${path(file)}:${line}`,
      message,
      ...(first === undefined
        ? {}
        : { first: { file: path(first.file), place: `${path(first.file)}:${first.line}` } }),
    })),
  };
}

/** Objects that stand in two folders of one tree: a cluster has each once, so that these are two clusters. */
function elsewhereAgain({ manifests, problems }: LocatedFolder): readonly string[] {
  const again = new Set(
    problems.flatMap(({ place, file, first }) =>
      first === undefined || dirname(first.file) === dirname(file) ? [] : [place],
    ),
  );
  return manifests
    .filter(({ place }) => again.has(place))
    .map(({ object: { kind, metadata } }) =>
      describeObject({ kind, namespace: metadata.namespace, name: metadata.name }),
    );
}

/** What of the manifests is of the cluster. Mirror sets in the folder of a hosted cluster do not count: HyperShift writes its own. */
function objectsOf({ objects, inside = [] }: ClusterObjects): ReadonlySet<KubeObject> {
  const managed = [...MIRROR_SET_KINDS, IMAGE_CONFIG, CLUSTER_VERSION];
  return new Set([...objects, ...inside.filter((object) => !managed.some((kind) => isOf(object, kind)))]);
}

/** An object of another cluster has its name again, which is no mistake. */
function problemsIn({ problems }: LocatedFolder, meant: ReadonlySet<string>): readonly string[] {
  return problems
    .filter(({ place, first }) => first === undefined || (meant.has(place) && meant.has(first.place)))
    .map(({ place, message }) => `${place}: ${message}`);
}

/** Kubernetes makes this one with each namespace, so that a folder of manifests need not have it. */
export function withDefaultAccount<T extends SourceObjects>(
  found: T,
  { namespace }: Pick<PodPuller, 'namespace'>,
): T {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } };
  if (found.store.get({ ...account, namespace, name: 'default' }) === undefined) found.store.set(account);
  return found;
}
