/** Pods and what holds a pod template: which images they run, and which Secrets they list. */

import type { ObjectStore } from '../controller/store.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { recordOf } from '../rules/record.ts';

/** Whose pull is explained. */
export interface PodPuller {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** A Pod, or an object with a pod template. */
  readonly pod?: { readonly kind: string; readonly name: string };
  readonly node?: string;
}

/** Kinds that hold a pod template, by the names that kubectl knows. */
export const WORKLOADS: Readonly<Record<string, { readonly apiVersion: string; readonly kind: string }>> = {
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
export function parsePodName(text: string): PodPuller['pod'] | undefined {
  const [first = '', second] = text.split('/', 2);
  if (second === undefined) return { kind: 'Pod', name: first };
  const kind = first.toLowerCase();
  const found = Object.hasOwn(WORKLOADS, kind) ? WORKLOADS[kind] : undefined;
  return found === undefined ? undefined : { kind: found.kind, name: second };
}

/** Whether an argument that could be an image means a workload: `deploy/api` rather than `docker.io/deploy/api`. */
export function isPodName(text: string): boolean {
  const [, kind = ''] = /^([A-Za-z]+)\/[^/:@]+$/.exec(text) ?? [];
  return Object.hasOwn(WORKLOADS, kind.toLowerCase());
}

/** As it was written: nothing about it is certain. */
export type PlainPodSpec = Readonly<Record<string, unknown>>;

/** The texts under `field` of a list of objects. */
function texts(list: unknown, field: string): readonly string[] {
  const items: readonly unknown[] = Array.isArray(list) ? list : [];
  return items
    .map((item) => recordOf(item)[field])
    .filter((text) => typeof text === 'string' && text !== '') as string[];
}

/** The object that `puller` names; undefined when it names none, or it is not there. */
export function findPod(store: ObjectStore, { namespace, pod }: PodPuller): KubeObject | undefined {
  const kind = Object.values(WORKLOADS).find((one) => one.kind === pod?.kind);
  return kind === undefined || pod === undefined
    ? undefined
    : store.get({ ...kind, namespace, name: pod.name });
}

/**
 * The pod's part of what `puller` names; undefined when it names nothing.
 *
 * @throws PullwrightError when it is not there
 */
export function podSpecOf(store: ObjectStore, puller: PodPuller): PlainPodSpec | undefined {
  const { namespace, pod } = puller;
  if (pod === undefined) return undefined;
  const found = findPod(store, puller);
  if (found !== undefined) return podSpecIn(found);
  throw new PullwrightError(`Cannot find ${pod.kind} "${namespace}/${pod.name}"`, {
    code: 'PodMissing',
    disposition: 'terminal',
    hint: 'Name its namespace with -n, or another kind as in deploy/web',
  });
}

/** The pod's part of an object: of its template, where it has one. */
export function podSpecIn(object: KubeObject): PlainPodSpec {
  const spec = recordOf(object.spec);
  const job = recordOf(recordOf(spec['jobTemplate'])['spec']);
  const template = recordOf(spec['template'] ?? job['template']);
  return template['spec'] === undefined ? spec : recordOf(template['spec']);
}

/**
 * Images that a kubelet pulls for the pod, each once: of init containers, of image volumes (with the pod's pull secrets like the
 * others, Kubernetes 1.31 and newer), of containers, and of debug containers that were added.
 */
export function imagesOf(spec: PlainPodSpec | undefined): readonly string[] {
  const volumes = Array.isArray(spec?.['volumes']) ? spec['volumes'] : [];
  const images = [
    ...texts(spec?.['initContainers'], 'image'),
    ...texts(
      volumes.map((volume) => recordOf(recordOf(volume)['image'])),
      'reference',
    ),
    ...texts(spec?.['containers'], 'image'),
    ...texts(spec?.['ephemeralContainers'], 'image'),
  ];
  return [...new Set(images)];
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
  { namespace, serviceAccount, pod }: PodPuller,
  spec: PlainPodSpec | undefined,
): readonly { readonly name: string; readonly listedBy: string }[] {
  const object = findPod(store, { namespace, serviceAccount, ...(pod === undefined ? {} : { pod }) });
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

/** Labels and annotations of the pod that the object is, or that its template makes. */
export function podMetadataIn(object: KubeObject): Pick<KubeObject['metadata'], 'labels' | 'annotations'> {
  const spec = recordOf(object.spec);
  const job = recordOf(recordOf(spec['jobTemplate'])['spec']);
  const template = recordOf(spec['template'] ?? job['template']);
  if (template['spec'] === undefined) return object.metadata;
  const { labels, annotations } = recordOf(template['metadata']);
  return { labels: stringsIn(labels), annotations: stringsIn(annotations) };
}

function stringsIn(value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(recordOf(value)).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string',
    ),
  );
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
