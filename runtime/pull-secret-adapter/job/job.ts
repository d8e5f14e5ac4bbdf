/**
 * One run of the Job: judge, store at Google, store for HyperShift; or, on deletion, remove both. Whatever happens, the end is a
 * result with a reason.
 */
import { retry } from '../../http/retry.ts';
import { type BackOff, backOffMs } from '../../rules/back-off.ts';
import { type Redacted, reveal } from '../../rules/redacted.ts';
import { gcpLabels } from '../names.ts';
import { type JobResult, OUTCOMES } from '../outcome.ts';
import { judgePullSecret } from '../pull-secret.ts';
import type { JobConfig } from './config.ts';
import { explainGcpError, GcpError, JobError, permissionOf, retryableStatus } from './gcp-error.ts';
import {
  type ManagementSecretInput,
  removeManagementSecret,
  writeManagementSecret,
} from './management-secret.ts';
import { versionNumber } from './read-version.ts';
import type { SecretManager } from './secret-manager.ts';
import { type StoreResult, storeSecret } from './store-secret.ts';

export interface JobShell {
  readonly manager: SecretManager;
  /** Absent: no Secret for HyperShift. */
  readonly management: ManagementSecretInput | undefined;
  readonly runner: string;
  readonly now: () => number;
  /** Rejects when the run is interrupted. */
  readonly pause: (ms: number) => Promise<void>;
  readonly log: JobLog;
}

/** A line of the existing job's log: operation, message, and where it fits the full name of a version. */
export type JobLog = (level: 'info' | 'error', operation: string, message: string, version?: string) => void;

export interface JobEnd {
  readonly exitCode: number;
  readonly result: JobResult;
}

/** Runs to an end; never throws. */
export async function runJob(config: JobConfig, shell: JobShell): Promise<JobEnd> {
  try {
    return config.mode === 'delete' ? await removeAll(config, shell) : await storeAll(config, shell);
  } catch (error) {
    return failedEnd(config, shell.log, error);
  }
}

/** The end of a run that failed, also before anything was set up. */
export function failedEnd(
  config: Pick<JobConfig, 'gcpProjectId' | 'secretName'>,
  log: JobLog,
  error: unknown,
): JobEnd {
  const known = explained(config.gcpProjectId, error);
  log(
    'error',
    known.reason === 'InvalidPullSecret' ? 'validate-pull-secret' : 'create-update-secret',
    known.message,
  );
  const kind = OUTCOMES[known.reason].class;
  return {
    exitCode: known.exitCode,
    result: {
      status: 'failure',
      reason: known.reason,
      message: known.message.slice(0, 1024),
      details: {
        secretName: config.secretName,
        gcpProject: config.gcpProjectId,
        retriable: kind !== 'terminal',
      },
    },
  };
}

