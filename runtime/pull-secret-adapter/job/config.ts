/** Configuration of the Job from environment variables: those of the existing job, and additional ones. */

import { parseGoDuration } from '../../core/go/duration.ts';
import { defined } from '../../core/record.ts';
import { type Redacted, redact } from '../../core/redacted.ts';
import { gcpLabels } from '../names.ts';
import {
  CLUSTER_ID,
  GCP_SECRET_NAME,
  type GooglePlace,
  LOCATION,
  type Place,
  placeText,
  readPlace,
} from '../places.ts';
import { JobError } from './gcp-error.ts';
import type { Encryption, Replication } from './secret-manager.ts';

export type JobEnvironment = Readonly<Record<string, string | undefined>>;

function wrong(message: string): JobError {
  return new JobError('InvalidConfiguration', message);
}

/** Returns the variable, or `otherwise` if it is unset or empty. */
function valueOf(
  env: JobEnvironment,
  name: string,
  otherwise: string,
  [pattern, wanted]: readonly [RegExp, string] = [/^/, ''],
): string {
  const given = env[name] ?? '';
  if (given === '') return otherwise;
  if (!pattern.test(given)) throw wrong(`${name} is not valid: expected ${wanted}`);
  return given;
}

/** Returns one of two values; the first is the default. */
function choiceOf<T extends string>(env: JobEnvironment, name: string, [usual, other]: readonly [T, T]): T {
  const given = valueOf(env, name, usual);
  if (given === usual) return usual;
  if (given === other) return other;
  throw wrong(`${name} is not valid: expected ${usual} or ${other}`);
}

function numberOf(env: JobEnvironment, name: string, otherwise: number): number {
  return Number(valueOf(env, name, String(otherwise), [/^\d{1,9}$/, 'a whole number']));
}

function durationMsOf(env: JobEnvironment, name: string, otherwise: string): number {
  const nanoseconds = parseGoDuration(valueOf(env, name, otherwise));
  if (nanoseconds === undefined || nanoseconds <= 0)
    throw wrong(`${name} is not valid: expected a duration such as 30s`);
  return nanoseconds / 1e6;
}

function policyOf(env: JobEnvironment) {
  const destroyAfterSeconds = numberOf(env, 'DESTROY_AFTER_SECONDS', 0);
  // Google accepts a delay of 24 hours to 1000 days.
  if (destroyAfterSeconds !== 0 && (destroyAfterSeconds < 86_400 || destroyAfterSeconds > 86_400_000))
    throw wrong('DESTROY_AFTER_SECONDS is out of range: expected 0, or 86400 to 86400000');
  const isLimited = valueOf(env, 'PREVIOUS_FOR_SECONDS', '') !== '';
  return {
    /** Maximum number of older versions that stay enabled. */
    keepVersions: numberOf(env, 'KEEP_VERSIONS', 1),
    /** Time that a replaced version stays enabled; undefined: as long as `keepVersions` allows. */
    previousForSeconds: isLimited ? numberOf(env, 'PREVIOUS_FOR_SECONDS', 0) : undefined,
    /** Time until Google destroys a disabled version; 0: never. */
    destroyAfterSeconds,
  };
}

export type RetirementPolicy = Readonly<ReturnType<typeof policyOf>>;

/** The endpoint of one of Google's APIs. Accepts only https, or http to localhost, because credentials are sent there. */
function endpoint(env: JobEnvironment, name: string, api: string): string {
  const url = URL.parse(valueOf(env, name, `https://${api}.googleapis.com`));
  const local = url !== null && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
  if (url === null || (url.protocol !== 'https:' && !(local && url.protocol === 'http:'))) {
    throw wrong(`${name} is not an https URL`);
  }
  return url.origin;
}

/** Like {@link endpoint}, with the placeholder `{location}`. */
function regionalEndpoint(env: JobEnvironment): string {
  const name = 'REGIONAL_SECRET_MANAGER_ENDPOINT';
  const given = valueOf(env, name, 'https://secretmanager.{location}.rep.googleapis.com');
  endpoint({ [name]: given.replaceAll('{location}', 'location') }, name, '');
  return given;
}

