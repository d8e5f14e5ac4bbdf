/** What the kubelet says about the pulls of a pod that does not run. */
import type { ObjectStore } from '../../controller/store.ts';
import { PROVIDER_FAILED } from '../../rules/credential-provider/report-names.ts';
import type { DoctorInput } from '../../rules/diagnose/doctor-types.ts';
import { type PullComplaint, pullComplaint } from '../../rules/diagnose/pull-complaint.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { SourceKind } from '../object-source.ts';
import { imagesOf, type PodPuller, podMetadataIn, podSpecIn } from '../pod-spec.ts';
import { rootOf } from '../root-owner.ts';

interface Said {
  readonly reason: string;
  readonly message: string;
  readonly at: string;
}

/** What to read of events: of a template, those about its pods, whose names it does not have. */
export function eventsAbout(pod: PodPuller['pod']): string {
  return pod?.kind === 'Pod' ? `involvedObject.name=${pod.name}` : 'involvedObject.kind=Pod,type=Warning';
}

/** What to read for {@link podsOf}. */
export function podKinds(object: KubeObject): readonly SourceKind[] {
  const labels = object.kind === 'Pod' ? {} : (podMetadataIn(object).labels ?? {});
  const terms = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  const { namespace = '' } = object.metadata;
  if (terms.length === 0) return [];
  const jobs = object.kind === 'CronJob' ? [{ apiVersion: 'batch/v1', kind: 'Job', namespace }] : [];
  return [{ apiVersion: 'v1', kind: 'Pod', namespace, labelSelector: terms.join(',') }, ...jobs];
}

/** Pods that belong to a template and have an image of it; a pod stands for itself. */
export function podsOf(store: ObjectStore, object: KubeObject): readonly KubeObject[] {
  const { kind, metadata } = object;
  if (kind === 'Pod') return [object];
  const images = new Set(imagesOf(podSpecIn(object)));
  return store.list({ apiVersion: 'v1', kind: 'Pod' }, metadata.namespace).filter((pod) => {
    const root = rootOf(store, pod);
    const isOwn = root.kind === kind && root.name === metadata.name;
    return isOwn && imagesOf(podSpecIn(pod)).some((image) => images.has(image));
  });
}

/** The newest complaint of a pod; none when its containers run. */
export function complaintIn(store: ObjectStore, pod: KubeObject): DoctorInput['complaint'] {
  if (pod.kind !== 'Pod' || runs(pod)) return undefined;
  const said = [...waiting(pod), ...eventsOf(store, pod)].toSorted((a, b) => (a.at < b.at ? 1 : -1));
  for (const one of said) {
    const cause = pullComplaint(one);
    if (cause !== undefined) return withImage(cause, one.message);
  }
  return undefined;
}

/** What the installer of the node says about the provider's runs for a pod that does not run; the newest. */
export function providerFailure(store: ObjectStore, pod: KubeObject): string | undefined {
  if (pod.kind !== 'Pod' || runs(pod)) return undefined;
  return eventsOf(store, pod)
    .filter(({ reason }) => reason === PROVIDER_FAILED)
    .toSorted((a, b) => (a.at < b.at ? 1 : -1))[0]?.message;
}

function withImage(cause: PullComplaint, message: string): DoctorInput['complaint'] {
  const image = /image "([^"\s]{1,512})"/.exec(message)?.[1];
  return { cause, ...(image === undefined ? {} : { image }) };
}

interface ContainerStatus {
  readonly ready?: boolean;
  readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } };
}

/** Lists that are null are none. */
function statusesOf({ status }: KubeObject): readonly ContainerStatus[] {
  const { initContainerStatuses, containerStatuses } = (status ?? {}) as Readonly<Record<string, unknown>>;
  return [initContainerStatuses, containerStatuses]
    .filter((list) => Array.isArray(list))
    .flat()
    .filter((one: unknown) => typeof one === 'object' && one !== null);
}

/** Whether all of a pod's containers are past their pull. */
export function runs(pod: KubeObject): boolean {
  const { phase } = (pod.status ?? {}) as { readonly phase?: string };
  return phase === 'Running' && statusesOf(pod).every(({ state }) => state?.waiting === undefined);
}

/** What a container waits for is newer than any event. */
function waiting(pod: KubeObject): readonly Said[] {
  return statusesOf(pod).flatMap(({ state }) => {
    const { reason = '', message = '' } = state?.waiting ?? {};
    return reason === '' ? [] : [{ reason, message, at: '~' }];
  });
}

function eventsOf(store: ObjectStore, { metadata }: KubeObject): readonly Said[] {
  return ['v1', 'events.k8s.io/v1'].flatMap((apiVersion) => {
    const events = saidOf(store.list({ apiVersion, kind: 'Event' }, metadata.namespace));
    return events.get(metadata.name) ?? [];
  });
}

/** By the events of a namespace, which are one list until something in it changes: there may be thousands, and as many pods. */
const known = new WeakMap<readonly KubeObject[], ReadonlyMap<string, readonly Said[]>>();

/** What events say, by the pods that they are about. */
function saidOf(events: readonly KubeObject[]): ReadonlyMap<string, readonly Said[]> {
  const before = known.get(events);
  if (before !== undefined) return before;
  const byPod = new Map<string, Said[]>();
  for (const event of events) {
    const about = (event['involvedObject'] ?? event['regarding']) as
      | { kind?: string; name?: string }
      | undefined;
    if (about?.kind !== 'Pod' || typeof about.name !== 'string') continue;
    const said = byPod.get(about.name) ?? [];
    byPod.set(about.name, said);
    said.push(saidBy(event));
  }
  known.set(events, byPod);
  return byPod;
}

function saidBy(event: KubeObject): Said {
  const text = (...fields: readonly string[]): string => {
    const found = fields
      .map((field) => event[field])
      .find((value) => typeof value === 'string' && value !== '');
    return typeof found === 'string' ? found : '';
  };
  const at = text('lastTimestamp', 'deprecatedLastTimestamp', 'eventTime', 'firstTimestamp');
  return { reason: text('reason'), message: text('message', 'note'), at };
}
