/**
 * Computes effects and report from the state of a cluster, its Jobs and the last report. Pure.
 *
 * There is no state in memory: attempts and results are read from the Job, or from the stored report if the Job no longer exists.
 * So any replica can continue after another one was killed. Unmet preconditions prevent new work, but a stored secret stays
 * available.
 */
import { defined, textOf } from '../../core/record.ts';
import { fillTemplate, jobLabels, jobName } from '../names.ts';
import { nameFaults, type Place, readPlace, tenancyFault, wantedPlaces } from '../places.ts';
import { type Plan, type PlanProblem, planCluster, problem } from '../plan.ts';
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
  isDesired,
  jobMetadata,
  outcomeOf,
  ownStatus,
  pauseLeftMs,
  type Reported,
  type ReportedJob,
  recordedPlaces,
  removal,
  type StoredState,
  secretRemoval,
  storedOf,
  targetHash,
  work,
} from './desired-state.ts';
import { type JobView, type Receipt, readReceipt } from './observe.ts';

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
  // A Job for other content could overwrite the new secret, so it must be removed first.
  if (stale.length > 0) {
    // A new Job will use the temporary Secret.
    const orphan = plan.verdict === 'ready' ? [] : secretRemoval(situation);
    const effects = [...stale.filter((job) => !job.removing).map(removal), ...orphan];
    return inProgress(situation, nextJob(situation, 1), { effects, requeueAfterMs: 1000 }, plan);
  }
  const job = situation.jobs.find((candidate) => candidate.purpose === 'store');
  if (job === undefined) return withoutJob(situation, plan);
  if (job.removing) return inProgress(situation, job, { effects: [], requeueAfterMs: 1000 }, plan);
  if (job.phase !== 'running') {
    const stored = job.phase === 'succeeded' ? provedBy(situation, job) : undefined;
    return stored === undefined
      ? failed(situation, failedAttempt(job, situation.now), job)
      : standing(situation, stored, job);
  }
  const { secret } = situation;
  const isIntact = secret?.hash === contentHash(cluster) && secret.ownerUids.includes(job.uid);
  const repair = { do: 'repair-secret', jobUid: job.uid, job: job.name } as const;
  return inProgress(situation, job, { effects: isIntact ? [] : [repair] }, plan);
}

/** Whether the Job stores the desired content in the desired locations. */
function isCurrent(situation: DesiredState, { phase, generation, purpose, hash, target }: JobView): boolean {
  // A change of the cluster triggers a retry of a failed Job.
  if (phase === 'failed' && generation !== situation.cluster.generation) return false;
  return purpose === 'store' && isDesired(situation, { content: hash, target });
}

/** The outcome without a Job, by the last report. */
function withoutJob(situation: DesiredState, plan: Plan): ClusterOutcome {
  const stored = currentStored(situation);
  if (stored !== undefined && verifyInMs(situation, stored) > 0) return standing(situation, stored);
  const gate = storeGate(situation, plan);
  if (gate !== undefined) return gated(situation, gate);
  const attempt = attemptOf(situation);
  if (attempt?.failed !== true) return start(situation, Math.max(1, attempt?.number ?? 1), plan);
  return isDue(situation, attempt) ? start(situation, attempt.number + 1, plan) : failed(situation, attempt);
}

/** Whether a request is pending. */
function isNewRequest({ record }: Pick<DesiredState, 'record'>, answered: string): boolean {
  const request = record?.verifyRequest ?? '';
  return request !== '' && request !== answered;
}

/** Whether the next attempt may start. */
function isDue(situation: DesiredState, attempt: Attempt): boolean {
  const left = pauseLeftMs(attempt, situation.settings);
  return isNewRequest(situation, attempt.verifyRequest) || (left !== undefined && !(left > 0));
}

/** Time until the next verification of the stored secret; due if not positive. */
function verifyInMs({ settings, record, now }: DesiredState, stored: StoredState): number {
  if (isNewRequest({ record }, stored.verifyRequest)) return 0;
  const provedAt = Date.parse(stored.verifiedTime) || 0;
  const every = settings.verifyEverySeconds === 0 ? Number.POSITIVE_INFINITY : settings.verifyEverySeconds;
  return Math.min(provedAt + every * 1000, retirementDueAt(stored, provedAt)) - now.getTime();
}

