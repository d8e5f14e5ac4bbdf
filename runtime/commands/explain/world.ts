/** What the objects at hand say about one pod: which Secrets it lists, what is in its node's file, which mirrors there are. */
import { parse as parseToml } from 'smol-toml';
import type { ObjectName, ObjectStore } from '../../controller/store.ts';
import type { ImageReference } from '../../rules/auth-lookup/image-reference.ts';
import type { AuthSource } from '../../rules/auth-lookup/kubelet.ts';
import { type Explanation, explainImage } from '../../rules/diagnose/explain.ts';
import type { ExplainInput, ListedSecret, NodeMerge, PullFile } from '../../rules/diagnose/explain-types.ts';
import { mergePullSecrets } from '../../rules/docker-config/merge.ts';
import { pullSecretSource, secretDataText } from '../../rules/docker-config/secret-text.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import type { MirrorRule } from '../../rules/mirrors/mirrors.ts';
import { nodeMirrors } from '../../rules/node-registries/node-mirrors.ts';
import type { NextKinds, SourceKind } from '../object-source.ts';
import {
  accountName,
  findPod,
  imagesOf,
  listedNames,
  ownSecrets,
  type PlainPodSpec,
  type PodPuller,
  podMetadataIn,
  podSpecIn,
  podSpecOf,
  WORKLOADS,
} from '../pod-spec.ts';
import { injectedNames, injectionKinds } from './injected.ts';
import {
  CLUSTER_KINDS,
  NODE_FOLDER_KINDS,
  nextNodeKinds,
  nodeObjects,
  PROVIDER_CONFIG,
} from './node-kinds.ts';
import { pullFile } from './pull-file.ts';

const SECRET = { apiVersion: 'v1', kind: 'Secret' } as const;

/** What to read of a cluster first: seven requests with a node, six without. */
export function kindsFor({ namespace, serviceAccount, pod, node }: PodPuller): readonly SourceKind[] {
  const workload = Object.values(WORKLOADS).find((one) => one.kind === pod?.kind);
  const owner: SourceKind =
    workload === undefined || pod === undefined
      ? { apiVersion: 'v1', kind: 'ServiceAccount', namespace, name: serviceAccount }
      : { ...workload, namespace, name: pod.name };
  return [
    owner,
    { ...SECRET, namespace },
    // The list of a pod that exists is complete.
    ...(pod === undefined || pod.kind === 'Pod' ? [] : injectionKinds(namespace)),
    ...(node === undefined ? [] : [{ apiVersion: 'v1', kind: 'Node', name: node }]),
    ...CLUSTER_KINDS,
  ];
}

/**
 * What to read next: the file of the node, the ServiceAccount of a template that lists no Secrets, and what nodes keep where their
 * mirrors are refused. One request as a rule, so that there are nine.
 */
export function nextKindsFor(puller: PodPuller): readonly NextKinds[] {
  const { namespace, pod, node } = puller;
  const synced = (store: ObjectStore): boolean => node === undefined || isSynced(store, node, []);
  const steps: readonly NextKinds[] = [
    (store) => [
      ...(synced(store) ? [GLOBAL_SECRET] : [PLATFORM_SECRET]),
      ...(pod === undefined || pod.kind === 'Pod' ? [] : accountOf(store, puller)),
    ],
    (store) => [
      ...(synced(store) && store.get(GLOBAL_SECRET) === undefined ? [PLATFORM_SECRET] : []),
      ...nextNodeKinds(store),
    ],
  ];
  // The Secrets of the namespace are there already.
  const known = (one: SourceKind): boolean => one.kind === 'Secret' && one.namespace === namespace;
  return steps.map((step) => (store) => step(store).filter((one) => !known(one)));
}

/** The content of the nodes' file. */
export const GLOBAL_SECRET: ObjectName = { ...SECRET, namespace: NAMES.namespace, name: NAMES.global };

/** Hosted clusters have a copy of the platform's pull secret at the place where the others keep it. */
export const PLATFORM_SECRET: ObjectName = {
  ...SECRET,
  namespace: NAMES.configNamespace,
  name: NAMES.platform,
};