function locationOf(env: JobEnvironment): string | undefined {
  const given = valueOf(env, 'SECRET_LOCATION', '', [LOCATION, 'a location such as europe-west3']);
  if (given !== '' && valueOf(env, 'REPLICATION_POLICY', '') !== '')
    throw wrong('REPLICATION_POLICY has no effect on a regional secret: must be empty with SECRET_LOCATION');
  return given === '' ? undefined : given;
}

/** Parses `automatic` or `user-managed:europe-west1,europe-west4`, and adds the KMS key of each location. */
function replicationIn(env: JobEnvironment): Replication | undefined {
  const policy = env['REPLICATION_POLICY'] ?? '';
  const key = env['KMS_KEY_NAME'] ?? '';
  const location = env['SECRET_LOCATION'] ?? '';
  if (policy === '' && key === '') return undefined;
  if (location !== '') return { regional: encryptedBy(key, location) };
  // Automatic replication requires a global key.
  if (policy === '' || policy === 'automatic') return { automatic: encryptedBy(key, 'global') };
  const locations = /^user-managed:([a-z0-9-]+(?:,[a-z0-9-]+)*)$/.exec(policy)?.[1]?.split(',');
  if (locations === undefined) {
    throw wrong('REPLICATION_POLICY is invalid: expected automatic or user-managed:LOCATION[,LOCATION]');
  }
  return { userManaged: { replicas: locations.map((one) => ({ location: one, ...encryptedBy(key, one) })) } };
}

/** @param key may contain `{location}`; empty for Google-managed encryption */
function encryptedBy(key: string, location: string): Encryption {
  if (key === '') return {};
  return { customerManagedEncryption: { kmsKeyName: key.replaceAll('{location}', location) } };
}

/** Parses `a=b,c=d`. */
function labelsOf(text: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (const part of text.split(',').filter((entry) => entry.trim() !== '')) {
    const match = /^\s*([a-z][a-z0-9_-]{0,62})=([a-z0-9_-]{0,63})\s*$/.exec(part);
    if (match === null)
      throw wrong('SECRET_LABELS is not of the form key=value,key=value of a-z, 0-9, _ and -');
    labels[match[1] ?? ''] = match[2] ?? '';
  }
  return labels;
}

/** `SECRET_NAME`, or the default name for the cluster. */
export function secretNameOf(env: JobEnvironment): string {
  const id = valueOf(env, 'CLUSTER_ID', '');
  return valueOf(env, 'SECRET_NAME', id === '' ? '' : `hyperfleet-${id}-pull-secret`);
}

/**
 * Parses and validates the environment. Checks of the existing job keep its order and messages.
 *
 * @param file content of the file in `PULL_SECRET_FILE`, if set
 * @throws JobError InvalidConfiguration with the name of the variable
 */
