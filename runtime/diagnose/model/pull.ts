/** What the objects at hand say about one pod: which Secrets it lists, what is in its node's file, which mirrors there are. */

import { matchesImage } from '../../core/docker-config/match-images.ts';
import { mergePullSecrets } from '../../core/docker-config/merge.ts';
import {
  type AuthSource,
  isEncrypted,
  pullSecretKey,
  pullSecretSource,
  secretDataText,
} from '../../core/docker-config/pull-secret.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { type ImageReference, imageHint, parseImageReference } from '../../core/image-reference.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import { describeObject, type KubeObject, type SecretObject } from '../../core/kubernetes/object.ts';
import { oncePer, recordOf, recordsIn, textsIn } from '../../core/record.ts';
import { maskedUserInfo } from '../../core/text.ts';
import {
  authFile,
  BODY_KEY,
  chooseCredentials,
  collectOffers,
  NO_GLOBAL_AUTH,
  type Offers,
  parseGlobalAuth,
  pullSources,
} from '../../credential-provider/auth-file.ts';
import type { ObjectStore } from '../../engine/store.ts';
import type { ObjectRef } from '../../kube/resources.ts';
import {
  CLUSTER_VERSION,
  IMAGE_CONFIG,
  NODE_KINDS,
  readNodeInput,
} from '../../registry-overrides/machine-config/input.ts';
import { MIRROR_SET_KINDS } from '../../registry-overrides/mirror-sets/collect.ts';
import { MACHINE_CONFIG, type NodeMirrors, nodeMirrors, policyOf } from '../../registry-overrides/planes.ts';
import { secretFault } from '../checks/docker-config.ts';
import { injectedNames } from './admission.ts';
import { explainImage } from './attempts.ts';
import { nodeInfoOf, podTemplateIn, type SourceKind } from './objects.ts';
import type { ExplainInput, Explanation, ListedSecret, NodeVersions, PullFile } from './types.ts';

// Pods and what holds a pod template: which images they run, and which Secrets they list.

/** Whose pull is explained. */
export interface PodPuller {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** A Pod, or an object with a pod template. */
  readonly pod?: { readonly kind: string; readonly name: string };
  readonly node?: string;
}

type WorkloadKind = Required<Pick<SourceKind, 'apiVersion' | 'kind'>>;

/** Pods, and the kinds that have a template of such. */
export const WORKLOAD_KINDS: readonly WorkloadKind[] = [
  { apiVersion: 'v1', kind: 'Pod' },
  ...['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'].map((kind) => ({
    apiVersion: 'apps/v1',
    kind,
  })),
  ...['Job', 'CronJob'].map((kind) => ({ apiVersion: 'batch/v1', kind })),
];

/** Short names that kubectl knows. */
const SHORT: ReadonlyMap<string, string> = new Map([
  ['po', 'pod'],
  ['deploy', 'deployment'],
  ['sts', 'statefulset'],
  ['ds', 'daemonset'],
  ['rs', 'replicaset'],
  ['cj', 'cronjob'],
]);

/** `web`, `deploy/web`: kind and name; undefined for a kind without pods. */
export function parsePodName(text: string): PodPuller['pod'] | undefined {
  const [first = '', second] = text.split('/', 2);
  if (second === undefined) return { kind: 'Pod', name: first };
  const found = workloadOf(first);
  return found === undefined ? undefined : { kind: found.kind, name: second };
}

/** Whether an argument that could be an image means a workload: `deploy/api` rather than `docker.io/deploy/api`. */
export function isPodName(text: string): boolean {
  const [, kind = ''] = /^([A-Za-z0-9.]+)\/[^/:@]+$/.exec(text) ?? [];
  return workloadOf(kind) !== undefined;
}

/** `deploy`, `Deployments`, `deployments.apps`, `deployment.v1.apps`. */
function workloadOf(text: string): WorkloadKind | undefined {
  const [first = '', ...rest] = text.toLowerCase().split('.');
  const names = [first, first.replace(/s$/, '')].map((name) => SHORT.get(name) ?? name);
  const found = WORKLOAD_KINDS.find(({ kind }) => names.includes(kind.toLowerCase()));
  const [version = '', group = ''] = found?.apiVersion.split('/').toReversed() ?? [];
  return rest.length === 0 || ['', group, `${version}.${group}`].includes(rest.join('.')) ? found : undefined;
}

