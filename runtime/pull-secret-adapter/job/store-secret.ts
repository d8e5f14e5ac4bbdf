/**
 * Reconciles the content of a secret in Secret Manager; writes only on drift.
 *
 * Calls: four for a new secret (get, create, add, access), two without a change (get, access). Safe with concurrent runners, and
 * after a write whose response did not arrive: a runner reads the content before it adds a version, and holds the secret while it
 * adds one. The hold is an annotation that is updated under the etag.
 *
 * The existing job needs four permissions. The hold, labels and older versions need four more: without one of these, the step is
 * skipped and the result names it.
 */

import { hash } from 'node:crypto';
import { sameSecret } from '../../core/redacted.ts';
import type { OutcomeReason } from '../outcome.ts';
import { pullSecretHash } from '../pull-secret.ts';
import type { JobConfig, RetirementPolicy } from './config.ts';
import { GcpError, JobError, unlessStatus } from './gcp-error.ts';
import type {
  GcpPayload,
  GcpSecret,
  GcpVersion,
  Replication,
  SecretFields,
  SecretManager,
} from './secret-manager.ts';

/**
 * Fails if the existing secret belongs to another cluster or has another replication.
 *
 * @throws JobError SecretNotOwned, ReplicationMismatch
 */
export function assertOurs(
  input: Pick<StoreInput, 'secretName' | 'labels' | 'replication' | 'adopt'>,
  secret: GcpSecret,
): void {
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
      `Cannot store pull secret "${input.secretName}": a secret with this name exists and ${what.join(', ')}; set its labels, or remove it`,
    );
  }
  if (input.replication !== undefined && !sameReplication(input.replication, replicationOf(secret))) {
    throw new JobError(
      'ReplicationMismatch',
      `Cannot store pull secret "${input.secretName}": its replication differs from the policy and cannot be changed; remove the secret, or change the policy`,
    );
  }
}

/** Replication of a secret, global or regional. */
function replicationOf(secret: GcpSecret): Replication | undefined {
  const { name, replication, customerManagedEncryption: key } = secret;
  if (!name.includes('/locations/')) return replication;
  return { regional: key === undefined ? {} : { customerManagedEncryption: key } };
}

/** Ignores the order of locations, and output-only fields. */
function sameReplication(wanted: Replication, present: Replication | undefined): boolean {
  const shape = (replication: Replication | undefined): string => {
    if (replication?.userManaged !== undefined) {
      const replicas = replication.userManaged.replicas.map(
        (replica) => `${replica.location} ${replica.customerManagedEncryption?.kmsKeyName ?? ''}`,
      );
      return replicas.sort().join('; ');
    }
    if (replication?.regional !== undefined)
      return `regional ${replication.regional.customerManagedEncryption?.kmsKeyName ?? ''}`;
    return `automatic ${replication?.automatic?.customerManagedEncryption?.kmsKeyName ?? ''}`;
  };
  return shape(wanted) === shape(present);
}

/** Replication and key of a new secret. */
function keptBy({ location, replication }: Pick<StoreInput, 'location' | 'replication'>) {
  if (location === undefined) return { replication: replication ?? { automatic: {} } };
  return replication?.regional ?? {};
}

/** The holder of the secret: `<content hash> <runner> <milliseconds since 1970>`. */
const WRITER_ANNOTATION = 'pullwright-writer';
/** Highest generation that has written. */
const GENERATION_KEY = 'hyperfleet-generation';
/** Set until older versions are retired after a new version was added. */
const CLEANUP_ANNOTATION = 'pullwright-cleanup';
/** Number of enabled versions after the last clean-up. */
const ENABLED_ANNOTATION = 'pullwright-enabled-versions';
/** A hold expires after this time, which is longer than a run (`RUN_TIMEOUT`). */
export const HOLD_MS = 60_000;

export interface StoreResult {
  readonly reason: Extract<OutcomeReason, 'SecretStored' | 'SecretUnchanged'>;
  /** Full name of the version with the content. */
  readonly version: string;
  /** Creation time of that version, RFC 3339; undefined if another program created it. */
  readonly createdAt: string | undefined;
  /** Enabled versions; undefined when not counted. */
  readonly enabledVersions?: number | undefined;
  /** When the next older version is retired, RFC 3339. */
  readonly previousUntil?: string | undefined;
  readonly replication: Replication | undefined;
}

