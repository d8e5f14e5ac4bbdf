/**
 * Types of a pass over a cluster, and rules for both storing and deleting.
 *
 * A denied permission may be granted without a change of the cluster document, so a denial is retried after an hour. A terminal
 * failure waits for a change of the cluster.
 */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { type BackOff, exponentialMs } from '../../core/back-off.ts';
import { defined, recordOf, textOf } from '../../core/record.ts';
import { type AdapterStatus, type HyperfleetCluster, map } from '../cluster.ts';
import type { AdapterSettings } from '../options.ts';
import { type OutcomeReason, outcomeClass } from '../outcome.ts';
import { uniquePlaces, wantedPlaces } from '../places.ts';
import { pullSecretHash } from '../pull-secret.ts';
import {
  type AvailabilityVerdict,
  type ReportMetadata,
  statusReport,
  type Verdicts,
} from '../status-report.ts';
import type { JobView, NamespaceState, RecordView, SecretView } from './observe.ts';

/** The input of a pass. */
export interface DesiredState {
  readonly cluster: HyperfleetCluster;
  readonly statuses: readonly AdapterStatus[];
  readonly jobs: readonly JobView[];
  readonly secret: SecretView | undefined;
  /** Record of all locations that this cluster's pull secret was written to. */
  readonly record: RecordView | undefined;
  /** State of every namespace in the locations, read with cluster-wide RBAC. */
  readonly namespaces: Readonly<Record<string, NamespaceState>>;
  readonly settings: AdapterSettings;
  readonly now: Date;
}

/** One change; effects are applied in order. */
export type Effect =
  /** Records locations, before anything is written to them. */
  | { readonly do: 'record'; readonly places: readonly string[] }
  /** Creates RoleBinding, temporary Secret and Job, and makes the Job the owner of the Secret. */
  | {
      readonly do: 'start';
      readonly purpose: 'store' | 'delete';
      readonly job: string;
      readonly attempt: number;
      /** Locations for a Job that deletes. */
      readonly places: readonly string[];
    }
  /** Restores the running Job's Secret, which is missing, has other content or no owner. */
  | { readonly do: 'repair-secret'; readonly jobUid: string; readonly job: string }
  /** Restores changed labels of a current Job, which continues. */
  | {
      readonly do: 'repair-labels';
      readonly job: string;
      readonly jobUid: string;
      readonly labels: Readonly<Record<string, string>>;
    }
  | { readonly do: 'remove-secret'; readonly uid: string }
  | { readonly do: 'remove-job'; readonly job: string; readonly uid: string; readonly waitForPods: boolean }
  | { readonly do: 'remove-binding'; readonly namespace: string }
  | { readonly do: 'remove-record'; readonly uid: string };

/** For logs and metrics. */
type Phase = 'waiting' | 'invalid' | 'started' | 'running' | 'stored' | 'failed' | 'deleting' | 'deleted';

/** The result of a pass. */
export type ClusterOutcome = Readonly<ReturnType<typeof outcomeOf>>;

/** Back-off before a failed Job is created again. */
const RETRY: BackOff = { firstMs: 30_000, maxMs: 900_000 };

/** Sixteen hex digits distinguish secrets without revealing them. */
export function contentHash(cluster: HyperfleetCluster): string {
  return cluster.pullSecret === undefined ? '' : pullSecretHash(cluster.pullSecret).slice(0, 16);
}

/** Hash of the desired locations of a cluster's pull secret. */
export function targetHash(cluster: HyperfleetCluster, settings: AdapterSettings): string {
  const text = wantedPlaces(cluster, settings).join('\n');
  return hash('sha256', text).slice(0, 16);
}

/** Whether content and locations are the desired ones. */
export function isDesired(
  { cluster, settings }: DesiredState,
  { content, target }: { readonly content?: unknown; readonly target?: unknown },
): boolean {
  return content === contentHash(cluster) && target === targetHash(cluster, settings);
}

/** Our own report, of any generation. */
export function ownStatus({ statuses, settings }: DesiredState): AdapterStatus | undefined {
  return statuses.find((status) => status.adapter === settings.adapterName);
}

/** All locations in the record, the report and existing Jobs, which may have been written to. */
export function recordedPlaces(situation: DesiredState): readonly string[] {
  const own = ownStatus(situation);
  return uniquePlaces([
    ...(situation.record?.places ?? []),
    ...placesOfReport(own),
    ...situation.jobs.flatMap((job) => job.places),
  ]);
}