function accountOf(store: ObjectStore, puller: PodPuller): readonly SourceKind[] {
  const found = findPod(store, puller);
  if (found === undefined || ownSecrets(podSpecIn(found)).length > 0) return [];
  const name = accountName(podSpecIn(found), puller.serviceAccount);
  return [{ apiVersion: 'v1', kind: 'ServiceAccount', namespace: puller.namespace, name }];
}

/** Kinds to look for in a folder. */
export const FOLDER_KINDS: ReadonlySet<string> = new Set([
  'Secret',
  'ServiceAccount',
  'Node',
  PROVIDER_CONFIG,
  ...Object.values(WORKLOADS).map(({ kind }) => kind),
  ...NODE_FOLDER_KINDS,
]);

/** What is found for `puller`. */
export interface FoundWorld {
  /** Images of the pod; empty without one. */
  readonly images: readonly string[];
  readonly secrets: readonly ListedSecret[];
  readonly node?: AuthSource;
  readonly merge?: NodeMerge;
  readonly mirrors: readonly MirrorRule[];
  readonly hosted: boolean;
  readonly notes: readonly string[];
  /** The file that the credential provider writes for a repository; undefined when it writes none. */
  pullFileFor(repository: string): PullFile | undefined;
}

export interface WorldOptions {
  /** Whether everything could be read: else a Secret that is not there may be there all the same. @default {true} */
  readonly complete?: boolean;
  /** Whether the nodes are those of a hosted cluster. @default {false} */
  readonly hosted?: boolean;
}

/**
 * Gathers.
 *
 * @throws PullwrightError when the pod is not there
 */
export function findWorld(
  store: ObjectStore,
  puller: PodPuller,
  { complete = true, hosted = false }: WorldOptions = {},
): FoundWorld {
  const spec = podSpecOf(store, puller);
  const notes: string[] = [];
  const names = effectiveNames(store, puller, spec);
  const node = nodeFile(store, puller, notes);
  const { rules, problems, state, summary } = nodeMirrors(nodeObjects(store), parseToml);
  notes.push(...problems.map((problem) => `${problem.severity}: ${problem.message}`));
  if (state !== 'rendered') notes.push(`${state === 'unknown' ? 'error' : 'warning'}: ${summary}`);
  return {
    images: imagesOf(spec),
    secrets: names.map(({ name, listedBy }) =>
      listedSecret(store, puller.namespace, { name, listedBy, absent: complete ? 'missing' : 'unknown' }),
    ),
    ...node,
    mirrors: rules,
    hosted,
    notes,
    pullFileFor: (repository) =>
      pullFile(store, puller.namespace, {
        repository,
        rules,
        order: names.map(({ name }) => name),
        node: node.node,
      }),
  };
}

/** The pull secrets of the pod: its own list or that of its account, and what admission adds to a pod that is not there yet. */
export function effectiveNames(
  store: ObjectStore,
  puller: PodPuller,
  spec: PlainPodSpec | undefined,
): ReturnType<typeof listedNames> {
  const listed = listedNames(store, puller, spec);
  const found = findPod(store, puller);
  const { namespace } = puller;
  if (puller.pod === undefined || found === undefined || isThere(found)) return listed;
  const account = {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    namespace,
    name: accountName(spec, puller.serviceAccount),
  };
  const { labels = {}, annotations = {} } = podMetadataIn(found);
  const injected = injectedNames(store, {
    namespace,
    labels,
    annotations,
    listed: listed.map(({ name }) => name),
    account: store.get(account),
  });
  return [...listed, ...injected.map(({ name, by }) => ({ name, listedBy: by }))];
}

/** Admission has passed it. */
function isThere({ kind, metadata }: KubeObject): boolean {
  return kind === 'Pod' && metadata.creationTimestamp !== undefined;
}

/** What is known beside the world. */
export interface Asked {
  /** Stands in for the node's file. */
  readonly given?: AuthSource | undefined;
  /** The image as the pod names it. */
  readonly written?: string;
}

