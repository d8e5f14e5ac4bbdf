/**
 * What a pass over a cluster is made of, and the rules that storing and deleting share.
 *
 * A permission is granted without any change of the document of the cluster, so a denial is retried after an hour;
 * only what a change of the cluster alone can cure waits for one.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type BackOff, exponentialMs } from '../../core/back-off.ts';
import { recordOf, textOf } from '../../core/record.ts';
import { type AdapterStatus, type HyperfleetCluster, map } from '../cluster.ts';
import type { AdapterSettings } from '../options.ts';
import { type OutcomeClass, type OutcomeReason, outcomeClass } from '../outcome.ts';
import { uniquePlaces, wantedPlaces } from '../places.ts';
import { pullSecretHash } from '../pull-secret.ts';
import { type AvailabilityVerdict, type StatusReport, statusReport } from '../status-report.ts';
import type { JobView, NamespaceState, RecordView, SecretView } from './observe.ts';

/** All that is known. */
export interface DesiredState {
  readonly cluster: HyperfleetCluster;
  readonly statuses: readonly AdapterStatus[];
  readonly jobs: readonly JobView[];
  readonly secret: SecretView | undefined;
  /** Where this cluster's pull secret was ever written. */
  readonly record: RecordView | undefined;
  /** Of every namespace that a location names, read with cluster-wide rights. */
  readonly namespaces: Readonly<Record<string, NamespaceState>>;
  readonly settings: AdapterSettings;
  readonly now: Date;
}

/** One thing to do, in order. */
export type Effect =
  /** Before anything is written anywhere. */
  | { readonly do: 'record'; readonly places: readonly string[] }
  /** Binding, temporary Secret, Job, and the Job as owner of the Secret. */
  | {
      readonly do: 'start';
      readonly purpose: 'store' | 'delete';
      readonly job: string;
      readonly attempt: number;
      /** What a Job that deletes goes to. */
      readonly places: readonly string[];
    }
  /** The running Job's Secret is missing, has other content or no owner. */
  | { readonly do: 'repair-secret'; readonly jobUid: string; readonly job: string }
  /** Labels of a current Job were changed: only these are restored, the Job continues. */
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

/** What a pass comes to. */
export interface ClusterOutcome {
  readonly effects: readonly Effect[];
  readonly report: StatusReport;
  /** Only once the report is stored: what the report must remember first. */
  readonly afterReport: readonly Effect[];
  readonly requeueAfterMs?: number;
  /** One word for the log and the metric. */
  readonly phase:
    | 'waiting'
    | 'invalid'
    | 'started'
    | 'running'
    | 'stored'
    | 'failed'
    | 'deleting'
    | 'deleted';
}

/** Pauses before a failed Job is made again. */
const RETRY: BackOff = { firstMs: 30_000, maxMs: 900_000 };

/** Sixteen hex digits distinguish secrets without revealing them. */
export function contentHash(cluster: HyperfleetCluster): string {
  return cluster.pullSecret === undefined ? '' : pullSecretHash(cluster.pullSecret).slice(0, 16);
}