/** `pod web`, as two arguments. */
export function joinedPodName(args: readonly string[]): readonly string[] {
  const [kind = '', name = ''] = args;
  const isPair = args.length === 2 && workloadOf(kind) !== undefined && /^[a-z0-9][-a-z0-9.]*$/.test(name);
  return isPair ? [`${kind}/${name}`] : args;
}

/** An image that a person names. @throws UsageError that says what to write */
export function imageOf(text: string): ImageReference {
  const shown = maskedUserInfo(text);
  const parsed = parseImageReference(shown);
  if (parsed.ok) return parsed.reference;
  const hint = imageHint(text);
  throw new UsageError(
    `Cannot read image "${shown}": ${parsed.goText}${hint === undefined ? '' : `; ${hint}`}`,
  );
}

/** As it was written: nothing about it is certain. */
export type PlainPodSpec = Readonly<Record<string, unknown>>;

/** The texts under `field` of a list of objects. */
function texts(list: unknown, field: string): readonly string[] {
  return textsIn(recordsIn(list).map((item) => item[field])).filter((text) => text !== '');
}

/** The object that `puller` names; undefined when it names none. */
export function podRef({ namespace, pod }: PodPuller): ObjectRef | undefined {
  const kind = WORKLOAD_KINDS.find((one) => one.kind === pod?.kind);
  return kind && pod && { ...kind, namespace, name: pod.name };
}

/** The object that `puller` names; undefined when it names none, or it is not found. */
export function findPod(store: ObjectStore, puller: PodPuller): KubeObject | undefined {
  const ref = podRef(puller);
  return ref && store.get(ref);
}

/**
 * The pod's part of what `puller` names; undefined when it names nothing.
 *
 * @throws PullwrightError when it is not found
 */
export function podSpecOf(store: ObjectStore, puller: PodPuller): PlainPodSpec | undefined {
  const { namespace, pod } = puller;
  if (pod === undefined) return undefined;
  const found = findPod(store, puller);
  if (found !== undefined) return podSpecIn(found);
  throw new PullwrightError(`Cannot find ${pod.kind} "${namespace}/${pod.name}"`, {
    code: 'PodMissing',
    retryPolicy: 'terminal',
    hint: 'Name its namespace with -n, or another kind as in deploy/web',
  });
}

/** The pod's part of an object: of its template, where it has one. */
export function podSpecIn(object: KubeObject): PlainPodSpec {
  return recordOf(podTemplateIn(object)?.['spec'] ?? object.spec);
}

/**
 * Images that a kubelet pulls for the pod, each once: of init containers, of image volumes (with the pod's pull secrets like the
 * others, Kubernetes 1.31 and newer), of containers, and of debug containers that were added.
 */
export function imagesOf(spec: PlainPodSpec | undefined): readonly string[] {
  const images = [
    ...texts(spec?.['initContainers'], 'image'),
    ...texts(
      recordsIn(spec?.['volumes']).map(({ image }) => image),
      'reference',
    ),
    ...texts(spec?.['containers'], 'image'),
    ...texts(spec?.['ephemeralContainers'], 'image'),
  ];
  return [...new Set(images.map(maskedUserInfo))];
}

/** Whether admission has passed it, so that its list is complete; it leaves static pods alone. */
export function isAdmitted(object: KubeObject): boolean {
  return object.kind === 'Pod' && (object.metadata.creationTimestamp !== undefined || isStatic(object));
}

/** Whether a kubelet made it from a file of its node: such a pod may name neither Secrets nor a ServiceAccount. */
export function isStatic({ kind, metadata }: KubeObject): boolean {
  return kind === 'Pod' && metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined;
}

