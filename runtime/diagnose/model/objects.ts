/**
 * The cluster of a kubeconfig, as a command that only looks reads it: what could not be read is said, and the rest is there.
 */

import { readFile } from 'node:fs/promises';
import type { CommandIo } from '../../cli/command.ts';
import { CLUSTER_FLAGS, fromFlag, text, type ValuesOf } from '../../cli/flags.ts';
import { describeError, PullwrightError, UsageError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { inParallel } from '../../core/parallel.ts';
import { recordOf, recordsIn, textOf } from '../../core/record.ts';
import { VERSION } from '../../core/version.ts';
import { ObjectStore } from '../../engine/store.ts';
import { isApiError } from '../../kube/api-error.ts';
import type { KubeClient, Selector } from '../../kube/client.ts';
import { HttpKubeClient } from '../../kube/http-client.ts';
import { pagesOf } from '../../kube/informer.ts';
import { type ClusterChoice, contextNamespace, loadConnection } from '../../kube/kubeconfig.ts';
import type { Collection } from '../../kube/resources.ts';

/** A kind to look at. */
export interface SourceKind extends Collection, Omit<Selector, 'metadataOnly'> {
  readonly name?: string;
}

/** A condition of an object; in a folder anything can stand there. */
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

/** What a Node says of the programs that run on it: `cri-o://1.35.1`, `v1.35.0`; empty where it does not. */
export function nodeInfoOf(node: KubeObject | undefined) {
  const { containerRuntimeVersion, kubeletVersion } = recordOf(recordOf(node?.status)['nodeInfo']);
  return { runtime: textOf(containerRuntimeVersion), kubelet: textOf(kubeletVersion) };
}

/** The pod template of an object; undefined for a pod and for what has none. */
export function podTemplateIn({ spec }: KubeObject): Readonly<Record<string, unknown>> | undefined {
  const { template, jobTemplate } = recordOf(spec);
  const found = recordOf(template ?? recordOf(recordOf(jobTemplate)['spec'])['template']);
  return found['spec'] === undefined ? undefined : found;
}

/** Labels and annotations of the pod that the object is, or that its template makes. */
export function podMetadataIn(object: KubeObject) {
  const template = podTemplateIn(object);
  const { labels, annotations } = template === undefined ? object.metadata : recordOf(template['metadata']);
  return { labels: stringsIn(labels), annotations: stringsIn(annotations) };
}

function stringsIn(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(recordOf(value)).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
}

/** Which cluster, how long to wait for an answer of it, and as whom: what flags of `flags/common.ts` say. */
export interface ClusterAccess extends ClusterChoice {
  /** Milliseconds; 0 for as long as it takes. @default {10_000} */
  readonly 'request-timeout'?: number;
  readonly as?: string | undefined;
  /** @default {2: enough to report a failure to a person} */
  readonly tries?: number;
}

/** A file that a flag names. @throws UsageError */
export async function readGiven(path: string, what: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => {
    throw new UsageError(`Cannot read "${path}": expected a readable ${what}`);
  });
}

/** The namespace that is meant when none is named: that of the context, as for kubectl; of a folder `default`. */
export async function namespaceOf(
  flags: ClusterChoice & { readonly namespace?: string | undefined; readonly from?: unknown },
  io: CommandIo,
): Promise<string> {
  if (flags.namespace !== undefined) return flags.namespace;
  return flags.from === undefined ? contextNamespace(flags, io.env) : 'default';
}

/** What was found. */
export interface SourceObjects {
  readonly store: ObjectStore;
  /** One sentence for each thing that could not be read. A kind that the cluster does not serve is not a problem. */
  readonly problems: readonly string[];
}

/** What to read next, in view of the objects so far. */
export type NextKinds = (store: ObjectStore) => readonly SourceKind[];

/**
 * Reads what each of `steps` names in turn.
 *
 * @throws UsageError, PullwrightError when no cluster is configured
 */
export async function readObjects(
  access: ClusterAccess,
  steps: readonly NextKinds[],
  io: CommandIo,
): Promise<SourceObjects> {
  return withClient(access, io, async (client) => readSteps(client, steps));
}

/** Kinds of OpenShift: where they are served, they are served so, and elsewhere the answer is 404. */
const NO_DISCOVERY: Readonly<Record<string, { readonly plural: string; readonly namespaced: boolean }>> =
  Object.fromEntries(
    Object.entries({
      'config.openshift.io/v1 ImageDigestMirrorSet': 'imagedigestmirrorsets',
      'config.openshift.io/v1 ImageTagMirrorSet': 'imagetagmirrorsets',
      'config.openshift.io/v1 CRIOCredentialProviderConfig': 'criocredentialproviderconfigs',
      'config.openshift.io/v1alpha1 CRIOCredentialProviderConfig': 'criocredentialproviderconfigs',
      'config.openshift.io/v1 Image': 'images',
      'config.openshift.io/v1 ClusterVersion': 'clusterversions',
      'machineconfiguration.openshift.io/v1 MachineConfig': 'machineconfigs',
      'operator.openshift.io/v1alpha1 ImageContentSourcePolicy': 'imagecontentsourcepolicies',
    }).map(([kind, plural]) => [kind, { plural, namespaced: false }]),
  );

