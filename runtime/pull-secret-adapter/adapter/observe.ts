/** Views of Jobs, Pods and Secrets with the fields that the reconciler needs. */

import { z } from 'zod';
import { type Condition, conditionsIn } from '../../core/kubernetes/conditions.ts';
import { type KubeObject, templateContainers } from '../../core/kubernetes/object.ts';
import type { EnvVar } from '../../core/kubernetes/objects.ts';
import { jsonOf, recordsIn, textOf, valueAt } from '../../core/record.ts';
import { mapOf } from '../cluster.ts';
import {
  ATTEMPT_ANNOTATION,
  CLUSTER_LABEL,
  GENERATION_ANNOTATION,
  HASH_ANNOTATION,
  PURPOSE_LABEL,
  REVOKE_ANNOTATION,
  TARGET_ANNOTATION,
  VERIFY_ANNOTATION,
} from '../names.ts';
import { JOB_CONTAINER } from '../objects.ts';
import { type JobResult, NOT_THERE } from '../outcome.ts';
import { readPlace, uniquePlaces } from '../places.ts';

/** `terminating`: being deleted, so that no objects can be created in it. */
export type NamespaceState = 'active' | 'terminating' | 'gone';

export type Purpose = 'store' | 'delete';

const receipt = mapOf(z.string().transform((became) => became.slice(0, 200))).transform((told) =>
  Object.fromEntries(Object.entries(told).filter(([place]) => readPlace(place) !== undefined)),
);

/** Outcomes by location. */
export type Receipt = Readonly<Record<string, string>>;

/** Invalid locations are skipped. */
export function readReceipt(value: unknown): Receipt {
  return receipt.parse(value);
}

const jobResult = z.object({
  status: z.enum(['success', 'failure']),
  reason: z.string().transform((reason) => reason.slice(0, 128)),
  message: z
    .string()
    .catch('')
    .transform((message) => message.slice(0, 1024)),
  details: mapOf(z.union([z.string(), z.number(), z.boolean()])),
  receipt: receipt.exactOptional(),
});

/** Parses a result; undefined if invalid. */
export function readJobResult(text = ''): JobResult | undefined {
  return jobResult.safeParse(jsonOf(text)).data;
}

/** The view of a Job, with the last termination of its own container. */
export function viewJob(job: KubeObject, pods: readonly KubeObject[]) {
  const { metadata } = job;
  const uid = metadata.uid ?? '';
  const annotation = (name: string): string => String(metadata.annotations?.[name] ?? '');
  return {
    name: metadata.name,
    uid,
    purpose: jobIdentity(job).purpose,
    labels: metadata.labels ?? {},
    generation: Number(annotation(GENERATION_ANNOTATION)) || 0,
    hash: annotation(HASH_ANNOTATION),
    /** Hash of the locations that it writes to. */
    target: annotation(TARGET_ANNOTATION),
    /** Locations that it writes to or deletes. */
    places: placesOfJob(job),
    /** The request that it was created for; empty if none. */
    verifyRequest: annotation(VERIFY_ANNOTATION),
    attempt: Number(annotation(ATTEMPT_ANNOTATION)) || 1,
    removing: metadata.deletionTimestamp !== undefined,
    ...progressOf(job),
    ...endOf(endedContainers(pods, uid)),
  };
}

/** One Job of a cluster. */
export type JobView = Readonly<ReturnType<typeof viewJob>>;

/** The environment from the pod template, which is immutable. */
function templateEnv(job: KubeObject): (name: string) => string | undefined {
  const env = templateContainers(job).flatMap((container) => (container['env'] ?? []) as readonly EnvVar[]);
  return (name) => env.find((one) => one.name === name)?.value;
}

/** The locations of a Job, by its pod template. */
function placesOfJob(job: KubeObject): readonly string[] {
  const value = templateEnv(job);
  const of = (name: string): string => value(name) ?? '';
  const location = of('SECRET_LOCATION');
  return uniquePlaces([
    ...of('PLACES').split(' '),
    `projects/${of('GCP_PROJECT_ID')}${location === '' ? '' : `/locations/${location}`}/secrets/${of('SECRET_NAME')}`,
    `namespaces/${of('MANAGEMENT_NAMESPACE')}/secrets/${of('MANAGEMENT_SECRET_NAME')}`,
  ]);
}

