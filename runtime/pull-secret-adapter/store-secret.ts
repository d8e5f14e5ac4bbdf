/**
 * Brings a secret in Secret Manager to a wanted content, and no further: nothing is written when nothing differs.
 *
 * Calls: four for a fresh secret (get, create, add, access), two when nothing has changed (get, access). Safe with several runners at
 * once and after answers that were lost: before anything is added, the content is looked at; who adds, holds the secret by an
 * annotation that is changed under its etag.
 */
import { type Redacted, sameSecret } from '../rules/redacted.ts';
import { GcpError, JobError } from './gcp-error.ts';
import type { OutcomeReason } from './outcome.ts';
import { pullSecretHash } from './pull-secret.ts';
import { retireVersions } from './retire-versions.ts';
import type { GcpPayload, GcpSecret, Replication, SecretManager } from './secret-manager.ts';

/** Who holds the secret: `<content hash> <runner> <milliseconds since 1970>`. */
export const WRITER_ANNOTATION = 'pullwright-writer';
/** Highest generation that has written. */
export const GENERATION_KEY = 'hyperfleet-generation';
/** A holder that has not finished in this time is taken to be dead. */
export const HOLD_MS = 60_000;

export interface StoreInput {
  readonly manager: Pick<
    SecretManager,
    'get' | 'create' | 'update' | 'addVersion' | 'access' | 'enabledVersions' | 'disable' | 'destroy'
  >;
  readonly secretName: string;
  readonly content: Redacted<string>;
  readonly labels: Readonly<Record<string, string>>;
  readonly replication: Replication | undefined;
  readonly generation: number;
  readonly keepVersions: number;
  readonly adopt: boolean;
  /** Unique among runners. */
  readonly runner: string;
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
  readonly log: (operation: string, message: string, version?: string) => void;
}

export interface StoreResult {
  readonly reason: Extract<OutcomeReason, 'SecretStored' | 'SecretUnchanged' | 'SupersededByNewer'>;
  /** Full name of the version that holds the content. */
  readonly version: string;
}

/** @throws JobError, GcpError */
export async function storeSecret(input: StoreInput): Promise<StoreResult> {
  const { manager, secretName, log } = input;
  let secret = await manager.get(secretName);
  if (secret === undefined) {
    const created = await create(input);
    if (created !== undefined) return addAndVerify(input);
    secret = await manager.get(secretName);
    if (secret === undefined) throw new GcpError('CreateSecret', 'ABORTED');
  } else {
    log('secret-exists', `Secret already exists: ${secretName}`);
  }
  return bringUpToDate(input, secret);
}

/** The new secret, or undefined when somebody else was faster. */
async function create(input: StoreInput): Promise<GcpSecret | undefined> {
  input.log('create-secret', `Creating new secret: ${input.secretName}`);
  try {
    const secret = await input.manager.create(input.secretName, {
      replication: input.replication ?? { automatic: {} },
      labels: input.labels,
      annotations: hold(input),
    });
    input.log('create-secret', 'Successfully created secret');
    return secret;
  } catch (error) {
    if (error instanceof GcpError && error.status === 'ALREADY_EXISTS') return undefined;
    throw error;
  }
}

function hold(input: StoreInput): Readonly<Record<string, string>> {
  return {
    [WRITER_ANNOTATION]: `${pullSecretHash(input.content)} ${input.runner} ${input.now()}`,
    [GENERATION_KEY]: String(input.generation),
  };
}

async function bringUpToDate(input: StoreInput, first: GcpSecret): Promise<StoreResult> {
  let secret = first;
  for (;;) {
    assertOurs(input, secret);
    if (Number(secret.annotations?.[GENERATION_KEY] ?? 0) > input.generation) {
      return { reason: 'SupersededByNewer', version: '' };
    }
    const present = await newest(input);
    if (present !== undefined && sameSecret(present.text, input.content)) {
      await repairLabels(input, secret);
      input.log('verify-secret', 'The secret holds this content already', present.version);
      return { reason: 'SecretUnchanged', version: present.version };
    }
    if (!isHeld(input, secret, present) && (await takeHold(input, secret))) return addAndVerify(input, true);
    await input.pause(500);
    const again = await input.manager.get(input.secretName);
    if (again === undefined) throw new GcpError('GetSecret', 'ABORTED');
    secret = again;
  }
}

