/** What a run of the Job is given, how it can end, and how often it tries. */
import { retry } from '../../http/retry.ts';
import { type BackOff, backOffMs } from '../../rules/back-off.ts';
import { type JobResult } from '../outcome.ts';
import type { GooglePlace, KubernetesPlace } from '../places.ts';
import { explainGcpError, GcpError, JobError, retryableStatus } from './gcp-error.ts';
import type { ManagementSecretInput } from './management-secret.ts';
import type { SecretManager } from './secret-manager.ts';

export interface JobShell {
  readonly manager: SecretManager;
  /** Absent: no Secret for HyperShift. */
  readonly management: ManagementSecretInput | undefined;
  /** Of the project and location of a place that a deletion goes to. */
  readonly managerOf: (place: GooglePlace) => SecretManager;
  /** Of the namespace of such a place. */
  readonly managementOf: (place: KubernetesPlace) => ManagementSecretInput;
  readonly runner: string;
  readonly now: () => number;
  /** Rejects when the run is interrupted. */
  readonly pause: (ms: number) => Promise<void>;
  readonly log: JobLog;
}

/** A line of the existing job's log: operation, message, and where it fits the full name of a version. */
export type JobLog = (level: 'info' | 'error', operation: string, message: string, version?: string) => void;

export interface JobExit {
  readonly exitCode: number;
  readonly result: JobResult;
}

/** Any failure, as one with a reason. */
export function explained(project: string, error: unknown): JobError {
  if (error instanceof JobError) return error;
  if (error instanceof GcpError) return explainGcpError(error, project);
  if (error instanceof Error && error.name === 'AbortError') {
    // A pause that was cut: by the run's time limit, or by a signal.
    if (error.cause instanceof JobError) return error.cause;
    return new JobError('Interrupted', 'The run was interrupted and will be made again', error);
  }
  const kind = error instanceof Error ? error.name : typeof error;
  return new JobError(
    'UnexpectedFailure',
    `The run failed in a way that was not foreseen (${kind}); it will be made again`,
    error,
  );
}

/** A good end. */
export function done(reason: JobResult['reason'], message: string, details: JobResult['details']): JobExit {
  return { exitCode: 0, result: { status: 'success', reason, message, details } };
}

/** The whole exchange again: what a lost answer left behind is then seen. */
export async function retried<T>(shell: JobShell, operation: () => Promise<T>): Promise<T> {
  return retry(operation, {
    tries: TRIES,
    waitMs: (round) => Math.round(backOffMs(JOB_BACK_OFF, round, Math.random())),
    longestWaitMs: LONGEST_WAIT_MS,
    pause: shell.pause,
    again: (tried) => ('error' in tried ? againAfter(tried.error) : undefined),
  });
}

/** As the existing job: 1 s, 2 s, 4 s, 20 % more or less. */
export const JOB_BACK_OFF: BackOff = { firstMs: 1000, maxMs: 60_000, spread: [0.8, 1.2] };
const TRIES = 3;
/** A pod that waits longer than this only costs: the Job is made again later. */
const LONGEST_WAIT_MS = 30_000;

/** Whether another try may succeed, and when. */
export function againAfter(error: unknown): { readonly afterMs?: number | undefined } | undefined {
  if (error instanceof GcpError)
    return retryableStatus(error.status) ? { afterMs: error.retryAfterMs } : undefined;
  return error instanceof JobError && error.reason === 'ManagementClusterUnavailable' ? {} : undefined;
}
