/** Collects the inputs of a pod's pull: its imagePullSecrets, the docker config of its node, and the mirrors. */

import { matchesImage } from '../../core/docker-config/match-images.ts';
import { mergePullSecrets } from '../../core/docker-config/merge.ts';
import {
  type AuthSource,
  isEncrypted,
  pullSecretKey,
  pullSecretSource,
  readAuthSource,
  secretDataText,
} from '../../core/docker-config/pull-secret.ts';
import { PullwrightError, UsageError } from '../../core/errors.ts';
import { type ImageReference, imageHint, parseImageReference } from '../../core/image-reference.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import {
  describeObject,
  type KubeObject,
  listedPullSecrets,
  type SecretObject,
} from '../../core/kubernetes/object.ts';
import { PULL_STATUS } from '../../core/kubernetes/pull-status.ts';
import { oncePer, recordOf, recordsIn, scalarText, textOf, textsIn } from '../../core/record.ts';
import { redact, sameSecret } from '../../core/redacted.ts';
import { maskedUserInfo, shellWord } from '../../core/text.ts';
import {
  authFile,
  BODY_KEY,
  chooseCredentials,
  collectOffers,
  NO_GLOBAL_AUTH,
  parseGlobalAuth,
  pullSources,
} from '../../credential-provider/auth-file.ts';
import { CONFIG_KINDS, CONFIGS } from '../../credential-provider/platform.ts';
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
import { secretFault, shapeFault } from '../checks/docker-config.ts';
import { injectedNames } from './admission.ts';
import { explainImage } from './attempts.ts';
import { nodeInfoOf, podTemplateIn, type SourceKind } from './objects.ts';
import type { ExplainInput, Explanation, ListedSecret, NodeVersions, PullFile } from './types.ts';

// Pods and workloads: their images and imagePullSecrets.

/** The pod, workload or ServiceAccount whose pull is explained. */
export interface PodPuller {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** A Pod, or an object with a pod template. */
  readonly pod?: { readonly kind: string; readonly name: string };
  readonly node?: string;
}

/** Pods, and the kinds with a pod template. */
export const WORKLOAD_KINDS = [
  { apiVersion: 'v1', kind: 'Pod' },
  ...['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'].map((kind) => ({
    apiVersion: 'apps/v1',
    kind,
  })),
  ...['Job', 'CronJob'].map((kind) => ({ apiVersion: 'batch/v1', kind })),
];

export const SECRET = { apiVersion: 'v1', kind: 'Secret' } as const;
export const SERVICE_ACCOUNT = { apiVersion: 'v1', kind: 'ServiceAccount' } as const;
export const NODE = { apiVersion: 'v1', kind: 'Node' } as const;
export const ROLE = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' } as const;
export const ROLE_BINDING = { ...ROLE, kind: 'RoleBinding' } as const;

/** Kinds of a namespace that affect pulls of its pods. */
export const POD_KINDS = [...WORKLOAD_KINDS, SECRET, SERVICE_ACCOUNT, PULL_STATUS, ROLE, ROLE_BINDING];

/** Short names from kubectl. */
const SHORT: ReadonlyMap<string, string> = new Map([
  ['po', 'pod'],
  ['deploy', 'deployment'],
  ['sts', 'statefulset'],
  ['ds', 'daemonset'],
  ['rs', 'replicaset'],
  ['cj', 'cronjob'],
]);

/** Parses `web` or `deploy/web` to kind and name; undefined for a kind without pods. */
export function parsePodName(text: string): PodPuller['pod'] | undefined {
  const [first = '', second] = text.split('/', 2);
  if (second === undefined) return { kind: 'Pod', name: first };
  const found = workloadOf(first);
  return found === undefined ? undefined : { kind: found.kind, name: second };
}

/** Reports whether an argument that could be an image names a workload: `deploy/api`, but not `docker.io/deploy/api`. */
export function isPodName(text: string): boolean {
  const [, kind = ''] = /^([A-Za-z0-9.]+)\/[^/:@]+$/.exec(text) ?? [];
  return workloadOf(kind) !== undefined;
}

