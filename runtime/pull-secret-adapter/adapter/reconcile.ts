/**
 * A pass: what is known about a cluster, its Jobs and what was reported before, to effects and the report. Pure.
 *
 * Nothing is kept in memory between two passes: an attempt, a failure and a success are read back from the Job or, when it has gone,
 * from the report that the API holds. So any replica can go on where another one was killed. Preconditions gate the start of work;
 * what is stored stays available while they come and go.
 */
import { jobName } from '../names.ts';
import { outcomeClass } from '../outcome.ts';
import { wantedPlaces } from '../places.ts';
import { type Plan, planCluster } from '../plan.ts';
import {
  type Attempt,
  attemptOf,
  availability,
  type ClusterOutcome,
  contentHash,
  currentStored,
  type DesiredState,
  type Effect,
  failureOf,
  failureVerdicts,
  livingReport,
  metadata,
  pauseLeftMs,
  recordedPlaces,
  removal,
  retryPauseMs,
  type StoredState,
  secretRemoval,
  storedOf,
  targetHash,
  times,
  work,
} from './desired-state.ts';
import { labelRepairs } from './effects.ts';
import { failedBefore, gated, standing, storeGate } from './gate.ts';
import type { JobView } from './observe.ts';
import { reconcileDeletion } from './reconcile-deletion.ts';

/** Reconciles one cluster. */
export function reconcile(situation: DesiredState): ClusterOutcome {
  const outcome = reconcileWork(situation);
  return { ...outcome, effects: [...labelRepairs(situation, outcome.effects), ...outcome.effects] };
}

function reconcileWork(situation: DesiredState): ClusterOutcome {
  const { cluster, statuses, settings } = situation;
  const plan = planCluster(cluster, statuses, settings.dependencies);
  if (plan.verdict === 'deleting') return reconcileDeletion(situation);
  const stale = situation.jobs.filter((job) => !isCurrent(situation, job));
  // A Job for other content could write the older secret last: it has to be gone first.
  if (stale.length > 0) {
    const effects = [...stale.filter((job) => !job.removing).map(removal), ...orphan(situation, plan)];
    return inProgress(situation, 1, { effects, requeueAfterMs: 1000 }, plan);
  }
  const job = situation.jobs.find((candidate) => candidate.purpose === 'store');
  if (job === undefined) return withoutJob(situation, plan);
  if (job.removing)
    return inProgress(situation, job.attempt, { effects: [], requeueAfterMs: 1000, job }, plan);
  if (job.phase !== 'running') {
    const stored = job.phase === 'succeeded' ? provedBy(situation, job) : undefined;
    return stored === undefined ? failed(situation, job) : succeeded(situation, job, stored);
  }
  const repair = secretIsRight(situation, job)
    ? []
    : [{ do: 'repair-secret', jobUid: job.uid, job: job.name } as const];
  return inProgress(situation, job.attempt, { effects: repair, job }, plan);
}

/** Whether the Job does what this cluster needs now. One of an earlier version says only for which generation it is. */
function isCurrent({ cluster, settings }: DesiredState, job: JobView): boolean {
  if (job.purpose !== 'store' || job.hash !== contentHash(cluster)) return false;
  // Whoever changes anything of the cluster wants what has failed to be tried again.
  if (job.phase === 'failed' && job.generation !== cluster.generation) return false;
  return job.target === ''
    ? job.generation === cluster.generation
    : job.target === targetHash(cluster, settings);
}

/** The temporary Secret, when no Job of this content reads it. */
function orphan(situation: DesiredState, plan: Plan): readonly Effect[] {
  return plan.verdict === 'ready' ? [] : secretRemoval(situation);
}

function secretIsRight({ cluster, secret }: DesiredState, job: JobView): boolean {
  return secret?.hash === contentHash(cluster) && secret.ownerUids.includes(job.uid);
}

/** The Job has gone, or there was none: what was reported last says which. */
function withoutJob(situation: DesiredState, plan: Plan): ClusterOutcome {
  const stored = currentStored(situation);
  const due = stored === undefined ? 0 : verifyInMs(situation, stored);
  if (stored !== undefined && due > 0) return standing(situation, stored, due);
  const gate = storeGate(situation, plan);
  if (gate !== undefined) return gated(situation, gate);
  const attempt = attemptOf(situation);
  if (attempt?.failed === true) return afterFailure(situation, attempt, plan);
  return start(situation, Math.max(1, attempt?.number ?? 1), plan);
}

function afterFailure(situation: DesiredState, attempt: Attempt, plan: Plan): ClusterOutcome {
  const kind = outcomeClass(attempt.reason, undefined);
  const pause = retryPauseMs(kind, attempt.number, situation.settings);
  const isAsked = isNewRequest(situation, attempt.verifyRequest);
  if (pause === undefined && !isAsked) return failedBefore(situation, attempt);
  const left = (pause ?? 0) - attempt.ageMs;
  if (isAsked || !(left > 0)) return start(situation, attempt.number + 1, plan);
  return { ...failedBefore(situation, attempt), requeueAfterMs: left };
}

/** Whether somebody asks, and has not been answered. */
function isNewRequest({ record }: Pick<DesiredState, 'record'>, answered: string): boolean {
  const request = record?.verifyRequest ?? '';
  return request !== '' && request !== answered;
}