export function readJobConfig(env: JobEnvironment, file: Redacted<string> | undefined) {
  const mode = choiceOf(env, 'JOB_MODE', ['store', 'delete']);
  const isDeletion = mode === 'delete';
  const given = valueOf(env, 'PULL_SECRET_DATA', '');
  const places = placesOf(env, mode);
  const named = places.find((place) => place.kind === 'google');
  // A deletion may set only PLACES.
  const gcpProjectId =
    env['GCP_PROJECT_ID'] ?? named?.project ?? (isDeletion && places.length > 0 ? 'none' : '');
  const clusterId = env['CLUSTER_ID'] ?? '';
  const clusterName = valueOf(env, 'CLUSTER_NAME', '');
  const secretName = named?.secret ?? secretNameOf(env);
  const google: GooglePlace = named ?? { kind: 'google', project: gcpProjectId, secret: secretName };
  const checks: readonly (readonly [holds: boolean, fault: string])[] = [
    [gcpProjectId !== '', 'missing required environment variable: GCP_PROJECT_ID'],
    [clusterId !== '', 'missing required environment variable: CLUSTER_ID'],
    [
      isDeletion || file !== undefined || given !== '',
      'PULL_SECRET_DATA environment variable is required but not set; PULL_SECRET_FILE may name a file instead',
    ],
    [
      CLUSTER_ID.test(clusterId),
      'CLUSTER_ID does not fit the labels of Secret Manager: expected up to 38 of a-z, 0-9 and -',
    ],
    [
      GCP_SECRET_NAME.test(secretName),
      'SECRET_NAME is not a secret name: expected up to 255 of A-Z, a-z, 0-9, _ and -',
    ],
  ];
  for (const [holds, fault] of checks) if (!holds) throw wrong(fault);
  return {
    mode,
    gcpProjectId,
    clusterId,
    clusterName,
    secretName,
    pullSecret: file ?? redact(given),
    /** Locations to store to, one of them in Secret Manager; or locations to delete. */
    places,
    google,
    kubernetes: places.find((place) => place.kind === 'kubernetes'),
    generation: numberOf(env, 'CLUSTER_GENERATION', 0),
    /** Expected value of the project's tenant label; empty: not checked. */
    challenge: valueOf(env, 'TENANT_CHALLENGE', ''),
    /** Undefined: the replication of an existing secret is not checked. */
    replication: replicationIn(env),
    /** Labels of the secret in Secret Manager. */
    labels: {
      ...labelsOf(valueOf(env, 'SECRET_LABELS', '')),
      ...gcpLabels({ id: clusterId, name: clusterName }),
    },
    policy: policyOf(env),
    /** A new value revokes all older versions; empty: no request. */
    revoke: valueOf(env, 'REVOKE_PREVIOUS', '').slice(0, 128),
    onDeletion: choiceOf(env, 'ON_DELETION', ['delete', 'retain']),
    /** Adopt secrets without an owner label. */
    adopt: env['ADOPT'] === 'true',
    /** Service account to impersonate; empty: none. */
    impersonate: valueOf(env, 'GCP_SERVICE_ACCOUNT', ''),
    secretManagerEndpoint: endpoint(env, 'SECRET_MANAGER_ENDPOINT', 'secretmanager'),
    /** Endpoint of regional secrets, with the placeholder `{location}`. */
    regionalEndpoint: regionalEndpoint(env),
    iamCredentialsEndpoint: endpoint(env, 'IAM_CREDENTIALS_ENDPOINT', 'iamcredentials'),
    /** Cloud Resource Manager, for the tenant label and the permission test of a dry run. */
    resourceManagerEndpoint: endpoint(env, 'RESOURCE_MANAGER_ENDPOINT', 'cloudresourcemanager'),
    /** Timeout of one request. */
    timeoutMs: durationMsOf(env, 'GCP_API_TIMEOUT', '30s'),
    /** Timeout of the run. Four runs fit into the Job's deadline, at which the Job controller deletes the pod and its result. */
    runTimeoutMs: durationMsOf(env, 'RUN_TIMEOUT', '55s'),
  };
}

export type JobConfig = Readonly<ReturnType<typeof readJobConfig>>;

/** For a deletion, the locations in `PLACES`; otherwise those of the other variables. */
function placesOf(env: JobEnvironment, mode: 'store' | 'delete'): readonly Place[] {
  const texts = valueOf(env, 'PLACES', '')
    .split(' ')
    .filter((text) => text !== '');
  if (mode === 'store') return namedPlaces(env);
  return (texts.length > 0 ? texts : namedPlaces(env).map(placeText)).map((text) => {
    const place = readPlace(text);
    if (place === undefined)
      throw wrong('PLACES is invalid: expected projects/P/secrets/S or namespaces/N/secrets/S');
    return place;
  });
}

function namedPlaces(env: JobEnvironment): readonly Place[] {
  const project = valueOf(env, 'GCP_PROJECT_ID', '');
  const location = locationOf(env);
  const namespace = valueOf(env, 'MANAGEMENT_NAMESPACE', '');
  const google = { kind: 'google', project, ...defined({ location }), secret: secretNameOf(env) } as const;
  const secret = valueOf(env, 'MANAGEMENT_SECRET_NAME', 'pull-secret');
  return [
    ...(project === '' ? [] : [google]),
    ...(namespace === '' ? [] : [{ kind: 'kubernetes', namespace, secret } as const]),
  ];
}
