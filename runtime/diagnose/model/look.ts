/** Collects the inputs of `doctor`: the pod, its imagePullSecrets, injected names, reported problems and kubelet messages. */

import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
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
import { CONFIG_KINDS } from '../../credential-provider/platform.ts';
import { withIdentity } from '../../engine/contract.ts';
import { type Folder, readFolder } from '../../engine/offline/manifests.ts';
import { ObjectStore } from '../../engine/store.ts';
import type { ObjectRef } from '../../kube/resources.ts';
import { GRANT } from '../../pull-secret-injection/kinds/grant.ts';
import { PROFILE } from '../../pull-secret-injection/kinds/profile.ts';
import {
  type ClusterObjects,
  clustersIn,
  inspected,
  NODE_KINDS,
} from '../../registry-overrides/machine-config/input.ts';
import { isOf } from '../../registry-overrides/mirror-sets/collect.ts';
import { MACHINE_CONFIG, type NodeMirrors } from '../../registry-overrides/planes.ts';
import { notGivenIn, notInjectedIn } from '../checks/injection.ts';
import { bringCopies, injectionKinds, plannedNames, profileOf } from './admission.ts';
import { eventsAbout, failuresIn, podKinds, podsOf, providerFailure } from './events.ts';
import { agentKinds, nodeFacts, reportsAbout, troublesIn } from './nodes.ts';
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
  GLOBAL_SECRET,
  hasOwnList,
  imagesOf,
  isStatic,
  isSynced,
  NODE,
  needPod,
  nextNodeKinds,
  nodeFile,
  nodeNameOf,
  ownSecrets,
  PLATFORM_SECRET,
  POD_KINDS,
  type PodPuller,
  type PullModel,
  podRef,
  podSource,
  podSpecIn,
  providedImages,
  pullModel,
  ROLE,
  ROLE_BINDING,
  rootOf,
  SECRET,
  SECRET_MAKERS,
  SERVICE_ACCOUNT,
  secretMakers,
} from './pull.ts';
import type { Explanation } from './types.ts';

/**
 * Reports whether the credential provider, which authenticates as the pod's ServiceAccount, may read Secrets of the namespace.
 * ClusterRoles are not read: a binding to one counts as sufficient.
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

/**
 * Kinds to read for the pulls of `puller`, in three steps: ten requests for an image if no registry is blocked and the mirrors
 * render. A pod also needs the kinds that control injection and the kinds that report problems.
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
  // The Secrets of the namespace are already read.
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

/** Facts that the objects do not contain. */
export interface Known {
  readonly unread: readonly string[];
  readonly hosted: boolean;
  readonly nodes?: NodeMirrors;
  /** True for a live cluster: an object that is not found does not exist. @default {false} */
  readonly live?: boolean;
}

/** Facts about a pod, or an object with a pod template, for the pull checks. */
export type DoctorInput = ReturnType<typeof lookAt>;

/**
 * Collects the facts. Lists are empty if nothing is known.
 *
 * @param known see {@link Known}
 * @throws PullwrightError when the pod is not found
 */
export function lookAt(
  store: ObjectStore,
  puller: PodPuller,
  { unread, hosted, nodes, live = false }: Known,
) {
  const template = needPod(store, puller) as KubeObject;
  const spec = podSpecIn(template);
  const { namespace } = puller;
  const isPod = template.kind === 'Pod';
  const name = accountName(spec, 'default');
  const object = store.get({ ...SERVICE_ACCOUNT, namespace, name });
  const complete = unread.length === 0;
  // An existing pod has an account, and Kubernetes creates "default" in each namespace: a folder may omit both.
  const account = { name, object, known: complete && (live || (name !== 'default' && !isPod)) };
  // The list of an existing pod is complete: its ServiceAccount no longer matters.
  const model = pullModel(store, puller, { complete, hosted, nodes });
  const pods = podsOf(store, template);
  const node = nodeNameOf(store, puller);
  const owner = findPod(store, { ...puller, pod: rootOf(store, template) });
  const isOfTemplate = owner !== template && hasOwnList(owner && podSpecIn(owner));
  const isCopied = isPod && !isOfTemplate && isDeepStrictEqual(ownSecrets(object), ownSecrets(spec));
  const failures = pods.map((pod) => failuresIn(store, pod)).find(({ length }) => length > 0) ?? [];
  const mayRead = providerMayRead(store, namespace, name);
  const images = imagesOf(spec).map((image) => imageIn(store, model, puller, image, mayRead));
  return {
    namespace,
    /** `Pod/web/shop-1` */
    pod: describeObject({ kind: template.kind, namespace, name: template.metadata.name }),
    /** Pods cannot be changed; templates can. */
    isPod,
    /** True if the names are from the pod or template itself, not from its ServiceAccount. */
    ownList: hasOwnList(spec) && !isCopied,
    /** Created by a kubelet from a file: it cannot list a Secret. */
    isStatic: isStatic(template),
    /** The unchanged template, as the base of a fix. */
    template,
    account,
    images,
    notInjected: notInjectedIn(store, { template, model, account, pods, live }),
    notGiven: notGivenIn(store, template),
    givers: giversOf(store, template),
    troubles: troublesIn(store, namespace, name, node),
    provider: {
      matchImages: providedImages(store),
      mayRead,
      /** Failure of the provider's last run for this pod, from the node's installer. */
      failure: pods.flatMap((pod) => providerFailure(store, pod) ?? [])[0],
    },
    /** Number of examined pods: the pod itself, or those of the template. */
    pods: pods.length,
    /** The kubelet's error for each image; for a template, of one of its pods. */
    failures,
    node: nodeFacts(
      store,
      node,
      images.flatMap(({ explanation }) => explanation ?? []),
      live && complete,
    ),
    /** Kinds that could not be read, each with the missing right. */
    unread,
  };
}