/** Minimum time between Jobs that retire versions, because a retirement may fail. */
const BETWEEN_RETIREMENTS_MS = 60_000;

/** When the next older version is retired, according to the Job's result. */
function retirementDueAt({ details }: StoredState, provedAt: number): number {
  const until = Date.parse(textOf(details['previousUntil']));
  return Number.isNaN(until) ? Number.POSITIVE_INFINITY : Math.max(until, provedAt + BETWEEN_RETIREMENTS_MS);
}

function start(situation: DesiredState, attempt: number, plan: Plan): ClusterOutcome {
  const { cluster, settings, record } = situation;
  const job = nextJob(situation, attempt);
  const places = [...new Set([...recordedPlaces(situation), ...wantedPlaces(cluster, settings)])].sort();
  const effects: readonly Effect[] = [
    ...recording(record, places),
    { do: 'start', purpose: 'store', job: job.name, attempt, places: [] },
  ];
  return { ...inProgress(situation, job, { effects, places }, plan), phase: 'started' };
}

/** Adds missing locations to the record. */
function recording(record: DesiredState['record'], places: readonly string[]): readonly Effect[] {
  const recorded = record?.places ?? [];
  if (places.every((place) => recorded.includes(place))) return [];
  return [{ do: 'record', places: [...new Set([...recorded, ...places])].sort() }];
}

/** What follows a report. */
type Next = Pick<Partial<Reported>, 'effects' | 'afterReport' | 'places' | 'requeueAfterMs'>;

/** A Job that does not exist yet. */
function nextJob({ cluster }: DesiredState, attempt: number): ReportedJob {
  return { name: jobName(cluster.id, cluster.generation), attempt };
}

function inProgress(situation: DesiredState, job: ReportedJob, next: Next, plan: Plan): ClusterOutcome {
  const message = `Job "${job.name}" stores the pull secret, attempt ${job.attempt}`;
  const isReady = plan.verdict === 'ready';
  return outcomeOf(situation, 'running', {
    available: availability(currentStored(situation), [false, 'JobInProgress', message]),
    applied: [true, 'JobInProgress', message],
    stored: storedOf(situation),
    data: { ...work(situation), ...(isReady ? {} : { preconditions: plan.preconditions }) },
    metadata: jobMetadata(situation, job),
    ...next,
  });
}

/** The verified state from the Job's result, or from the report if its pod no longer exists. An exit code proves nothing. */
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

// Outcomes of a pass that starts no work.

/** The outcome while work must not start. */
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

/** The outcome while the secret is stored. @param job that verified it, if it still exists */
function standing(situation: DesiredState, stored: StoredState, job?: JobView): ClusterOutcome {
  const { message } = stored;
  const due = verifyInMs(situation, stored);
  return outcomeOf(situation, 'stored', {
    available: [true, 'SecretAvailable', message],
    applied: [true, 'SecretCreated', message],
    stored,
    data: work(situation),
    metadata: jobMetadata(situation, job),
    // Remove the finished Job when a verification is due, so that a new one is created.
    afterReport: due > 0 || job === undefined ? [] : [removal(job)],
    requeueAfterMs: job === undefined ? due : Math.max(due, 100),
  });
}

