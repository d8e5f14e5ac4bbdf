/** Finds failing pulls in the container statuses and events of a pod. */

import type { KubeObject } from '../../core/kubernetes/object.ts';
import { distinctBy, oncePer, recordOf, recordsIn, textOf } from '../../core/record.ts';
import { maskedUserInfo } from '../../core/text.ts';
import { PROVIDER_FAILED } from '../../credential-provider/platform.ts';
import type { ObjectStore } from '../../engine/store.ts';
import { podMetadataIn, type SourceKind } from './objects.ts';
import { hasEnded, imagesOf, ownNode, type PlainPodSpec, type PodPuller, podSpecIn, rootOf } from './pull.ts';
import { type ContainerWait, pullFailure } from './pull-failure.ts';

/** Field selector for events of a pod. For a template, whose pod names are unknown, selects warnings of all pods. */
export function eventsAbout(pod: PodPuller['pod']): string {
  return pod?.kind === 'Pod' ? `involvedObject.name=${pod.name}` : 'involvedObject.kind=Pod,type=Warning';
}

/** Kinds to read for {@link podsOf}. */
export function podKinds(object: KubeObject): readonly SourceKind[] {
  const labels = object.kind === 'Pod' ? {} : podMetadataIn(object).labels;
  const terms = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  const { namespace = '' } = object.metadata;
  if (terms.length === 0) return [];
  const jobs = object.kind === 'CronJob' ? [{ apiVersion: 'batch/v1', kind: 'Job', namespace }] : [];
  return [{ apiVersion: 'v1', kind: 'Pod', namespace, labelSelector: terms.join(',') }, ...jobs];
}

/** Pods of a workload that use an image of its template; for a pod, the pod itself. */
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

/** The failing pull of a container. */
export type PodFailure = ReturnType<typeof failuresIn>[number];

/** Returns the failing pulls of a pod's containers, one per image. */
export function failuresIn(store: ObjectStore, pod: KubeObject) {
  if (pod.kind !== 'Pod' || runs(pod) || hasEnded(pod)) return [];
  const spec = podSpecIn(pod);
  const events = eventsOf(store, pod).toReversed();
  const found = waitsOf(pod).flatMap((wait) => {
    const failure = pullFailure(wait, events.filter(isAbout(spec, wait)));
    if (failure === undefined) return [];
    return [{ ...failure, container: wait.name, pod: pod.metadata.name, node: ownNode(pod) }];
  });
  return distinctBy(found, ({ image }) => image);
}

/** Matches events of the container, and events without a container unless they name another container's image. */
function isAbout(spec: PlainPodSpec, { name, image }: Container): (event: Said) => boolean {
  const all = containersOf(spec);
  const others = new Set(all.flatMap((one) => (one.image === image ? [] : [one.image])));
  return ({ container, message }) => {
    // An image volume has events of its own, and keeps every container waiting.
    if (all.some((one) => one.name === container)) return container === name;
    const about = /image "([^"\s]{1,512})"/.exec(message)?.[1];
    return about === undefined || !others.has(about);
  };
}

/** Newest event of the node's installer about a failed run of the credential provider for a pod that is not running. */
export function providerFailure(store: ObjectStore, pod: KubeObject): string | undefined {
  if (pod.kind !== 'Pod' || runs(pod)) return undefined;
  return eventsOf(store, pod).find(({ reason }) => reason === PROVIDER_FAILED)?.message;
}

const SPECS = ['initContainers', 'ephemeralContainers', 'containers'];
const STATUSES = ['initContainerStatuses', 'ephemeralContainerStatuses', 'containerStatuses'];

/** A null list counts as empty. */
function allIn(from: Readonly<Record<string, unknown>>, fields: readonly string[]) {
  return fields.flatMap((field) => recordsIn(from[field]));
}

type Container = ReturnType<typeof containersOf>[number];

function containersOf(spec: PlainPodSpec) {
  return allIn(spec, SPECS).map((one) => ({
    name: textOf(one['name']),
    image: maskedUserInfo(textOf(one['image'])),
  }));
}

/** Containers that neither run nor have terminated, with their waiting state; all containers if the pod has no status. */
function waitsOf(pod: KubeObject): readonly (Container & ContainerWait)[] {
  const containers = containersOf(podSpecIn(pod));
  const statuses = allIn(recordOf(pod.status), STATUSES);
  if (statuses.length === 0) return containers;
  return statuses.flatMap((status) => {
    const { running, terminated, waiting } = recordOf(status['state']);
    if (running !== undefined || terminated !== undefined) return [];
    const name = textOf(status['name']);
    const image =
      containers.find((one) => one.name === name)?.image ?? maskedUserInfo(textOf(status['image']));
    const { reason, message } = recordOf(waiting);
    return [{ name, image, reason: textOf(reason), message: maskedUserInfo(textOf(message)) }];
  });
}

/** Reports whether the pod is running, with no container waiting. */
export function runs({ status }: KubeObject): boolean {
  const own = recordOf(status);
  const isWaiting = allIn(own, STATUSES).some(({ state }) => recordOf(state)['waiting'] !== undefined);
  return own['phase'] === 'Running' && !isWaiting;
}

/** Newest first; events of the same time in reverse order of the list. */
function eventsOf(store: ObjectStore, { metadata }: KubeObject): readonly Said[] {
  // The kubelet's events about a static pod have the UID of the file, not of the mirror pod.
  const uids = ['', metadata.uid, metadata.annotations?.['kubernetes.io/config.mirror']];
  return (
    ['v1', 'events.k8s.io/v1']
      .flatMap((apiVersion) => {
        const events = byPod(store.list({ apiVersion, kind: 'Event' }, metadata.namespace));
        return (events.get(metadata.name) ?? []).map(saidBy);
      })
      // An earlier pod, as of a StatefulSet, may have had the same name.
      .filter(({ uid }) => metadata.uid === undefined || uids.includes(uid))
      .toReversed()
      .toSorted((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0))
  );
}

/**
 * Events by pod name. Cached by the namespace's list of events, which is the same object until an event changes: there may be
 * thousands of events and pods.
 */
const byPod = oncePer((events: readonly KubeObject[]) =>
  Map.groupBy(events, (event) => {
    const { kind, name } = recordOf(event['involvedObject'] ?? event['regarding']);
    return kind === 'Pod' ? name : undefined;
  }),
);

type Said = ReturnType<typeof saidBy>;

function saidBy(event: KubeObject) {
  const text = (...fields: readonly string[]): string =>
    fields.map((field) => textOf(event[field])).find((value) => value !== '') ?? '';
  const at = text('lastTimestamp', 'deprecatedLastTimestamp', 'eventTime', 'firstTimestamp');
  const seen = textOf(recordOf(event['series'])['lastObservedTime']);
  const { fieldPath, uid } = recordOf(event['involvedObject'] ?? event['regarding']);
  const container = /^spec\.\w+\{(.+)\}$/.exec(textOf(fieldPath))?.[1];
  return {
    reason: text('reason'),
    message: maskedUserInfo(text('message', 'note')),
    at: seen > at ? seen : at,
    uid: textOf(uid),
    /** Name of the container or image volume; undefined for events about the sandbox. */
    container,
  };
}