/** Resolves `deploy`, `Deployments`, `deployments.apps` or `deployment.v1.apps`. */
function workloadOf(text: string) {
  const [first = '', ...rest] = text.toLowerCase().split('.');
  const names = [first, first.replace(/s$/, '')].map((name) => SHORT.get(name) ?? name);
  const found = WORKLOAD_KINDS.find(({ kind }) => names.includes(kind.toLowerCase()));
  const [version = '', group = ''] = found?.apiVersion.split('/').toReversed() ?? [];
  return rest.length === 0 || ['', group, `${version}.${group}`].includes(rest.join('.')) ? found : undefined;
}

/** Joins `pod web`, given as two arguments, to `pod/web`. */
export function joinedPodName(args: readonly string[]): readonly string[] {
  const [kind = '', name = ''] = args;
  const isPair = args.length === 2 && workloadOf(kind) !== undefined && /^[a-z0-9][-a-z0-9.]*$/.test(name);
  return isPair ? [`${kind}/${name}`] : args;
}

/** Parses an image from the command line. @throws UsageError with a hint, also for a workload such as `deploy/api` */
export function imageOf(text: string): ImageReference {
  if (isPodName(text))
    throw new UsageError(
      `Cannot read image "${text}": it names a workload (pullwright explain ${shellWord(text)}); the image is docker.io/${text}`,
    );
  const shown = maskedUserInfo(text);
  const parsed = parseImageReference(shown);
  if (parsed.ok) return parsed.reference;
  const hint = imageHint(text);
  throw new UsageError(
    `Cannot read image "${shown}": ${parsed.goText}${hint === undefined ? '' : `; ${hint}`}`,
  );
}

/** An unvalidated pod spec: any field may have any type. */
export type PlainPodSpec = Readonly<Record<string, unknown>>;

/** The pull of a pod or workload, with the default ServiceAccount unless its spec names one. */
export function pullBy({ kind, metadata: { name, namespace = 'default' } }: KubeObject) {
  return { namespace, serviceAccount: 'default', pod: { kind, name } };
}

/** Reference to the pod or workload of `puller`; undefined if `puller` has none. */
export function podRef({ namespace, pod }: PodPuller): ObjectRef | undefined {
  const kind = WORKLOAD_KINDS.find((one) => one.kind === pod?.kind);
  return kind && pod && { ...kind, namespace, name: pod.name };
}

/** The pod or workload of `puller`; undefined if `puller` has none, or the object is not found. */
export function findPod(store: ObjectStore, puller: PodPuller): KubeObject | undefined {
  const ref = podRef(puller);
  return ref && store.get(ref);
}

/** Like {@link findPod}. @throws PullwrightError when the object is not found */
export function needPod(store: ObjectStore, puller: PodPuller): KubeObject | undefined {
  const { namespace, pod } = puller;
  const found = findPod(store, puller);
  if (pod === undefined || found !== undefined) return found;
  throw new PullwrightError(`Cannot find ${pod.kind} "${namespace}/${pod.name}"`, {
    code: 'PodMissing',
    retryPolicy: 'terminal',
    hint: 'Set its namespace with -n, or its kind as in deploy/web',
  });
}

/** Pod spec of an object, from its pod template if it has one. */
export function podSpecIn(object: KubeObject): PlainPodSpec {
  return recordOf(podTemplateIn(object)?.['spec'] ?? object.spec);
}

/**
 * Distinct images that the kubelet pulls for the pod: init containers, image volumes, containers, ephemeral containers.
 * Image volumes use the pod's pull secrets too (Kubernetes 1.31 and newer).
 */
export function imagesOf(spec: PlainPodSpec | undefined): readonly string[] {
  const images = [
    ...recordsIn(spec?.['initContainers']),
    ...recordsIn(spec?.['volumes']).map(({ image }) => ({ image: recordOf(image)['reference'] })),
    ...recordsIn(spec?.['containers']),
    ...recordsIn(spec?.['ephemeralContainers']),
  ].map(({ image }) => maskedUserInfo(textOf(image)));
  return [...new Set(images)].filter((image) => image !== '');
}

/** Images of the pod, or of its container `name`. @throws UsageError that lists the containers */
export function containerImages(spec: PlainPodSpec | undefined, name: string | undefined): readonly string[] {
  if (name === undefined || spec === undefined) return imagesOf(spec);
  const lists = ['initContainers', 'containers', 'ephemeralContainers'] as const;
  const all = lists.flatMap((list) => recordsIn(spec[list]));
  const containers = all.filter((one) => one['name'] === name);
  if (containers.length > 0) return imagesOf({ containers });
  const known = all.map((one) => scalarText(one['name']));
  throw new UsageError(`Cannot find container "${name}": must be one of ${known.join(', ')}`);
}