/** The pod's own list, in which an empty name counts; admission copies the ServiceAccount's when the pod has none. */
export function listedNames(
  store: ObjectStore,
  puller: PodPuller,
  spec: PlainPodSpec | undefined,
): readonly { readonly name: string; readonly listedBy: string }[] {
  const { namespace, serviceAccount, pod } = puller;
  const object = findPod(store, puller);
  if (hasOwnList(spec) || (object !== undefined && isAdmitted(object))) {
    return ownSecrets(spec).map((name) => ({
      name,
      listedBy: `${pod?.kind ?? 'Pod'}/${namespace}/${pod?.name ?? ''}`,
    }));
  }
  const account = accountName(spec, serviceAccount);
  const found = store.get({ apiVersion: 'v1', kind: 'ServiceAccount', namespace, name: account });
  return texts(found?.['imagePullSecrets'], 'name').map((name) => ({
    name,
    listedBy: `ServiceAccount/${namespace}/${account}`,
  }));
}

/** Names of the Secrets that a pod lists itself. */
export function ownSecrets(spec: PlainPodSpec | undefined): readonly string[] {
  return texts(spec?.['imagePullSecrets'], 'name');
}

/** Whether admission leaves the list as it is: the kubelet skips an entry without a name, and admission counts it. */
export function hasOwnList(spec: PlainPodSpec | undefined): boolean {
  const list = spec?.['imagePullSecrets'];
  return Array.isArray(list) && list.length > 0;
}

/** The ServiceAccount that a pod runs as, by the field or by its old name. */
export function accountName(spec: PlainPodSpec | undefined, otherwise: string): string {
  const named = [spec?.['serviceAccountName'], spec?.['serviceAccount']];
  return named.find((name): name is string => typeof name === 'string' && name !== '') ?? otherwise;
}

// Secrets as documents with credentials, each decoded once: a folder or a cluster may have a thousand pods for one of them. For as long as
// there is the object, which is as long as the command looks at it.

/** What the kubelet reads of a Secret that a pod lists; undefined for those that it passes over. */
export const podSource: (secret: KubeObject) => AuthSource | undefined = oncePer((secret) =>
  pullSecretSource(secret as SecretObject),
);

/** A Secret as a docker config of nodes. Its type does not count: the copy of the platform's secret may be Opaque. */
export const nodeSource: (secret: KubeObject) => AuthSource | undefined = oncePer((secret) => {
  const value = (secret as SecretObject).data?.[NAMES.dataKey];
  const { namespace, name } = secret.metadata;
  if (value === undefined) return undefined;
  return {
    name: describeObject({ kind: 'Secret', namespace, name }),
    format: 'config.json',
    text: secretDataText(value),
  };
});

// The docker config of the node that pulls: which node it is, whether the pull secret is delivered to it, and what its file holds.

export const SECRET = { apiVersion: 'v1', kind: 'Secret' } as const;

/** The content of the nodes' file. */
export const GLOBAL_SECRET: ObjectRef = {
  ...SECRET,
  namespace: NAMES.namespace,
  name: NAMES.global,
};

/** Hosted clusters have a copy of the platform's pull secret at the place where the others keep it. */
export const PLATFORM_SECRET: ObjectRef = {
  ...SECRET,
  namespace: NAMES.configNamespace,
  name: NAMES.platform,
};