/** Stores the content. @throws JobError, GcpError */
export async function storeSecret(input: StoreInput): Promise<StoreResult> {
  const { manager, secretName, log } = input;
  let secret = await manager.get(secretName);
  if (secret === undefined) {
    const created = await create(input);
    if (created !== undefined) return { ...(await addAndVerify(input, created)), enabledVersions: 1 };
    secret = await manager.get(secretName);
    if (secret === undefined) throw new GcpError('CreateSecret', 'ABORTED');
  } else {
    log('secret-exists', `Secret already exists: ${secretName}`);
  }
  return bringUpToDate(input, secret);
}

/** Creates the secret; undefined if another writer created it first. */
async function create(input: StoreInput): Promise<GcpSecret | undefined> {
  input.log('create-secret', `Creating new secret: ${input.secretName}`);
  const creation = input.manager.create(input.secretName, {
    ...keptBy(input),
    labels: input.labels,
    annotations: { ...hold(input), ...retirementNotes(input, undefined) },
    ...delayOf(input),
  });
  const secret = await unlessStatus(creation, 'ALREADY_EXISTS');
  if (secret !== undefined) input.log('create-secret', 'Successfully created secret');
  return secret;
}

function hold(input: StoreInput): Readonly<Record<string, string>> {
  return {
    [WRITER_ANNOTATION]: `${pullSecretHash(input.pullSecret)} ${input.runner} ${input.now()}`,
    [GENERATION_KEY]: String(input.generation),
  };
}

async function bringUpToDate(input: StoreInput, first: GcpSecret): Promise<StoreResult> {
  let secret = first;
  for (;;) {
    assertOurs(input, secret);
    const { annotations = {} } = secret;
    const present = await readNewest(input);
    if (present !== undefined && sameSecret(present.text, input.pullSecret))
      return unchanged(input, secret, present);
    const newest = Number(annotations[GENERATION_KEY] ?? 0);
    if (newest > input.generation) throw superseded(input, newest);
    const held = isHeld(input, secret, present) ? undefined : await takeHold(input, secret);
    if (held !== undefined) {
      const added = await addAndVerify(input, held);
      return { ...added, ...(await cleanUp(input, held, added.version)) };
    }
    await input.pause(500);
    const again = await input.manager.get(input.secretName);
    if (again === undefined) throw new GcpError('GetSecret', 'ABORTED');
    secret = again;
  }
}

/** The error for different stored content of a newer generation. A newer generation with equal content is not an error. */
function superseded({ secretName, generation }: StoreInput, newest: number): JobError {
  return new JobError(
    'SupersededByNewer',
    `Cannot store pull secret "${secretName}": it contains other content of the newer generation ${newest}, and this run is for generation ${generation}; if the API was restored from a backup, remove the annotation ${GENERATION_KEY} of the secret`,
  );
}

async function unchanged(input: StoreInput, secret: GcpSecret, present: GcpPayload): Promise<StoreResult> {
  const repaired = await repairDrift(input, secret);
  input.log('verify-secret', 'The secret already contains this content', present.version);
  const { annotations = {} } = repaired;
  const [writtenHash, , since] = (annotations[WRITER_ANNOTATION] ?? '').split(' ');
  const ours = writtenHash === pullSecretHash(input.pullSecret);
  const counted = annotations[ENABLED_ANNOTATION];
  // Finish the clean-up of an interrupted run.
  const left = annotations[CLEANUP_ANNOTATION] !== undefined || isRetirementDue(input, repaired);
  const due = isRevocationDue(input, repaired) || (left && !isAtWork(input, repaired));
  return {
    reason: 'SecretUnchanged',
    version: present.version,
    createdAt: ours && Number(since) > 0 ? new Date(Number(since)).toISOString() : undefined,
    ...(due
      ? await cleanUp(input, repaired, present.version)
      : {
          enabledVersions: counted === undefined ? undefined : Number(counted),
          previousUntil: retirementOf(repaired),
        }),
    replication: replicationOf(repaired),
  };
}

/** Whether another run holds the secret to add a version. */
function isHeld(input: StoreInput, secret: GcpSecret, present: GcpPayload | undefined): boolean {
  const [heldHash] = (secret.annotations?.[WRITER_ANNOTATION] ?? '').split(' ');
  const done = present !== undefined && pullSecretHash(present.text) === heldHash;
  return !done && isAtWork(input, secret);
}