/** The outcome while a failed attempt waits for its retry. @param job that failed, if it still exists */
function failed(situation: DesiredState, attempt: Attempt, job?: JobView): ClusterOutcome {
  const { number, reason, message, kind } = attempt;
  const left = pauseLeftMs(attempt, situation.settings);
  return outcomeOf(situation, 'failed', {
    ...failureVerdicts(situation, attempt),
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

// Conditions for work beyond the preconditions of the requirement: valid names, tenancy, no terminating namespace.

/** Requeue time, because a deleted namespace or a changed tenants file triggers no pass. */
const LOOK_AGAIN_MS = 30_000;

/** Why work must not start; undefined if it may. */
function storeGate({ cluster, namespaces, settings }: DesiredState, plan: Plan): PlanProblem | undefined {
  if (plan.verdict === 'waiting' || plan.verdict === 'invalid') return plan;
  const { preconditions } = plan;
  const faults = nameFaults(cluster, settings);
  if (faults.length > 0) return problem('invalid', 'InvalidConfiguration', faults, preconditions);
  const waiting = (reason: PlanProblem['reason'], message: string): PlanProblem =>
    problem('waiting', reason, [message], preconditions, LOOK_AGAIN_MS);
  const unproven = tenancyFault(cluster, settings);
  if (unproven !== undefined) return waiting('TenancyUnproven', unproven);
  const namespace = fillTemplate(settings.managementNamespace, cluster);
  return namespaces[namespace] === 'terminating'
    ? waiting('ManagementNamespaceTerminating', `the management namespace "${namespace}" is being deleted`)
    : undefined;
}

/**
 * Patches that restore changed labels of Jobs. Any account with `patch` can change labels, so they only select Jobs; cluster and
 * purpose are read from the immutable template.
 */
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

// Deletion: regardless of other adapters, the pull secret is removed from every recorded location and the removal is verified.
// Then `Finalized=True` is reported with the receipt. Until then the API keeps the cluster.

/** Locations per Job, because its result must fit into a termination message. */
const PLACES_PER_JOB = 10;

/** Reconciles a cluster that is being deleted. */
function reconcileDeletion(situation: DesiredState): ClusterOutcome {
  const { jobs } = situation;
  const own = ownStatus(situation);
  const isFinal =
    own?.observed_generation === situation.cluster.generation &&
    own.conditions.some((one) => one.type === 'Finalized' && one.status === 'True');
  const receipt = receiptOf(situation);
  if (isFinal) return gone(situation, receipt);
  // A running Job could store the secret again, so it must be removed before anything is deleted.
  const storing = jobs.filter((job) => job.purpose === 'store');
  if (storing.length > 0) {
    const effects = [...secretRemoval(situation), ...storing.filter((job) => !job.removing).map(removal)];
    const message = 'Deleting the Jobs that store the pull secret';
    return pending(situation, message, receipt, { effects, requeueAfterMs: 1000 });
  }
  const left = placesToRemove(situation).filter((place) => receipt[place] === undefined);
  if (left.length === 0) return gone(situation, receipt);
  const job = jobs.find((candidate) => candidate.purpose === 'delete');
  return job === undefined ? startDeletion(situation, receipt, left) : byJob(situation, receipt, job);
}

/** The recorded locations. Without record and report, the desired ones, which another adapter may have written to. */
function placesToRemove(situation: DesiredState): readonly string[] {
  const { cluster, settings, record } = situation;
  const recorded = recordedPlaces(situation);
  const isUnknown = recorded.length === 0 && record === undefined && ownStatus(situation) === undefined;
  if (!isUnknown || tenancyFault(cluster, settings) !== undefined) return recorded;
  return wantedPlaces(cluster, settings);
}

/** Outcomes by location: from the report, finished Jobs, deleted namespaces and the deletion policy. */
function receiptOf(situation: DesiredState): Receipt {
  const { jobs, settings, namespaces } = situation;
  const reported = readReceipt(ownStatus(situation)?.data['receipt']);
  const told = jobs.filter((job) => job.purpose === 'delete').map((job) => job.result?.receipt ?? {});
  const seen = placesToRemove(situation).map(
    (text) => [text, becameOf(readPlace(text), namespaces, settings.onDeletion)] as const,
  );
  return Object.assign({}, defined(Object.fromEntries(seen)), reported, ...told) as Receipt;
}

function becameOf(
  place: Place | undefined,
  namespaces: DesiredState['namespaces'],
  onDeletion: 'delete' | 'retain',
): string | undefined {
  if (place === undefined) return undefined;
  if (place.kind === 'google') return onDeletion === 'retain' ? 'retained by policy' : undefined;
  const { [place.namespace]: state } = namespaces;
  if (state === 'gone') return 'its namespace does not exist';
  return state === 'terminating' ? 'its namespace is being deleted' : undefined;
}

function startDeletion(situation: DesiredState, receipt: Receipt, left: readonly string[]): ClusterOutcome {
  const { cluster } = situation;
  const own = ownStatus(situation);
  const name = jobName(cluster.id, cluster.generation);
  // Failures of an older generation do not count for the deletion.
  const failures =
    own?.observed_generation === cluster.generation && own.data['failed'] === true
      ? Number(own.metadata['attempt'] ?? 0) || 0
      : 0;
  const places = left.slice(0, PLACES_PER_JOB);
  const attempt = failures + 1;
  const effects: readonly Effect[] = [
    ...secretRemoval(situation),
    ...recording(situation.record, left),
    { do: 'start', purpose: 'delete', job: name, attempt, places },
  ];
  return pending(situation, `Job "${name}" removes the pull secret`, receipt, { effects }, attempt);
}

function byJob(situation: DesiredState, receipt: Receipt, job: JobView): ClusterOutcome {
  if (job.phase === 'running')
    return pending(situation, `Job "${job.name}" removes the pull secret`, receipt, {}, job.attempt);
  if (job.phase === 'failed') return failedDeletion(situation, receipt, job);
  // Other locations are left for the next Job.
  const next = { afterReport: [removal(job)], requeueAfterMs: 100 };
  return pending(situation, `Job "${job.name}" has removed some of the stored secrets`, receipt, next);
}

function pending(
  situation: DesiredState,
  message: string,
  receipt: Receipt,
  next: Next,
  attempt = 1,
): ClusterOutcome {
  return deletion(situation, 'deleting', receipt, {
    available: [false, 'Deleting', message],
    finalized: [false, 'CleanupInProgress', message],
    // The first attempt must not be reported as failed.
    ...(attempt < 2 ? {} : { metadata: { attempt: attempt - 1 }, data: { failed: true } }),
    ...next,
  });
}

function gone(situation: DesiredState, receipt: Receipt): ClusterOutcome {
  const { jobs, namespaces, record } = situation;
  const message = receiptText(receipt);
  const bindings = Object.entries(namespaces)
    .filter(([, state]) => state === 'active')
    .map(([namespace]): Effect => ({ do: 'remove-binding', namespace }));
  return deletion(situation, 'deleted', receipt, {
    available: [false, 'SecretDeleted', message],
    finalized: [true, 'CleanupConfirmed', message],
    effects: [...secretRemoval(situation), ...bindings],
    // Until the receipt is stored in the API, only the Job and the record have its data.
    afterReport: [
      ...jobs.map(removal),
      ...(record === undefined ? [] : [{ do: 'remove-record', uid: record.uid } as const]),
    ],
  });
}

/** The receipt as a message, which may be truncated; the report data has the complete receipt. */
function receiptText(receipt: Receipt): string {
  const lines = Object.entries(receipt).map(([place, became]) => `${place}: ${became}`);
  return lines.length === 0 ? 'No pull secret was ever stored' : lines.sort().join('; ');
}

function failedDeletion(situation: DesiredState, receipt: Receipt, job: JobView): ClusterOutcome {
  const { settings, now } = situation;
  const attempt = failedAttempt(job, now);
  const { reason, message, kind } = attempt;
  // Always retry a deletion, or the cluster would never be removed. Terminal failures are retried as rarely as denied ones.
  const rarely = { ...attempt, kind: kind === 'retry' ? kind : 'denied' } as const;
  const left = pauseLeftMs(rarely, settings) ?? 3_600_000 - attempt.ageMs;
  return deletion(situation, 'failed', receipt, {
    available: [false, reason, message],
    finalized: [false, reason, message],
    afterReport: left > 0 ? [] : [removal(job)],
    data: { ...job.result?.details, failed: true },
    metadata: { job_name: job.name, job_namespace: settings.namespace, attempt: job.attempt },
    requeueAfterMs: Math.max(left, 1000),
  });
}

type Deletion = Omit<Reported, 'applied' | 'data'> & Pick<Partial<Reported>, 'data'>;

function deletion(
  situation: DesiredState,
  phase: ClusterOutcome['phase'],
  receipt: Receipt,
  { data, ...reported }: Deletion,
): ClusterOutcome {
  const { available } = reported;
  return outcomeOf(situation, phase, {
    ...reported,
    applied: [false, available[1], available[2]],
    data: { ...data, ...(Object.keys(receipt).length === 0 ? {} : { receipt }) },
    places: placesToRemove(situation),
  });
}
