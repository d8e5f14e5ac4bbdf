/** Reads objects of a cluster for read-only commands: unreadable kinds are reported, and the others are returned. */

import { readFile } from 'node:fs/promises';
import type { CommandIo } from '../../cli/command.ts';
import { CLUSTER_FLAGS, fromFlag, text, type ValuesOf } from '../../cli/flags.ts';
import { describeError, PullwrightError, UsageError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { inParallel } from '../../core/parallel.ts';
import { recordOf, recordsIn, stringsIn, textOf } from '../../core/record.ts';
import { VERSION } from '../../core/version.ts';
import { CONFIG_KINDS } from '../../credential-provider/platform.ts';
import { ObjectStore } from '../../engine/store.ts';
import { isApiError } from '../../kube/api-error.ts';
import type { KubeClient, Selector } from '../../kube/client.ts';
import type { HttpKubeClient } from '../../kube/http-client.ts';
import { pagesOf } from '../../kube/informer.ts';
import type { ClusterChoice } from '../../kube/kubeconfig.ts';
import type { Collection } from '../../kube/resources.ts';
import { NODE_KINDS } from '../../registry-overrides/machine-config/input.ts';
import { MACHINE_CONFIG } from '../../registry-overrides/planes.ts';

/** A kind to read, or a single object with `name`. */
export interface SourceKind extends Collection, Omit<Selector, 'metadataOnly'> {
  readonly name?: string;
}

/** Returns a condition of an object. Objects of a folder are unvalidated. */
export function conditionOf({ status }: KubeObject, type: string) {
  const found = recordsIn(recordOf(status)['conditions']).find((one) => one['type'] === type);
  return (
    found && {
      status: textOf(found['status']),
      reason: textOf(found['reason']),
      message: textOf(found['message']),
    }
  );
}

/** Runtime and kubelet versions in a Node's status, such as `cri-o://1.35.1` and `v1.35.0`; empty if missing. */
export function nodeInfoOf(node: KubeObject | undefined) {
  const { containerRuntimeVersion, kubeletVersion } = recordOf(recordOf(node?.status)['nodeInfo']);
  return { runtime: textOf(containerRuntimeVersion), kubelet: textOf(kubeletVersion) };
}

/** The pod template of an object; undefined for a pod and for kinds without a template. */
export function podTemplateIn({ spec }: KubeObject): Readonly<Record<string, unknown>> | undefined {
  const { template, jobTemplate } = recordOf(spec);
  const found = recordOf(template ?? recordOf(recordOf(jobTemplate)['spec'])['template']);
  return found['spec'] === undefined ? undefined : found;
}

/** Labels and annotations of a pod, or of an object's pod template. */
export function podMetadataIn(object: KubeObject) {
  const template = podTemplateIn(object);
  const { labels, annotations } = template === undefined ? object.metadata : recordOf(template['metadata']);
  return { labels: stringsIn(labels), annotations: stringsIn(annotations) };
}

/** Cluster, request timeout and identity, and the attempts per request: by default 2, enough for an interactive command. */
export type ClusterAccess = Partial<ValuesOf<typeof CLUSTER_FLAGS>> & { readonly tries?: number };

/** Reads a file named by a flag. @throws UsageError */
export async function readGiven(path: string, what: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => {
    throw new UsageError(`Cannot read "${path}": expected a readable ${what}`);
  });
}

// Loaded on demand: folders and --help need no client.
const CLIENT = () => import('../../kube/http-client.ts');
const KUBECONFIG = () => import('../../kube/kubeconfig.ts');

/** Returns the namespace of the flag, or else that of the context as kubectl does; `default` for a folder. */
export async function namespaceOf(
  flags: ClusterChoice & { readonly namespace?: string | undefined; readonly from?: unknown },
  io: CommandIo,
): Promise<string> {
  if (flags.namespace !== undefined) return flags.namespace;
  if (flags.from !== undefined) return 'default';
  return (await KUBECONFIG()).contextNamespace(flags, io.env);
}

/** Returns the kinds to read next, given the objects read so far. */
export type NextKinds = (store: ObjectStore) => readonly SourceKind[];

/**
 * Reads the kinds of `steps` in turn from the cluster of a kubeconfig.
 *
 * @throws UsageError, PullwrightError when no cluster is configured
 */
export async function readObjects(access: ClusterAccess, steps: readonly NextKinds[], io: CommandIo) {
  return withClient(access, io, (client) => readSteps(client, steps));
}

/** OpenShift kinds with known plural and scope, which need no discovery. Other clusters respond with 404. */
const NO_DISCOVERY = Object.fromEntries(
  [...CONFIG_KINDS, ...NODE_KINDS, MACHINE_CONFIG].map(({ apiVersion, kind }) => [
    `${apiVersion} ${kind}`,
    { plural: pluralOf(kind), namespaced: false },
  ]),
);

/** Plural of a kind, by rules that hold for these and all rendered kinds. */
export function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (name.endsWith('y')) return `${name.slice(0, -1)}ies`;
  return name.endsWith('s') ? `${name}es` : `${name}s`;
}

