/**
 * Older versions: some stay enabled while both credentials are in use, the others are disabled, and destroyed by Google once the policy's
 * time has passed; repetitions are destroyed.
 *
 * What was done, and when the next version is due, stands in annotations of the secret: so a run that changes nothing needs no list.
 */

import { createHash } from 'node:crypto';
import { type Redacted, sameSecret } from '../../core/redacted.ts';
import type { JobConfig, RetirementPolicy } from './config.ts';
import { GcpError, JobError } from './gcp-error.ts';
import type { GcpPayload, GcpSecret, GcpVersion, SecretManager } from './secret-manager.ts';

// Reads payloads of versions, and never takes a damaged one for what is stored.

type ReadInput = Pick<StoreInput, 'secretName' | 'pause'> & {
  readonly manager: Pick<SecretManager, 'access'>;
};

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

// Which older versions go, and when the next one is due: two credentials are valid for a time after a rotation, or until
// the older ones are revoked. Source of the rule: the rotation design of HyperFleet (a window in which both credentials work;
// `force_immediate`), and Google's documentation of delayed destruction (`versionDestroyTtl`).

/**
 * Which older versions go now, and when the next of those that stay has to. A version counts as replaced when the next one that can be read
 * was made.
 *
 * @param enabled the newest first; whatever has an alias is in use under it
 */
function planRetirement(
  policy: RetirementPolicy,
  { enabled, mine, named }: Present,
  now: number,
): { readonly go: readonly number[]; readonly nextAt: number | undefined } {
  const go: number[] = [];
  let staying = 0;
  let nextAt: number | undefined;
  for (const [index, version] of enabled.entries()) {
    const number = numberOf(version);
    if (number >= mine || named.has(number)) continue;
    const until = endOf(policy, enabled[index - 1], now);
    if (staying >= policy.keepVersions || until <= now) {
      go.push(number);
      continue;
    }
    staying += 1;
    if (Number.isFinite(until)) nextAt = Math.min(nextAt ?? until, until);
  }
  return { go, nextAt };
}

/** Until when a version stays whose successor is `next`; one of an unknown time counts as made just now. */
function endOf({ previousForSeconds }: RetirementPolicy, next: GcpVersion | undefined, now: number): number {
  if (previousForSeconds === undefined) return Number.POSITIVE_INFINITY;
  const madeAt = Date.parse(next?.createTime ?? '');
  return (Number.isNaN(madeAt) ? now : madeAt) + previousForSeconds * 1000;
}

/**
 * The policy in short, so that a change of it is seen.
 */
function policyText({ keepVersions, previousForSeconds, destroyAfterSeconds }: RetirementPolicy): string {
  return `keep-${keepVersions}.for-${previousForSeconds ?? 'ever'}.destroy-${destroyAfterSeconds}`;
}

/** The policy that older versions were gone through by, and when the next one is due: `<policy> <RFC 3339, or ->`. */
export const RETIREMENT_ANNOTATION = 'pullwright-retirement';
/** Hash of the request by which older versions were revoked last. */
export const REVOKED_ANNOTATION = 'pullwright-revoked';

export interface Retired {
  /** How many versions are enabled afterwards. */
  readonly enabled: number;
  /** When the next of them is due, RFC 3339. */
  readonly previousUntil: string | undefined;
}

/** @param current full name of the version that holds the content */
export async function retireVersions(
  input: StoreInput,
  secret: GcpSecret,
  current: string,
): Promise<Retired> {
  const { manager, secretName, policy } = input;
  const enabled = await manager.versions(secretName, 'ENABLED');
  const mine = Number(versionNumber(current));
  // A version with an alias is in use.
  const named = new Set(Object.values(secret.versionAliases ?? {}).map(Number));
  const left = await withoutRepetitions(input, { enabled, mine, named });
  const revoking = isRevocationDue(input, secret);
  const present = { enabled: left, mine, named };
  const plan = planRetirement(revoking ? { ...policy, keepVersions: 0 } : policy, present, input.now());
  const isScheduled = isDestructionDelayed(input, secret);
  for (const number of plan.go)
    await (isScheduled
      ? manager.destroy(secretName, String(number))
      : manager.disable(secretName, String(number)));
  if (isScheduled) await destroyDisabled(input, mine, named);
  return {
    enabled: left.length - plan.go.length,
    previousUntil: plan.nextAt === undefined ? undefined : new Date(plan.nextAt).toISOString(),
  };
}

function numberOf({ name }: GcpVersion): number {
  return Number(versionNumber(name));
}

