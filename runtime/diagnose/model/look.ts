/** What `doctor` looks at: the pod, what it lists, what would be injected, what reports trouble, and what the kubelet said. */

import { dirname } from 'node:path';
import type { CommandIo } from '../../cli/command.ts';
import { lookupForContainers } from '../../core/docker-config/containers-keyring.ts';
import { kubeletKeyring, lookupForKubelet } from '../../core/docker-config/kubelet-keyring.ts';
import { type AuthSource, readAuthSource } from '../../core/docker-config/pull-secret.ts';
import { parseImageReference } from '../../core/image-reference.ts';
import { HOSTED_CLUSTER } from '../../core/kubernetes/hypershift.ts';
import { describeObject, type KubeObject } from '../../core/kubernetes/object.ts';
import { PULL_STATUS } from '../../core/kubernetes/pull-status.ts';
import { withoutTagAndDigest } from '../../core/mirrors/resolve.ts';
import { recordOf, recordsIn, textOf, textsIn } from '../../core/record.ts';
import { withIdentity } from '../../engine/contract.ts';
import { type Folder, readFolder } from '../../engine/offline/manifests.ts';
import { ObjectStore } from '../../engine/store.ts';
import type { ObjectRef } from '../../kube/resources.ts';
import { PROFILE_API_VERSION, PROFILE_KIND } from '../../pull-secret-injection/kinds/profile.ts';
import {
  type ClusterObjects,
  clustersIn,
  NODE_KINDS,
} from '../../registry-overrides/machine-config/input.ts';
import { isOf } from '../../registry-overrides/mirror-sets/collect.ts';
import { MACHINE_CONFIG, type NodeMirrors } from '../../registry-overrides/planes.ts';
import { notGivenIn, notInjectedIn } from '../checks/injection.ts';
import { bringCopies, injectionKinds, plannedNames } from './admission.ts';
import { eventsAbout, failureIn, podKinds, podsOf, providerFailure } from './events.ts';
import { agentKinds, NODE, nodeFacts, reportsAbout, troublesIn } from './nodes.ts';
import {
  chooseCluster,
  conditionOf,
  type LookValues,
  type NextKinds,
  readObjects,
  type SourceKind,
} from './objects.ts';
import {
  accountName,
  CLUSTER_KINDS,
  explainIn,
  findPod,
  findWorld,
  GLOBAL_SECRET,
  hasOwnList,
  imagesOf,
  isStatic,
  isSynced,
  nextNodeKinds,
  nodeFile,
  nodeNameOf,
  ownSecrets,
  PLATFORM_SECRET,
  type PlainPodSpec,
  type PodPuller,
  PROVIDER_CONFIGS,
  type PullModel,
  podRef,
  podSource,
  podSpecIn,
  podSpecOf,
  providedImages,
  SECRET,
  WORKLOAD_KINDS,
} from './pull.ts';
import type { Explanation } from './types.ts';

/**
 * Whether the credential provider, which asks as the pod's ServiceAccount, may read Secrets of the namespace. A ClusterRole is
 * not looked into: what it grants is believed.
 */
function providerMayRead(store: ObjectStore, namespace: string, account: string): boolean {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  return store.list(ROLE_BINDING, namespace).some(({ subjects, roleRef }) => {
    const isMeant = recordsIn(subjects).some(({ kind, name, namespace: where = namespace }) =>
      kind === 'Group'
        ? groups.includes(textOf(name))
        : kind === 'ServiceAccount' && name === account && where === namespace,
    );
    const { kind, name } = recordOf(roleRef);
    if (!isMeant || kind !== 'Role') return isMeant && kind !== undefined;
    const role = store.get({ ...ROLE, namespace, name: textOf(name) });
    return recordsIn(role?.['rules']).some(readsSecrets);
  });
}

function readsSecrets(rule: Readonly<Record<string, unknown>>): boolean {
  const has = (field: string, one: string): boolean =>
    textsIn(rule[field]).some((text) => text === one || text === '*');
  return has('apiGroups', '') && has('resources', 'secrets') && has('verbs', 'get');
}

const ROLE = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' } as const;
const ROLE_BINDING = { ...ROLE, kind: 'RoleBinding' } as const;
const SERVICE_ACCOUNT = { apiVersion: 'v1', kind: 'ServiceAccount' } as const;

