/**
 * One run of the Job: validates the pull secret and stores it in Secret Manager and for HyperShift; on deletion, removes both.
 * Every run returns a result with a reason.
 */
import { type BackOff, backOffMs } from '../../core/back-off.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { defined } from '../../core/record.ts';
import { Redacted, redact, reveal, sameSecret } from '../../core/redacted.ts';
import { retry } from '../../http/client.ts';
import { isApiError } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { CLUSTER_LABEL, clusterLabels } from '../names.ts';
import { type JobResult, NOT_THERE, OUTCOMES, type OutcomeReason } from '../outcome.ts';
import { CHALLENGE_LABEL, type GooglePlace, type KubernetesPlace, placeText } from '../places.ts';
import { judgePullSecret } from '../pull-secret.ts';
import type { JobConfig } from './config.ts';
import { explainGcpError, GcpError, JobError, permissionOf, retryableStatus } from './gcp-error.ts';
import type { Replication, SecretManager } from './secret-manager.ts';
import {
  assertOurs,
  readNewest,
  type StoreInput,
  type StoreResult,
  storeSecret,
  versionNumber,
} from './store-secret.ts';

/** Checks the tenant label of the project before any request to its Secret Manager. @throws JobError TenancyUnproven; GcpError */
async function assertTenant(
  { challenge, gcpProjectId: project }: Pick<JobConfig, 'challenge' | 'gcpProjectId'>,
  manager: SecretManager,
): Promise<void> {
  if (challenge === '') return;
  const { [CHALLENGE_LABEL]: present } = await manager.projectLabels();
  if (present === challenge) return;
  const state = present === undefined ? 'has no label' : 'has another tenant in its label';
  throw new JobError(
    'TenancyUnproven',
    `Project "${project}" ${state} "${CHALLENGE_LABEL}": to allow this tenant, its owner runs "gcloud projects update ${project} --update-labels=${CHALLENGE_LABEL}=${challenge}"`,
  );
}

export interface JobShell extends Pick<StoreInput, 'runner' | 'now' | 'pause'> {
  readonly managerOf: (place: GooglePlace) => SecretManager;
  readonly managementOf: (place: KubernetesPlace) => ManagementSecretInput;
  readonly log: JobLog;
}

/** Logs in the format of the existing job. `version`: full name of a secret version. */
export type JobLog = (level: 'info' | 'error', operation: string, message: string, version?: string) => void;

/** The result of a run; its reason determines the exit code. */
export type JobEnd = JobResult & { readonly reason: OutcomeReason };

/** Converts any error to a JobError. */
function explained(project: string, error: unknown): JobError {
  if (error instanceof JobError) return error;
  if (error instanceof GcpError) return explainGcpError(error, project);
  if (error instanceof Error && error.name === 'AbortError') {
    // The run timeout or a signal interrupted a pause.
    if (error.cause instanceof JobError) return error.cause;
    return new JobError('Interrupted', 'The run was interrupted and will be retried', error);
  }
  const kind = error instanceof Error ? error.name : typeof error;
  return new JobError(
    'UnexpectedFailure',
    `The run failed unexpectedly (${kind}); it will be retried`,
    error,
  );
}

function done(reason: OutcomeReason, message: string, details: JobResult['details']): JobEnd {
  return { status: 'success', reason, message, details };
}

/** Retries the whole operation, which reads first and so detects a write whose response did not arrive. */
async function retried<T>(shell: JobShell, operation: () => Promise<T>): Promise<T> {
  return retry(operation, {
    tries: TRIES,
    waitMs: (round) => Math.round(backOffMs(JOB_BACK_OFF, round, Math.random())),
    longestWaitMs: LONGEST_WAIT_MS,
    pause: shell.pause,
    again: (tried) => ('error' in tried ? againAfter(tried.error) : undefined),
  });
}

/** As in the existing job: 1 s, 2 s, 4 s, with 20 % jitter. */
export const JOB_BACK_OFF: BackOff = { firstMs: 1000, maxMs: 60_000, spread: [0.8, 1.2] };
const TRIES = 3;
/** For a longer Retry-After the run fails, and is retried later. */
const LONGEST_WAIT_MS = 30_000;

