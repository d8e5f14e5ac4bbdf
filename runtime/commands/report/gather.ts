/** What a report is made from: every cluster of folders, or the one of a kubeconfig, with its workloads examined. */
import { parse as parseToml } from 'smol-toml';
import type { ObjectStore } from '../../controller/store.ts';
import { writerOf } from '../../pull-secret-injection/reconciler/claims.ts';
import { SOURCES_ANNOTATION } from '../../pull-secret-injection/reconciler/names.ts';
import { placesOf } from '../../registry-overrides/mirror-report.ts';
import { doctorChain } from '../../rules/diagnose/doctor.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import { type NodeMirrors, nodeMirrors } from '../../rules/node-registries/node-mirrors.ts';
import type { ExaminedPod } from '../../rules/report/pulls.ts';
import type { ClusterFacts } from '../../rules/report/report.ts';
import type { CommandIo } from '../command.ts';
import { clusterKinds } from '../doctor/cluster-kinds.ts';
import { DOCTOR_FOLDER_KINDS, lookAt } from '../doctor/look.ts';
import { readClusters, withDefaultAccount } from '../explain/folders.ts';
import { nextNodeKinds, nodeObjects } from '../explain/node-kinds.ts';
import { type ClusterAccess, readObjects, type SourceKind } from '../object-source.ts';
import { STATUS_KINDS, statusRows } from '../status.ts';
import { chosenPods, isRunning } from './pods.ts';

/** What was found, and what could not be read. */
export interface Gathered {
  readonly clusters: readonly ClusterFacts[];
  readonly unread: readonly string[];
}

/** All clusters of the folders. @throws PullwrightError where nothing can be read */
export async function gatherFolders(dirs: readonly string[]): Promise<Gathered> {
  const clusters = await readClusters(dirs, [
    ...DOCTOR_FOLDER_KINDS,
    ...STATUS_KINDS.map(({ kind }) => kind),
  ]);
  return {
    clusters: clusters.map(({ cluster, store, hosted }) =>
      factsOf(store, { name: cluster.name, hostedCluster: cluster.hostedCluster, hosted, unread: [] }),
    ),
    unread: [...new Set(clusters.flatMap(({ problems, notes }) => [...problems, ...notes]))],
  };
}

/** Of all namespaces. */
const LIVE_KINDS: readonly SourceKind[] = clusterKinds(
  undefined,
  STATUS_KINDS.filter(({ kind }) => kind !== 'DaemonSet'),
);

/** The one cluster. @throws PullwrightError where it does not answer */
export async function gatherCluster(access: ClusterAccess, name: string, io: CommandIo): Promise<Gathered> {
  const { store, problems } = await readObjects({ ...access, from: undefined }, LIVE_KINDS, io, [
    nextNodeKinds,
  ]);
  const facts = factsOf(store, {
    name,
    hostedCluster: undefined,
    hosted: false,
    unread: problems,
    live: true,
  });
  return { clusters: [facts], unread: problems };
}

interface About {
  readonly name: string;
  readonly hostedCluster: KubeObject | undefined;
  readonly hosted: boolean;
  readonly unread: readonly string[];
  readonly live?: boolean;
}

function factsOf(store: ObjectStore, about: About): ClusterFacts {
  const mirrors = nodeMirrors(nodeObjects(store), parseToml);
  const pods = examined(store, about, mirrors);
  return {
    name: about.name,
    objects: [...store],
    mirrors,
    place: placesOf(about.hostedCluster),
    pods,
    rows: statusRows(store),
    copyOf,
  };
}

function examined(
  store: ObjectStore,
  { name: cluster, hosted, unread, live = false }: About,
  nodes: NodeMirrors,
): readonly ExaminedPod[] {
  return chosenPods(store).map(({ object, pods }) => {
    const { name, namespace = '' } = object.metadata;
    const puller = { namespace, serviceAccount: 'default', pod: { kind: object.kind, name } };
    if (unread.length === 0) withDefaultAccount({ store, problems: [] }, puller);
    const input = lookAt(store, puller, { unread, hosted, nodes, live });
    return { cluster, input, links: doctorChain(input), pods, runs: isRunning(object) };
  });
}

function copyOf(secret: SecretObject): { readonly profile: string; readonly of: string } | undefined {
  const profile = writerOf(secret);
  const sources = secret.metadata.annotations?.[SOURCES_ANNOTATION];
  return profile === undefined ? undefined : { profile, of: typeof sources === 'string' ? sources : '' };
}
