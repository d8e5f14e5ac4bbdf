/** What the Job reads from its environment: the names of the existing job, and ours. */
import { type Redacted, redact } from '../../rules/redacted.ts';
import { CLUSTER_ID } from '../cluster-event.ts';
import { type Place, readPlace } from '../places.ts';
import {
  endpoint,
  envChoice,
  envDurationMs,
  envNumber,
  type JobEnvironment,
  labelsOf,
  locationOf,
  policyOf,
  regionalEndpoint,
  replicationIn,
  wrong,
} from './config-values.ts';
import type { RetirementPolicy } from './retirement.ts';
import type { Replication } from './secret-manager.ts';

/** The task as the existing job knows it. */
export interface JobTask {
  readonly gcpProjectId: string;
  readonly clusterId: string;
  readonly secretName: string;
  readonly pullSecret: Redacted<string>;
}

export interface JobConfig extends JobTask {
  readonly mode: 'store' | 'delete';
  readonly clusterName: string;
  /** Of a regional secret; undefined for one that Google replicates. */
  readonly location: string | undefined;
  /** Value of the label on the project that lets the tenant in; empty: nobody asks. */
  readonly challenge: string;
  readonly generation: number;
  /** Undefined: whatever the secret has. */
  readonly replication: Replication | undefined;
  readonly extraLabels: Readonly<Record<string, string>>;
  /** What becomes of older versions. */
  readonly policy: RetirementPolicy;
  /** Any text by which older versions are revoked at once; empty: nobody asks. */
  readonly revoke: string;
  readonly onDeletion: 'delete' | 'retain';
  readonly adopt: boolean;
  readonly impersonate: string;
  readonly managementNamespace: string;
  readonly managementSecretName: string;
  /** What a deletion goes to. */
  readonly places: readonly Place[];
  readonly secretManagerEndpoint: string;
  /** With `{location}`, for regional secrets. */
  readonly regionalEndpoint: string;
  readonly iamCredentialsEndpoint: string;
  /** Of Cloud Resource Manager; a dry run asks it for permissions. */
  readonly resourceManagerEndpoint: string;
  /** For each answer. */
  readonly timeoutMs: number;
  /** For the whole run. Four of them, and the pauses between, fit into the Job's deadline: with it the pod goes, and the reason is lost. */
  readonly runTimeoutMs: number;
  readonly resultFile: string;
  readonly terminationLog: string;
}

/**
 * The checks of the existing job, in its order and words.
 *
 * @example
 * ```ts
 * import { missingVariable } from './config.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(missingVariable({ gcpProjectId: 'p', clusterId: '', secretName: 's', pullSecret: true }), 'CLUSTER_ID');
 * ```
 */
export function missingVariable(task: {
  readonly gcpProjectId: string;
  readonly clusterId: string;
  readonly secretName: string;
  readonly pullSecret: boolean;
}): string | undefined {
  if (task.gcpProjectId === '') return 'GCP_PROJECT_ID';
  if (task.clusterId === '') return 'CLUSTER_ID';
  if (task.secretName === '') return 'SECRET_NAME';
  return task.pullSecret ? undefined : 'PULL_SECRET_DATA';
}

/** `SECRET_NAME`, or the name made from the cluster. */
export function secretNameOf(env: JobEnvironment): string {
  const given = env['SECRET_NAME'] ?? '';
  if (given !== '') return given;
  const id = env['CLUSTER_ID'] ?? '';
  return id === '' ? '' : `hyperfleet-${id}-pull-secret`;
}

/**
 * Reads the environment.
 *
 * @param env the process environment
 * @param file text of the file that `PULL_SECRET_FILE` names, if it names one
 * @throws JobError InvalidConfiguration, naming the variable
 */
export function readJobConfig(env: JobEnvironment, file: Redacted<string> | undefined): JobConfig {
  const mode = envChoice(env, 'JOB_MODE', ['store', 'delete'], 'store');
  const places = mode === 'delete' ? placesOf(env) : [];
  const { pullSecret, ...task } = readTask(env, file, mode, places);
  return { ...task, pullSecret, mode, places, ...readOptions(env) };
}