/** The delay before a retry; undefined if a retry cannot succeed. */
export function againAfter(error: unknown): { readonly afterMs?: number | undefined } | undefined {
  if (error instanceof GcpError)
    return retryableStatus(error.status) ? { afterMs: error.details.retryAfterMs } : undefined;
  return error instanceof JobError && error.reason === 'ManagementClusterUnavailable' ? {} : undefined;
}

// Deletion: every location is tried, even if others fail, and the receipt records the outcome of each. A secret counts as removed
// only if a later read does not find it, or if it has another owner.

/** Deletes from every location. The first failure becomes the result of the run. */
async function removePlaces(config: JobConfig, shell: JobShell): Promise<JobEnd> {
  const receipt: Record<string, string> = {};
  let failure: JobError | undefined;
  for (const place of config.places) {
    const text = placeText(place);
    try {
      const became = await retried(shell, async () => {
        if (place.kind === 'kubernetes') return removeManagementSecret(shell.managementOf(place));
        return config.onDeletion === 'retain' ? 'retained by policy' : removeStored(place, config, shell);
      });
      receipt[text] = became;
      shell.log('info', 'delete-secret', `${text}: ${became}`);
    } catch (error) {
      const known = explained(place.kind === 'google' ? place.project : '', error);
      shell.log('error', 'delete-secret', `${text}: ${known.message}`);
      failure ??= known;
    }
  }
  if (failure !== undefined) return failed(config, failure, { receipt });
  shell.log('info', 'completed', 'Removed pull secret');
  const lines = Object.entries(receipt).map(([place, became]) => `${place}: ${became}`);
  const details = { secretName: config.secretName, gcpProject: config.gcpProjectId };
  return { ...done('SecretDeleted', lines.join('; ').slice(0, 1024), details), receipt };
}

function failed(
  { secretName, gcpProjectId: gcpProject }: Pick<JobConfig, 'gcpProjectId' | 'secretName'>,
  { reason, message }: JobError,
  more: Pick<JobResult, 'receipt'> = {},
): JobEnd {
  const retriable = OUTCOMES[reason].class !== 'terminal';
  const details = { secretName, gcpProject, retriable };
  return { status: 'failure', reason, message: message.slice(0, 1024), details, ...more };
}

async function removeStored(place: GooglePlace, { labels }: JobConfig, shell: JobShell): Promise<string> {
  const manager = shell.managerOf(place);
  const secret = await manager.get(place.secret);
  if (secret === undefined) return NOT_THERE;
  const ours = ['managed-by', 'cluster-id'].every((key) => secret.labels?.[key] === labels[key]);
  // A secret with another owner must not be deleted.
  if (!ours) return 'retained: has another owner';
  try {
    await manager.delete(place.secret, secret.etag);
  } catch (error) {
    // Changed since it was read: retry.
    const changed = error instanceof GcpError && error.status === 'FAILED_PRECONDITION';
    throw changed ? new GcpError('DeleteSecret', 'ABORTED', { cause: error }) : error;
  }
  // A successful call does not prove the deletion.
  if ((await manager.get(place.secret)) !== undefined) throw new GcpError('DeleteSecret', 'ABORTED');
  return 'removed';
}

/** Runs the Job. @throws JobError, GcpError */
export function runJob(config: JobConfig, shell: JobShell): Promise<JobEnd> {
  return config.mode === 'delete' ? removePlaces(config, shell) : storeAll(config, shell);
}

/** The result of a failed run, also one that failed during setup. */
export function failedEnd(
  config: Pick<JobConfig, 'gcpProjectId' | 'secretName'>,
  log: JobLog,
  error: unknown,
): JobEnd {
  const known = explained(config.gcpProjectId, error);
  const operation = known.reason === 'InvalidPullSecret' ? 'validate-pull-secret' : 'create-update-secret';
  log('error', operation, known.message);
  return failed(config, known);
}

/** @throws JobError InvalidPullSecret */
export function assertPullSecret(secret: Redacted<string>): void {
  const problems = judgePullSecret(secret);
  if (problems.length > 0) {
    throw new JobError(
      'InvalidPullSecret',
      `Invalid pull secret format: ${problems.slice(0, 10).join('; ')}`,
    );
  }
}