/**
 * What to read of a cluster for the pulls of `puller`, in three steps: of an image ten requests where nothing is blocked or refused.
 * Of a pod also what decides what is injected into it, and what reports trouble.
 */
export function pullKinds(puller: PodPuller): readonly NextKinds[] {
  const { namespace, serviceAccount, pod, node: named } = puller;
  const account = (name: string): SourceKind => ({ ...SERVICE_ACCOUNT, namespace, name });
  const about = (name: string | undefined): readonly SourceKind[] =>
    name === undefined ? [] : [{ ...NODE, name }];
  const ref = podRef(puller);
  const own: readonly SourceKind[] =
    ref === undefined
      ? [account(serviceAccount)]
      : [
          ref,
          ...injectionKinds(namespace),
          { apiVersion: 'v1', kind: 'Event', namespace, fieldSelector: eventsAbout(pod) },
          ...[PULL_STATUS, ROLE, ROLE_BINDING].map((kind) => ({ ...kind, namespace })),
        ];
  // The Secrets of the namespace are there already.
  const file = (secret: ObjectRef): readonly SourceKind[] => (secret.namespace === namespace ? [] : [secret]);
  return [
    () => [...own, { ...SECRET, namespace }, ...about(named), ...CLUSTER_KINDS],
    (store) => {
      const found = findPod(store, puller);
      const node = nodeNameOf(store, puller);
      return [
        ...file(isSynced(store, puller, []) ? GLOBAL_SECRET : PLATFORM_SECRET),
        ...about(node),
        ...(found === undefined
          ? []
          : [
              account(accountName(podSpecIn(found), serviceAccount)),
              ...podKinds(found),
              ...(node === undefined ? [] : reportsAbout(node)),
            ]),
      ];
    },
    (store) => {
      const node = nodeNameOf(store, puller);
      const isDelivered = isSynced(store, puller, []) && store.get(GLOBAL_SECRET) !== undefined;
      return [
        ...(isDelivered ? [] : file(PLATFORM_SECRET)),
        ...nextNodeKinds(store),
        ...(pod === undefined || node === undefined ? [] : agentKinds(store, node)),
      ];
    },
  ];
}

/** What is known beside the objects. */
export interface Known {
  readonly unread: readonly string[];
  readonly hosted: boolean;
  readonly nodes?: NodeMirrors;
  /** Whether it is a cluster, where what is not found does not exist. @default {false} */
  readonly live?: boolean;
}

/** What is known of a pod, or of an object with a pod template, for the checks of its pulls. */
export type DoctorInput = ReturnType<typeof lookAt>;

/**
 * Gathers. Lists are empty where nothing is known.
 *
 * @param known what could not be read, whether the nodes are those of a hosted cluster, and where they pull from, where that is known
 * @throws PullwrightError when the pod is not found
 */
export function lookAt(
  store: ObjectStore,
  puller: PodPuller,
  { unread, hosted, nodes, live = false }: Known,
) {
  const spec = podSpecOf(store, puller) ?? {};
  const template = findPod(store, puller) as KubeObject;
  const { namespace } = puller;
  const isPod = template.kind === 'Pod';
  const name = accountName(spec, 'default');
  const object = store.get({ ...SERVICE_ACCOUNT, namespace, name });
  const complete = unread.length === 0;
  // A pod was made with it, and Kubernetes makes "default" with each namespace: a folder need not have these.
  const account = { name, object, known: complete && (live || (name !== 'default' && !isPod)) };
  // The list of a pod that exists is complete: its ServiceAccount no longer counts.
  const world = findWorld(store, puller, { complete, hosted, nodes });
  const pods = podsOf(store, template);
  const node = nodeNameOf(store, puller);
  const mayRead = providerMayRead(store, namespace, name);
  const images = imagesOf(spec).map((image) => imageIn(store, world, puller, image, mayRead));
  return {
    namespace,
    /** `Pod/web/shop-1` */
    pod: describeObject({ kind: template.kind, namespace, name: template.metadata.name }),
    /** A pod that exists cannot be changed; a template can. */
    isPod,
    /** The names come from the pod or template itself, and not from its ServiceAccount. */
    ownList: hasOwnList(spec) && !(isPod && sameList(spec, object)),
    /** Made by a kubelet from a file of its node: it cannot list a Secret. */
    isStatic: isStatic(template),
    /** The template as it is, for a change of it. */
    template,
    account,
    images,
    notInjected: notInjectedIn(store, { template, world, account, pods, live }),
    notGiven: notGivenIn(store, template),
    givers: giversOf(store, template),
    troubles: troublesIn(store, namespace, name, node),
    provider: {
      matchImages: providedImages(store),
      mayRead,
      /** What its last run for this pod failed with, as the installer of the node says. */
      failure: pods.flatMap((pod) => providerFailure(store, pod) ?? [])[0],
    },
    /** How many pods were looked at: the pod itself, or those that a template has made. */
    pods: pods.length,
    /** What the kubelet says of the pull of a container; of a template, of one of its pods. */
    failure: pods.flatMap((pod) => failureIn(store, pod) ?? [])[0],
    node: nodeFacts(
      store,
      node,
      images.flatMap(({ explanation }) => explanation ?? []),
      live && complete,
    ),
    /** What could not be read, each with the right that is missing. */
    unread,
  };
}