/** Cluster and purpose of a Job, by its pod template, or by its labels if the template has none. */
export function jobIdentity(job: KubeObject): { readonly clusterId: string; readonly purpose: Purpose } {
  const value = templateEnv(job);
  const { metadata } = job;
  const { [CLUSTER_LABEL]: id = '', [PURPOSE_LABEL]: label } = metadata.labels ?? {};
  return {
    clusterId: value('CLUSTER_ID') ?? id,
    purpose: (value('JOB_MODE') ?? label) === 'delete' ? 'delete' : 'store',
  };
}

function progressOf(job: KubeObject) {
  const find = (...types: readonly string[]): Condition | undefined =>
    conditionsIn(job).find((one) => types.includes(one.type) && one.status === 'True');
  const timeOf = (field: string): string | undefined => textOf(valueAt(job.status, field)) || undefined;
  const complete = find('Complete', 'SuccessCriteriaMet');
  const failed = find('Failed', 'FailureTarget');
  return {
    phase: complete !== undefined ? 'succeeded' : failed !== undefined ? 'failed' : ('running' as const),
    startedAt: timeOf('startTime'),
    finishedAt: timeOf('completionTime') ?? (complete ?? failed)?.lastTransitionTime,
    /** Reason and message of the Job controller for a failure. */
    cause: failed && [failed.reason, failed.message].filter(Boolean).join(': '),
  };
}

/** @param ended newest first */
function endOf(ended: readonly EndedContainer[]) {
  const results = ended.map(({ message }) => readJobResult(message));
  const [result] = results;
  const receipt: Record<string, string> = {};
  // A secret that an earlier pod removed is missing for the next one, but counts as removed.
  for (const one of results.toReversed())
    for (const [place, became] of Object.entries(one?.receipt ?? {}))
      if (became !== NOT_THERE || receipt[place] === undefined) receipt[place] = became;
  return {
    exitCode: ended[0]?.exitCode,
    result: result?.receipt === undefined ? result : { ...result, receipt },
  };
}

/** The view of a cluster's record. */
export function viewRecord(record: KubeObject) {
  const asked = (name: string): string => String(record.metadata.annotations?.[name] ?? '').slice(0, 128);
  return {
    uid: record.metadata.uid ?? '',
    resourceVersion: record.metadata.resourceVersion ?? '',
    places: uniquePlaces(textOf(valueAt(record, 'data.places')).split('\n')),
    /** Value that requests a check of the stored secrets; empty: no request. A revocation request triggers one too. */
    verifyRequest: [asked(VERIFY_ANNOTATION), asked(REVOKE_ANNOTATION)].filter(Boolean).join(' revoke: '),
    /** Value that requests the revocation of older versions; empty: no request. */
    revokeRequest: asked(REVOKE_ANNOTATION),
  };
}

export type RecordView = Readonly<ReturnType<typeof viewRecord>>;

/** The view of the temporary Secret, by its metadata. */
export function viewSecret(secret: KubeObject) {
  return {
    uid: secret.metadata.uid ?? '',
    resourceVersion: secret.metadata.resourceVersion ?? '',
    generation: Number(secret.metadata.annotations?.[GENERATION_ANNOTATION] ?? 0) || 0,
    hash: String(secret.metadata.annotations?.[HASH_ANNOTATION] ?? ''),
    ownerUids: (secret.metadata.ownerReferences ?? []).map((owner) => owner.uid),
  };
}

export type SecretView = Readonly<ReturnType<typeof viewSecret>>;

interface EndedContainer {
  readonly exitCode?: number;
  readonly message?: string;
  readonly finishedAt?: string;
}

/**
 * Terminations of the Job's container, latest first. Pods are matched by owner UID, because an earlier Job may have had the same
 * name. Other containers, such as sidecars of the platform, are ignored.
 */
function endedContainers(pods: readonly KubeObject[], jobUid: string): readonly EndedContainer[] {
  return pods
    .filter((pod) => pod.metadata.ownerReferences?.some((owner) => owner.uid === jobUid))
    .flatMap(({ status }) => recordsIn(valueAt(status, 'containerStatuses')))
    .filter(({ name }) => name === JOB_CONTAINER)
    .flatMap(({ state }) => (valueAt(state, 'terminated') as EndedContainer | undefined) ?? [])
    .sort((a, b) => ((a.finishedAt ?? '') < (b.finishedAt ?? '') ? 1 : -1));
}