async function storeAll(config: JobConfig, shell: JobShell): Promise<JobEnd> {
  const { log } = shell;
  const { google, kubernetes } = config;
  assertPullSecret(config.pullSecret);
  log('info', 'start', 'Starting pull secret storage operation');
  const manager = shell.managerOf(google);
  await retried(shell, () => assertTenant(config, manager));
  const leftOut = new Set<string>();
  const stored = await retried(shell, () =>
    storeSecret({
      ...config,
      ...shell,
      manager,
      location: google.location,
      log: (operation, message, version) => log('info', operation, message, version),
      leftOut: (call) => leftOut.add(permissionOf(call)),
    }),
  );
  const missing = [...leftOut].sort().join(', ');
  if (missing !== '')
    log('info', 'permissions', `Labels and older versions are not updated without ${missing}`);
  const second = kubernetes === undefined ? '' : `${kubernetes.namespace}/${kubernetes.secret}`;
  if (kubernetes !== undefined) {
    await retried(shell, () => writeManagementSecret(shell.managementOf(kubernetes), config.pullSecret));
    log('info', 'management-secret', `Secret/${second} contains the pull secret`);
  }
  log('info', 'completed', 'Successfully created/updated pull secret');
  const details = {
    ...storedDetails(config, google, stored),
    ...(missing === '' ? {} : { missingPermissions: missing }),
    ...(second === '' ? {} : { managementSecret: second }),
  };
  return done(
    stored.reason,
    `Secret "${config.secretName}" in project "${config.gcpProjectId}" contains the pull secret`,
    details,
  );
}

/** Details for the adapter's status report and metrics. */
function storedDetails(config: JobConfig, google: GooglePlace, stored: StoreResult): JobResult['details'] {
  const { version, createdAt, enabledVersions, previousUntil, replication } = stored;
  return {
    secretName: config.secretName,
    secretVersion: versionNumber(version),
    ...defined({ versionCreatedTime: createdAt, enabledVersions, previousUntil }),
    gcpProject: config.gcpProjectId,
    secretPath: placeText(google),
    replicationPolicy: policyName(replication),
    bytes: Buffer.byteLength(reveal(config.pullSecret)),
  };
}

function policyName(replication: Replication | undefined): string {
  if (replication?.regional !== undefined) return 'regional';
  return replication?.userManaged === undefined ? 'automatic' : 'user-managed';
}

// Dry run: authenticates and tests the permissions, and writes nothing.

/** Required to store. */
const NEEDED = ['secretmanager.secrets.get', 'secretmanager.versions.add', 'secretmanager.versions.access'];
/** Required only to create the secret. */
const TO_CREATE = 'secretmanager.secrets.create';
/** Optional: without these, labels and older versions are not updated. */
const WANTED = [
  'secretmanager.secrets.update',
  'secretmanager.versions.list',
  'secretmanager.versions.disable',
  'secretmanager.versions.destroy',
];
const TO_DELETE = ['secretmanager.secrets.get', 'secretmanager.secrets.delete'];

/** Simulates a run. @throws JobError, GcpError with which a real run would fail */
export async function dryRunJob(config: JobConfig, shell: JobShell): Promise<JobEnd> {
  const { log } = shell;
  const { google, kubernetes } = config;
  const manager = shell.managerOf(google);
  const stores = config.mode === 'store';
  if (stores) assertPullSecret(config.pullSecret);
  log('info', 'start', 'Starting pull secret storage operation (DRY RUN MODE)');
  if (stores) await assertTenant(config, manager);
  const { plan, permissions } = await planned(config, manager, shell);
  log('info', 'dry-run', `DRY RUN: Would ${plan} secret: ${config.secretName}`);
  const details: Record<string, string> = {
    plan,
    permissions,
    secretName: config.secretName,
    gcpProject: config.gcpProjectId,
  };
  let second = '';
  if (stores && kubernetes !== undefined) {
    const what = await writeManagementSecret(shell.managementOf(kubernetes), config.pullSecret, true);
    const name = `${kubernetes.namespace}/${kubernetes.secret}`;
    Object.assign(details, { managementSecret: name, managementPlan: what });
    second = `, and ${what} Secret/${name}`;
    log('info', 'dry-run', `DRY RUN: Would ${what} Secret/${name}`);
  }
  const message = `Would ${plan} secret "${config.secretName}" in project "${config.gcpProjectId}"${second}`;
  return done('DryRunPassed', message, details);
}