/** Profiles that inject a name into such pods and sync its Secret, each with the message of `Ready` unless it is True. */
function giversOf(store: ObjectStore, pod: KubeObject) {
  return plannedNames(store, pod, []).flatMap(({ name: secret, by }) => {
    const [sort, name = ''] = by.split('/');
    if (sort !== 'profile') return [];
    const profile = store.get({ apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND, name });
    if (profile === undefined || !brings(profile, secret)) return [];
    return [{ secret, by: `${PROFILE_KIND}/${name}`, says: readyText(profile) }];
  });
}

/** A name without sources is listed for pods, and its Secret is not created by the reconciler. */
function brings({ spec }: KubeObject, secret: string): boolean {
  const { secrets } = recordOf(spec);
  return recordsIn(secrets).some(({ name, sources }) => name === secret && recordsIn(sources).length > 0);
}

function readyText(profile: KubeObject): string | undefined {
  const ready = conditionOf(profile, 'Ready');
  if (ready === undefined) return 'nothing has answered it yet; is the reconciler running?';
  return ready.status === 'True' ? undefined : `${ready.reason}: ${ready.message}`;
}

function sameList(spec: PlainPodSpec, account: KubeObject | undefined): boolean {
  const ofAccount = ownSecrets({ imagePullSecrets: account?.['imagePullSecrets'] });
  return JSON.stringify(ofAccount) === JSON.stringify(ownSecrets(spec));
}

/** Of entries for other registries nothing is said. */
const BRIEF = { brief: true } as const;

/** An image of the pod, and which Secrets and nodes would have a credential for it. */
export type DoctorImage = DoctorInput['images'][number];

function imageIn(store: ObjectStore, world: PullModel, puller: PodPuller, image: string, mayRead: boolean) {
  const parsed = parseImageReference(image);
  if (!parsed.ok) return { text: image, fault: parsed.goText, elsewhere: [], mirrors: [], mirrorSecrets: [] };
  const explanation = explainIn(world, parsed.reference, BRIEF);
  const listed = new Set(explanation.secrets.map(({ name }) => name));
  const sources = store.list(SECRET, puller.namespace).flatMap((object) => {
    const source = podSource(object);
    return source === undefined ? [] : [{ name: object.metadata.name, source }];
  });
  const pod = findPod(store, puller);
  const listsNone = pod !== undefined && isStatic(pod);
  const bare = bareMirrors(explanation, mayRead);
  const holds = (source: AuthSource, mirror: string): boolean =>
    lookupForContainers([source], withoutTagAndDigest(mirror)).found === 'credential';
  const node = nodeNameOf(store, puller);
  const synced = (): Explanation =>
    explainIn({ ...world, ...nodeFile(store, puller, [], true) }, parsed.reference, BRIEF);
  return {
    text: image,
    explanation,
    /** Secrets of the namespace that the pod does not list, and that hold a credential for the image. A static pod cannot list any. */
    elsewhere: sources
      .filter(
        ({ name, source }) =>
          !listsNone && !listed.has(name) && matchesFor(source, parsed.reference.repository),
      )
      .map(({ name }) => name),
    /** Mirrors without a credential for which a Secret of the namespace has one. */
    mirrors: bare.filter((mirror) => sources.some(({ source }) => holds(source, mirror))),
    /** Names of those Secrets; of all readable pull secrets of the namespace where no mirror is known, as each may be the one. */
    mirrorSecrets: sources
      .filter(({ source }) =>
        world.mirrors.length === 0 ? readAuthSource(source).ok : bare.some((mirror) => holds(source, mirror)),
      )
      .map(({ name }) => name),
    /** The node of the pod, when its label keeps the pull secret of the cluster from it, and that has a credential for the image. */
    leftOutNode: isBare(explanation) && node !== undefined && !isBare(synced()) ? node : undefined,
  };
}

