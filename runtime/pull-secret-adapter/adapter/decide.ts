/**
 * The decision: what is known about a cluster, its Jobs and what was reported before, to the next steps and the report. Pure.
 *
 * Nothing is kept in memory between two looks: an attempt, a terminal failure and a success are read back from the Job or, when
 * it has gone, from the report that the API holds. So any replica can go on where another one was killed.
 */
import type { AdapterStatus } from '../cluster.ts';
import { jobLabels, jobName } from '../names.ts';
import { outcomeClass } from '../outcome.ts';
import { planCluster } from '../plan.ts';
import { decideDeletion } from './decide-deletion.ts';
import {
  contentHash,
  type Decision,
  failureOf,
  memoryOf,
  pauseLeftMs,
  removal,
  retryPauseMs,
  type Situation,
  type Step,
} from './decision.ts';
import type { JobView } from './observe.ts';
import { statusReport, type Verdict } from './status-report.ts';

/** Decides for one cluster. */
export function decide(situation: Situation): Decision {
  const decision = decideWork(situation);
  return { ...decision, steps: [...labelRepairs(situation, decision.steps), ...decision.steps] };
}

/** By their labels Jobs are found, and shown to people and policies. */
function labelRepairs({ cluster, jobs }: Situation, steps: readonly Step[]): readonly Step[] {
  const leaving = new Set(steps.flatMap((step) => (step.do === 'remove-job' ? [step.uid] : [])));
  return jobs
    .filter(({ removing, uid }) => !removing && !leaving.has(uid))
    .flatMap(({ name: job, uid: jobUid, purpose, labels: present }): readonly Step[] => {
      const wanted = Object.entries(jobLabels(cluster, purpose));
      const labels = Object.fromEntries(wanted.filter(([key, value]) => present[key] !== value));
      return Object.keys(labels).length === 0 ? [] : [{ do: 'repair-labels', job, jobUid, labels }];
    });
}

function decideWork(situation: Situation): Decision {
  const { cluster, statuses, settings } = situation;
  const plan = planCluster(cluster, statuses, settings.dependencies);
  if (plan.verdict === 'deleting') return decideDeletion(situation, plan.external);
  if (plan.verdict === 'ready') return decideReady(situation);
  const unmet: Verdict = [false, plan.reason, plan.message];
  return {
    phase: plan.verdict,
    // Work for an older generation must not go on with a secret that has been withdrawn, but what it stored stays.
    steps: [...removeSecret(situation), ...outdated(situation).map(removal)],
    afterReport: [],
    report: statusReport({
      adapter: settings.adapterName,
      generation: cluster.generation,
      available: unmet,
      applied: unmet,
      data: { preconditions: plan.preconditions, retriable: plan.verdict === 'waiting' },
    }),
  };
}

function decideReady(situation: Situation): Decision {
  const stale = outdated(situation);
  // A Job of an older generation could write the older secret last: it has to be gone first.
  if (stale.length > 0) return inProgress(situation, 1, { steps: stale.map(removal), requeueAfterMs: 1000 });
  const job = situation.jobs.find((candidate) => candidate.purpose === 'store');
  if (job === undefined) return decideWithoutJob(situation);
  if (job.removing) return inProgress(situation, job.attempt, { steps: [], requeueAfterMs: 1000 });
  if (job.phase === 'succeeded') return succeeded(situation, job);
  if (job.phase === 'failed') return failed(situation, job);
  const repair = secretIsRight(situation, job)
    ? []
    : [{ do: 'repair-secret', jobUid: job.uid, job: job.name } as const];
  return inProgress(situation, job.attempt, { steps: repair, job });
}

/** Jobs of this cluster that are not the one this generation needs. */
function outdated({ cluster, jobs }: Situation): readonly JobView[] {
  const hash = contentHash(cluster);
  return jobs.filter(
    (job) => job.purpose !== 'store' || job.generation !== cluster.generation || job.hash !== hash,
  );
}

function removeSecret({ secret }: Situation): readonly Step[] {
  return secret === undefined ? [] : [{ do: 'remove-secret', uid: secret.uid }];
}

function secretIsRight({ cluster, secret }: Situation, job: JobView): boolean {
  return secret?.hash === contentHash(cluster) && secret.ownerUids.includes(job.uid);
}

/** The Job has gone, or there was none: what was reported last says which. */
function decideWithoutJob(situation: Situation): Decision {
  const { settings, now } = situation;
  const own = ownStatus(situation);
  if (own === undefined) return start(situation, 1);
  const memory = memoryOf(own, now);
  if (memory.available) {
    const verified = settings.verifyEverySeconds === 0 || memory.ageMs < settings.verifyEverySeconds * 1000;
    return verified ? standing(situation, own, 'stored') : start(situation, 1);
  }
  if (!memory.failed) return start(situation, Math.max(1, memory.attempt));
  const pause = retryPauseMs(outcomeClass(memory.reason, undefined), memory.attempt, settings);
  if (pause === undefined) return standing(situation, own, 'failed');
  const left = pause - memory.ageMs;
  if (!(left > 0)) return start(situation, memory.attempt + 1);
  return { ...standing(situation, own, 'failed'), requeueAfterMs: left };
}

