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
import { recordOf, recordsIn } from '../../core/record.ts';
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
import { MACHINE_CONFIG, type NodeMirrors } from '../../registry-overrides/machine-config/node-mirrors.ts';
import { isOf } from '../../registry-overrides/mirror-sets/collect.ts';
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
  type SourceObjects,
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
import type { DoctorImage, DoctorInput, Explanation } from './types.ts';

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly verbs?: readonly string[];
}

/**
 * Whether the credential provider, which asks as the pod's ServiceAccount, may read Secrets of the namespace. A ClusterRole is
 * not looked into: what it grants is believed.
 */
export function providerMayRead(store: ObjectStore, namespace: string, account: string): boolean {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  return store.list(ROLE_BINDING, namespace).some((binding) => {
    const subjects = (binding['subjects'] ?? []) as readonly {
      kind?: string;
      name?: string;
      namespace?: string;
    }[];
    const isMeant = subjects.some(({ kind, name = '', namespace: where = namespace }) =>
      kind === 'Group'
        ? groups.includes(name)
        : kind === 'ServiceAccount' && name === account && where === namespace,
    );
    const ref = binding['roleRef'] as { kind?: string; name?: string } | undefined;
    if (!isMeant || ref === undefined) return false;
    if (ref.kind !== 'Role') return true;
    const role = store.get({ ...ROLE, namespace, name: ref.name ?? '' });
    return ((role?.['rules'] ?? []) as readonly Rule[]).some(readsSecrets);
  });
}