/** The named node, else the one that the pod runs on. */
export function nodeNameOf(store: ObjectStore, puller: PodPuller): string | undefined {
  if (puller.node !== undefined) return puller.node;
  const found = findPod(store, puller);
  const name = found?.kind === 'Pod' ? podSpecIn(found)['nodeName'] : undefined;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** The content that the node's file has: what is synced to it, else what the node booted with. */
export function nodeFile(
  store: ObjectStore,
  puller: PodPuller,
  notes: string[],
  synced: boolean = isSynced(store, puller, notes),
): Pick<ExplainInput, 'node' | 'merge'> {
  const { original, additional, global: written } = nodeDocuments(store);
  const global = synced ? written : undefined;
  const plain = global ?? original;
  const merge = synced && original && additional ? mergeWith(original)(additional) : undefined;
  if (merge === undefined) return { node: plain };
  if (global !== undefined) return { node: global, merge: merge.facts };
  notes.push(`${NAMES.global} does not exist yet: its content is merged here as the reconciler would`);
  return { node: merge.source, merge: merge.facts };
}

/** The merge that the reconciler would make, for the origins of entries and the verdicts on them. By both Secrets: it is the same for every pod. */
const mergeWith = oncePer((original: AuthSource) =>
  oncePer((additional: AuthSource) => {
    const result = mergePullSecrets({ original: original.text, additional: additional.text });
    if (!result.ok) return undefined;
    const names = { original: original.name, additional: additional.name, lastGood: additional.name };
    return {
      source: {
        name: `Secret/${NAMES.namespace}/${NAMES.global}`,
        format: 'config.json' as const,
        text: result.text,
      },
      facts: {
        origins: new Map(result.entries.map(({ key, source }) => [key, names[source]])),
        verdicts: result.verdicts,
        additional: additional.name,
      },
    };
  }),
);

/** What nodes' files are made of: the platform's pull secret, the tenant's, and what the reconciler wrote. */
export function nodeDocuments(store: ObjectStore) {
  const read = (namespace: string, name: string): AuthSource | undefined => {
    const found = store.get({ ...SECRET, namespace, name });
    return found && nodeSource(found);
  };
  return {
    original: read(NAMES.namespace, NAMES.original) ?? read(NAMES.configNamespace, NAMES.platform),
    additional: read(NAMES.namespace, NAMES.additional),
    global: read(NAMES.namespace, NAMES.global),
  };
}

/** Whether the pull secret is delivered to the node. An unknown node of a pod counts as served. */
export function isSynced(store: ObjectStore, puller: PodPuller, notes: string[]): boolean {
  const node = nodeNameOf(store, puller);
  if (node === undefined) return true;
  const found: KubeObject | undefined = store.get({ apiVersion: 'v1', kind: 'Node', name: node });
  if (found === undefined && puller.node === undefined) return true;
  if (found?.metadata.labels?.[NAMES.nodeLabel] === 'true') return true;
  // Without delivery to any node, the label is irrelevant.
  if (puller.node === undefined && store.get(GLOBAL_SECRET) === undefined) return false;
  const why = found === undefined ? 'was not found' : `lacks the label ${NAMES.nodeLabel}=true`;
  notes.push(`Node "${node}" ${why}: it is assumed to have the pull secret it booted with`);
  return false;
}

// What decides where the nodes of a cluster pull from, and what of it is read of a cluster that is there.

/** In the versions that clusters serve: OpenShift's technology preview has the second alone. */
export const PROVIDER_CONFIGS: readonly SourceKind[] = ['v1', 'v1alpha1'].map((version) => ({
  apiVersion: `config.openshift.io/${version}`,
  kind: 'CRIOCredentialProviderConfig',
}));

/** Its file is that of custom pools too. */
const WORKER_CONFIG: SourceKind = { ...MACHINE_CONFIG, name: '99-worker-generated-registries' };

/** What concerns every pull of a cluster: six requests. */
export const CLUSTER_KINDS: readonly SourceKind[] = [
  ...PROVIDER_CONFIGS.map((kind) => ({ ...kind, name: 'cluster' })),
  ...MIRROR_SET_KINDS,
  IMAGE_CONFIG,
];

/** Where the nodes of a cluster pull from. */
export function mirrorsOf(store: ObjectStore): NodeMirrors {
  return nodeMirrors(nodeObjects(store));
}

/** The objects that nodes go by. */
function nodeObjects(store: ObjectStore): readonly KubeObject[] {
  return [...NODE_KINDS, MACHINE_CONFIG].flatMap(({ apiVersion, kind }) => store.list({ apiVersion, kind }));
}

/** What is needed beside {@link CLUSTER_KINDS}: the release where something is blocked, and what nodes keep where all is refused. */
export function nextNodeKinds(store: ObjectStore): readonly SourceKind[] {
  const isBlocking = readNodeInput(nodeObjects(store)).sources.blocked.length > 0;
  const isRefused = mirrorsOf(store).state !== 'rendered';
  return [...(isBlocking ? [CLUSTER_VERSION] : []), ...(isRefused ? [WORKER_CONFIG] : [])];
}

// The auth file that the credential provider would write for one pull, from the objects at hand.

/**
 * Undefined when the provider is not run for the image, or adds nothing.
 *
 * @param order Secrets that the pod lists: they come first
 */
function pullFile(
  store: ObjectStore,
  namespace: string,
  repository: string,
  { mirrors, order, node }: Pick<ExplainInput, 'mirrors' | 'node'> & { readonly order: readonly string[] },
): PullFile | undefined {
  const isServed = providedImages(store).some((pattern) => matchesImage(pattern, repository));
  const sources = isServed ? pullSources(mirrors, repository) : [];
  if (sources.length === 0) return undefined;
  const choice = chooseCredentials(offersOf(store.list(SECRET, namespace)), sources, order);
  if (choice.entries.length === 0) return undefined;
  const global = node === undefined ? NO_GLOBAL_AUTH : (parseGlobalAuth(node.text) ?? NO_GLOBAL_AUTH);
  return {
    source: {
      name: `auth file of namespace ${namespace}`,
      format: 'config.json',
      text: authFile({ choice, sources, global }).text,
    },
    origins: new Map(choice.entries.map(({ key, secret }) => [key, `Secret/${namespace}/${secret}`])),
  };
}

/** By the list of a namespace, which stays the same one until something in it changes: all its images have the same. */
const offersOf = oncePer(
  (objects: readonly KubeObject[]): Offers =>
    collectOffers(
      objects.flatMap((object) => {
        const { type = 'Opaque', data, metadata } = object as SecretObject;
        const key = Object.hasOwn(BODY_KEY, type) ? BODY_KEY[type] : undefined;
        return key === undefined ? [] : [{ name: metadata.name, type, body: data?.[key] }];
      }),
    ),
);

/** For which images CRIOCredentialProviderConfigs make the kubelet run the provider. */
export function providedImages(store: ObjectStore): readonly string[] {
  const configs = PROVIDER_CONFIGS.flatMap((kind) => store.list(kind));
  return [...new Set(configs.flatMap(({ spec }) => textsIn(recordOf(spec)['matchImages'])))];
}

/** What is found for a pod or a ServiceAccount. */
export type PullModel = ReturnType<typeof findWorld>;

export interface WorldOptions {
  /** Whether everything could be read: else a missing Secret may still exist. @default {true} */
  readonly complete?: boolean;
  /** Whether the nodes are those of a hosted cluster. @default {false} */
  readonly hosted?: boolean;
  /** Where nodes pull from, if already computed. */
  readonly nodes?: NodeMirrors | undefined;
}

/**
 * Gathers.
 *
 * @throws PullwrightError when the pod is not found
 */
export function findWorld(
  store: ObjectStore,
  puller: PodPuller,
  { complete = true, hosted = false, nodes }: WorldOptions = {},
) {
  const spec = podSpecOf(store, puller);
  const notes: string[] = [];
  const names = effectiveNames(store, puller, spec);
  const file = nodeFile(store, puller, notes);
  const followed = nodes ?? mirrorsOf(store);
  const { rules: mirrors, problems, state, summary } = followed;
  notes.push(...problems.map((problem) => `${problem.severity}: ${problem.message}`));
  notes.push(...listNotes(puller, spec));
  if (state !== 'rendered') notes.push(`${state === 'unknown' ? 'error' : 'warning'}: ${summary}`);
  const order = names.map(({ name }) => name);
  return {
    /** Empty without a pod. */
    images: imagesOf(spec),
    secrets: names.map((one) =>
      listedSecret(store, puller.namespace, { ...one, absent: complete ? 'missing' : 'unknown' }),
    ),
    ...file,
    mirrors,
    policy: policyOf(followed),
    versions: versionsOf(store, puller),
    hosted,
    notes: notes as readonly string[],
    /** The file that the credential provider writes for a repository; undefined when it writes none. */
    pullFileFor: (repository: string) =>
      pullFile(store, puller.namespace, repository, { mirrors, order, node: file.node }),
  };
}

function versionsOf(store: ObjectStore, puller: PodPuller): NodeVersions {
  const name = nodeNameOf(store, puller);
  const node = name === undefined ? undefined : store.get({ apiVersion: 'v1', kind: 'Node', name });
  const { runtime, kubelet } = nodeInfoOf(node);
  const [, crio] = /^cri-o:\/\/(.{1,40})$/.exec(runtime) ?? [];
  return {
    ...(crio !== undefined && { crio, runtime: 'CRI-O' }),
    ...(runtime.startsWith('containerd://') && { runtime: 'containerd' }),
    ...(kubelet !== '' && { kubelet }),
  };
}

/** An empty name keeps the ServiceAccount's list away, and gives nothing itself. */
function listNotes({ namespace, pod }: PodPuller, spec: PlainPodSpec | undefined): readonly string[] {
  if (!hasOwnList(spec) || ownSecrets(spec).length > 0) return [];
  return [
    `warning: imagePullSecrets of ${pod?.kind ?? 'Pod'}/${namespace}/${pod?.name ?? ''} names no Secret: an entry without a name is skipped by the kubelet, and keeps admission from copying the list of the ServiceAccount`,
  ];
}

/** The pull secrets of the pod: its own list or that of its account, and what admission adds to a pod that does not exist yet. */
export function effectiveNames(
  store: ObjectStore,
  puller: PodPuller,
  spec: PlainPodSpec | undefined,
): ReturnType<typeof listedNames> {
  const listed = listedNames(store, puller, spec);
  const found = findPod(store, puller);
  if (found === undefined || isAdmitted(found)) return listed;
  const { namespace } = puller;
  const name = accountName(spec, puller.serviceAccount);
  const account = store.get({ apiVersion: 'v1', kind: 'ServiceAccount', namespace, name });
  const names = listed.map((one) => one.name);
  const injected = injectedNames(store, found, names, account);
  return [...listed, ...injected.map((one) => ({ name: one.name, listedBy: one.by }))];
}

/**
 * Explains a pull of `image`.
 *
 * @param asked the image as the pod names it, whether to be brief, and a file that stands in for the node's
 */
export function explainIn(
  reader: PullModel,
  image: ImageReference,
  asked: Pick<ExplainInput, 'written' | 'brief'> & { readonly given?: AuthSource | undefined } = {},
): Explanation {
  const { given, ...rest } = asked;
  const file = given === undefined ? {} : { node: given, merge: undefined };
  const pullFile = reader.pullFileFor(image.repository);
  return explainImage({ ...reader, ...file, ...rest, image, pullFile, now: new Date() });
}

function listedSecret(
  store: ObjectStore,
  namespace: string,
  { name, listedBy, absent }: { name: string; listedBy: string; absent: 'missing' | 'unknown' },
): ListedSecret {
  const found = store.get({ ...SECRET, namespace, name });
  if (found === undefined)
    return { name, listedBy, state: absent, ...(absent === 'missing' && inAnother(store, name)) };
  const { type, data = {} } = found as SecretObject;
  const value = data[pullSecretKey(type) ?? ''];
  if (value !== undefined && isEncrypted(value)) return { name, listedBy, state: 'encrypted' };
  const source = podSource(found);
  return source === undefined
    ? { name, listedBy, state: 'ignored', why: secretFault(found as SecretObject) ?? 'holds no pull secret' }
    : { name, listedBy, state: 'found', source };
}

/** Where another namespace has a pull secret of this name: a pod cannot list it. */
function inAnother(store: ObjectStore, name: string): Pick<ListedSecret, 'why'> {
  const there = store
    .list(SECRET)
    .find((object) => object.metadata.name === name && podSource(object) !== undefined);
  if (there === undefined) return {};
  const { namespace } = there.metadata;
  return { why: `namespace "${namespace}" has one, and a pod can use those of its own namespace only` };
}

// Which workload a pod belongs to, by its owners.

/**
 * The last named owner; for a missing ReplicaSet, the Deployment that its name implies.
 *
 * @param deepest an owner that owns itself ends the search
 */
export function rootOf(
  store: ObjectStore,
  { kind, metadata: { namespace = '', name, ownerReferences } }: KubeObject,
  deepest = 4,
): { readonly kind: string; readonly name: string } {
  const owner = ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined || deepest === 0) return { kind, name };
  const known = WORKLOAD_KINDS.find((one) => one.kind === owner.kind);
  const found = known && store.get({ ...known, namespace, name: owner.name });
  if (found !== undefined) return rootOf(store, found, deepest - 1);
  return owner.kind === 'ReplicaSet'
    ? { kind: 'Deployment', name: owner.name.replace(/-[^-]+$/, '') }
    : { kind: owner.kind, name: owner.name };
}