/** The planned action for the log, and the result of the permission test. */
async function planned(config: JobConfig, manager: SecretManager, { log, pause }: JobShell) {
  const { secretName, gcpProjectId, mode, onDeletion } = config;
  const secret = await manager.get(secretName);
  /** @throws JobError IamPermissionDenied if a required permission is missing */
  const tested = async (needed: readonly string[], wanted: readonly string[]): Promise<string> => {
    const tried = secret === undefined ? undefined : secretName;
    const granted = new Set(await manager.testPermissions(tried, [...needed, ...wanted]));
    const missing = needed.filter((permission) => !granted.has(permission));
    const where = secret === undefined ? `in project "${gcpProjectId}"` : `on secret "${secretName}"`;
    if (missing.length > 0)
      throw new JobError(
        'IamPermissionDenied',
        `Cannot ${mode}: the identity of the Job lacks ${missing.join(', ')} ${where}; grant it`,
      );
    const left = wanted.filter((permission) => !granted.has(permission));
    return left.length === 0 ? 'tested' : `without ${left.join(', ')}`;
  };
  if (mode === 'delete') {
    if (secret === undefined) return { plan: 'find no', permissions: 'tested' };
    if (onDeletion === 'retain') return { plan: 'retain', permissions: 'tested' };
    return { plan: 'delete', permissions: await tested(TO_DELETE, []) };
  }
  if (secret === undefined) {
    try {
      return { plan: 'create', permissions: await tested([...NEEDED, TO_CREATE], WANTED) };
    } catch (error) {
      // Cloud Resource Manager may be disabled: then only a real run can show missing permissions.
      if (!(error instanceof GcpError)) throw error;
      const text = `Permissions on project "${gcpProjectId}" are not tested: cloudresourcemanager.googleapis.com returned ${error.details.info ?? error.status}`;
      log('info', 'dry-run', text);
      return { plan: 'create', permissions: 'not tested' };
    }
  }
  assertOurs(config, secret);
  const permissions = await tested(NEEDED, WANTED);
  const present = await readNewest({ manager, secretName, pause });
  const same = present !== undefined && sameSecret(present.text, config.pullSecret);
  return { plan: same ? 'leave as it is' : 'add a version to', permissions };
}

// The Secret with the pull secret for HyperShift, in the management namespace of the cluster.
//
// The API server authorizes a request before it looks up the namespace. While namespace and RoleBinding do not exist yet, it
// returns 403, which is retried.

const MANAGER = 'pullwright-pull-secret-adapter';
const TYPE = 'kubernetes.io/dockerconfigjson';
const KEY = '.dockerconfigjson';

interface ManagementSecretInput
  extends KubernetesPlace,
    Pick<JobConfig, 'clusterId' | 'clusterName' | 'adopt'> {
  readonly client: Pick<KubeClient, 'get' | 'apply' | 'remove'>;
}

/**
 * Writes the Secret with exactly the content of Secret Manager, unless it already matches.
 *
 * @param dryRun server-side dry run: includes authorization and admission, persists nothing
 * @throws JobError
 */
async function writeManagementSecret(
  input: ManagementSecretInput,
  content: Redacted<string>,
  dryRun = false,
): Promise<'create' | 'change' | 'leave as it is'> {
  return withCause(input, async () => {
    const wanted = wantedSecret(input, content);
    const present = await read(input);
    if (present !== undefined) {
      assertReplaceable(input, present);
      if (isSame(present, wanted)) return 'leave as it is';
    }
    // The resource version makes a concurrent write fail: the Secret may belong to another cluster by now.
    const seen = present?.metadata.resourceVersion;
    const metadata = seen === undefined ? wanted.metadata : { ...wanted.metadata, resourceVersion: seen };
    await input.client.apply({ ...wanted, metadata }, { manager: MANAGER, force: true, dryRun });
    return present === undefined ? 'create' : 'change';
  });
}