function assertOurs(input: StoreInput, secret: GcpSecret): void {
  const { labels = {} } = secret;
  const wanted = input.labels;
  const foreign = ['managed-by', 'cluster-id'].filter((key) => labels[key] !== wanted[key]);
  const adoptable = input.adopt && foreign.every((key) => labels[key] === undefined);
  if (foreign.length > 0 && !adoptable) {
    const what = foreign.map(
      (key) => `label "${key}" is ${labels[key] === undefined ? 'missing' : 'different'}`,
    );
    throw new JobError(
      'SecretNotOwned',
      `Cannot store pull secret "${input.secretName}": a secret of this name is there and ${what.join(', ')}; set its labels, or remove it`,
    );
  }
  if (input.replication !== undefined && !sameReplication(input.replication, secret.replication)) {
    throw new JobError(
      'ReplicationMismatch',
      `Cannot store pull secret "${input.secretName}": its replication is not the wanted one and cannot be changed; remove the secret, or change the policy`,
    );
  }
}

/** Order of locations, and output-only fields, do not count. */
function sameReplication(wanted: Replication, present: Replication | undefined): boolean {
  const shape = (replication: Replication | undefined): string => {
    if (replication?.userManaged !== undefined) {
      const replicas = replication.userManaged.replicas.map(
        (replica) => `${replica.location} ${replica.customerManagedEncryption?.kmsKeyName ?? ''}`,
      );
      return replicas.sort().join('; ');
    }
    return `automatic ${replication?.automatic?.customerManagedEncryption?.kmsKeyName ?? ''}`;
  };
  return shape(wanted) === shape(present);
}

/** The newest payload that can be read: `latest`, or the newest enabled version when `latest` is disabled or destroyed. */
async function newest(input: StoreInput): Promise<GcpPayload | undefined> {
  try {
    return await input.manager.access(input.secretName, 'latest');
  } catch (error) {
    if (!(error instanceof GcpError) || error.status !== 'FAILED_PRECONDITION') throw error;
  }
  const [enabled] = await input.manager.enabledVersions(input.secretName);
  return enabled === undefined
    ? undefined
    : input.manager.access(input.secretName, versionNumber(enabled.name));
}

export function versionNumber(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

/** Somebody else is about to add, and has not finished yet. */
function isHeld(input: StoreInput, secret: GcpSecret, present: GcpPayload | undefined): boolean {
  const [hash, runner, since] = (secret.annotations?.[WRITER_ANNOTATION] ?? '').split(' ');
  if (hash === undefined || runner === undefined || runner === input.runner) return false;
  const done = present !== undefined && pullSecretHash(present.text) === hash;
  return !done && Math.abs(input.now() - Number(since)) < HOLD_MS;
}

/** Whether the hold was taken: false when the secret has changed meanwhile. */
async function takeHold(input: StoreInput, secret: GcpSecret): Promise<boolean> {
  try {
    await input.manager.update(input.secretName, ['annotations', 'labels'], {
      labels: { ...secret.labels, ...input.labels },
      annotations: { ...secret.annotations, ...hold(input) },
      ...(secret.etag === undefined ? {} : { etag: secret.etag }),
    });
    return true;
  } catch (error) {
    if (error instanceof GcpError && ['FAILED_PRECONDITION', 'ABORTED'].includes(error.status)) return false;
    throw error;
  }
}

async function repairLabels(input: StoreInput, secret: GcpSecret): Promise<void> {
  const drifted = Object.entries(input.labels).some(([key, value]) => secret.labels?.[key] !== value);
  if (!drifted) return;
  input.log('create-update-secret', 'Repairing the labels of the secret');
  await input.manager.update(input.secretName, ['labels'], {
    labels: { ...secret.labels, ...input.labels },
    ...(secret.etag === undefined ? {} : { etag: secret.etag }),
  });
}

/** Adds the content, reads it back by the name of the version that was made, compares. */
async function addAndVerify(input: StoreInput, retire = false): Promise<StoreResult> {
  const { manager, secretName, content, log } = input;
  log('add-secret-version', 'Adding secret version with pull secret data');
  const added = await manager.addVersion(secretName, content);
  log('add-secret-version', 'Successfully created secret version', added.name);
  const stored = await manager.access(secretName, versionNumber(added.name));
  if (stored?.intact !== true || !sameSecret(stored.text, content)) {
    throw new JobError(
      'PayloadCorrupted',
      `Cannot verify pull secret "${secretName}": version ${versionNumber(added.name)} reads back differently from what was sent`,
    );
  }
  log('verify-secret', 'Verified secret', added.name);
  if (retire) await retireVersions(input, added.name);
  return { reason: 'SecretStored', version: added.name };
}