/** What the places of a cluster's pull secret are now, in short. */
export function targetHash(cluster: HyperfleetCluster, settings: AdapterSettings): string {
  const text = wantedPlaces(cluster, settings).join('\n');
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

/** Our own report, of whatever generation. */
export function ownStatus({ statuses, settings }: DesiredState): AdapterStatus | undefined {
  return statuses.find((status) => status.adapter === settings.adapterName);
}

/** Every place that is known to have been written to: by the record, by the report, by Jobs that are there. */
export function recordedPlaces(situation: DesiredState): readonly string[] {
  const own = ownStatus(situation);
  return uniquePlaces([
    ...(situation.record?.places ?? []),
    ...placesOfReport(own),
    ...situation.jobs.flatMap((job) => job.places),
  ]);
}

/** Also of a report of the existing adapter. */
function placesOfReport(own: AdapterStatus | undefined): readonly string[] {
  const { places, gcpProject, secretName } = own?.data ?? {};
  if (Array.isArray(places)) return places.filter((one) => typeof one === 'string');
  return [`projects/${textOf(gcpProject)}/secrets/${textOf(secretName)}`];
}

/** The temporary Secret goes. */
export function secretRemoval({ secret }: DesiredState): readonly Effect[] {
  return secret === undefined ? [] : [{ do: 'remove-secret', uid: secret.uid }];
}

/** Removes a Job; one that runs is waited for, since its pods could still write. */
export function removal(job: JobView): Effect {
  return { do: 'remove-job', job: job.name, uid: job.uid, waitForPods: job.phase === 'running' };
}

/** An attempt to store or to delete. */
export interface Attempt {
  readonly number: number;
  readonly failed: boolean;
  readonly reason: string;
  readonly message: string;
  readonly kind: OutcomeClass;
  /** The request that it answered. */
  readonly verifyRequest: string;
  /** Since it ended. */
  readonly ageMs: number;
}

/** What a Job failed with: its own words if it left a result, else those of the Job controller. */
export function failedAttempt(job: JobView, now: Date): Attempt {
  const { name, attempt: number, verifyRequest, finishedAt, exitCode } = job;
  const ageMs = finishedAt === undefined ? 0 : now.getTime() - Date.parse(finishedAt);
  const ended = { number, failed: true, verifyRequest, ageMs };
  const told = job.result?.status === 'failure' ? job.result : undefined;
  if (told === undefined && job.phase === 'succeeded') {
    const message = `Job "${name}" ended with exit code 0 and no result: whether the pull secret is stored is unknown until the next attempt`;
    return { ...ended, reason: 'ResultUnknown', message, kind: 'retry' };
  }
  const reason = told?.reason ?? 'JobFailed';
  const code = exitCode === undefined ? '' : `, exit code ${exitCode}`;
  // Its image did not start, it ran out of time or memory.
  const without = `Job "${name}" failed without a result${code}: ${job.cause ?? 'no cause given'}. Look at its pods with "kubectl describe"`;
  return { ...ended, reason, message: told?.message ?? without, kind: outcomeClass(reason, exitCode) };
}

/** What is left of the pause after an attempt; zero or less: over; undefined: only a change of the cluster helps. */
export function pauseLeftMs(
  { kind, number, ageMs }: Attempt,
  { deniedRetrySeconds }: Pick<AdapterSettings, 'deniedRetrySeconds'>,
): number | undefined {
  if (kind === 'terminal' || (kind === 'denied' && deniedRetrySeconds === 0)) return undefined;
  const pause = kind === 'denied' ? deniedRetrySeconds * 1000 : exponentialMs(RETRY, number - 1);
  return pause - ageMs;
}

// What our own report remembers: what is stored, and how the last attempt ended. It is kept from report to report, whatever these
// say otherwise, and across generations: labels of a cluster may change without anything changing for its pull secret.

const said = z.string().catch('');

/** What a Job stored, and proved by reading it back. */
const storedState = z.object({
  content: said,
  target: said,
  message: said,
  /** When it was last proved. */
  verifiedTime: said,
  /** The request that was answered by that. */
  verifyRequest: said,
  /** What the Job said of it. */
  details: map,
});

export type StoredState = Readonly<z.output<typeof storedState>>;

/** Whatever was stored last, for this cluster's content and places or for others. */
export function storedOf(situation: DesiredState): StoredState | undefined {
  return storedState.safeParse(ownStatus(situation)?.data['stored']).data;
}

/** What is stored, if it is the desired content. */
export function currentStored(situation: DesiredState): StoredState | undefined {
  const stored = storedOf(situation);
  const { cluster, settings } = situation;
  const isCurrent =
    stored?.content === contentHash(cluster) && stored.target === targetHash(cluster, settings);
  return isCurrent && stored.content !== '' ? stored : undefined;
}

/** The last attempt at this content and these places; undefined: there was none. */
export function attemptOf(situation: DesiredState): Attempt | undefined {
  const own = ownStatus(situation);
  if (own === undefined || !speaksOfThis(own, situation)) return undefined;
  const { failed, failure } = own.data;
  const { reason, message, verifyRequest } = recordOf(failure);
  const finished = textOf(own.metadata['completed_time'] ?? own.last_report_time);
  return {
    number: Number(own.metadata['attempt']) || 0,
    failed: failed === true,
    reason: textOf(reason),
    message: textOf(message),
    kind: outcomeClass(textOf(reason), undefined),
    verifyRequest: textOf(verifyRequest),
    ageMs: situation.now.getTime() - (Date.parse(finished) || 0),
  };
}

/** A failure counts only for its generation: a change of the cluster triggers a retry. */
function speaksOfThis(own: AdapterStatus, { cluster, settings }: DesiredState): boolean {
  const { content, target } = own.data;
  return (
    own.observed_generation === cluster.generation &&
    content === contentHash(cluster) &&
    target === targetHash(cluster, settings)
  );
}

// How reports are made: what is stored, what was tried, where.

/** What differs between passes. */
export interface Reported {
  readonly available: AvailabilityVerdict;
  readonly applied: AvailabilityVerdict;
  readonly health?: AvailabilityVerdict;
  readonly finalized?: AvailabilityVerdict;
  readonly stored?: StoredState | undefined;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata?: StatusReport['metadata'];
  /** @default {the temporary Secret goes} */
  readonly effects?: readonly Effect[];
  readonly afterReport?: readonly Effect[];
  /** @default {those that are recorded} */
  readonly places?: readonly string[];
  readonly requeueAfterMs?: number | undefined;
}

export function outcomeOf(
  situation: DesiredState,
  phase: ClusterOutcome['phase'],
  { stored, data, metadata = {}, ...next }: Reported,
): ClusterOutcome {
  const { cluster, settings } = situation;
  const {
    effects = secretRemoval(situation),
    afterReport = [],
    requeueAfterMs = Number.POSITIVE_INFINITY,
  } = next;
  const { places = recordedPlaces(situation) } = next;
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

/** `Available` speaks of what is stored, whatever is being done. */
export function availability(
  stored: StoredState | undefined,
  otherwise: AvailabilityVerdict,
): AvailabilityVerdict {
  return stored === undefined ? otherwise : [true, 'SecretAvailable', stored.message];
}

/** The memory of an attempt that failed. */
export function failureData(
  situation: DesiredState,
  { reason, message, verifyRequest }: Attempt,
): Readonly<Record<string, unknown>> {
  return { ...work(situation), failed: true, failure: { reason, message, verifyRequest } };
}

/** What the report is about. */
export function work({ cluster, settings }: DesiredState): Readonly<Record<string, unknown>> {
  return {
    content: contentHash(cluster),
    target: targetHash(cluster, settings),
    gcpProject: cluster.projectId ?? '',
  };
}

/** Reasons by which a Job has seen that what is stored is not as it should be. The others: that it could not look. */
const CONTRADICTS: readonly OutcomeReason[] = [
  'PayloadCorrupted',
  'ManagementNamespaceMissing',
  'SupersededByNewer',
];

/** A failure to look at what is stored does not take it away. */
export function failureVerdicts(
  situation: DesiredState,
  reason: string,
  message: string,
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

/** What is reported of the Job, or was when it was there. */
export function jobMetadata(
  situation: DesiredState,
  job: JobView | undefined,
): NonNullable<StatusReport['metadata']> {
  if (job === undefined)
    return (ownStatus(situation)?.metadata ?? {}) as NonNullable<StatusReport['metadata']>;
  const { name, attempt } = job;
  return { job_name: name, job_namespace: situation.settings.namespace, attempt, ...times(job) };
}

export function times(job: JobView | undefined): Readonly<Record<string, string>> {
  const started = job?.startedAt;
  const completed = job?.finishedAt;
  const seconds = (Date.parse(completed ?? '') - Date.parse(started ?? '')) / 1000;
  return {
    ...(started === undefined ? {} : { started_time: started }),
    ...(completed === undefined ? {} : { completed_time: completed }),
    ...(Number.isFinite(seconds) ? { duration: `${seconds}s` } : {}),
  };
}