interface Present {
  readonly enabled: readonly GcpVersion[];
  readonly mine: number;
  readonly named: ReadonlySet<number>;
}

/** The newest first. Of those that could stay: a reader of "latest" may still hold the one before, unless its content is equal. */
async function withoutRepetitions(
  { manager, secretName, content, policy }: StoreInput,
  { enabled, mine, named }: Present,
): Promise<readonly GcpVersion[]> {
  const left: GcpVersion[] = [];
  let others = 0;
  for (const version of [...enabled].sort((a, b) => numberOf(b) - numberOf(a))) {
    const number = numberOf(version);
    const isOlder = number < mine && !named.has(number);
    if (isOlder && others < policy.keepVersions) {
      const payload = await manager.access(secretName, String(number));
      if (payload !== undefined && sameSecret(payload.text, content)) {
        await manager.destroy(secretName, String(number));
        continue;
      }
      others += 1;
    }
    left.push(version);
  }
  return left;
}

/** Those that were disabled before the policy said what becomes of them. */
async function destroyDisabled(
  { manager, secretName }: StoreInput,
  mine: number,
  named: ReadonlySet<number>,
): Promise<void> {
  for (const version of await manager.versions(secretName, 'DISABLED')) {
    const number = numberOf(version);
    if (number >= mine || named.has(number) || version.scheduledDestroyTime !== undefined) continue;
    await manager.destroy(secretName, String(number));
  }
}

/** Without the delay, which needs `secrets.update`, nothing is destroyed: that could not be undone. */
function isDestructionDelayed(input: StoreInput, { versionDestroyTtl: present }: GcpSecret): boolean {
  return present !== undefined && present === delayOf(input).versionDestroyTtl;
}

/** Whether a request to revoke older versions is open. */
export function isRevocationDue({ revoke }: Pick<StoreInput, 'revoke'>, secret: GcpSecret): boolean {
  return revoke !== '' && secret.annotations?.[REVOKED_ANNOTATION] !== requestHash(revoke);
}

function requestHash(request: string): string {
  return createHash('sha256').update(request).digest('hex').slice(0, 16);
}

/** Whether older versions have to be gone through again: the next one is due, or the policy is another one. */
export function isRetirementDue(input: StoreInput, secret: GcpSecret): boolean {
  const { policy } = input;
  const said = secret.annotations?.[RETIREMENT_ANNOTATION];
  // From another program or an earlier version: make no further calls.
  if (said === undefined) return policy.previousForSeconds !== undefined || policy.destroyAfterSeconds > 0;
  const [text, next = ''] = said.split(' ');
  return text !== policyText(policy) || Date.parse(next) <= input.now();
}

/** When the next version is due, by what stands on the secret. */
export function retirementOf(secret: GcpSecret): string | undefined {
  const next = (secret.annotations?.[RETIREMENT_ANNOTATION] ?? '').split(' ')[1] ?? '-';
  return Number.isNaN(Date.parse(next)) ? undefined : next;
}

/** What stands on the secret once older versions were gone through. */
export function retirementNotes(
  { policy, revoke }: Pick<StoreInput, 'policy' | 'revoke'>,
  previousUntil: string | undefined,
): Readonly<Record<string, string>> {
  return {
    [RETIREMENT_ANNOTATION]: `${policyText(policy)} ${previousUntil ?? '-'}`,
    ...(revoke === '' ? {} : { [REVOKED_ANNOTATION]: requestHash(revoke) }),
  };
}

/** The delay after which Google destroys a version, where the policy has one; otherwise the present value is kept. */
export function delayOf({ policy }: Pick<StoreInput, 'policy'>): Pick<GcpSecret, 'versionDestroyTtl'> {
  return policy.destroyAfterSeconds === 0 ? {} : { versionDestroyTtl: `${policy.destroyAfterSeconds}s` };
}

// What the steps of storing a pull secret work with.

export interface StoreInput
  extends Pick<JobConfig, 'secretName' | 'replication' | 'generation' | 'policy' | 'revoke' | 'adopt'> {
  readonly manager: Pick<
    SecretManager,
    'get' | 'create' | 'update' | 'addVersion' | 'access' | 'versions' | 'disable' | 'destroy'
  >;
  readonly content: Redacted<string>;
  readonly labels: Readonly<Record<string, string>>;
  /** Of a regional secret; undefined for one that Google replicates. */
  readonly location: string | undefined;
  /** Unique among runners. */
  readonly runner: string;
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<void>;
  readonly log: (operation: string, message: string, version?: string) => void;
  /** Records the call of a step that was skipped for lack of permission. */
  readonly leftOut: (call: string) => void;
}