function explained(project: string, error: unknown): JobError {
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

/** Refuses what can never work. @throws JobError InvalidPullSecret */
export function assertPullSecret(secret: Redacted<string>): void {
  const { problems } = judgePullSecret(secret);
  if (problems.length > 0) {
    throw new JobError(
      'InvalidPullSecret',
      `Invalid pull secret format: ${problems.slice(0, 10).join('; ')}`,
    );
  }
}

async function storeAll(config: JobConfig, shell: JobShell): Promise<JobEnd> {
  const { log } = shell;
  assertPullSecret(config.pullSecret);
  log('info', 'start', 'Starting pull secret storage operation');
  const leftOut = new Set<string>();
  const stored = await retried(shell, () =>
    storeSecret({
      manager: shell.manager,
      secretName: config.secretName,
      content: config.pullSecret,
      labels: { ...config.extraLabels, ...gcpLabels({ id: config.clusterId, name: config.clusterName }) },
      replication: config.replication,
      generation: config.generation,
      keepVersions: config.keepVersions,
      adopt: config.adopt,
      runner: shell.runner,
      now: shell.now,
      pause: shell.pause,
      log: (operation, message, version) => log('info', operation, message, version),
      leftOut: (call) => leftOut.add(permissionOf(call)),
    }),
  );
  const missing = [...leftOut].sort().join(', ');
  if (missing !== '')
    log('info', 'permissions', `Labels and older versions stay as they are without ${missing}`);
  const { management } = shell;
  if (management !== undefined && stored.reason !== 'SupersededByNewer') {
    await retried(shell, () => writeManagementSecret(management, config.pullSecret));
    log(
      'info',
      'management-secret',
      `Secret/${management.namespace}/${management.name} holds the pull secret`,
    );
  }
  log('info', 'completed', 'Successfully created/updated pull secret');
  const details = {
    ...storedDetails(config, stored),
    ...(missing === '' ? {} : { missingPermissions: missing }),
    ...(management === undefined ? {} : { managementSecret: `${management.namespace}/${management.name}` }),
  };
  const text =
    stored.reason === 'SupersededByNewer'
      ? 'was written for a newer generation already'
      : 'holds the pull secret';
  return done(
    stored.reason,
    `Secret "${config.secretName}" in project "${config.gcpProjectId}" ${text}`,
    details,
  );
}

/** What the adapter puts into the status, and into its metrics. */
function storedDetails(config: JobConfig, stored: StoreResult): JobResult['details'] {
  const { version, createdAt, enabledVersions, replication } = stored;
  return {
    secretName: config.secretName,
    ...(version === '' ? {} : { secretVersion: versionNumber(version) }),
    ...(createdAt === undefined ? {} : { versionCreatedTime: createdAt }),
    ...(enabledVersions === undefined ? {} : { enabledVersions }),
    gcpProject: config.gcpProjectId,
    secretPath: `projects/${config.gcpProjectId}/secrets/${config.secretName}`,
    replicationPolicy: replication?.userManaged === undefined ? 'automatic' : 'user-managed',
    bytes: Buffer.byteLength(reveal(config.pullSecret)),
  };
}

async function removeAll(config: JobConfig, shell: JobShell): Promise<JobEnd> {
  if (config.onDeletion === 'delete') await retried(shell, () => removeStored(config, shell));
  const { management } = shell;
  if (management !== undefined) await retried(shell, () => removeManagementSecret(management));
  shell.log('info', 'completed', 'Removed pull secret');
  const what = config.onDeletion === 'delete' ? 'is removed from' : 'stays in';
  return done('SecretDeleted', `Secret "${config.secretName}" ${what} project "${config.gcpProjectId}"`, {
    secretName: config.secretName,
    gcpProject: config.gcpProjectId,
  });
}

async function removeStored(config: JobConfig, shell: JobShell): Promise<void> {
  const secret = await shell.manager.get(config.secretName);
  if (secret === undefined) return shell.log('info', 'delete-secret', 'There is no secret');
  const wanted = gcpLabels({ id: config.clusterId });
  const ours = ['managed-by', 'cluster-id'].every((key) => secret.labels?.[key] === wanted[key]);
  // What somebody else made under this name is not ours to remove, and nothing of ours is left.
  if (!ours) return shell.log('info', 'delete-secret', 'The secret of this name is not ours: it stays');
  try {
    await shell.manager.delete(config.secretName, secret.etag);
  } catch (error) {
    // Somebody changed it since it was read: read it again.
    const changed = error instanceof GcpError && error.status === 'FAILED_PRECONDITION';
    throw changed ? new GcpError('DeleteSecret', 'ABORTED', { cause: error }) : error;
  }
  shell.log('info', 'delete-secret', `Removed secret: ${config.secretName}`);
}

function done(reason: JobResult['reason'], message: string, details: JobResult['details']): JobEnd {
  return { exitCode: 0, result: { status: 'success', reason, message, details } };
}

/** The whole exchange again: what a lost answer left behind is then seen. */
async function retried<T>(shell: JobShell, operation: () => Promise<T>): Promise<T> {
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
