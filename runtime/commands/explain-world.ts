/** What the objects at hand say about one pod: which Secrets it lists, what is in its node's file, which mirrors there are. */
import type { ObjectStore } from '../controller/store.ts';
import type { AuthSource } from '../rules/auth-lookup-kubelet.ts';
import { mergePullSecrets } from '../rules/docker-config-merge.ts';
import { PullwrightError } from '../rules/errors.ts';
import {
  type Explanation,
  explainImage,
  type ListedSecret,
  type NodeMerge,
  type PullFile,
} from '../rules/explain.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../rules/global-pull-secret.ts';
import type { ImageReference } from '../rules/image-reference.ts';
import type { KubeObject, SecretObject } from '../rules/kube-object.ts';
import type { MirrorRule } from '../rules/mirrors.ts';
import { collectMirrors, MIRROR_SET_KINDS } from '../rules/mirrors-collect.ts';
import { pullSecretSource, secretDataText } from '../rules/pull-secret-text.ts';
import { pullFile } from './explain-pull-file.ts';
import type { SourceKind } from './object-source.ts';

/** Whose pull is explained. */
export interface Puller {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** A Pod, or an object with a pod template. */
  readonly pod?: { readonly kind: string; readonly name: string };
  readonly node?: string;
}

/** Kinds that hold a pod template, by the names that kubectl knows. */
const WORKLOADS: Readonly<Record<string, { readonly apiVersion: string; readonly kind: string }>> = {
  pod: { apiVersion: 'v1', kind: 'Pod' },
  deployment: { apiVersion: 'apps/v1', kind: 'Deployment' },
  deploy: { apiVersion: 'apps/v1', kind: 'Deployment' },
  statefulset: { apiVersion: 'apps/v1', kind: 'StatefulSet' },
  sts: { apiVersion: 'apps/v1', kind: 'StatefulSet' },
  daemonset: { apiVersion: 'apps/v1', kind: 'DaemonSet' },
  ds: { apiVersion: 'apps/v1', kind: 'DaemonSet' },
  replicaset: { apiVersion: 'apps/v1', kind: 'ReplicaSet' },
  job: { apiVersion: 'batch/v1', kind: 'Job' },
  cronjob: { apiVersion: 'batch/v1', kind: 'CronJob' },
};

/** `web`, `deploy/web`: kind and name; undefined for a kind without pods. */
export function parsePodName(text: string): Puller['pod'] | undefined {
  const [first = '', second] = text.split('/', 2);
  if (second === undefined) return { kind: 'Pod', name: first };
  const kind = first.toLowerCase();
  const found = Object.hasOwn(WORKLOADS, kind) ? WORKLOADS[kind] : undefined;
  return found === undefined ? undefined : { kind: found.kind, name: second };
}

const PROVIDER_CONFIG = 'CRIOCredentialProviderConfig';

/** What to read of a cluster: eight requests, and one for the node. */
export function kindsFor({ namespace, serviceAccount, pod, node }: Puller): readonly SourceKind[] {
  const workload = Object.values(WORKLOADS).find((one) => one.kind === pod?.kind);
  const owner: SourceKind =
    workload === undefined || pod === undefined
      ? { apiVersion: 'v1', kind: 'ServiceAccount', namespace, name: serviceAccount }
      : { ...workload, namespace, name: pod.name };
  const secret = { apiVersion: 'v1', kind: 'Secret' } as const;
  return [
    owner,
    { ...secret, namespace },
    { ...secret, namespace: NAMES.namespace, name: NAMES.global },
    // Hosted clusters have a copy of the platform's pull secret at the place where the others keep it.
    { ...secret, namespace: NAMES.configNamespace, name: NAMES.platform },
    { apiVersion: 'config.openshift.io/v1', kind: PROVIDER_CONFIG, name: 'cluster' },
    ...(node === undefined ? [] : [{ apiVersion: 'v1', kind: 'Node', name: node }]),
    ...MIRROR_SET_KINDS.map(({ apiVersion, kind }) => ({ apiVersion, kind })),
  ];
}

/** Kinds to look for in a folder. */
export const FOLDER_KINDS: ReadonlySet<string> = new Set([
  'Secret',
  'ServiceAccount',
  'Node',
  PROVIDER_CONFIG,
  ...Object.values(WORKLOADS).map(({ kind }) => kind),
  ...MIRROR_SET_KINDS.map(({ kind }) => kind),
]);