/** Locations in a report, also one of the existing adapter. */
function placesOfReport(own: AdapterStatus | undefined): readonly string[] {
  const { places, gcpProject, secretName } = own?.data ?? {};
  if (Array.isArray(places)) return places.filter((one) => typeof one === 'string');
  return [`projects/${textOf(gcpProject)}/secrets/${textOf(secretName)}`];
}

/** Removes the temporary Secret, if any. */
export function secretRemoval({ secret }: DesiredState): readonly Effect[] {
  return secret === undefined ? [] : [{ do: 'remove-secret', uid: secret.uid }];
}

/** Removes a Job. If it is running, it stays until its pods are gone, because they could still write. */
export function removal(job: JobView): Effect {
  return { do: 'remove-job', job: job.name, uid: job.uid, waitForPods: job.phase === 'running' };
}

/** An attempt to store or to delete. */
export type Attempt = Readonly<NonNullable<ReturnType<typeof attemptOf>>>;

/** The failed attempt of a Job, from its result, or from the Job controller if it has none. */
export function failedAttempt(job: JobView, now: Date): Attempt {
  const { name, attempt: number, verifyRequest, finishedAt, exitCode } = job;
  const ageMs = finishedAt === undefined ? 0 : now.getTime() - Date.parse(finishedAt);
  const ended = { number, failed: true, verifyRequest, ageMs };
  const told = job.result?.status === 'failure' ? job.result : undefined;
  if (told === undefined && job.phase === 'succeeded') {
    const message = `Job "${name}" finished with exit code 0 but without a result: the next attempt shows whether the pull secret is stored`;
    return { ...ended, reason: 'ResultUnknown', message, kind: 'retry' };
  }
  const reason = told?.reason ?? 'JobFailed';
  const code = exitCode === undefined ? '' : `, exit code ${exitCode}`;
  // For a Job without a result, such as after a failed image pull, a timeout or an OOM kill.
  const without = `Job "${name}" failed without a result${code}: ${job.cause ?? 'no cause reported'}. Run "kubectl describe" on its pods`;
  return { ...ended, reason, message: told?.message ?? without, kind: outcomeClass(reason, exitCode) };
}

/** Remaining pause after an attempt, elapsed if not positive; undefined if only a change of the cluster triggers a retry. */
export function pauseLeftMs(
  { kind, number, ageMs }: Attempt,
  { deniedRetrySeconds }: Pick<AdapterSettings, 'deniedRetrySeconds'>,
): number | undefined {
  if (kind === 'terminal' || (kind === 'denied' && deniedRetrySeconds === 0)) return undefined;
  const pause = kind === 'denied' ? deniedRetrySeconds * 1000 : exponentialMs(RETRY, number - 1);
  return pause - ageMs;
}

// State in our own report: what is stored, and the result of the last attempt. Every report carries it over, also to a new
// generation, because a change of the cluster may not concern the pull secret.

const said = z.string().catch('');

/** What a Job stored and verified by reading it back. */
const storedState = z.object({
  content: said,
  target: said,
  message: said,
  /** Time of the last verification. */
  verifiedTime: said,
  /** The request that this verification handled. */
  verifyRequest: said,
  /** Details of the Job's result. */
  details: map,
});

export type StoredState = Readonly<z.output<typeof storedState>>;

/** The last stored state, which may have other content or locations than desired. */
export function storedOf(situation: DesiredState): StoredState | undefined {
  return storedState.safeParse(ownStatus(situation)?.data['stored']).data;
}

/** The stored state, if it has the desired content and locations. */
export function currentStored(situation: DesiredState): StoredState | undefined {
  const stored = storedOf(situation);
  return stored !== undefined && stored.content !== '' && isDesired(situation, stored) ? stored : undefined;
}

/**
 * The last attempt for the present generation, content and locations; undefined if there was none. A failure counts only for its
 * generation: a change of the cluster triggers a retry.
 */
export function attemptOf(situation: DesiredState) {
  const own = ownStatus(situation);
  if (own?.observed_generation !== situation.cluster.generation || !isDesired(situation, own.data))
    return undefined;
  const { failed, failure } = own.data;
  const { reason, message, verifyRequest } = recordOf(failure);
  const finished = textOf(own.metadata['completed_time'] ?? own.last_report_time);
  return {
    number: Number(own.metadata['attempt']) || 0,
    failed: failed === true,
    reason: textOf(reason),
    message: textOf(message),
    kind: outcomeClass(textOf(reason), undefined),
    /** The request that it handled. */
    verifyRequest: textOf(verifyRequest),
    /** Time since it finished. */
    ageMs: situation.now.getTime() - (Date.parse(finished) || 0),
  };
}