/** Maximum delay of a JavaScript timer. */
const FOR_EVER_MS = 2 ** 31 - 1;

/** Runs `work` with a client for the cluster of a kubeconfig, then closes the client. */
export async function withClient<T>(
  { kubeconfig, context, as, tries = 2, 'request-timeout': timeoutMs = 10_000 }: ClusterAccess,
  io: CommandIo,
  work: (client: HttpKubeClient) => Promise<T>,
): Promise<T> {
  const connection = await (await KUBECONFIG()).loadConnection(kubeconfig, io.env, context);
  const options = {
    connection,
    userAgent: `pullwright/${VERSION}`,
    timeoutMs: timeoutMs === 0 ? FOR_EVER_MS : timeoutMs,
    tries,
    ...(as === undefined ? {} : { actAs: as }),
  };
  const client = new (await CLIENT()).HttpKubeClient(options, NO_DISCOVERY);
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/**
 * Reads the kinds of `steps` in turn, each kind once. A step sees the objects of the previous ones.
 *
 * @returns the objects, and one sentence per read error; a kind that the cluster does not serve is not an error
 */
export async function readSteps(client: KubeClient, steps: readonly NextKinds[]) {
  const store = new ObjectStore();
  const problems: string[] = [];
  const asked = new Set<string>();
  for (const step of steps) {
    const kinds = step(store).filter((kind) => {
      const { apiVersion, namespace, name, labelSelector, fieldSelector } = kind;
      const id = [apiVersion, kind.kind, namespace, name, labelSelector, fieldSelector].join(' ');
      return !asked.has(id) && asked.add(id);
    });
    problems.push(...(await readKinds(client, kinds, store)));
  }
  return { store, problems: [...new Set(problems)].sort() };
}

/** Maximum number of parallel requests. */
const CONCURRENCY = 16;

/** Error codes of an unreachable cluster or a rejected identity: every other request would fail too. */
const HOPELESS: readonly string[] = [
  'Timeout',
  'ConnectionRefused',
  'ConnectionLost',
  'CertificateNotTrusted',
  'HostNotFound',
  'Unauthorized',
];

/**
 * Reads `kinds` into `store`, lists page by page. Returns the read errors.
 *
 * @throws PullwrightError if the cluster is unreachable or rejects the identity
 */
async function readKinds(client: KubeClient, kinds: readonly SourceKind[], store: ObjectStore) {
  const problems: string[] = [];
  await inParallel(kinds, CONCURRENCY, async (kind) => {
    try {
      for await (const object of objectsOf(client, kind)) store.set(object);
    } catch (error) {
      const code = error instanceof PullwrightError ? error.code : '';
      if (code === 'KindNotServed' || isApiError(error, 404)) return;
      if (HOPELESS.includes(code)) throw error;
      problems.push(describeError(error));
    }
  });
  return problems;
}

async function* objectsOf(client: KubeClient, kind: SourceKind) {
  const { name } = kind;
  if (name === undefined) {
    for await (const page of pagesOf(client, kind, { ...kind, limit: 500 })) yield* page.items;
    return;
  }
  const found = await client.get({ ...kind, name });
  if (found !== undefined) yield found;
}

// Selection of a cluster in a folder.

export const clusterFlag = text({
  value: 'NAME',
  help: 'which of several clusters: NAMESPACE/NAME of a HostedCluster, management, or a folder',
});

/** Flags that select the source of objects. */
export const LOOK_FLAGS = { from: fromFlag, cluster: clusterFlag, ...CLUSTER_FLAGS };

export type LookValues = Partial<ValuesOf<typeof LOOK_FLAGS>>;

/** Returns the cluster `name`, or the only one. @throws UsageError that lists the clusters */
export function chooseCluster<Cluster extends { readonly name: string }>(
  clusters: readonly Cluster[],
  name: string | undefined,
): Cluster {
  const isOnly = name === undefined && clusters.length === 1;
  const found = isOnly ? clusters[0] : clusters.find((cluster) => cluster.name === name);
  if (found !== undefined) return found;
  const names = clusters.map((cluster) => cluster.name).join(', ');
  throw new UsageError(
    name === undefined
      ? `Cannot tell which cluster is meant: ${clusters.length} are given; choose one with --cluster: ${names}`
      : `Cannot find cluster "${name}": must be one of ${names}`,
  );
}

/** Rejects --cluster without --from, because a kubeconfig selects one cluster. @throws UsageError */
export function needFolderForCluster(flags: LookValues): void {
  if (flags.cluster !== undefined && flags.from === undefined)
    throw new UsageError('--cluster chooses among the clusters of --from: name the folder too');
}

/** Numbers of ready and desired pods of a workload, and the generation observed by its controller. */
export function readinessOf({ kind, spec, status }: KubeObject) {
  const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
  const { numberReady, desiredNumberScheduled, readyReplicas, observedGeneration } = recordOf(status);
  const observed = number(observedGeneration);
  if (kind === 'DaemonSet')
    return { ready: number(numberReady), desired: number(desiredNumberScheduled), observed };
  return { ready: number(readyReplicas), desired: number(recordOf(spec)['replicas'] ?? 1), observed };
}