/** What is found for `puller`. */
export interface FoundWorld {
  /** Images of the pod; empty without one. */
  readonly images: readonly string[];
  readonly secrets: readonly ListedSecret[];
  readonly node?: AuthSource;
  readonly merge?: NodeMerge;
  readonly mirrors: readonly MirrorRule[];
  readonly notes: readonly string[];
  /** The file that the credential provider writes for a repository; undefined when it writes none. */
  pullFileFor(repository: string): PullFile | undefined;
}

/**
 * Gathers.
 *
 * @param complete whether everything could be read: else a Secret that is not there may be there all the same
 * @throws PullwrightError when the pod is not there
 */
export function findWorld(store: ObjectStore, puller: Puller, complete = true): FoundWorld {
  const spec = podSpecOf(store, puller);
  const notes: string[] = [];
  const names = listedNames(store, puller, spec);
  const node = nodeFile(store, puller, notes);
  const sets = MIRROR_SET_KINDS.flatMap(({ apiVersion, kind }) => store.list({ apiVersion, kind }));
  const { rules, problems } = collectMirrors(sets);
  notes.push(...problems.map((problem) => `${problem.severity}: ${problem.message}`));
  return {
    images: imagesOf(spec),
    secrets: names.map(({ name, listedBy }) =>
      listedSecret(store, puller.namespace, { name, listedBy, absent: complete ? 'missing' : 'unknown' }),
    ),
    ...node,
    mirrors: rules,
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

/** Explains a pull of `image`. `given` stands in for the node's file. */
export function explainIn(world: FoundWorld, image: ImageReference, given?: AuthSource): Explanation {
  const { secrets, mirrors, merge } = world;
  const node = given ?? world.node;
  const pullFile = world.pullFileFor(image.repository);
  return explainImage({
    image,
    secrets,
    mirrors,
    ...(node === undefined ? {} : { node }),
    ...(merge === undefined || given !== undefined ? {} : { merge }),
    ...(pullFile === undefined ? {} : { pullFile }),
  });
}

type Raw = Readonly<Record<string, unknown>>;

/** What is there may be hand-written: everything but an object counts as an empty one. */
function record(value: unknown): Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Raw) : {};
}

/** The texts under `field` of a list of objects. */
function texts(list: unknown, field: string): readonly string[] {
  const items: readonly unknown[] = Array.isArray(list) ? list : [];
  return items
    .map((item) => record(item)[field])
    .filter((text) => typeof text === 'string' && text !== '') as string[];
}

function podSpecOf(store: ObjectStore, { namespace, pod }: Puller): Raw | undefined {
  if (pod === undefined) return undefined;
  const kind = Object.values(WORKLOADS).find((one) => one.kind === pod.kind);
  const found = kind === undefined ? undefined : store.get({ ...kind, namespace, name: pod.name });
  if (found === undefined) {
    throw new PullwrightError(`Cannot find ${pod.kind} "${namespace}/${pod.name}"`, {
      code: 'PodMissing',
      disposition: 'terminal',
      hint: 'Name its namespace with -n, or another kind as in deploy/web',
    });
  }
  const spec = record(found.spec);
  const job = record(record(spec['jobTemplate'])['spec']);
  const template = record(spec['template'] ?? job['template']);
  return template['spec'] === undefined ? spec : record(template['spec']);
}

function imagesOf(spec: Raw | undefined): readonly string[] {
  return [...new Set([...texts(spec?.['initContainers'], 'image'), ...texts(spec?.['containers'], 'image')])];
}

/** The pod's own list; admission copies the ServiceAccount's when the pod has none. */
function listedNames(
  store: ObjectStore,
  { namespace, serviceAccount, pod }: Puller,
  spec: Raw | undefined,
): readonly { readonly name: string; readonly listedBy: string }[] {
  const own = texts(spec?.['imagePullSecrets'], 'name');
  if (own.length > 0) {
    return own.map((name) => ({ name, listedBy: `${pod?.kind ?? 'Pod'}/${namespace}/${pod?.name ?? ''}` }));
  }
  const named = spec?.['serviceAccountName'];
  const account = typeof named === 'string' && named !== '' ? named : serviceAccount;
  const found = store.get({ apiVersion: 'v1', kind: 'ServiceAccount', namespace, name: account });
  return texts(found?.['imagePullSecrets'], 'name').map((name) => ({
    name,
    listedBy: `ServiceAccount/${namespace}/${account}`,
  }));
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
function nodeFile(store: ObjectStore, { node }: Puller, notes: string[]): Pick<FoundWorld, 'node' | 'merge'> {
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