/** Whether a pod, or a Job, never pulls again. */
export function hasEnded({ kind, status }: KubeObject): boolean {
  const { phase, completionTime } = recordOf(status);
  return kind === 'Pod' ? phase === 'Succeeded' || phase === 'Failed' : completionTime !== undefined;
}

/** Reports whether the pod has passed admission, so that its imagePullSecrets are final. Admission skips static pods. */
export function isAdmitted(object: KubeObject): boolean {
  return object.kind === 'Pod' && (object.metadata.creationTimestamp !== undefined || isStatic(object));
}

/** Reports whether the kubelet created the pod from a file. A static pod may reference neither Secrets nor a ServiceAccount. */
export function isStatic({ kind, metadata }: KubeObject): boolean {
  return kind === 'Pod' && metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined;
}

/** The pod's imagePullSecrets, even if the only name is empty; otherwise those of the ServiceAccount, which admission copies. */
export function listedNames(store: ObjectStore, puller: PodPuller) {
  const found = findPod(store, puller);
  const spec = found && podSpecIn(found);
  const account = accountRef(puller, spec);
  const isOwn = found !== undefined && (hasOwnList(spec) || isAdmitted(found));
  const listedBy = describeObject(isOwn ? found : account);
  return ownSecrets(isOwn ? spec : store.get(account)).map((name) => ({ name, listedBy }));
}

/** Names in the imagePullSecrets of a pod spec or ServiceAccount. */
export function ownSecrets(holder: PlainPodSpec | undefined): readonly string[] {
  return listedPullSecrets(holder).filter((name) => name !== '');
}

/** Reports whether the pod has imagePullSecrets, which admission keeps. An entry without a name counts; the kubelet skips it. */
export function hasOwnList(spec: PlainPodSpec | undefined): boolean {
  const list = spec?.['imagePullSecrets'];
  return Array.isArray(list) && list.length > 0;
}

/** What a list with empty names only does; undefined for other lists. */
export function unnamedList(pod: KubeObject): string | undefined {
  const spec = podSpecIn(pod);
  if (!hasOwnList(spec) || ownSecrets(spec).length > 0) return undefined;
  return `imagePullSecrets of ${describeObject(pod)} names no Secret: the kubelet skips an entry without a name, and admission does not copy the list of the ServiceAccount`;
}

function accountRef({ namespace, serviceAccount }: PodPuller, spec: PlainPodSpec | undefined) {
  return { ...SERVICE_ACCOUNT, namespace, name: accountName(spec, serviceAccount) };
}

/** The ServiceAccount of a pod, from `serviceAccountName` or its deprecated alias. */
export function accountName(spec: PlainPodSpec | undefined, otherwise: string): string {
  return textOf(spec?.['serviceAccountName']) || textOf(spec?.['serviceAccount']) || otherwise;
}

// Decodes each Secret once, because a thousand pods may use the same one. Results are kept as long as the object.

/** The pull secret that the kubelet reads; undefined for a Secret that it ignores. */
export const podSource: (secret: KubeObject) => AuthSource | undefined = oncePer((secret) =>
  pullSecretSource(secret as SecretObject),
);

/** A Secret as the node's docker config. Its type is ignored: the copy of the platform's secret may be Opaque. */
const nodeSource: (secret: KubeObject) => AuthSource | undefined = oncePer((secret) => {
  const value = (secret as SecretObject).data?.[NAMES.dataKey];
  if (value === undefined) return undefined;
  return { name: describeObject(secret), format: 'config.json', text: secretDataText(value) };
});

// The docker config of the pulling node: which node it is, whether the pull secret is synced to it, and the content of its file.

/** The Secret with the content of the node's file. */
export const GLOBAL_SECRET = { ...SECRET, namespace: NAMES.namespace, name: NAMES.global };

/** Hosted clusters keep a copy of the platform's pull secret under the same name as standalone clusters. */
export const PLATFORM_SECRET = { ...SECRET, namespace: NAMES.configNamespace, name: NAMES.platform };

/** The node of `puller`, else the node that the pod runs on. */
export function nodeNameOf(store: ObjectStore, puller: PodPuller): string | undefined {
  if (puller.node !== undefined) return puller.node;
  const found = findPod(store, puller);
  return found?.kind === 'Pod' ? ownNode(found) : undefined;
}