/** When what is stored has to be proved again; zero or less: now. */
function verifyInMs({ settings, record, now }: DesiredState, stored: StoredState): number {
  if (isNewRequest({ record }, stored.verifyRequest)) return 0;
  const provedAt = Date.parse(stored.verifiedTime);
  if (Number.isNaN(provedAt)) return settings.verifyEverySeconds === 0 ? Number.POSITIVE_INFINITY : 0;
  const every = settings.verifyEverySeconds === 0 ? Number.POSITIVE_INFINITY : settings.verifyEverySeconds;
  return Math.min(provedAt + every * 1000, retirementDueAt(stored, provedAt)) - now.getTime();
}

/** A Job that could not retire what was due is not followed by the next at once. */
const BETWEEN_RETIREMENTS_MS = 60_000;

/** When the older version that is still enabled has to go, by the Job's own words. */
function retirementDueAt({ details }: StoredState, provedAt: number): number {
  const { previousUntil } = details;
  const until = typeof previousUntil === 'string' ? Date.parse(previousUntil) : Number.NaN;
  return Number.isNaN(until) ? Number.POSITIVE_INFINITY : Math.max(until, provedAt + BETWEEN_RETIREMENTS_MS);
}

function start(situation: DesiredState, attempt: number, plan: Plan): ClusterOutcome {
  const { cluster, settings } = situation;
  const job = jobName(cluster.id, cluster.generation);
  const wanted = wantedPlaces(cluster, settings);
  const recorded = situation.record?.places ?? [];
  const all = recordedPlaces(situation);
  const places = [...new Set([...all, ...wanted])].sort();
  const effects: readonly Effect[] = [
    ...(places.every((place) => recorded.includes(place)) ? [] : [{ do: 'record', places } as const]),
    { do: 'start', purpose: 'store', job, attempt, places: [] },
  ];
  return { ...inProgress(situation, attempt, { effects }, plan), phase: 'started' };
}

interface Progress {
  readonly effects: readonly Effect[];
  readonly job?: JobView;
  readonly requeueAfterMs?: number;
}

function inProgress(
  situation: DesiredState,
  attempt: number,
  progress: Progress,
  plan: Plan,
): ClusterOutcome {
  const { cluster, settings } = situation;
  const name = progress.job?.name ?? jobName(cluster.id, cluster.generation);
  const message = `Job "${name}" stores the pull secret, attempt ${attempt}`;
  const isReady = plan.verdict === 'ready';
  return {
    phase: 'running',
    effects: progress.effects,
    afterReport: [],
    report: livingReport(
      situation,
      {
        available: availability(currentStored(situation), [false, 'JobInProgress', message]),
        applied: [true, 'JobInProgress', message],
        stored: storedOf(situation),
        data: { ...work(situation), ...(isReady ? {} : { preconditions: plan.preconditions }) },
        metadata: { job_name: name, job_namespace: settings.namespace, attempt, ...times(progress.job) },
      },
      true,
    ),
    ...(progress.requeueAfterMs === undefined ? {} : { requeueAfterMs: progress.requeueAfterMs }),
  };
}

/** An exit code proves nothing: only the result of the Job does, or the report that was made of it before its pod went. */
function provedBy(situation: DesiredState, job: JobView): StoredState | undefined {
  const { cluster, now, settings } = situation;
  const verifiedTime = job.finishedAt ?? now.toISOString();
  if (job.result?.status !== 'success') {
    const stored = job.result === undefined ? currentStored(situation) : undefined;
    return stored?.verifiedTime === verifiedTime ? stored : undefined;
  }
  const { message, details } = job.result;
  return {
    content: contentHash(cluster),
    target: targetHash(cluster, settings),
    message,
    verifiedTime,
    verifyRequest: job.verifyRequest,
    details,
  };
}

function succeeded(situation: DesiredState, job: JobView, stored: StoredState): ClusterOutcome {
  const { message } = stored;
  // The Job that answers a request has to be made after it.
  const due = verifyInMs(situation, stored);
  return {
    phase: 'stored',
    effects: secretRemoval(situation),
    afterReport: due > 0 ? [] : [removal(job)],
    report: livingReport(
      situation,
      {
        available: [true, 'SecretAvailable', message],
        applied: [true, 'SecretCreated', message],
        stored,
        data: { ...stored.details, ...work(situation) },
        metadata: metadata(situation, job),
      },
      true,
    ),
    ...(Number.isFinite(due) ? { requeueAfterMs: Math.max(due, 100) } : {}),
  };
}

function failed(situation: DesiredState, job: JobView): ClusterOutcome {
  const { settings, now } = situation;
  const { reason, message, kind } = failureOf(job);
  const left = pauseLeftMs(retryPauseMs(kind, job.attempt, settings), job, now);
  const isDue = isNewRequest(situation, job.verifyRequest) || (left !== undefined && !(left > 0));
  return {
    phase: 'failed',
    effects: secretRemoval(situation),
    afterReport: isDue ? [removal(job)] : [],
    report: livingReport(
      situation,
      {
        ...failureVerdicts(situation, reason, message),
        applied:
          job.phase === 'failed'
            ? [false, 'JobFailed', `Job "${job.name}" has failed, attempt ${job.attempt}`]
            : [false, reason, message],
        data: {
          ...job.result?.details,
          ...work(situation),
          failed: true,
          failure: { reason, message, verifyRequest: job.verifyRequest },
          retriable: kind !== 'terminal',
        },
        metadata: metadata(situation, job),
      },
      true,
    ),
    ...(left === undefined ? {} : { requeueAfterMs: Math.max(left, 1000) }),
  };
}
