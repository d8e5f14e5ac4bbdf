/** What a run would do, after really authenticating and asking for the permissions. */

import { sameSecret } from '../rules/redacted.ts';
import { explainGcpError, GcpError, JobError } from './gcp-error.ts';
import { assertPullSecret, type JobEnd, type JobLog } from './job.ts';
import type { JobConfig } from './job-config.ts';
import type { SecretManager } from './secret-manager.ts';

const ON_SECRET = [
  'secretmanager.versions.add',
  'secretmanager.versions.access',
  'secretmanager.secrets.update',
];

/** Writes nothing. @throws JobError */
export async function dryRun(config: JobConfig, manager: SecretManager, log: JobLog): Promise<JobEnd> {
  try {
    if (config.mode === 'store') assertPullSecret(config.pullSecret);
    log('info', 'start', 'Starting pull secret storage operation (DRY RUN MODE)');
    const plan = await planned(config, manager);
    log('info', 'dry-run', `DRY RUN: Would ${plan} secret: ${config.secretName}`);
    const message = `Would ${plan} secret "${config.secretName}" in project "${config.gcpProjectId}"`;
    return { exitCode: 0, result: { status: 'success', reason: 'DryRunPassed', message, details: { plan } } };
  } catch (error) {
    throw error instanceof GcpError ? explainGcpError(error, config.gcpProjectId) : error;
  }
}

async function planned(config: JobConfig, manager: SecretManager): Promise<string> {
  const secret = await manager.get(config.secretName);
  if (config.mode === 'delete') return secret === undefined ? 'find no' : 'delete';
  if (secret === undefined) return 'create';
  const granted = await manager.testPermissions(config.secretName, ON_SECRET);
  const missing = ON_SECRET.filter((permission) => !granted.includes(permission));
  if (missing.length > 0) {
    throw new JobError(
      'IamPermissionDenied',
      `Cannot store: missing ${missing.join(', ')} on "${config.secretName}"`,
    );
  }
  const present = await manager.access(config.secretName, 'latest');
  return present !== undefined && sameSecret(present.text, config.pullSecret)
    ? 'leave as it is'
    : 'add a version to';
}