/** The node that the pod runs on, if any. */
export function ownNode(pod: KubeObject): string | undefined {
  return textOf(podSpecIn(pod)['nodeName']) || undefined;
}

/** Content of the node's docker config: the synced Secret, or else the pull secret that the node booted with. */
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
  notes.push(`${NAMES.global} does not exist yet: its content is computed as the reconciler would merge it`);
  return { node: merge.source, merge: merge.facts };
}

/** The reconciler's merge, with the origin and verdict of each entry. Cached by both Secrets, because all pods share it. */
const mergeWith = oncePer((original: AuthSource) =>
  oncePer((additional: AuthSource) => {
    const result = mergePullSecrets({ original: original.text, additional: additional.text });
    if (!result.ok) return undefined;
    const names = { original: original.name, additional: additional.name, lastGood: additional.name };
    return {
      source: { name: describeObject(GLOBAL_SECRET), format: 'config.json' as const, text: result.text },
      facts: {
        origins: new Map(result.entries.map(({ key, source }) => [key, names[source]])),
        verdicts: result.verdicts,
        additional: additional.name,
      },
    };
  }),
);

/** The platform's pull secret, the tenant's, and the reconciler's merge of both. */
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

/** Reports whether the pull secret is synced to the node. A pod without a known node counts as synced. */
export function isSynced(store: ObjectStore, puller: PodPuller, notes: string[]): boolean {
  const node = nodeNameOf(store, puller);
  if (node === undefined) return true;
  const found: KubeObject | undefined = store.get({ ...NODE, name: node });
  if (found === undefined && puller.node === undefined) return true;
  if (found?.metadata.labels?.[NAMES.nodeLabel] === 'true') return true;
  // If no node gets the pull secret, the label is irrelevant.
  if (puller.node === undefined && store.get(GLOBAL_SECRET) === undefined) return false;
  const why = found === undefined ? 'was not found' : `lacks the label ${NAMES.nodeLabel}=true`;
  notes.push(`Node "${node}" ${why}: assuming the pull secret it booted with`);
  return false;
}

// The mirror configuration of a cluster's nodes, and the kinds that are read for it.

/** Custom pools inherit the registries.conf of the worker pool. */
const WORKER_CONFIG: SourceKind = { ...MACHINE_CONFIG, name: '99-worker-generated-registries' };

/** Kinds that affect every pull of a cluster: six requests. */
export const CLUSTER_KINDS: readonly SourceKind[] = [...CONFIGS, ...MIRROR_SET_KINDS, IMAGE_CONFIG];

/** Mirrors of a cluster's nodes. */
export function mirrorsOf(store: ObjectStore): NodeMirrors {
  return nodeMirrors(nodeObjects(store));
}

/** The objects that configure mirrors on nodes. */
function nodeObjects(store: ObjectStore): readonly KubeObject[] {
  return [...NODE_KINDS, MACHINE_CONFIG].flatMap(({ apiVersion, kind }) => store.list({ apiVersion, kind }));
}

/**
 * Kinds to read after {@link CLUSTER_KINDS}: ClusterVersion if a registry is blocked, the MachineConfig if rendering fails.
 */
export function nextNodeKinds(store: ObjectStore): readonly SourceKind[] {
  const isBlocking = readNodeInput(nodeObjects(store)).sources.blocked.length > 0;
  const isRefused = mirrorsOf(store).state !== 'rendered';
  return [...(isBlocking ? [CLUSTER_VERSION] : []), ...(isRefused ? [WORKER_CONFIG] : [])];
}

// The auth file that the credential provider would write for one pull.

/** Cached by the namespace's list of Secrets, which is the same object until a Secret changes. */
const offersOf = oncePer((objects: readonly KubeObject[]) =>
  collectOffers(
    objects.map((object) => {
      const { type = 'Opaque', data, metadata } = object as SecretObject;
      return { name: metadata.name, type, body: data?.[BODY_KEY[type] ?? ''] };
    }),
  ),
);

/** Image patterns for which CRIOCredentialProviderConfigs make the kubelet run the provider. */
export function providedImages(store: ObjectStore): readonly string[] {
  const configs = CONFIG_KINDS.flatMap((kind) => store.list(kind));
  return [...new Set(configs.flatMap(({ spec }) => textsIn(recordOf(spec)['matchImages'])))];
}

