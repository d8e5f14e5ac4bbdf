/** Single variables of the Job's environment: each with its check, and a message that names the variable. */
import { LOCATION } from '../places.ts';
import { JobError } from './gcp-error.ts';
import type { RetirementPolicy } from './retirement.ts';
import type { Replication } from './secret-manager.ts';

export type JobEnvironment = Readonly<Record<string, string | undefined>>;

/** Where regional secrets of a location are asked for. Source: Google's documentation of regional endpoints. */
const REGIONAL_ENDPOINT = 'https://secretmanager.{location}.rep.googleapis.com';

export function wrong(message: string): JobError {
  return new JobError('InvalidConfiguration', message);
}

export function envChoice<T extends string>(
  env: JobEnvironment,
  name: string,
  values: readonly T[],
  otherwise: T,
): T {
  const given = env[name] ?? '';
  if (given === '') return otherwise;
  const found = values.find((value) => value === given);
  if (found === undefined) throw wrong(`${name} is not known: expected ${values.join(' or ')}`);
  return found;
}

export function envNumber(env: JobEnvironment, name: string, otherwise: number): number {
  const given = env[name] ?? '';
  if (given === '') return otherwise;
  if (!/^\d{1,9}$/.test(given)) throw wrong(`${name} is not a whole number`);
  return Number(given);
}

export function envDurationMs(env: JobEnvironment, name: string, otherwise: number): number {
  const given = env[name] ?? '';
  if (given === '') return otherwise;
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(given);
  if (match === null) throw wrong(`${name} is no duration: expected such as 30s`);
  return Number(match[1]) * (match[2] === 'ms' ? 1 : match[2] === 's' ? 1000 : 60_000);
}

/** Google takes a delay of 24 hours to 1000 days. */
const DESTROY_AFTER = { least: 86_400, most: 86_400_000 } as const;

export function policyOf(env: JobEnvironment): RetirementPolicy {
  const destroyAfterSeconds = envNumber(env, 'DESTROY_AFTER_SECONDS', 0);
  const { least, most } = DESTROY_AFTER;
  if (destroyAfterSeconds !== 0 && (destroyAfterSeconds < least || destroyAfterSeconds > most))
    throw wrong(`DESTROY_AFTER_SECONDS is out of range: expected 0, or ${least} to ${most}`);
  return {
    keepVersions: envNumber(env, 'KEEP_VERSIONS', 1),
    previousForSeconds:
      (env['PREVIOUS_FOR_SECONDS'] ?? '') === '' ? undefined : envNumber(env, 'PREVIOUS_FOR_SECONDS', 0),
    destroyAfterSeconds,
  };
}

/** Credentials go there: only TLS, or this very machine. */
export function endpoint(env: JobEnvironment, name: string, otherwise: string): string {
  const given = env[name] ?? '';
  if (given === '') return otherwise;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  const local = url !== undefined && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
  if (url === undefined || (url.protocol !== 'https:' && !(local && url.protocol === 'http:'))) {
    throw wrong(`${name} is no https URL`);
  }
  return url.origin;
}

/** The same, once a location is filled in. */
export function regionalEndpoint(env: JobEnvironment): string {
  const name = 'REGIONAL_SECRET_MANAGER_ENDPOINT';
  const given = env[name] ?? '';
  if (given === '') return REGIONAL_ENDPOINT;
  endpoint({ [name]: given.replaceAll('{location}', 'location') }, name, '');
  return given;
}

export function locationOf(env: JobEnvironment): string | undefined {
  const given = env['SECRET_LOCATION'] ?? '';
  if (given === '') return undefined;
  if (!LOCATION.test(given)) throw wrong('SECRET_LOCATION is no location: expected such as europe-west3');
  if ((env['REPLICATION_POLICY'] ?? '') !== '')
    throw wrong('REPLICATION_POLICY has no effect on a regional secret: must be empty with SECRET_LOCATION');
  return given;
}

/** `automatic`, or `user-managed:europe-west1,europe-west4`; with a key for each. */
export function replicationIn(env: JobEnvironment): Replication | undefined {
  const policy = env['REPLICATION_POLICY'] ?? '';
  const key = env['KMS_KEY_NAME'] ?? '';
  const location = env['SECRET_LOCATION'] ?? '';
  if (policy === '' && key === '') return undefined;
  if (location !== '') return { regional: encryptedBy(key, location) };
  // A key for replication everywhere has to be global itself.
  if (policy === '' || policy === 'automatic') return { automatic: encryptedBy(key, 'global') };
  const locations = /^user-managed:([a-z0-9-]+(?:,[a-z0-9-]+)*)$/.exec(policy)?.[1]?.split(',');
  if (locations === undefined) {
    throw wrong('REPLICATION_POLICY is not known: expected automatic or user-managed:LOCATION[,LOCATION]');
  }
  return { userManaged: { replicas: locations.map((one) => ({ location: one, ...encryptedBy(key, one) })) } };
}

/** @param key with `{location}`; empty: Google's own */
function encryptedBy(key: string, location: string): NonNullable<Replication['regional']> {
  if (key === '') return {};
  return { customerManagedEncryption: { kmsKeyName: key.replaceAll('{location}', location) } };
}

/** `a=b,c=d`. */
export function labelsOf(text: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (const part of text.split(',').filter((entry) => entry.trim() !== '')) {
    const match = /^\s*([a-z][a-z0-9_-]{0,62})=([a-z0-9_-]{0,63})\s*$/.exec(part);
    if (match === null)
      throw wrong('SECRET_LABELS is not of the form key=value,key=value of a-z, 0-9, _ and -');
    labels[match[1] ?? ''] = match[2] ?? '';
  }
  return labels;
}