/** Whether another runner has a hold that has not expired. */
function isAtWork(input: StoreInput, secret: GcpSecret): boolean {
  const [, runner, since] = (secret.annotations?.[WRITER_ANNOTATION] ?? '').split(' ');
  return runner !== undefined && runner !== input.runner && Math.abs(input.now() - Number(since)) < HOLD_MS;
}

/** Takes the hold; undefined if the secret changed meanwhile. Without the permission, the run continues without a hold. */
function takeHold(input: StoreInput, secret: GcpSecret): Promise<GcpSecret | undefined> {
  const fields = {
    labels: { ...secret.labels, ...input.labels },
    annotations: { ...secret.annotations, ...hold(input), [CLEANUP_ANNOTATION]: 'due' },
    ...delayOf(input),
  };
  return update(input, secret, fields);
}

/** Updates the secret, if permitted; undefined if it has changed since it was read. */
function update(input: StoreInput, secret: GcpSecret, fields: SecretFields): Promise<GcpSecret | undefined> {
  const { manager, secretName } = input;
  const updated = permitted(input, secret, () => manager.update(secretName, fields, secret.etag));
  return unlessStatus(updated, 'FAILED_PRECONDITION', 'ABORTED');
}

/** Runs an optional step; returns `otherwise` if its permission is missing. */
async function permitted<T>(input: StoreInput, otherwise: T, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof GcpError)) throw error;
    const { status, call, details } = error;
    if (status !== 'PERMISSION_DENIED' || details.info === 'SERVICE_DISABLED') throw error;
    input.leftOut(call);
    return otherwise;
  }
}

/** Corrects drift of the labels and of the destruction delay. */
async function repairDrift(input: StoreInput, secret: GcpSecret): Promise<GcpSecret> {
  const drifted = Object.entries(input.labels).some(([key, value]) => secret.labels?.[key] !== value);
  const wanted = delayOf(input);
  const fields: SecretFields = {
    ...(drifted ? { labels: { ...secret.labels, ...input.labels } } : {}),
    ...(wanted.versionDestroyTtl === secret.versionDestroyTtl ? {} : wanted),
  };
  if (Object.keys(fields).length === 0) return secret;
  input.log('create-update-secret', `Repairing ${Object.keys(fields).join(' and ')} of the secret`);
  const repaired = await update(input, secret, fields);
  // Changed since it was read: retry.
  if (repaired === undefined) throw new GcpError('UpdateSecret', 'ABORTED');
  return repaired;
}

/** Adds a version, reads it back by its name and compares it. */
async function addAndVerify(input: StoreInput, secret: GcpSecret): Promise<StoreResult> {
  const { manager, secretName, pullSecret, log } = input;
  log('add-secret-version', 'Adding secret version with pull secret data');
  const added = await manager.addVersion(secretName, pullSecret);
  log('add-secret-version', 'Successfully created secret version', added.name);
  const number = versionNumber(added.name);
  const stored = await accessIntact(input, number);
  if (stored === undefined || !sameSecret(stored.text, pullSecret)) {
    // Readers of "latest" must not get corrupted content.
    await permitted(input, undefined, () => manager.disable(secretName, number));
    throw new JobError(
      'PayloadCorrupted',
      `Cannot verify pull secret "${secretName}": version ${number} reads back differently from what was sent, and is disabled`,
    );
  }
  log('verify-secret', 'Verified secret', added.name);
  return {
    reason: 'SecretStored',
    version: added.name,
    createdAt: added.createTime,
    replication: replicationOf(secret),
  };
}

type CleanedUp = Pick<StoreResult, 'enabledVersions' | 'previousUntil'>;

/**
 * Retires older versions and records it in annotations. Without the permission, both results are undefined, and a requested
 * revocation fails.
 */
async function cleanUp(input: StoreInput, held: GcpSecret, current: string): Promise<CleanedUp> {
  const retiring = (): Promise<CleanedUp | undefined> => retireVersions(input, held, current);
  const retired = isRevocationDue(input, held)
    ? await retiring()
    : await permitted(input, undefined, retiring);
  if (retired === undefined) return {};
  const { [CLEANUP_ANNOTATION]: _done, ...others } = held.annotations ?? {};
  const annotations = {
    ...others,
    [ENABLED_ANNOTATION]: String(retired.enabledVersions),
    ...retirementNotes(input, retired.previousUntil),
  };
  // If it has changed, another run has the hold, and will clean up.
  await update(input, held, { annotations });
  return retired;
}

type ReadInput = Pick<StoreInput, 'manager' | 'secretName' | 'pause'>;

const ATTEMPTS = 3;