/** Objects that create a Secret for such pods, each with the message of `Ready` if it is not True. */
function giversOf(store: ObjectStore, pod: KubeObject) {
  const makers = secretMakers(store, pod.metadata.namespace ?? '').map(({ secret, object }) => {
    return { secret, by: `${object.kind}/${object.metadata.name}`, says: readyText(object) };
  });
  const profiles = plannedNames(store, pod, []).flatMap(({ name: secret, by }) => {
    const profile = profileOf(store, by);
    if (profile === undefined || !brings(profile, secret)) return [];
    return [{ secret, by: `${PROFILE.kind}/${profile.metadata.name}`, says: readyText(profile) }];
  });
  return [...profiles, ...makers];
}

/** Reports whether the profile delivers the Secret: a name without sources is only injected. */
function brings({ spec }: KubeObject, secret: string): boolean {
  const { secrets } = recordOf(spec);
  return recordsIn(secrets).some(({ name, sources }) => name === secret && recordsIn(sources).length > 0);
}

function readyText(profile: KubeObject): string | undefined {
  const ready = conditionOf(profile, 'Ready');
  if (ready === undefined) return 'it has no status yet; is the reconciler running?';
  return ready.status === 'True' ? undefined : `${ready.reason}: ${ready.message}`;
}

/** An image of the pod, with the Secrets and nodes that have a credential for it. */
export type DoctorImage = DoctorInput['images'][number];