/** Explains a pull of `image`. */
export function explainIn(world: FoundWorld, image: ImageReference, asked: Asked = {}): Explanation {
  return explainImage(inputIn(world, image, asked));
}

/** What an explanation of `image` is made from. */
export function inputIn(
  world: FoundWorld,
  image: ImageReference,
  { given, written }: Asked = {},
): ExplainInput {
  const { secrets, mirrors, hosted, merge } = world;
  const node = given ?? world.node;
  const pullFile = world.pullFileFor(image.repository);
  return {
    image,
    ...(written === undefined ? {} : { written }),
    secrets,
    mirrors,
    hosted,
    ...(node === undefined ? {} : { node }),
    ...(merge === undefined || given !== undefined ? {} : { merge }),
    ...(pullFile === undefined ? {} : { pullFile }),
  };
}

function listedSecret(
  store: ObjectStore,
  namespace: string,
  { name, listedBy, absent }: { name: string; listedBy: string; absent: 'missing' | 'unknown' },
): ListedSecret {
  const found = secretOf(store, namespace, name);
  if (found === undefined) return { name, listedBy, state: absent };
  const source = pullSecretSource(found);
  return source === undefined
    ? { name, listedBy, state: 'ignored' }
    : { name, listedBy, state: 'found', source };
}

function secretOf(store: ObjectStore, namespace: string, name: string): SecretObject | undefined {
  return store.get({ apiVersion: 'v1', kind: 'Secret', namespace, name }) as SecretObject | undefined;
}

/** The content that the node's file has: what is synced to it, else what the node booted with. */
function nodeFile(
  store: ObjectStore,
  { node }: PodPuller,
  notes: string[],
): Pick<FoundWorld, 'node' | 'merge'> {
  const synced = node === undefined || isSynced(store, node, notes);
  const original =
    configSource(store, NAMES.namespace, NAMES.original) ??
    configSource(store, NAMES.configNamespace, NAMES.platform);
  const global = synced ? configSource(store, NAMES.namespace, NAMES.global) : undefined;
  const plain = global ?? original;
  const merge = synced ? mergedFrom(store, original) : undefined;
  if (merge === undefined) return plain === undefined ? {} : { node: plain };
  if (global !== undefined) return { node: global, merge: merge.facts };
  notes.push(`${NAMES.global} is not there yet: its content is merged here as the reconciler would`);
  return { node: merge.source, merge: merge.facts };
}

/** The merge that the reconciler would make, for the origins of entries and the verdicts on them. */
function mergedFrom(
  store: ObjectStore,
  original: AuthSource | undefined,
): { readonly source: AuthSource; readonly facts: NodeMerge } | undefined {
  const additional = configSource(store, NAMES.namespace, NAMES.additional);
  if (original === undefined || additional === undefined) return undefined;
  const result = mergePullSecrets({ original: original.text, additional: additional.text });
  if (!result.ok) return undefined;
  const names = { original: original.name, additional: additional.name, lastGood: additional.name };
  return {
    source: { name: `Secret/${NAMES.namespace}/${NAMES.global}`, format: 'config.json', text: result.text },
    facts: {
      origins: new Map(result.entries.map(({ key, source }) => [key, names[source]])),
      verdicts: result.verdicts,
      additional: additional.name,
    },
  };
}

/** A Secret as a docker config. Its type does not count: the copy of the platform's secret may be Opaque. */
function configSource(store: ObjectStore, namespace: string, name: string): AuthSource | undefined {
  const value = secretOf(store, namespace, name)?.data?.[NAMES.dataKey];
  if (value === undefined) return undefined;
  return { name: `Secret/${namespace}/${name}`, format: 'config.json', text: secretDataText(value) };
}

function isSynced(store: ObjectStore, name: string, notes: string[]): boolean {
  const found: KubeObject | undefined = store.get({ apiVersion: 'v1', kind: 'Node', name });
  if (found?.metadata.labels?.[NAMES.nodeLabel] === 'true') return true;
  const why = found === undefined ? 'is not there' : `lacks the label ${NAMES.nodeLabel}=true`;
  notes.push(`Node "${name}" ${why}: it is taken to have the pull secret that it booted with`);
  return false;
}
