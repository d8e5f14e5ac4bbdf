/** What the objects at hand say about one pod: which Secrets it lists, what is in its node's file, which mirrors there are. */
import { parse as parseToml } from 'smol-toml';
import type { ObjectStore } from '../../controller/store.ts';
import type { ImageReference } from '../../rules/auth-lookup/image-reference.ts';
import type { AuthSource } from '../../rules/auth-lookup/kubelet.ts';
import { type Explanation, explainImage } from '../../rules/diagnose/explain.ts';
import type { ExplainInput, ListedSecret, PullFile } from '../../rules/diagnose/explain-types.ts';
import type { MirrorRule } from '../../rules/mirrors/mirrors.ts';
import { type NodeMirrors, nodeMirrors } from '../../rules/node-registries/node-mirrors.ts';
import type { NextKinds, SourceKind } from '../object-source.ts';
import {
  accountName,
  findPod,
  hasOwnList,
  imagesOf,
  isAdmitted,
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
  GLOBAL_SECRET,
  isSynced,
  type NodeFileFound,
  nodeFile,
  nodeNameOf,
  PLATFORM_SECRET,
} from './node-file.ts';
import {
  CLUSTER_KINDS,
  NODE_FOLDER_KINDS,
  nextNodeKinds,
  nodeObjects,
  PROVIDER_CONFIG,
} from './node-kinds.ts';
import { pullFile } from './pull-file.ts';
import { podSource } from './secret-sources.ts';

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
  const { namespace, pod } = puller;
  const synced = (store: ObjectStore): boolean => isSynced(store, puller, []);
  const steps: readonly NextKinds[] = [
    (store) => [
      ...(synced(store) ? [GLOBAL_SECRET] : [PLATFORM_SECRET]),
      ...ownNode(store, puller),
      ...(pod === undefined || pod.kind === 'Pod' ? [] : accountOf(store, puller)),
    ],
    (store) => [
      ...(!synced(store) || store.get(GLOBAL_SECRET) === undefined ? [PLATFORM_SECRET] : []),
      ...nextNodeKinds(store),
    ],
  ];
  // The Secrets of the namespace are there already.
  const known = (one: SourceKind): boolean => one.kind === 'Secret' && one.namespace === namespace;
  return steps.map((step) => (store) => step(store).filter((one) => !known(one)));
}

/** The node that a pod runs on, which nobody named. */
function ownNode(store: ObjectStore, puller: PodPuller): readonly SourceKind[] {
  const name = puller.node === undefined ? nodeNameOf(store, puller) : undefined;
  return name === undefined ? [] : [{ apiVersion: 'v1', kind: 'Node', name }];
}

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
export interface FoundWorld extends NodeFileFound {
  /** Images of the pod; empty without one. */
  readonly images: readonly string[];
  readonly secrets: readonly ListedSecret[];
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
  /** Whether the pull secret is brought to the node. @default {what the label of the node says} */
  readonly synced?: boolean;
  /** Where nodes pull from, for who has worked it out already. */
  readonly nodes?: NodeMirrors | undefined;
}

/**
 * Gathers.
 *
 * @throws PullwrightError when the pod is not there
 */
export function findWorld(
  store: ObjectStore,
  puller: PodPuller,
  { complete = true, hosted = false, synced, nodes }: WorldOptions = {},
): FoundWorld {
  const spec = podSpecOf(store, puller);
  const notes: string[] = [];
  const names = effectiveNames(store, puller, spec);
  const node = nodeFile(store, puller, notes, synced);
  const { rules, problems, state, summary } = nodes ?? nodeMirrors(nodeObjects(store), parseToml);
  notes.push(...problems.map((problem) => `${problem.severity}: ${problem.message}`));
  notes.push(...listNotes(puller, spec));
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

/** An empty name keeps the ServiceAccount's list away, and gives nothing itself. */
function listNotes({ namespace, pod }: PodPuller, spec: PlainPodSpec | undefined): readonly string[] {
  if (!hasOwnList(spec) || ownSecrets(spec).length > 0) return [];
  return [
    `warning: imagePullSecrets of ${pod?.kind ?? 'Pod'}/${namespace}/${pod?.name ?? ''} names no Secret: an entry without a name is skipped by the kubelet, and keeps admission from copying the list of the ServiceAccount`,
  ];
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
  if (puller.pod === undefined || found === undefined || isAdmitted(found)) return listed;
  const name = accountName(spec, puller.serviceAccount);
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', namespace, name };
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

/** What is known beside the world. */
export interface Asked {
  /** Stands in for the node's file. */
  readonly given?: AuthSource | undefined;
  /** The image as the pod names it. */
  readonly written?: string;
  /** See {@link ExplainInput.brief}. */
  readonly brief?: boolean;
}

/** Explains a pull of `image`. */
export function explainIn(world: FoundWorld, image: ImageReference, asked: Asked = {}): Explanation {
  return explainImage(inputIn(world, image, asked));
}

/** What an explanation of `image` is made from. */
export function inputIn(
  world: FoundWorld,
  image: ImageReference,
  { given, written, brief = false }: Asked = {},
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
    brief,
    now: new Date(),
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
  const found = store.get({ ...SECRET, namespace, name });
  if (found === undefined) return { name, listedBy, state: absent };
  const source = podSource(found);
  return source === undefined
    ? { name, listedBy, state: 'ignored' }
    : { name, listedBy, state: 'found', source };
}