function imageIn(store: ObjectStore, model: PullModel, puller: PodPuller, image: string, mayRead: boolean) {
  const parsed = parseImageReference(image);
  if (!parsed.ok) return { text: image, fault: parsed.goText, elsewhere: [], mirrors: [], mirrorSecrets: [] };
  const explanation = explainIn(model, parsed.reference, { brief: true });
  const listed = new Set(explanation.secrets.map(({ name }) => name));
  const sources = store.list(SECRET, puller.namespace).flatMap((object) => {
    const source = podSource(object);
    return source === undefined ? [] : [{ name: object.metadata.name, source }];
  });
  const namesOf = (has: (source: AuthSource) => boolean) =>
    sources.filter(({ source }) => has(source)).map(({ name }) => name);
  const pod = findPod(store, puller);
  const listsNone = pod !== undefined && isStatic(pod);
  const bare = bareMirrors(explanation, mayRead);
  const holds = (source: AuthSource, mirror: string): boolean =>
    lookupForContainers([source], withoutTagAndDigest(mirror)).found === 'credential';
  const node = nodeNameOf(store, puller);
  const synced = (): Explanation =>
    explainIn({ ...model, ...nodeFile(store, puller, [], true) }, parsed.reference, { brief: true });
  return {
    text: image,
    explanation,
    /**
     * Secrets of the namespace with a credential for the image that the pod does not list. Empty for a static pod, which cannot
     * list any.
     */
    elsewhere: listsNone
      ? []
      : namesOf((source) => matchesFor(source, explanation.repository)).filter((name) => !listed.has(name)),
    /** Mirrors without a credential, for which a Secret of the namespace has one. */
    mirrors: bare.filter((mirror) => sources.some(({ source }) => holds(source, mirror))),
    /** Names of those Secrets. If no mirror is known, all readable pull secrets of the namespace, as any of them may match. */
    mirrorSecrets: namesOf((source) =>
      model.mirrors.length === 0 ? readAuthSource(source).ok : bare.some((mirror) => holds(source, mirror)),
    ),
    /** The pod's node, if only its missing label withholds a global pull secret with a credential for the image. */
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

/** Mirrors without a credential: none matches, or the provider may not read it. */
function bareMirrors({ places }: Explanation, mayRead: boolean): readonly string[] {
  return places
    .filter(({ kind, crio }) => {
      const isUnread = !mayRead && crio.what === 'entry' && crio.entry.source.startsWith('auth file');
      return kind === 'mirror' && (crio.what === 'nothing' || isUnread);
    })
    .map(({ reference }) => reference);
}

// Selection of the cluster in the folders that `explain`, `doctor`, `verify` and `test` read.

/** Objects of one cluster, from folders or from a live cluster. */
export type ReadCluster = ReturnType<typeof objectsOf>;

/**
 * Reads all of `from`, with the copies that its profiles would create. If an object is in several folders, the last one counts.
 * Without a folder, reads the kinds of `steps` from the live cluster; its objects have no files, and its nodes are never hosted.
 *
 * @param namespace default for objects in a folder without one, such as the output of `helm template`
 * @throws UsageError when the cluster is ambiguous; PullwrightError when nothing can be read
 */
export async function readCluster(
  { from, cluster, ...access }: LookValues,
  steps: readonly NextKinds[],
  io: CommandIo,
  namespace?: string,
): Promise<ReadCluster> {
  if (from !== undefined) return clusterIn(await locateAll(from, FOLDER_KINDS, io.stdin), cluster, namespace);
  const found = await readObjects(access, steps, io);
  const name = access.context ?? 'cluster';
  return { ...found, name, given: found.store, places: new Map(), notes: [], hosted: false };
}

/** A cluster in the folders, read on demand. */
export type FoundCluster = Awaited<ReturnType<typeof readClusters>>[number];

/** All clusters in the folders. */
export async function readClusters(
  dirs: readonly string[],
  more: readonly string[],
  stdin: NodeJS.ReadableStream,
) {
  const folders = await locateAll(dirs, [...FOLDER_KINDS, ...more], stdin);
  return clustersOf(folders).map((cluster) => ({ cluster, read: () => objectsOf(folders, cluster) }));
}

/** The documents of `dirs` with these kinds. */
export function locateAll(dirs: readonly string[], kinds: Iterable<string>, stdin: NodeJS.ReadableStream) {
  return Array.fromAsync(dirs, async (dir) =>
    locate(dir, await readFolder(dir, new Set(kinds), stdin), dirs.length === 1),
  );
}

/** Namespaced kinds: they get a default if the file has no namespace. */
const NAMESPACED: ReadonlySet<string> = new Set(
  [...POD_KINDS, ...SECRET_MAKERS, GRANT, { kind: 'Event' }].map(({ kind }) => kind),
);

/** Kinds that are relevant for pulls. */
export const FOLDER_KINDS: ReadonlySet<string> = new Set([
  ...NAMESPACED,
  ...[...CONFIG_KINDS, ...NODE_KINDS, MACHINE_CONFIG, HOSTED_CLUSTER, NODE, ...injectionKinds('')].map(
    ({ kind }) => kind,
  ),
  'ConfigMap',
  'ControllerRevision',
]);

/**
 * Objects of the selected cluster in `folders`, with the copies that its profiles would create.
 *
 * @throws UsageError when the cluster is ambiguous
 */
export function clusterIn(folders: readonly LocatedFolder[], cluster?: string, namespace?: string) {
  return objectsOf(folders, chooseCluster(clustersOf(folders), cluster), namespace);
}

function clustersOf(folders: readonly LocatedFolder[]): readonly ClusterObjects[] {
  const found = folders.flatMap(({ manifests }) => manifests);
  return clustersIn(found, new Set(folders.flatMap(elsewhereAgain)));
}

function objectsOf(
  folders: readonly LocatedFolder[],
  { name, objects, inside = [], hostedCluster }: ClusterObjects,
  ofNone: string = 'default',
) {
  // Ignore mirror sets in the folder of a hosted cluster: HyperShift writes its own.
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
      const id = describeObject(object);
      const key = `${object.apiVersion} ${id}`;
      if (first.has(key)) continue;
      first.add(key);
      places.set(id, place);
      store.set(object);
    }
  }
  const hosted = hostedCluster !== undefined;
  if (hosted) for (const object of objects) store.set(placed(object));
  // Objects of different clusters may have the same name; `oc adm inspect` writes a pod to two files.
  const problems = folders
    .flatMap((folder) => folder.problems)
    .filter(
      ({ place, within, first }) =>
        first === undefined ||
        (lines.has(place) && lines.has(first.place) && inspected(within) === undefined),
    )
    .map(({ place, first, message }) => `${first === undefined ? '' : 'warning: '}${place}: ${message}`);
  const given = new ObjectStore();
  for (const object of store) given.set(object);
  return {
    name,
    store,
    /** The objects as read: without the planned copies and their reports. */
    given,
    problems: problems as readonly string[],
    places: places as ReadonlyMap<string, string>,
    /** Reasons why profiles of the folder cannot deliver their Secrets. */
    notes: bringCopies(store),
    /** True for a hosted cluster, whose nodes use the mirrors of the HostedCluster. */
    hosted,
  };
}

/** A folder with the file and line of each object. */
export type LocatedFolder = ReturnType<typeof locate>;

/** A single file is its own folder. If `dir` is the only one, cluster names are relative to it. */
export function locate(dir: string, { manifests, problems }: Folder, isOnly: boolean) {
  const located = <T extends { readonly file: string; readonly line: number }>(one: T) => {
    const path = one.file === dir || dir === '-' ? one.file : `${dir}/${one.file}`;
    return { ...one, file: isOnly ? one.file : path, within: one.file, place: `${path}:${one.line}` };
  };
  return {
    manifests: manifests.map(located),
    problems: problems.map((one) => ({ ...located(one), first: one.first && located(one.first) })),
  };
}

/** Objects that occur in two subfolders of one tree: a cluster has each object once, so these are two clusters. */
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
    .map(({ object }) => describeObject(object));
}
