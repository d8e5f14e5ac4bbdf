/** What a run would do, after really authenticating and asking for the permissions. Writes nothing. */
import { sameSecret } from '../../rules/redacted.ts';
import { gcpLabels } from '../names.ts';
import type { JobConfig } from './config.ts';
import { GcpError, JobError } from './gcp-error.ts';
import { assertPullSecret } from './job.ts';
import { tryManagementSecret } from './management-secret.ts';
import { assertTenant } from './project-challenge.ts';
import { readNewest } from './read-version.ts';
import { assertOurs } from './secret-ownership.ts';
import type { JobExit, JobShell } from './shell.ts';

/** Storing fails without one of these. */
const NEEDED = ['secretmanager.secrets.get', 'secretmanager.versions.add', 'secretmanager.versions.access'];
/** Only for a secret that is not there yet. */
const TO_CREATE = 'secretmanager.secrets.create';
/** Without these, labels and older versions stay as they are. */
const WANTED = [
  'secretmanager.secrets.update',
  'secretmanager.versions.list',
  'secretmanager.versions.disable',
  'secretmanager.versions.destroy',
];
const TO_DELETE = ['secretmanager.secrets.get', 'secretmanager.secrets.delete'];

/** What is planned, as a word of the log, and what was found out about permissions. */
interface Plan {
  readonly plan: string;
  readonly permissions: string;
}

/** @throws JobError, GcpError: what a run would end with */
export async function dryRunJob(config: JobConfig, shell: JobShell): Promise<JobExit> {
  const { log, management } = shell;
  if (config.mode === 'store') assertPullSecret(config.pullSecret);
  log('info', 'start', 'Starting pull secret storage operation (DRY RUN MODE)');
  if (config.mode === 'store') await assertTenant(config, shell);
  const { plan, permissions } = await planned(config, shell);
  log('info', 'dry-run', `DRY RUN: Would ${plan} secret: ${config.secretName}`);
  const details: Record<string, string> = {
    plan,
    permissions,
    secretName: config.secretName,
    gcpProject: config.gcpProjectId,
  };
  let second = '';
  if (management !== undefined && config.mode === 'store') {
    const what = await tryManagementSecret(management, config.pullSecret);
    details['managementSecret'] = `${management.namespace}/${management.name}`;
    details['managementPlan'] = what;
    second = `, and ${what} Secret/${management.namespace}/${management.name}`;
    log('info', 'dry-run', `DRY RUN: Would ${what} Secret/${management.namespace}/${management.name}`);
  }
  const message = `Would ${plan} secret "${config.secretName}" in project "${config.gcpProjectId}"${second}`;
  return { exitCode: 0, result: { status: 'success', reason: 'DryRunPassed', message, details } };
}

async function planned(config: JobConfig, shell: JobShell): Promise<Plan> {
  const { manager } = shell;
  const secret = await manager.get(config.secretName);
  if (config.mode === 'delete') {
    if (secret === undefined) return { plan: 'find no', permissions: 'tested' };
    if (config.onDeletion === 'retain') return { plan: 'retain', permissions: 'tested' };
    return { plan: 'delete', permissions: await tested(config, shell, TO_DELETE, []) };
  }
  if (secret === undefined) return { plan: 'create', permissions: await testedOnProject(config, shell) };
  const labels = gcpLabels({ id: config.clusterId, name: config.clusterName });
  assertOurs({ ...config, labels }, secret);
  const permissions = await tested(config, shell, NEEDED, WANTED);
  const present = await readNewest({ manager, secretName: config.secretName, pause: shell.pause });
  const same = present !== undefined && sameSecret(present.text, config.pullSecret);
  return { plan: same ? 'leave as it is' : 'add a version to', permissions };
}

async function tested(
  config: JobConfig,
  shell: JobShell,
  needed: readonly string[],
  wanted: readonly string[],
): Promise<string> {
  const granted = await shell.manager.testPermissions(config.secretName, [...needed, ...wanted]);
  return judged({ granted, needed, wanted, where: `on secret "${config.secretName}"` });
}

/** The project is asked by another API, which may not be enabled: then the run itself has to show it. */
async function testedOnProject(config: JobConfig, { manager, log }: JobShell): Promise<string> {
  const needed = [...NEEDED, TO_CREATE];
  let granted: readonly string[];
  try {
    granted = await manager.testProjectPermissions([...needed, ...WANTED]);
  } catch (error) {
    if (!(error instanceof GcpError)) throw error;
    const text = `Permissions on project "${config.gcpProjectId}" are not tested: cloudresourcemanager.googleapis.com answers ${error.info ?? error.status}`;
    log('info', 'dry-run', text);
    return 'not tested';
  }
  return judged({ granted, needed, wanted: WANTED, where: `in project "${config.gcpProjectId}"` });
}

function judged(test: {
  readonly granted: readonly string[];
  readonly needed: readonly string[];
  readonly wanted: readonly string[];
  readonly where: string;
}): string {
  const missing = test.needed.filter((permission) => !test.granted.includes(permission));
  if (missing.length > 0) {
    throw new JobError(
      'IamPermissionDenied',
      `Cannot store: the identity of the Job has no ${missing.join(', ')} ${test.where}; grant it`,
    );
  }
  const left = test.wanted.filter((permission) => !test.granted.includes(permission));
  return left.length === 0 ? 'tested' : `without ${left.join(', ')}`;
}