/** The inputs of a pull by a pod or a ServiceAccount. */
export type PullModel = ReturnType<typeof pullModel>;

export interface PullModelOptions {
  /** False if some objects could not be read: a missing Secret may then exist. @default {true} */
  readonly complete?: boolean;
  /** True if the nodes belong to a hosted cluster. @default {false} */
  readonly hosted?: boolean;
  /** Mirrors of the nodes, if already computed. */
  readonly nodes?: NodeMirrors | undefined;
}

/** Collects the inputs of a pull. @throws PullwrightError when the pod is not found */
export function pullModel(
  store: ObjectStore,
  puller: PodPuller,
  { complete = true, hosted = false, nodes }: PullModelOptions = {},
) {
  const pod = needPod(store, puller);
  const spec = pod && podSpecIn(pod);
  const notes: string[] = [];
  const names = effectiveNames(store, puller);
  const file = nodeFile(store, puller, notes);
  const followed = nodes ?? mirrorsOf(store);
  const { rules: mirrors, problems, state, summary } = followed;
  notes.push(...problems.map((problem) => `${problem.severity}: ${problem.message}`));
  const unnamed = pod && unnamedList(pod);
  if (unnamed !== undefined) notes.push(`warning: ${unnamed}`);
  if (state !== 'rendered') notes.push(`${state === 'unknown' ? 'error' : 'warning'}: ${summary}`);
  const { namespace } = puller;
  return {
    /** Undefined without a pod. */
    spec,
    secrets: names.map((one) => ({ ...one, ...stateOf(store, namespace, one.name, complete) })),
    ...file,
    mirrors,
    policy: policyOf(followed),
    search: followed.rendering.refused ? undefined : followed.rendering.search,
    versions: versionsOf(store, puller),
    hosted,
    notes: notes as readonly string[],
    /** The auth file; undefined if the credential provider does not run for the repository, or adds no entry. */
    pullFileFor: (repository: string): PullFile | undefined => {
      const isServed = providedImages(store).some((pattern) => matchesImage(pattern, repository));
      const sources = isServed ? pullSources(mirrors, repository) : [];
      if (sources.length === 0) return undefined;
      const offers = offersOf(store.list(SECRET, namespace));
      // The pod's imagePullSecrets take precedence.
      const order = names.map(({ name }) => name);
      const choice = chooseCredentials(offers, sources, order);
      if (choice.entries.length === 0) return undefined;
      const global = (file.node && parseGlobalAuth(file.node.text)) ?? NO_GLOBAL_AUTH;
      const { text } = authFile({ choice, sources, global });
      return {
        source: { name: `auth file of namespace ${namespace}`, format: 'config.json', text },
        origins: new Map(choice.entries.map(({ key, secret }) => [key, `Secret/${namespace}/${secret}`])),
      };
    },
  };
}

function versionsOf(store: ObjectStore, puller: PodPuller): NodeVersions {
  const name = nodeNameOf(store, puller);
  const node = name === undefined ? undefined : store.get({ ...NODE, name });
  const { runtime, kubelet } = nodeInfoOf(node);
  const [, crio] = /^cri-o:\/\/(.{1,40})$/.exec(runtime) ?? [];
  return {
    ...(crio !== undefined && { crio, runtime: 'CRI-O' }),
    ...(runtime.startsWith('containerd://') && { runtime: 'containerd' }),
    ...(kubelet !== '' && { kubelet }),
  };
}

/** Pull secrets of the pod: its own or its ServiceAccount's, and the names that admission injects into a new pod. */
export function effectiveNames(store: ObjectStore, puller: PodPuller) {
  const listed = listedNames(store, puller);
  const found = findPod(store, puller);
  if (found === undefined || isAdmitted(found)) return listed;
  const names = listed.map((one) => one.name);
  const account = store.get(accountRef(puller, podSpecIn(found)));
  const injected = injectedNames(store, found, names, account);
  return [...listed, ...injected.map((one) => ({ name: one.name, listedBy: one.by }))];
}