/** The longest time that a timer knows. */
const FOR_EVER_MS = 2 ** 31 - 1;

/** Opens the cluster of a kubeconfig for `work`. */
export async function withClient<T>(
  { kubeconfig, context, as, tries = 2, 'request-timeout': timeoutMs = 10_000 }: ClusterAccess,
  io: CommandIo,
  work: (client: HttpKubeClient) => Promise<T>,
): Promise<T> {
  const connection = await loadConnection(kubeconfig, io.env, context);
  const options = {
    connection,
    userAgent: `pullwright/${VERSION}`,
    timeoutMs: timeoutMs === 0 ? FOR_EVER_MS : timeoutMs,
    tries,
    ...(as === undefined ? {} : { actAs: as }),
  };
  const client = new HttpKubeClient(options, NO_DISCOVERY);
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/** Reads what each of `steps` names, in view of the ones before, and nothing twice. */
export async function readSteps(client: KubeClient, steps: readonly NextKinds[]): Promise<SourceObjects> {
  const store = new ObjectStore();
  const problems: string[] = [];
  const asked = new Set<string>();
  for (const step of steps) {
    const kinds = step(store).filter((kind) => {
      const id = [kind.apiVersion, kind.kind, kind.namespace, kind.name, kind.labelSelector].join(' ');
      return !asked.has(id) && asked.add(id);
    });
    problems.push(...(await readKinds(client, kinds, store)));
  }
  return { store, problems: [...new Set(problems)].sort() };
}

/** Requests at once. */
const CONCURRENCY = 16;

/** The cluster as a whole does not answer or does not know us: nothing else can be read either. */
const HOPELESS: readonly string[] = [
  'Timeout',
  'ConnectionRefused',
  'ConnectionLost',
  'CertificateNotTrusted',
  'HostNotFound',
  'Unauthorized',
];

/**
 * One request a kind (more where a list has pages). Gives what could not be read.
 *
 * @throws PullwrightError when the cluster does not answer
 */
async function readKinds(
  client: KubeClient,
  kinds: readonly SourceKind[],
  store: ObjectStore,
): Promise<string[]> {
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

// Which of the clusters of a folder is meant.

export const clusterFlag = text({
  value: 'NAME',
  help: 'which of several clusters: NAMESPACE/NAME of a HostedCluster, management, or a folder',
});

/** Where objects are read from. */
export const LOOK_FLAGS = { from: fromFlag, cluster: clusterFlag, ...CLUSTER_FLAGS };

export type LookValues = Partial<ValuesOf<typeof LOOK_FLAGS>>;

/** The one that is named, or the only one. @throws UsageError that names them all */
export function chooseCluster<Cluster extends { readonly name: string }>(
  clusters: readonly Cluster[],
  name: string | undefined,
): Cluster {
  const names = clusters.map((cluster) => cluster.name);
  if (name === undefined) {
    const [only] = clusters;
    if (clusters.length === 1 && only !== undefined) return only;
    throw new UsageError(
      `Cannot tell which cluster is meant: ${names.length} are given, and their nodes go by different mirrors; choose one with --cluster: ${names.join(', ')}`,
    );
  }
  const found = clusters.find((cluster) => cluster.name === name);
  if (found === undefined)
    throw new UsageError(`Cannot find cluster "${name}": must be one of ${names.join(', ')}`);
  return found;
}

/** A kubeconfig is of one cluster. @throws UsageError */
export function needFolderForCluster(flags: LookValues): void {
  if (flags.cluster !== undefined && flags.from === undefined)
    throw new UsageError('--cluster chooses among the clusters of --from: name the folder too');
}

/** Pods of a workload that are ready and desired, and the generation that its controller has observed, as its status says. */
export function readinessOf({ kind, spec, status }: KubeObject) {
  const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
  const { numberReady, desiredNumberScheduled, readyReplicas, observedGeneration } = recordOf(status);
  const observed = number(observedGeneration);
  if (kind === 'DaemonSet')
    return { ready: number(numberReady), desired: number(desiredNumberScheduled), observed };
  return { ready: number(readyReplicas), desired: number(recordOf(spec)['replicas'] ?? 1), observed };
}
