/**
 * Deletion: whatever other adapters say by then, what this adapter made is removed, and `Finalized=True` is reported, without which
 * the API never lets the cluster go.
 */

import { jobName } from '../names.ts';
import {
  type Decision,
  failureOf,
  pauseLeftMs,
  removal,
  retryPauseMs,
  type Situation,
  type Step,
} from './decision.ts';
import type { JobView } from './observe.ts';
import { statusReport, type Verdict } from './status-report.ts';

/**
 * Decides for a cluster that is being deleted.
 *
 * @param external whether the document names a project of ours, so that something may be stored there
 */
export function decideDeletion(situation: Situation, external: boolean): Decision {
  const { cluster, jobs, settings, secret } = situation;
  const clean: readonly Step[] = secret === undefined ? [] : [{ do: 'remove-secret', uid: secret.uid }];
  // A Job that still stores could bring the secret back: it has to be gone before anything is deleted.
  const storing = jobs.filter((job) => job.purpose === 'store' || job.generation !== cluster.generation);
  if (storing.length > 0) {
    const steps = [...clean, ...storing.filter((job) => !job.removing).map(removal)];
    return pending(situation, 'Jobs of earlier generations are being removed', {
      steps,
      requeueAfterMs: 1000,
    });
  }
  const own = situation.statuses.find(
    (status) => status.adapter === settings.adapterName && status.observed_generation === cluster.generation,
  );
  const finalized = own?.conditions.some((one) => one.type === 'Finalized' && one.status === 'True') === true;
  if (!external || finalized) return gone(situation, clean, undefined);
  const job = jobs.find((candidate) => candidate.purpose === 'delete');
  if (job !== undefined) return decideByJob(situation, clean, job);
  const name = jobName(cluster.id, cluster.generation);
  const attempt = Number(own?.metadata?.['attempt'] ?? 0) + 1;
  const steps: readonly Step[] = [...clean, { do: 'start', purpose: 'delete', job: name, attempt }];
  return pending(situation, `Job "${name}" removes the pull secret`, { steps, attempt });
}

function decideByJob(situation: Situation, clean: readonly Step[], job: JobView): Decision {
  if (job.phase === 'succeeded') return gone(situation, clean, job);
  if (job.phase === 'failed') return failedDeletion(situation, clean, job);
  return pending(situation, `Job "${job.name}" removes the pull secret`, {
    steps: clean,
    attempt: job.attempt,
  });
}

interface Pending {
  readonly steps: readonly Step[];
  readonly attempt?: number;
  readonly requeueAfterMs?: number;
}

function pending(situation: Situation, message: string, next: Pending): Decision {
  const { attempt } = next;
  return {
    phase: 'deleting',
    steps: next.steps,
    afterReport: [],
    report: report(situation, {
      available: [false, 'Deleting', message],
      finalized: [false, 'CleanupInProgress', message],
      // Deletion must not count as a failed try before it has failed.
      ...(attempt === undefined || attempt < 2 ? {} : { metadata: { attempt: attempt - 1 } }),
    }),
    ...(next.requeueAfterMs === undefined ? {} : { requeueAfterMs: next.requeueAfterMs }),
  };
}

function gone(situation: Situation, steps: readonly Step[], job: JobView | undefined): Decision {
  const message = job?.result?.message ?? 'Nothing of this adapter is left';
  return {
    phase: 'deleted',
    steps: [...steps, { do: 'remove-binding' }],
    // The Job may go once its result is stored; until then it is the only witness.
    afterReport: job === undefined ? [] : [removal(job)],
    report: report(situation, {
      available: [false, 'SecretDeleted', message],
      finalized: [true, 'CleanupConfirmed', message],
      data: job?.result?.details ?? {},
    }),
  };
}

function failedDeletion(situation: Situation, steps: readonly Step[], job: JobView): Decision {
  const { settings, now } = situation;
  const { reason, message, kind } = failureOf(job);
  // A deletion is never given up by itself: the cluster would stay for ever. What is terminal is tried as rarely as what is denied.
  const pause = retryPauseMs(kind === 'retry' ? 'retry' : 'denied', job.attempt, settings);
  const left = pauseLeftMs(pause, job, now);
  return {
    phase: 'failed',
    steps,
    afterReport: left !== undefined && !(left > 0) ? [removal(job)] : [],
    report: report(situation, {
      available: [false, reason, message],
      finalized: [false, reason, message],
      data: { ...job.result?.details, failed: true },
      metadata: { job_name: job.name, job_namespace: settings.namespace, attempt: job.attempt },
    }),
    ...(left === undefined ? {} : { requeueAfterMs: Math.max(left, 1000) }),
  };
}

function report(
  { cluster, settings }: Situation,
  input: {
    readonly available: Verdict;
    readonly finalized: Verdict;
    readonly data?: Readonly<Record<string, unknown>>;
    readonly metadata?: Readonly<Record<string, string | number>>;
  },
): Decision['report'] {
  return statusReport({
    adapter: settings.adapterName,
    generation: cluster.generation,
    available: input.available,
    applied: [false, input.available[1], input.available[2]],
    finalized: input.finalized,
    ...(input.data === undefined ? {} : { data: input.data }),
    ...(input.metadata === undefined ? {} : { metadata: input.metadata }),
  });
}