function isBare({ kubelet }: Explanation): boolean {
  return kubelet.anonymous && kubelet.blockedBy === undefined;
}

function matchesFor(source: AuthSource, repository: string): boolean {
  const keyring = kubeletKeyring({ secrets: [source] });
  return keyring.ok && lookupForKubelet(keyring.rings, repository).length > 0;
}

/** Mirrors that get no credential: none is known, or the provider may not read it. */
function bareMirrors({ places }: Explanation, mayRead: boolean): readonly string[] {
  return places
    .filter(({ kind, crio }) => {
      if (kind !== 'mirror') return false;
      return (
        crio.what === 'nothing' ||
        (!mayRead && crio.what === 'entry' && crio.entry.source.startsWith('auth file'))
      );
    })
    .map(({ reference }) => reference);
}

// The folders that `explain`, `doctor`, `verify` and `test` look into, as the one cluster that is meant.

/** Objects of one cluster, out of folders or of a cluster that is there. */
export type ReadWorld = ReturnType<typeof worldOf>;

/**
 * Reads all of `from`, with the copies that its profiles will bring; of an object that is given in several folders the last counts.
 * Without a folder, what `steps` name of the cluster, which has no files, and whose nodes are its own.
 *
 * @param namespace that of objects of a folder that name none, as those of `helm template`
 * @throws UsageError where it is not clear which cluster is meant; PullwrightError where nothing can be read
 */
export async function readWorld(
  { from, cluster, ...access }: LookValues,
  steps: readonly NextKinds[],
  io: CommandIo,
  namespace?: string,
): Promise<ReadWorld> {
  if (from !== undefined) return worldIn(await locateAll(from, FOLDER_KINDS, io.stdin), cluster, namespace);
  const found = await readObjects(access, steps, io);
  return { ...found, given: found.store, places: new Map(), notes: [], hosted: false };
}

/** A cluster of a folder, which is read whole on demand. */
export type FoundCluster = Awaited<ReturnType<typeof readClusters>>[number];

/** Every cluster that is there. */
export async function readClusters(
  dirs: readonly string[],
  more: readonly string[],
  stdin: NodeJS.ReadableStream,
) {
  const folders = await locateAll(dirs, [...FOLDER_KINDS, ...more], stdin);
  return clustersOf(folders).map((cluster) => ({ cluster, read: () => worldOf(folders, cluster) }));
}

/** The documents of `dirs` that are of these kinds. */
export async function locateAll(
  dirs: readonly string[],
  kinds: Iterable<string>,
  stdin: NodeJS.ReadableStream,
): Promise<readonly LocatedFolder[]> {
  const folders: LocatedFolder[] = [];
  for (const dir of dirs)
    folders.push(locate(dir, await readFolder(dir, new Set(kinds), stdin), dirs.length === 1));
  return folders;
}

/** Kinds that have a namespace, also where the file does not say it. */
const NAMESPACED: ReadonlySet<string> = new Set([
  ...[...WORKLOAD_KINDS, SECRET, SERVICE_ACCOUNT, PULL_STATUS, ROLE, ROLE_BINDING].map(({ kind }) => kind),
  'Event',
  'PullSecretGrant',
]);

/** Kinds that say something about pulls. */
export const FOLDER_KINDS: ReadonlySet<string> = new Set([
  ...NAMESPACED,
  ...[...PROVIDER_CONFIGS, ...NODE_KINDS, MACHINE_CONFIG, HOSTED_CLUSTER, NODE, ...injectionKinds('')].map(
    ({ kind }) => kind,
  ),
  'ConfigMap',
  'ControllerRevision',
]);