/**
 * Reads the payload of a version (number or alias) and verifies its checksum; undefined if the version does not exist.
 *
 * @throws JobError PayloadCorrupted if the checksum did not match in any attempt; GcpError
 */
async function accessIntact(input: ReadInput, version: string): Promise<GcpPayload | undefined> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const payload = await input.manager.access(input.secretName, version);
    if (payload === undefined || payload.intact) return payload;
    if (attempt < ATTEMPTS) await input.pause(200 * attempt);
  }
  throw new JobError(
    'PayloadCorrupted',
    `Cannot read pull secret "${input.secretName}": version ${version} did not match its checksum in ${ATTEMPTS} attempts; a proxy between the Job and Secret Manager may change it`,
  );
}

/**
 * Reads the version `latest`. Undefined if there is none, or if it is disabled or destroyed: readers then get nothing, even if
 * older versions are enabled, so a new version is required.
 */
export function readNewest(input: ReadInput): Promise<GcpPayload | undefined> {
  return unlessStatus(accessIntact(input, 'latest'), 'FAILED_PRECONDITION');
}

/** `7` of `projects/1/secrets/s/versions/7`. */
export function versionNumber(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

// Retirement of older versions: the policy keeps some enabled, so that both credentials work during a rotation. The others are
// disabled, and Google destroys them after the delay of the policy. Duplicates of the current content are destroyed.
// Annotations record the last retirement and when the next is due, so that a run without changes does not list versions.
// Source of the rule: the rotation design of HyperFleet (a window in which both credentials work; `force_immediate`), and
// Google's documentation of delayed destruction (`versionDestroyTtl`).

/**
 * Selects the versions to retire now, and the time when the next one is due. A version counts as replaced when the next enabled
 * version was created.
 *
 * @param enabled newest first
 */
function planRetirement(
  policy: RetirementPolicy,
  enabled: readonly GcpVersion[],
  isOlder: IsOlder,
  now: number,
): { readonly go: readonly GcpVersion[]; readonly nextAt: number | undefined } {
  const go: GcpVersion[] = [];
  let staying = 0;
  let nextAt: number | undefined;
  for (const [index, version] of enabled.entries()) {
    if (!isOlder(version)) continue;
    const until = endOf(policy, enabled[index - 1], now);
    if (staying >= policy.keepVersions || until <= now) {
      go.push(version);
      continue;
    }
    staying += 1;
    if (Number.isFinite(until)) nextAt = Math.min(nextAt ?? until, until);
  }
  return { go, nextAt };
}

/** When a version expires that `next` replaced; an unknown creation time counts as now. */
function endOf({ previousForSeconds }: RetirementPolicy, next: GcpVersion | undefined, now: number): number {
  if (previousForSeconds === undefined) return Number.POSITIVE_INFINITY;
  const madeAt = Date.parse(next?.createTime ?? '');
  return (Number.isNaN(madeAt) ? now : madeAt) + previousForSeconds * 1000;
}

/** The policy as text, to detect changes. */
function policyText({ keepVersions, previousForSeconds, destroyAfterSeconds }: RetirementPolicy): string {
  return `keep-${keepVersions}.for-${previousForSeconds ?? 'ever'}.destroy-${destroyAfterSeconds}`;
}

/** The policy of the last retirement, and when the next is due: `<policy> <RFC 3339, or ->`. */
const RETIREMENT_ANNOTATION = 'pullwright-retirement';
/** Hash of the last executed revocation request. */
const REVOKED_ANNOTATION = 'pullwright-revoked';

/** @param current full name of the version with the content */
async function retireVersions(input: StoreInput, secret: GcpSecret, current: string): Promise<CleanedUp> {
  const { manager, secretName, policy } = input;
  const enabled = await manager.versions(secretName, 'ENABLED');
  const mine = Number(versionNumber(current));
  const named = new Set(Object.values(secret.versionAliases ?? {}).map(Number));
  const isOlder: IsOlder = (version) => numberOf(version) < mine && !named.has(numberOf(version));
  const left = await withoutRepetitions(input, enabled, isOlder);
  const applied = isRevocationDue(input, secret) ? { ...policy, keepVersions: 0 } : policy;
  const plan = planRetirement(applied, left, isOlder, input.now());
  const isScheduled = isDestructionDelayed(input, secret);
  for (const { name } of plan.go)
    await (isScheduled
      ? manager.destroy(secretName, versionNumber(name))
      : manager.disable(secretName, versionNumber(name)));
  if (isScheduled) await destroyDisabled(input, isOlder);
  return {
    enabledVersions: left.length - plan.go.length,
    previousUntil: plan.nextAt === undefined ? undefined : new Date(plan.nextAt).toISOString(),
  };
}

function numberOf({ name }: GcpVersion): number {
  return Number(versionNumber(name));
}

/** Whether a version is older than the current one. One with an alias does not count, because it is in use. */
type IsOlder = (version: GcpVersion) => boolean;

/** The enabled versions, newest first. Destroys duplicates of the current content among those that `keepVersions` would keep. */
async function withoutRepetitions(
  { manager, secretName, pullSecret, policy }: StoreInput,
  enabled: readonly GcpVersion[],
  isOlder: IsOlder,
): Promise<readonly GcpVersion[]> {
  const left: GcpVersion[] = [];
  let others = 0;
  for (const version of [...enabled].sort((a, b) => numberOf(b) - numberOf(a))) {
    if (isOlder(version) && others < policy.keepVersions) {
      const number = versionNumber(version.name);
      const payload = await manager.access(secretName, number);
      if (payload !== undefined && sameSecret(payload.text, pullSecret)) {
        await manager.destroy(secretName, number);
        continue;
      }
      others += 1;
    }
    left.push(version);
  }
  return left;
}

/** Destroys versions that were disabled before the policy had a destruction delay. */
async function destroyDisabled({ manager, secretName }: StoreInput, isOlder: IsOlder): Promise<void> {
  for (const version of await manager.versions(secretName, 'DISABLED'))
    if (isOlder(version) && version.scheduledDestroyTime === undefined)
      await manager.destroy(secretName, versionNumber(version.name));
}

/** Whether the delay is set, which requires `secrets.update`. Destruction without a delay cannot be undone. */
function isDestructionDelayed(input: StoreInput, { versionDestroyTtl: present }: GcpSecret): boolean {
  return present !== undefined && present === delayOf(input).versionDestroyTtl;
}

/** Whether a revocation request is pending. */
function isRevocationDue({ revoke }: Pick<StoreInput, 'revoke'>, secret: GcpSecret): boolean {
  return revoke !== '' && secret.annotations?.[REVOKED_ANNOTATION] !== requestHash(revoke);
}

function requestHash(request: string): string {
  return hash('sha256', request).slice(0, 16);
}

/** Whether to check older versions: one is due, or the policy has changed. */
function isRetirementDue(input: StoreInput, secret: GcpSecret): boolean {
  const { policy } = input;
  const said = secret.annotations?.[RETIREMENT_ANNOTATION];
  // Written by another program or an earlier version: check only if the policy has a time limit.
  if (said === undefined) return policy.previousForSeconds !== undefined || policy.destroyAfterSeconds > 0;
  const [text, next = ''] = said.split(' ');
  return text !== policyText(policy) || Date.parse(next) <= input.now();
}

/** When the next version is retired, according to the annotation. */
function retirementOf(secret: GcpSecret): string | undefined {
  const next = (secret.annotations?.[RETIREMENT_ANNOTATION] ?? '').split(' ')[1] ?? '-';
  return Number.isNaN(Date.parse(next)) ? undefined : next;
}

/** Annotations to set after a retirement. */
function retirementNotes({ policy, revoke }: StoreInput, previousUntil: string | undefined) {
  return {
    [RETIREMENT_ANNOTATION]: `${policyText(policy)} ${previousUntil ?? '-'}`,
    ...(revoke === '' ? {} : { [REVOKED_ANNOTATION]: requestHash(revoke) }),
  };
}

/** The destruction delay of the policy; empty if it has none, which keeps the present value. */
function delayOf({ policy }: Pick<StoreInput, 'policy'>): Pick<GcpSecret, 'versionDestroyTtl'> {
  return policy.destroyAfterSeconds === 0 ? {} : { versionDestroyTtl: `${policy.destroyAfterSeconds}s` };
}

export interface StoreInput extends JobConfig {
  readonly manager: SecretManager;
  /** Location of a regional secret; undefined for a replicated one. */
  readonly location: string | undefined;
  /** Unique among runners. */
  readonly runner: string;
  readonly now: () => number;
  /** Rejects when the run is interrupted. */
  readonly pause: (ms: number) => Promise<void>;
  readonly log: (operation: string, message: string, version?: string) => void;
  /** Called for a step that was skipped because of a missing permission. */
  readonly leftOut: (call: string) => void;
}