function readsSecrets({ apiGroups = [], resources = [], verbs = [] }: Rule): boolean {
  const has = (list: readonly string[], one: string): boolean => list.includes(one) || list.includes('*');
  return has(apiGroups, '') && has(resources, 'secrets') && has(verbs, 'get');
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

/**
 * Gathers.
 *
 * @param known what could not be read, whether the nodes are those of a hosted cluster, and where they pull from, where that is known
 * @throws PullwrightError when the pod is not found
 */
export function lookAt(store: ObjectStore, puller: PodPuller, known: Known): DoctorInput {
  const { unread, hosted, nodes, live = false } = known;
  const spec = podSpecOf(store, puller) ?? {};
  const template = findPod(store, puller) as KubeObject;
  const { namespace } = puller;
  const isPod = template.kind === 'Pod';
  const account = accountName(spec, 'default');
  // The list of a pod that exists is complete: its ServiceAccount no longer counts.
  const reader = findWorld(store, puller, { complete: unread.length === 0, hosted, nodes });
  const object = store.get({ ...SERVICE_ACCOUNT, namespace, name: account });
  const pods = podsOf(store, template);
  const [refusal] = pods.flatMap((pod) => failureIn(store, pod) ?? []);
  const [failure] = pods.flatMap((pod) => providerFailure(store, pod) ?? []);
  const [mayRead, node] = [providerMayRead(store, namespace, account), nodeNameOf(store, puller)];
  const images = imagesOf(spec).map((image) => imageIn(store, reader, puller, image, mayRead));
  const provided = providedImages(store);
  const explanations = images.flatMap(({ explanation }) => explanation ?? []);
  const facts = nodeFacts(store, node, explanations, live && unread.length === 0);
  return {
    namespace,
    pod: describeObject({ kind: template.kind, namespace, name: template.metadata.name }),
    isPod,
    ownList: hasOwnList(spec) && !(isPod && sameList(spec, object)),
    isStatic: isStatic(template),
    template,
    // A pod was made with it, and Kubernetes makes "default" with each namespace: a folder need not have these.
    account: {
      name: account,
      object,
      known: unread.length === 0 && (live || (account !== 'default' && !isPod)),
    },
    images,
    notInjected: notInjectedIn(store, {
      template,
      world: reader,
      account: { name: account, object },
      pods,
      live,
    }),
    notGiven: notGivenIn(store, template),
    givers: giversOf(store, template),
    troubles: troublesIn(store, namespace, account, node),
    provider: {
      present: provided !== undefined,
      matchImages: provided ?? [],
      mayRead,
      ...(failure === undefined ? {} : { failure }),
    },
    pods: pods.length,
    ...(refusal === undefined ? {} : { failure: refusal }),
    ...(facts === undefined ? {} : { node: facts }),
    unread,
  };
}

/** Profiles whose copies such pods are to have, listed already or not. */
function giversOf(store: ObjectStore, pod: KubeObject): DoctorInput['givers'] {
  return plannedNames(store, pod, []).flatMap(({ name: secret, by }) => {
    const [sort, name = ''] = by.split('/');
    if (sort !== 'profile') return [];
    const profile = store.get({ apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND, name });
    if (profile === undefined || !brings(profile, secret)) return [];
    const says = readyText(profile);
    return [{ secret, by: `${PROFILE_KIND}/${name}`, ...(says === undefined ? {} : { says }) }];
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

function imageIn(
  store: ObjectStore,
  reader: PullModel,
  puller: PodPuller,
  image: string,
  mayRead: boolean,
): DoctorImage {
  const parsed = parseImageReference(image);
  if (!parsed.ok) return { text: image, fault: parsed.goText, elsewhere: [], mirrors: [] };
  const explanation = explainIn(reader, parsed.reference, BRIEF);
  const listed = new Set(explanation.secrets.map(({ name }) => name));
  const sources = store.list(SECRET, puller.namespace).flatMap((object) => {
    const source = podSource(object);
    return source === undefined ? [] : [{ name: object.metadata.name, source }];
  });
  const { repository } = parsed.reference;
  const pod = findPod(store, puller);
  const listsNone = pod !== undefined && isStatic(pod);
  const bare = bareMirrors(explanation, mayRead);
  const holds = (source: AuthSource, mirror: string): boolean =>
    lookupForContainers([source], withoutTagAndDigest(mirror)).found === 'credential';
  return {
    text: image,
    explanation,
    // A static pod cannot list any Secret.
    elsewhere: sources
      .filter(({ name, source }) => !listsNone && !listed.has(name) && matchesFor(source, repository))
      .map(({ name }) => name),
    mirrors: bare.filter((mirror) => sources.some(({ source }) => holds(source, mirror))),
    mirrorSecrets: sources
      // Where the node's mirrors are not known, each that can be read may be the one.
      .filter(({ source }) =>
        reader.mirrors.length === 0
          ? readAuthSource(source).ok
          : bare.some((mirror) => holds(source, mirror)),
      )
      .map(({ name }) => name),
    ...leftOut(explanation, nodeNameOf(store, puller), () =>
      explainIn({ ...reader, ...nodeFile(store, puller, [], true) }, parsed.reference, BRIEF),
    ),
  };
}

/** The node's label keeps the credential from it: on a node that has it there would be one. */
function leftOut(
  explanation: Explanation,
  node: string | undefined,
  synced: () => Explanation,
): Pick<DoctorImage, 'leftOutNode'> {
  const isBare = ({ kubelet }: Explanation): boolean => kubelet.anonymous && kubelet.blockedBy === undefined;
  return node !== undefined && isBare(explanation) && !isBare(synced()) ? { leftOutNode: node } : {};
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
  /** The cluster that is meant, where there are several. */
  readonly cluster?: string | undefined;
  /** That of objects that name none, as those of `helm template`. @default {'default'} */
  readonly namespace?: string | undefined;
  /** Read for `-`. */
  readonly stdin: NodeJS.ReadableStream;
}

/**
 * Reads all of `dirs`, with the copies that its profiles will bring; of an object that is given in several of them the last counts.
 *
 * @throws UsageError where it is not clear which cluster is meant
 */
export async function readFolders(
  dirs: readonly string[],
  { cluster, namespace, stdin }: FolderOptions,
): Promise<ReadWorld> {
  return worldIn(await locateAll(dirs, [], stdin), cluster, namespace);
}

/** A cluster of a folder. */
export interface FoundCluster {
  readonly cluster: ClusterObjects;
  /** Reads it whole. */
  readonly read: () => ReadCluster;
}

export interface ReadCluster extends ReadWorld {
  /** As it is given: without the copies, and without what would be reported of them. */
  readonly given: ObjectStore;
}

/** Every cluster that is there. */
export async function readClusters(
  dirs: readonly string[],
  more: readonly string[],
  stdin: NodeJS.ReadableStream,
): Promise<readonly FoundCluster[]> {
  const folders = await locateAll(dirs, more, stdin);
  return clustersOf(folders).map((cluster) => ({ cluster, read: () => worldOf(folders, cluster) }));
}

async function locateAll(
  dirs: readonly string[],
  more: readonly string[],
  stdin: NodeJS.ReadableStream,
): Promise<readonly LocatedFolder[]> {
  const kinds = new Set([...FOLDER_KINDS, ...more]);
  const folders: LocatedFolder[] = [];
  for (const dir of dirs) folders.push(locate(dir, await readFolder(dir, kinds, stdin), dirs.length === 1));
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

function placed(object: KubeObject, namespace: string): KubeObject {
  if (object.metadata.namespace !== undefined || !NAMESPACED.has(object.kind)) return object;
  return { ...object, metadata: { ...object.metadata, namespace } };
}

function worldOf(
  folders: readonly LocatedFolder[],
  chosen: ClusterObjects,
  ofNone: string = 'default',
): ReadCluster {
  const meant = objectsOf(chosen);
  const store = new ObjectStore();
  const places = new Map<string, string>();
  const lines = new Set<string>();
  for (const { manifests } of folders) {
    const first = new Set<string>();
    for (const { object: written, place } of manifests) {
      if (!meant.has(written)) continue;
      const object = placed(written, ofNone);
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
  if (hosted) for (const object of chosen.objects) store.set(withIdentity(placed(object, ofNone)));
  const problems = folders.flatMap((folder) => problemsIn(folder, lines));
  const given = new ObjectStore();
  for (const object of store) given.set(object);
  return { store, given, problems, places, notes: bringCopies(store), hosted };
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
  const isOfOne = ({ kind }: KubeObject): boolean =>
    !['Event', 'Role', 'RoleBinding', 'PullStatus'].includes(kind);
  return manifests
    .filter(({ place, object }) => again.has(place) && isOfOne(object))
    .map(({ object: { kind, metadata } }) =>
      describeObject({ kind, namespace: metadata.namespace, name: metadata.name }),
    );
}

/** What of the manifests is of the cluster. Mirror sets in the folder of a hosted cluster do not count: HyperShift writes its own. */
function objectsOf({ objects, inside = [] }: ClusterObjects): ReadonlySet<KubeObject> {
  return new Set([...objects, ...inside.filter((object) => !NODE_KINDS.some((kind) => isOf(object, kind)))]);
}

/** Objects of different clusters may have the same name. */
function problemsIn({ problems }: LocatedFolder, meant: ReadonlySet<string>): readonly string[] {
  return problems
    .filter(({ place, first }) => first === undefined || (meant.has(place) && meant.has(first.place)))
    .map(({ place, first, message }) => `${first === undefined ? '' : 'warning: '}${place}: ${message}`);
}

/** What concerns the pulls of `puller`: out of folders, else of a cluster. @throws UsageError, PullwrightError */
export async function readPull(
  { from, cluster, ...access }: LookValues,
  puller: PodPuller,
  io: CommandIo,
): Promise<ReadWorld> {
  if (from !== undefined) return readFolders(from, { cluster, namespace: puller.namespace, stdin: io.stdin });
  return liveWorld(await readObjects(access, pullKinds(puller), io));
}

/** A live cluster has no files, and its nodes are its own. */
export function liveWorld(found: SourceObjects): ReadWorld {
  return { ...found, places: new Map(), notes: [], hosted: false };
}