/**
 * What is in `folders` of the cluster that is meant, with the copies that its profiles will bring.
 *
 * @throws UsageError where it is not clear which cluster is meant
 */
export function worldIn(folders: readonly LocatedFolder[], cluster?: string, namespace?: string): ReadWorld {
  return worldOf(folders, chooseCluster(clustersOf(folders), cluster), namespace);
}

function clustersOf(folders: readonly LocatedFolder[]): readonly ClusterObjects[] {
  const found = folders.flatMap(({ manifests }) => manifests);
  return clustersIn(found, new Set(folders.flatMap(elsewhereAgain)));
}

function worldOf(
  folders: readonly LocatedFolder[],
  { objects, inside = [], hostedCluster }: ClusterObjects,
  ofNone: string = 'default',
) {
  // Mirror sets in the folder of a hosted cluster do not count: HyperShift writes its own.
  const own = inside.filter((object) => !NODE_KINDS.some((kind) => isOf(object, kind)));
  const meant = new Set([...objects, ...own]);
  const placed = (object: KubeObject): KubeObject => {
    const { namespace = NAMESPACED.has(object.kind) ? ofNone : undefined } = object.metadata;
    return withIdentity(
      namespace === undefined ? object : { ...object, metadata: { ...object.metadata, namespace } },
    );
  };
  const store = new ObjectStore();
  /** `Secret/web/pull` to `dump/secrets.yaml:12`. */
  const places = new Map<string, string>();
  const lines = new Set<string>();
  for (const { manifests } of folders) {
    const first = new Set<string>();
    for (const { object: written, place } of manifests) {
      if (!meant.has(written)) continue;
      const object = placed(written);
      lines.add(place);
      const id = describeObject({ kind: object.kind, ...object.metadata });
      const key = `${object.apiVersion} ${id}`;
      if (first.has(key)) continue;
      first.add(key);
      places.set(id, place);
      store.set(object);
    }
  }
  const hosted = hostedCluster !== undefined;
  if (hosted) for (const object of objects) store.set(placed(object));
  // Objects of different clusters may have the same name.
  const problems = folders
    .flatMap((folder) => folder.problems)
    .filter(({ place, first }) => first === undefined || (lines.has(place) && lines.has(first.place)))
    .map(({ place, first, message }) => `${first === undefined ? '' : 'warning: '}${place}: ${message}`);
  const given = new ObjectStore();
  for (const object of store) given.set(object);
  return {
    store,
    /** As it is given: without the copies, and without what would be reported of them. */
    given,
    problems: problems as readonly string[],
    places: places as ReadonlyMap<string, string>,
    /** What keeps profiles of the folder from bringing what they name. */
    notes: bringCopies(store),
    /** Whether it is a hosted cluster, whose nodes follow lists of the HostedCluster. */
    hosted,
  };
}

/** A folder whose objects know where they stand. */
export type LocatedFolder = ReturnType<typeof locate>;

/** A single file is its own folder. Names of clusters are paths within `dir`, where it is the only one. */
export function locate(dir: string, { manifests, problems }: Folder, isOnly: boolean) {
  const located = <T extends { readonly file: string; readonly line: number }>(one: T) => {
    const path = one.file === dir ? dir : `${dir}/${one.file}`;
    return { ...one, file: isOnly ? one.file : path, within: one.file, place: `${path}:${one.line}` };
  };
  return {
    manifests: manifests.map(located),
    problems: problems.map((one) => ({ ...located(one), first: one.first && located(one.first) })),
  };
}

/** Objects that stand in two folders of one tree: a cluster has each once, so that these are two clusters. */
function elsewhereAgain({ manifests, problems }: LocatedFolder): readonly string[] {
  const again = new Set(
    problems.flatMap(({ place, within, first }) =>
      first === undefined || dirname(first.within) === dirname(within) ? [] : [place],
    ),
  );
  const isOfOne = ({ kind }: KubeObject): boolean =>
    !['Event', 'Role', 'RoleBinding', 'PullStatus'].includes(kind);
  return manifests
    .filter(({ place, object }) => again.has(place) && isOfOne(object))
    .map(({ object: { kind, metadata } }) => describeObject({ kind, ...metadata }));
}