// Reports.

/** The input of {@link outcomeOf}. */
export interface Reported extends Verdicts {
  readonly stored?: StoredState | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata?: ReportMetadata;
  /** @default {removal of the temporary Secret} */
  readonly effects?: readonly Effect[];
  /** Applied only after the report is stored, because they remove the source of its data. */
  readonly afterReport?: readonly Effect[];
  /** @default {the recorded locations} */
  readonly places?: readonly string[];
  readonly requeueAfterMs?: number | undefined;
}

export function outcomeOf(
  situation: DesiredState,
  phase: Phase,
  { stored, data, metadata = {}, ...next }: Reported,
) {
  const { cluster, settings } = situation;
  const {
    effects = secretRemoval(situation),
    afterReport = [],
    requeueAfterMs = Number.POSITIVE_INFINITY,
    places = recordedPlaces(situation),
  } = next;
  const report = statusReport(
    settings.adapterName,
    cluster.generation,
    next,
    {
      ...(stored === undefined ? {} : { ...stored.details, stored }),
      ...data,
      ...(places.length === 0 ? {} : { places }),
    },
    metadata,
  );
  return {
    phase,
    effects,
    afterReport,
    report,
    ...(Number.isFinite(requeueAfterMs) ? { requeueAfterMs } : {}),
  };
}

/** The condition `Available`: true as long as the desired content is stored, whatever is in progress. */
export function availability(
  stored: StoredState | undefined,
  otherwise: AvailabilityVerdict,
): AvailabilityVerdict {
  return stored === undefined ? otherwise : [true, 'SecretAvailable', stored.message];
}

/** Report data of a failed attempt. */
export function failureData(
  situation: DesiredState,
  { reason, message, verifyRequest }: Attempt,
): Readonly<Record<string, unknown>> {
  return { ...work(situation), failed: true, failure: { reason, message, verifyRequest } };
}

/** Report data that identifies content and locations. */
export function work({ cluster, settings }: DesiredState): Readonly<Record<string, unknown>> {
  return {
    content: contentHash(cluster),
    target: targetHash(cluster, settings),
    gcpProject: cluster.projectId ?? '',
  };
}

/** Reasons that contradict the stored state. With other reasons, the Job could not check it. */
const CONTRADICTS: readonly OutcomeReason[] = [
  'PayloadCorrupted',
  'ManagementNamespaceMissing',
  'SupersededByNewer',
];

/** Conditions after a failure. A failed check does not make the stored secret unavailable. */
export function failureVerdicts(
  situation: DesiredState,
  { reason, message }: Attempt,
): Pick<Reported, 'available' | 'health' | 'stored'> {
  const kind = outcomeClass(reason, undefined);
  const contradicted = kind === 'terminal' || CONTRADICTS.some((one) => one === reason);
  const stored = contradicted ? undefined : currentStored(situation);
  const verdict: AvailabilityVerdict = [false, reason, message];
  return {
    available: availability(stored, verdict),
    ...(kind === 'retry' || stored !== undefined ? { health: verdict } : {}),
    stored: contradicted ? undefined : storedOf(situation),
  };
}

/** What a report has of a Job. */
export type ReportedJob = Pick<JobView, 'name' | 'attempt'> &
  Partial<Pick<JobView, 'startedAt' | 'finishedAt'>>;

/** Report metadata of the Job; the reported metadata if the Job no longer exists. */
export function jobMetadata(situation: DesiredState, job: ReportedJob | undefined): ReportMetadata {
  if (job === undefined) return (ownStatus(situation)?.metadata ?? {}) as ReportMetadata;
  const { name, attempt, startedAt, finishedAt } = job;
  const seconds = (Date.parse(finishedAt ?? '') - Date.parse(startedAt ?? '')) / 1000;
  const duration = Number.isFinite(seconds) ? `${seconds}s` : undefined;
  return {
    job_name: name,
    job_namespace: situation.settings.namespace,
    attempt,
    ...defined({ started_time: startedAt, completed_time: finishedAt, duration }),
  };
}