/**
 * Explains a pull of `image`.
 *
 * @param asked the image as written in the pod, whether to be brief, and an auth file that replaces the node's
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

const NO_VALUE = redact('');

type State = Omit<ListedSecret, 'name' | 'listedBy'>;

/** @param complete false if some objects could not be read */
function stateOf(store: ObjectStore, namespace: string, name: string, complete: boolean): State {
  const found = store.get({ ...SECRET, namespace, name });
  if (found === undefined) return absent(store, namespace, name, complete);
  const { type, data = {} } = found as SecretObject;
  const value = data[pullSecretKey(type) ?? ''];
  if (value !== undefined && isEncrypted(value)) return { state: 'encrypted' };
  // The API server accepts no empty value; dumps leave values out.
  if (value !== undefined && sameSecret(value, NO_VALUE)) return { state: 'pending' };
  const source = podSource(found);
  if (source !== undefined && !givesNothing(source)) return { state: 'found', source };
  const why = secretFault(found as SecretObject) ?? 'is not a pull secret';
  return { state: 'ignored', why, ...makerOf(found), ...retypeOf(found as SecretObject) };
}

function absent(store: ObjectStore, namespace: string, name: string, complete: boolean): State {
  const maker = secretMakers(store, namespace).find(
    ({ secret, object }) => secret === name && object['status'] === undefined,
  );
  if (maker !== undefined) return { state: 'pending', why: `${describeObject(maker.object)} creates it` };
  if (!complete) return { state: 'unknown' };
  // As from `kubectl get pods`, which has none of these kinds; every cluster has ServiceAccounts.
  const given = [SECRET, SERVICE_ACCOUNT, ...SECRET_MAKERS].some((kind) => store.list(kind).length > 0);
  return given ? { state: 'missing', ...inAnother(store, name) } : { state: 'pending' };
}

/** Kinds of other tools that create Secrets. Read from folders and dumps only, so that no cluster permission is needed. */
export const SECRET_MAKERS: readonly SourceKind[] = [
  { apiVersion: 'external-secrets.io/v1', kind: 'ExternalSecret' },
  { apiVersion: 'external-secrets.io/v1beta1', kind: 'ExternalSecret' },
  { apiVersion: 'bitnami.com/v1alpha1', kind: 'SealedSecret' },
];

/** Objects of other tools that create Secrets in `namespace`, each with the name of its Secret. */
export function secretMakers(store: ObjectStore, namespace: string) {
  return SECRET_MAKERS.flatMap((kind) => store.list(kind, namespace)).map((object) => {
    const { target, template } = recordOf(object['spec']);
    const { name = recordOf(recordOf(template)['metadata'])['name'] } = recordOf(target);
    return { secret: scalarText(name ?? object.metadata.name), object };
  });
}

/** Whether the kubelet accepts the document, and finds no entry where it looks for them. */
function givesNothing(source: AuthSource): boolean {
  const read = readAuthSource(source);
  return read.ok && read.config.kubeletFault === undefined && shapeFault(read.config) !== undefined;
}

function makerOf({ metadata }: KubeObject): Pick<ListedSecret, 'maker'> {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner === undefined ? {} : { maker: `${owner.kind}/${owner.name}` };
}

/** Finds a docker config under any key of the Secret, and the type and key that would make it a pull secret. */
function retypeOf({ data = {}, ...secret }: SecretObject): Pick<ListedSecret, 'retype'> {
  for (const [from, value] of Object.entries(data))
    for (const [type, key] of Object.entries(BODY_KEY)) {
      const source = pullSecretSource({ ...secret, type, data: { [key]: value } });
      const read = source && readAuthSource(source);
      const config = read?.ok === true && read.config.kubeletFault === undefined ? read.config : undefined;
      if (config === undefined || shapeFault(config) !== undefined) continue;
      if (config.entries.some(({ fault }) => fault === undefined)) return { retype: { from, type, key } };
    }
  return {};
}

/** Reports a pull secret of this name in another namespace, which the pod cannot use. */
function inAnother(store: ObjectStore, name: string): Pick<ListedSecret, 'why'> {
  const there = store.list(SECRET).find((one) => one.metadata.name === name && podSource(one) !== undefined);
  if (there === undefined) return {};
  const { namespace } = there.metadata;
  return { why: `namespace "${namespace}" has one, but a pod can only use Secrets of its own namespace` };
}

// The workload of a pod, by its owner references.

/**
 * The topmost known owner; for a missing ReplicaSet, the Deployment that its name implies.
 *
 * @param deepest maximum depth, because an owner may own itself
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