/** `PLACES`, or the one place that the other variables name. */
function placesOf(env: JobEnvironment): readonly Place[] {
  const given = (env['PLACES'] ?? '').split(' ').filter((text) => text !== '');
  const project = env['GCP_PROJECT_ID'] ?? '';
  const namespace = env['MANAGEMENT_NAMESPACE'] ?? '';
  const name = env['MANAGEMENT_SECRET_NAME'] ?? 'pull-secret';
  const named = [
    ...(project === '' ? [] : [`projects/${project}${locationPath(env)}/secrets/${secretNameOf(env)}`]),
    ...(namespace === '' ? [] : [`namespaces/${namespace}/secrets/${name}`]),
  ];
  return (given.length > 0 ? given : named).map((text) => {
    const place = readPlace(text);
    if (place === undefined)
      throw wrong('PLACES holds what is no place: expected projects/P/secrets/S or namespaces/N/secrets/S');
    return place;
  });
}

function locationPath(env: JobEnvironment): string {
  const location = env['SECRET_LOCATION'] ?? '';
  return location === '' ? '' : `/locations/${location}`;
}

/** Who and where; the part that the existing job has. */
function readTask(
  env: JobEnvironment,
  file: Redacted<string> | undefined,
  mode: 'store' | 'delete',
  places: readonly Place[],
): JobTask {
  const given = env['PULL_SECRET_DATA'];
  const pullSecret = file ?? (given === undefined || given === '' ? undefined : redact(given));
  const task = taskOf(env, places);
  const missing = missingVariable({ ...task, pullSecret: mode === 'delete' || pullSecret !== undefined });
  if (missing === 'PULL_SECRET_DATA') {
    throw wrong(
      'PULL_SECRET_DATA environment variable is required but not set; PULL_SECRET_FILE may name a file instead',
    );
  }
  if (missing !== undefined) throw wrong(`missing required environment variable: ${missing}`);
  if (!CLUSTER_ID.test(task.clusterId)) {
    throw wrong('CLUSTER_ID does not fit the labels of Secret Manager: expected up to 38 of a-z, 0-9 and -');
  }
  if (!/^[A-Za-z0-9_-]{1,255}$/.test(task.secretName)) {
    throw wrong('SECRET_NAME is no name of a secret: expected up to 255 of A-Z, a-z, 0-9, _ and -');
  }
  return { ...task, pullSecret: pullSecret ?? redact('') };
}

/** A deletion may name its places alone. */
function taskOf(env: JobEnvironment, places: readonly Place[]): Omit<JobTask, 'pullSecret'> {
  const google = places.find((place) => place.kind === 'google');
  return {
    gcpProjectId: env['GCP_PROJECT_ID'] ?? google?.project ?? (places.length > 0 ? 'none' : ''),
    clusterId: env['CLUSTER_ID'] ?? '',
    secretName: google?.secret ?? secretNameOf(env),
  };
}

function readOptions(env: JobEnvironment): Omit<JobConfig, keyof JobTask | 'mode' | 'places'> {
  const text = (name: string, otherwise = ''): string => env[name] ?? otherwise;
  return {
    clusterName: text('CLUSTER_NAME'),
    generation: envNumber(env, 'CLUSTER_GENERATION', 0),
    location: locationOf(env),
    challenge: text('TENANT_CHALLENGE'),
    replication: replicationIn(env),
    extraLabels: labelsOf(text('SECRET_LABELS')),
    policy: policyOf(env),
    revoke: text('REVOKE_PREVIOUS').slice(0, 128),
    onDeletion: envChoice(env, 'ON_DELETION', ['delete', 'retain'], 'delete'),
    adopt: env['ADOPT'] === 'true',
    impersonate: text('GCP_SERVICE_ACCOUNT'),
    managementNamespace: text('MANAGEMENT_NAMESPACE'),
    managementSecretName: text('MANAGEMENT_SECRET_NAME', 'pull-secret'),
    secretManagerEndpoint: endpoint(env, 'SECRET_MANAGER_ENDPOINT', 'https://secretmanager.googleapis.com'),
    regionalEndpoint: regionalEndpoint(env),
    iamCredentialsEndpoint: endpoint(
      env,
      'IAM_CREDENTIALS_ENDPOINT',
      'https://iamcredentials.googleapis.com',
    ),
    resourceManagerEndpoint: endpoint(
      env,
      'RESOURCE_MANAGER_ENDPOINT',
      'https://cloudresourcemanager.googleapis.com',
    ),
    timeoutMs: envDurationMs(env, 'GCP_API_TIMEOUT', 30_000),
    runTimeoutMs: envDurationMs(env, 'RUN_TIMEOUT', 55_000),
    resultFile: text('RESULT_FILE'),
    terminationLog: text('TERMINATION_LOG', '/dev/termination-log'),
  };
}
