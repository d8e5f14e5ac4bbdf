/** Reads payloads of versions, and never takes a damaged one for what is stored. */
import { GcpError, JobError } from './gcp-error.ts';
import type { GcpPayload, SecretManager } from './secret-manager.ts';

export interface ReadInput {
  readonly manager: Pick<SecretManager, 'access'>;
  readonly secretName: string;
  readonly pause: (ms: number) => Promise<void>;
}

const ATTEMPTS = 3;

/**
 * The payload of a version by number or alias, its checksum held; undefined when there is no such version.
 *
 * @throws JobError PayloadCorrupted when the checksum never held; GcpError
 */
export async function accessIntact(input: ReadInput, version: string): Promise<GcpPayload | undefined> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const payload = await input.manager.access(input.secretName, version);
    if (payload === undefined || payload.intact) return payload;
    if (attempt < ATTEMPTS) await input.pause(200 * attempt);
  }
  throw new JobError(
    'PayloadCorrupted',
    `Cannot read pull secret "${input.secretName}": version ${version} arrives with bytes that its checksum is not of, ${ATTEMPTS} times; something between here and Secret Manager changes them`,
  );
}

/**
 * What a reader of `latest` gets; undefined when there is no version, and when the last one is disabled or destroyed: then that
 * reader gets nothing, whatever older versions hold, and a new version is due.
 */
export async function readNewest(input: ReadInput): Promise<GcpPayload | undefined> {
  try {
    return await accessIntact(input, 'latest');
  } catch (error) {
    if (error instanceof GcpError && error.status === 'FAILED_PRECONDITION') return undefined;
    throw error;
  }
}

/** `7` of `projects/1/secrets/s/versions/7`. */
export function versionNumber(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}
