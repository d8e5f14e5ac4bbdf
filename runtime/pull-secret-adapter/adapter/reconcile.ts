/**
 * A pass: what is known about a cluster, its Jobs and what was reported before, to effects and the report. Pure.
 *
 * Nothing is kept in memory between two passes: an attempt, a failure and a success are read back from the Job or, when it has gone,
 * from the report that the API holds. So any replica can go on where another one was killed. Preconditions gate the start of work;
 * what is stored stays available while they come and go.
 */
import { textOf } from '../../core/record.ts';
import { jobLabels, jobName } from '../names.ts';
import { managementNamespace, nameFaults, tenancyFault, wantedPlaces } from '../places.ts';
import { type Plan, type PlanProblem, planCluster } from '../plan.ts';
import type { AvailabilityVerdict } from '../status-report.ts';
import {
  type Attempt,
  attemptOf,
  availability,
  type ClusterOutcome,
  contentHash,
  currentStored,
  type DesiredState,
  type Effect,
  failedAttempt,
  failureData,
  failureVerdicts,
  jobMetadata,
  outcomeOf,
  pauseLeftMs,
  type Reported,
  recordedPlaces,
  removal,
  type StoredState,
  secretRemoval,
  storedOf,
  targetHash,
  times,
  work,
} from './desired-state.ts';
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
    return stored === undefined
      ? failed(situation, failedAttempt(job, situation.now), job)
      : standing(situation, stored, job);
  }
  const repair = secretIsRight(situation, job)
    ? []
    : [{ do: 'repair-secret', jobUid: job.uid, job: job.name } as const];
  return inProgress(situation, job.attempt, { effects: repair, job }, plan);
}

/** Whether the Job does what this cluster needs now. */
function isCurrent({ cluster, settings }: DesiredState, job: JobView): boolean {
  // A change of the cluster triggers a retry of a failed Job.
  if (job.phase === 'failed' && job.generation !== cluster.generation) return false;
  return (
    job.purpose === 'store' &&
    job.hash === contentHash(cluster) &&
    job.target === targetHash(cluster, settings)
  );
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
  if (stored !== undefined && verifyInMs(situation, stored) > 0) return standing(situation, stored);
  const gate = storeGate(situation, plan);
  if (gate !== undefined) return gated(situation, gate);
  const attempt = attemptOf(situation);
  if (attempt?.failed !== true) return start(situation, Math.max(1, attempt?.number ?? 1), plan);
  return isDue(situation, attempt) ? start(situation, attempt.number + 1, plan) : failed(situation, attempt);
}

/** Whether a request is open. */
function isNewRequest({ record }: Pick<DesiredState, 'record'>, answered: string): boolean {
  const request = record?.verifyRequest ?? '';
  return request !== '' && request !== answered;
}

/** Whether the next attempt may start. */
function isDue(situation: DesiredState, attempt: Attempt): boolean {
  const left = pauseLeftMs(attempt, situation.settings);
  return isNewRequest(situation, attempt.verifyRequest) || (left !== undefined && !(left > 0));
}

/** When what is stored has to be proved again; zero or less: now. */
function verifyInMs({ settings, record, now }: DesiredState, stored: StoredState): number {
  if (isNewRequest({ record }, stored.verifyRequest)) return 0;
  const provedAt = Date.parse(stored.verifiedTime) || 0;
  const every = settings.verifyEverySeconds === 0 ? Number.POSITIVE_INFINITY : settings.verifyEverySeconds;
  return Math.min(provedAt + every * 1000, retirementDueAt(stored, provedAt)) - now.getTime();
}

/** A Job that could not retire what was due is not followed by the next at once. */
const BETWEEN_RETIREMENTS_MS = 60_000;

/** When the older version that is still enabled has to go, by the Job's own words. */
function retirementDueAt({ details }: StoredState, provedAt: number): number {
  const until = Date.parse(textOf(details['previousUntil']));
  return Number.isNaN(until) ? Number.POSITIVE_INFINITY : Math.max(until, provedAt + BETWEEN_RETIREMENTS_MS);
}

function start(situation: DesiredState, attempt: number, plan: Plan): ClusterOutcome {
  const { cluster, settings, record } = situation;
  const job = jobName(cluster.id, cluster.generation);
  const places = [...new Set([...recordedPlaces(situation), ...wantedPlaces(cluster, settings)])].sort();
  const effects: readonly Effect[] = [
    ...(places.every((place) => record?.places.includes(place)) ? [] : [{ do: 'record', places } as const]),
    { do: 'start', purpose: 'store', job, attempt, places: [] },
  ];
  return { ...inProgress(situation, attempt, { effects, places }, plan), phase: 'started' };
}