/** Deletes the Secret if it belongs to this cluster. @returns the outcome for the receipt @throws JobError */
async function removeManagementSecret(input: ManagementSecretInput): Promise<string> {
  return withCause(input, async () => {
    const present = await read(input);
    if (present === undefined) return NOT_THERE;
    if (present.metadata.labels?.[CLUSTER_LABEL] !== input.clusterId) return 'retained: has another owner';
    const uid = present.metadata.uid;
    const { namespace, secret: name } = input;
    await input.client.remove(
      { apiVersion: 'v1', kind: 'Secret', namespace, name },
      uid === undefined ? {} : { uid },
    );
    return 'removed';
  });
}

async function read(input: ManagementSecretInput): Promise<KubeObject | undefined> {
  const { client, namespace, secret: name } = input;
  try {
    return await client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name });
  } catch (error) {
    // Access depends on a RoleBinding in the namespace: if the namespace is missing, the API server returns 403, not 404.
    if (!isApiError(error, 403)) throw error;
    throw new JobError(
      'ManagementNamespaceMissing',
      `Cannot read Secret/${namespace}/${name}: the namespace does not exist yet, or has no RoleBinding for the ServiceAccount of the Job`,
      error,
    );
  }
}

function wantedSecret(input: ManagementSecretInput, content: Redacted<string>): KubeObject {
  const { secret: name, namespace, clusterId: id, clusterName } = input;
  const cluster = { id, name: clusterName, region: undefined, provider: 'gcp' };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, labels: clusterLabels(cluster, 'pull-secret') },
    type: TYPE,
    data: { [KEY]: redact(Buffer.from(reveal(content)).toString('base64')) },
  };
}

/** Compares only the labels and the key that we own. */
function isSame(present: KubeObject, wanted: KubeObject): boolean {
  const labels = Object.entries(wanted.metadata.labels ?? {});
  if (labels.some(([key, value]) => present.metadata.labels?.[key] !== value)) return false;
  const [had, has] = [present, wanted].map(
    (secret) => (secret['data'] as Record<string, unknown> | undefined)?.[KEY],
  );
  return had instanceof Redacted && has instanceof Redacted && sameSecret(had, has);
}

/** @throws JobError PullSecretConflict */
function assertReplaceable(input: ManagementSecretInput, present: KubeObject): void {
  const owner = present.metadata.labels?.[CLUSTER_LABEL];
  if (owner !== input.clusterId && !(owner === undefined && input.adopt)) {
    const whose =
      owner === undefined
        ? `has no label ${CLUSTER_LABEL}`
        : `belongs to another cluster (label ${CLUSTER_LABEL})`;
    throw conflict(input, `it ${whose}; remove it, or use a separate namespace for the cluster`);
  }
  const type = present['type'];
  if (type !== TYPE) {
    throw conflict(input, `its type is not ${TYPE}, and cannot be changed; remove it`);
  }
  if (present['immutable'] === true) throw conflict(input, 'it is immutable; remove it');
}

function conflict({ namespace, secret: name }: ManagementSecretInput, why: string): JobError {
  return new JobError('PullSecretConflict', `Cannot write Secret/${namespace}/${name}: ${why}`);
}

async function withCause<T>(input: ManagementSecretInput, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof JobError) throw error;
    const [reason, text] = explanation(error);
    throw new JobError(reason, `Cannot write Secret/${input.namespace}/${input.secret}: ${text}`, error);
  }
}

function explanation(error: unknown): readonly [OutcomeReason, string] {
  if (!isApiError(error)) return ['ManagementClusterUnavailable', 'the API server rejected it'];
  if (error.status === 404) return ['ManagementNamespaceMissing', 'the namespace does not exist yet'];
  if (error.status === 422)
    return ['PullSecretConflict', 'the API server rejected it; check the existing Secret'];
  if (error.status !== 403)
    return ['ManagementClusterUnavailable', `the API server rejected it (HTTP ${error.status})`];
  if (error.causes.some((cause) => cause.reason === 'NamespaceTerminating'))
    return ['ManagementNamespaceMissing', 'the namespace is being deleted'];
  return [
    'ManagementPermissionDenied',
    'permission denied for the ServiceAccount of the Job; check the RoleBinding in that namespace and admission policies',
  ];
}