function start(situation: Situation, attempt: number): Decision {
  const job = jobName(situation.cluster.id, situation.cluster.generation);
  const steps: readonly Step[] = [{ do: 'start', purpose: 'store', job, attempt }];
  return { ...inProgress(situation, attempt, { steps }), phase: 'started' };
}

/** Our own report, if it speaks of this generation and this content. */
function ownStatus({ cluster, statuses, settings }: Situation): AdapterStatus | undefined {
  const own = statuses.find((status) => status.adapter === settings.adapterName);
  if (own?.observed_generation !== cluster.generation) return undefined;
  return own.data?.['content'] === contentHash(cluster) ? own : undefined;
}

/** Says again what was said: nothing has changed. */
function standing(situation: Situation, own: AdapterStatus, phase: 'stored' | 'failed'): Decision {
  const verdict = (type: string): Verdict => {
    const found = own.conditions.find((condition) => condition.type === type);
    return [found?.status === 'True', found?.reason ?? 'Reported', found?.message ?? ''];
  };
  return {
    phase,
    steps: removeSecret(situation),
    afterReport: [],
    report: statusReport({
      adapter: situation.settings.adapterName,
      generation: situation.cluster.generation,
      available: verdict('Available'),
      applied: verdict('Applied'),
      health: verdict('Health'),
      data: own.data ?? {},
      metadata: (own.metadata ?? {}) as Readonly<Record<string, string | number>>,
    }),
  };
}

interface Progress {
  readonly steps: readonly Step[];
  readonly job?: JobView;
  readonly requeueAfterMs?: number;
}

function inProgress(situation: Situation, attempt: number, progress: Progress): Decision {
  const { cluster, settings } = situation;
  const name = jobName(cluster.id, cluster.generation);
  const message = `Job "${name}" stores the pull secret, attempt ${attempt}`;
  return {
    phase: 'running',
    steps: progress.steps,
    afterReport: [],
    report: statusReport({
      adapter: settings.adapterName,
      generation: cluster.generation,
      available: [false, 'JobInProgress', message],
      applied: [true, 'JobInProgress', message],
      data: { content: contentHash(cluster), gcpProject: cluster.projectId ?? '' },
      metadata: { job_name: name, job_namespace: settings.namespace, attempt, ...times(progress.job) },
    }),
    ...(progress.requeueAfterMs === undefined ? {} : { requeueAfterMs: progress.requeueAfterMs }),
  };
}

function succeeded(situation: Situation, job: JobView): Decision {
  const { cluster, settings } = situation;
  const message = job.result?.message ?? `Job "${job.name}" has ended well`;
  return {
    phase: 'stored',
    steps: removeSecret(situation),
    afterReport: [],
    report: statusReport({
      adapter: settings.adapterName,
      generation: cluster.generation,
      available: [true, 'SecretAvailable', message],
      applied: [true, 'SecretCreated', `Job "${job.name}" is complete`],
      data: { ...job.result?.details, content: contentHash(cluster), gcpProject: cluster.projectId ?? '' },
      metadata: metadata(situation, job),
    }),
  };
}

function failed(situation: Situation, job: JobView): Decision {
  const { cluster, settings, now } = situation;
  const { reason, message, kind } = failureOf(job);
  const left = pauseLeftMs(retryPauseMs(kind, job.attempt, settings), job, now);
  return {
    phase: 'failed',
    steps: removeSecret(situation),
    afterReport: left !== undefined && !(left > 0) ? [removal(job)] : [],
    report: statusReport({
      adapter: settings.adapterName,
      generation: cluster.generation,
      available: [false, reason, message],
      applied: [false, 'JobFailed', `Job "${job.name}" has failed, attempt ${job.attempt}`],
      ...(kind === 'retry' ? { health: [false, reason, message] as const } : {}),
      data: {
        ...job.result?.details,
        content: contentHash(cluster),
        gcpProject: cluster.projectId ?? '',
        failed: true,
        retriable: kind !== 'terminal',
      },
      metadata: metadata(situation, job),
    }),
    ...(left === undefined ? {} : { requeueAfterMs: Math.max(left, 1000) }),
  };
}

function metadata({ settings }: Situation, job: JobView): Readonly<Record<string, string | number>> {
  return { job_name: job.name, job_namespace: settings.namespace, attempt: job.attempt, ...times(job) };
}

function times(job: JobView | undefined): Readonly<Record<string, string>> {
  const started = job?.startedAt;
  const completed = job?.finishedAt;
  const seconds = (Date.parse(completed ?? '') - Date.parse(started ?? '')) / 1000;
  return {
    ...(started === undefined ? {} : { started_time: started }),
    ...(completed === undefined ? {} : { completed_time: completed }),
    ...(Number.isFinite(seconds) ? { duration: `${seconds}s` } : {}),
  };
}