function inProgress(
  situation: DesiredState,
  attempt: number,
  {
    job,
    ...next
  }: Pick<Partial<Reported>, 'effects' | 'places' | 'requeueAfterMs'> & { readonly job?: JobView },
  plan: Plan,
): ClusterOutcome {
  const { cluster, settings } = situation;
  const name = job?.name ?? jobName(cluster.id, cluster.generation);
  const message = `Job "${name}" stores the pull secret, attempt ${attempt}`;
  const isReady = plan.verdict === 'ready';
  return outcomeOf(situation, 'running', {
    available: availability(currentStored(situation), [false, 'JobInProgress', message]),
    applied: [true, 'JobInProgress', message],
    stored: storedOf(situation),
    data: { ...work(situation), ...(isReady ? {} : { preconditions: plan.preconditions }) },
    metadata: { job_name: name, job_namespace: settings.namespace, attempt, ...times(job) },
    ...next,
  });
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

// What a pass comes to that starts nothing: the work is gated, or done, or has failed and waits.

/** Nothing may start now. */
function gated(
  situation: DesiredState,
  { verdict, reason, message, preconditions, retryAfterMs }: PlanProblem,
): ClusterOutcome {
  const unmet: AvailabilityVerdict = [false, reason, message];
  const attempt = attemptOf(situation);
  const failure = attempt?.failed === true ? attempt : undefined;
  return outcomeOf(situation, verdict, {
    available: availability(currentStored(situation), unmet),
    applied: unmet,
    stored: storedOf(situation),
    data: {
      ...(failure === undefined ? {} : failureData(situation, failure)),
      preconditions,
      retriable: verdict === 'waiting',
    },
    ...(failure === undefined ? {} : { metadata: jobMetadata(situation, undefined) }),
    requeueAfterMs: retryAfterMs,
  });
}

/** It is stored, and nothing is to be done until it is proved again. @param job that has proved it, if it is still there */
function standing(situation: DesiredState, stored: StoredState, job?: JobView): ClusterOutcome {
  const { message } = stored;
  const due = verifyInMs(situation, stored);
  return outcomeOf(situation, 'stored', {
    available: [true, 'SecretAvailable', message],
    applied: [true, 'SecretCreated', message],
    stored,
    data: work(situation),
    metadata: jobMetadata(situation, job),
    // The Job that answers a request has to be made after it.
    afterReport: due > 0 || job === undefined ? [] : [removal(job)],
    requeueAfterMs: job === undefined ? due : Math.max(due, 100),
  });
}

/** The last attempt failed, and the next one has to wait. @param job that failed, if it is still there */
function failed(situation: DesiredState, attempt: Attempt, job?: JobView): ClusterOutcome {
  const { number, reason, message, kind } = attempt;
  const left = pauseLeftMs(attempt, situation.settings);
  return outcomeOf(situation, 'failed', {
    ...failureVerdicts(situation, reason, message),
    applied:
      job?.phase === 'succeeded'
        ? [false, reason, message]
        : [
            false,
            'JobFailed',
            job === undefined ? message : `Job "${job.name}" has failed, attempt ${number}`,
          ],
    data: {
      ...job?.result?.details,
      ...failureData(situation, attempt),
      retriable: kind !== 'terminal',
    },
    metadata: jobMetadata(situation, job),
    afterReport: job !== undefined && isDue(situation, attempt) ? [removal(job)] : [],
    requeueAfterMs: left === undefined || job === undefined ? left : Math.max(left, 1000),
  });
}

// What keeps the work on a pull secret from starting, beside the preconditions of the requirement: names, tenancy, a namespace that ends.

/** Polled, because no event reports a deleted namespace or a changed allow-list. */
const LOOK_AGAIN_MS = 30_000;

/** Undefined: work may start. */
function storeGate({ cluster, namespaces, settings }: DesiredState, plan: Plan): PlanProblem | undefined {
  if (plan.verdict === 'waiting' || plan.verdict === 'invalid') return plan;
  const { preconditions } = plan;
  const faults = nameFaults(cluster, settings);
  if (faults.length > 0)
    return { verdict: 'invalid', reason: 'InvalidConfiguration', message: faults.join('; '), preconditions };
  const unproven = tenancyFault(cluster, settings);
  if (unproven !== undefined)
    return {
      verdict: 'waiting',
      reason: 'TenancyUnproven',
      message: unproven,
      preconditions,
      retryAfterMs: LOOK_AGAIN_MS,
    };
  const namespace = managementNamespace(cluster, settings);
  if (namespaces[namespace] !== 'terminating') return undefined;
  return {
    verdict: 'waiting',
    reason: 'ManagementNamespaceTerminating',
    message: `the management namespace "${namespace}" is being deleted`,
    preconditions,
    retryAfterMs: LOOK_AGAIN_MS,
  };
}

// Patches that restore changed labels of Jobs.
// The purpose of a Job is read from its immutable template; labels, which any account with `patch` can
// change, only select.

/** By their labels Jobs are found, and shown to people and policies. */
function labelRepairs({ cluster, jobs }: DesiredState, effects: readonly Effect[]): readonly Effect[] {
  const leaving = new Set(effects.flatMap((effect) => (effect.do === 'remove-job' ? [effect.uid] : [])));
  return jobs
    .filter(({ removing, uid }) => !removing && !leaving.has(uid))
    .flatMap(({ name: job, uid: jobUid, purpose, labels: present }): readonly Effect[] => {
      const wanted = Object.entries(jobLabels(cluster, purpose));
      const labels = Object.fromEntries(wanted.filter(([key, value]) => present[key] !== value));
      return Object.keys(labels).length === 0 ? [] : [{ do: 'repair-labels', job, jobUid, labels }];
    });
}
