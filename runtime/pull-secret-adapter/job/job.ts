/**
 * One run of the Job: judge, store at Google, store for HyperShift; or, on deletion, remove both. Whatever happens, the end is a
 * result with a reason.
 */
import { type Redacted, reveal } from '../../rules/redacted.ts';
import { gcpLabels } from '../names.ts';
import { type JobResult, OUTCOMES } from '../outcome.ts';
import { placeText } from '../places.ts';
import { judgePullSecret } from '../pull-secret.ts';
import type { JobConfig } from './config.ts';
import { JobError, permissionOf } from './gcp-error.ts';
import { writeManagementSecret } from './management-secret.ts';
import { assertTenant } from './project-challenge.ts';
import { versionNumber } from './read-version.ts';
import { removePlaces } from './remove-places.ts';
import type { Replication } from './secret-manager.ts';
import { done, explained, type JobExit, type JobLog, type JobShell, retried } from './shell.ts';
import { type StoreResult, storeSecret } from './store-secret.ts';

/** Runs to an end; never throws. */
export async function runJob(config: JobConfig, shell: JobShell): Promise<JobExit> {
  try {
    return config.mode === 'delete' ? await removePlaces(config, shell) : await storeAll(config, shell);
  } catch (error) {
    return failedEnd(config, shell.log, error);
  }
}

/** The end of a run that failed, also before anything was set up. */
export function failedEnd(
  config: Pick<JobConfig, 'gcpProjectId' | 'secretName'>,
  log: JobLog,
  error: unknown,
): JobExit {
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

async function storeAll(config: JobConfig, shell: JobShell): Promise<JobExit> {
  const { log } = shell;
  assertPullSecret(config.pullSecret);
  log('info', 'start', 'Starting pull secret storage operation');
  await retried(shell, () => assertTenant(config, shell));
  const leftOut = new Set<string>();
  const stored = await retried(shell, () =>
    storeSecret({
      manager: shell.manager,
      secretName: config.secretName,
      content: config.pullSecret,
      labels: { ...config.extraLabels, ...gcpLabels({ id: config.clusterId, name: config.clusterName }) },
      replication: config.replication,
      location: config.location,
      generation: config.generation,
      policy: config.policy,
      revoke: config.revoke,
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
  if (management !== undefined) {
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
  return done(
    stored.reason,
    `Secret "${config.secretName}" in project "${config.gcpProjectId}" holds the pull secret`,
    details,
  );
}

/** What the adapter puts into the status, and into its metrics. */
function storedDetails(config: JobConfig, stored: StoreResult): JobResult['details'] {
  const { version, createdAt, enabledVersions, previousUntil, replication } = stored;
  return {
    secretName: config.secretName,
    secretVersion: versionNumber(version),
    ...(createdAt === undefined ? {} : { versionCreatedTime: createdAt }),
    ...(enabledVersions === undefined ? {} : { enabledVersions }),
    ...(previousUntil === undefined ? {} : { previousUntil }),
    gcpProject: config.gcpProjectId,
    secretPath: placeText({
      kind: 'google',
      project: config.gcpProjectId,
      ...(config.location === undefined ? {} : { location: config.location }),
      secret: config.secretName,
    }),
    replicationPolicy: policyName(replication),
    bytes: Buffer.byteLength(reveal(config.pullSecret)),
  };
}

function policyName(replication: Replication | undefined): string {
  if (replication?.regional !== undefined) return 'regional';
  return replication?.userManaged === undefined ? 'automatic' : 'user-managed';
}
