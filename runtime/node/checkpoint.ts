/**
 * The checkpoint of a rollout, which survives a kill. A checkpoint that this version cannot parse counts as none: the file and its
 * sources determine the next step, at the price of one unnecessary restart.
 */
import { createHash } from 'node:crypto';
import { exponentialMs } from '../core/back-off.ts';
import { isRecord } from '../core/record.ts';

/** Raised when the shape changes in a way that an older program would misread. */
export const CHECKPOINT_VERSION = 1;

/** In place of the digest of a file that does not exist. */
export const ABSENT = 'absent';

/** A rollout in progress. */
export interface Change {
  readonly phase: 'writing' | 'restarting' | 'rolling-back' | 'recovering';
  /** Digest of the content that is being rolled out. */
  readonly wanted: string;
  /** Digest of the source of the content: the key of its breaker. */
  readonly source: string;
  readonly restart: boolean;
  /** Failures in the current phase. */
  readonly failures: number;
  /** The next step waits until this time (milliseconds since 1970). */
  readonly notBefore: number;
  /** Length of the current wait; a clock that jumps back cannot extend it. */
  readonly waitMs: number;
  /** Invocation of the unit right after the write; empty when it is unknown. */
  readonly invocation: string;
  /** Whether a credential is removed or replaced, so that the unit must drop its cached copy. */
  readonly removes: boolean;
  /** When the file was written (milliseconds since 1970). */
  readonly writtenAt?: number;
  /** Kind of the last failure. */
  readonly failedBy?: FailureKind;
}

/** State that survives a kill. */
export interface Checkpoint {
  readonly version: typeof CHECKPOINT_VERSION;
  readonly change?: Change;
  readonly breakers: Breakers;
  /** When the unit was restarted, newest last (milliseconds since 1970). */
  readonly restarts: readonly number[];
}

export const EMPTY_CHECKPOINT: Checkpoint = { version: 1, breakers: {}, restarts: [] };

/**
 * Reads a stored checkpoint; undefined unless it is a well-formed checkpoint of this version.
 */
export function parseCheckpoint(document: unknown): Checkpoint | undefined {
  if (!isRecord(document) || document['version'] !== CHECKPOINT_VERSION) return undefined;
  const { change, breakers, restarts } = document;
  if (!isRecord(breakers) || !Object.values(breakers).every(isBreaker)) return undefined;
  if (!Array.isArray(restarts) || !restarts.every(Number.isFinite)) return undefined;
  const rest = {
    version: CHECKPOINT_VERSION,
    breakers: breakers as Breakers,
    restarts: restarts as number[],
  } as const;
  if (change === undefined) return rest;
  return isChange(change) ? { ...rest, change } : undefined;
}

const PHASES: readonly unknown[] = ['writing', 'restarting', 'rolling-back', 'recovering'];
const KINDS: readonly unknown[] = ['bus', 'unit'];

function isChange(value: unknown): value is Change {
  if (!isRecord(value) || !PHASES.includes(value['phase'])) return false;
  const { failedBy, restart, removes, writtenAt = 0 } = value;
  return (
    ['wanted', 'source', 'invocation'].every((name) => typeof value[name] === 'string') &&
    ['failures', 'notBefore', 'waitMs'].every((name) => Number.isFinite(value[name])) &&
    [restart, removes].every((one) => typeof one === 'boolean') &&
    (failedBy === undefined || KINDS.includes(failedBy)) &&
    Number.isFinite(writtenAt)
  );
}

function isBreaker(value: unknown): value is Breaker {
  if (!isRecord(value) || !Number.isFinite(value['rounds']) || !KINDS.includes(value['kind'])) return false;
  return [value['retryAt'], value['coolMs']].every((one) => one === undefined || Number.isFinite(one));
}

// Circuit breakers, one per content: content with which the unit fails to start is retried after 5 minutes, again after 30,
// then never. When systemd is unreachable nothing was restarted, so the content is retried without limit, with back-off.

/** `bus`: systemd was unreachable, nothing was restarted. `unit`: the unit did not start. */
export type FailureKind = 'bus' | 'unit';

export interface Breaker {
  /** Number of times that all attempts failed. */
  readonly rounds: number;
  /** When the breaker closes (milliseconds since 1970); absent: never. */
  readonly retryAt?: number;
  /** Time from opening until `retryAt`. */
  readonly coolMs?: number;
  readonly kind: FailureKind;
}

/** Breakers by digest of the source, oldest first. */
export type Breakers = Readonly<Record<string, Breaker>>;

/** Number of breakers kept, newest first. */
export const MAX_BREAKERS = 8;

const MINUTE = 60_000;
const UNIT_COOL_MS: readonly number[] = [5 * MINUTE, 30 * MINUTE];
const MAX_BUS_COOL_MS = 10 * MINUTE;

/**
 * The breakers after all attempts for `source` failed.
 */
export function opened(
  breakers: Breakers,
  failure: { readonly source: string; readonly kind: FailureKind; readonly now: number },
): Breakers {
  const { [failure.source]: before, ...others } = breakers;
  const rounds = before?.kind === failure.kind ? before.rounds + 1 : 1;
  const coolMs =
    failure.kind === 'bus'
      ? exponentialMs({ firstMs: MINUTE, maxMs: MAX_BUS_COOL_MS }, rounds - 1)
      : UNIT_COOL_MS[rounds - 1];
  const breaker: Breaker = {
    rounds,
    kind: failure.kind,
    ...(coolMs === undefined ? {} : { coolMs, retryAt: failure.now + coolMs }),
  };
  const kept = Object.entries(others).slice(-(MAX_BREAKERS - 1));
  return Object.fromEntries([...kept, [failure.source, breaker]]);
}

/** Whether `source` must not be tried at `now`. */
export function isOpen(breakers: Breakers, source: string, now: number): boolean {
  if (!Object.hasOwn(breakers, source)) return false;
  const left = retryInMs(breakers, source, now);
  return left === undefined || left > 0;
}

/** Milliseconds until `source` may be tried again, at most its cool-down; undefined: never. */
export function retryInMs(breakers: Breakers, source: string, now: number): number | undefined {
  const breaker = Object.hasOwn(breakers, source) ? breakers[source] : undefined;
  if (breaker === undefined) return 0;
  if (breaker.retryAt === undefined || breaker.coolMs === undefined) return undefined;
  return Math.max(0, Math.min(breaker.retryAt - now, breaker.coolMs));
}

/** Removes the breaker of `source`, which succeeded. */
export function withoutBreaker(breakers: Breakers, source: string): Breakers {
  return Object.fromEntries(Object.entries(breakers).filter(([name]) => name !== source));
}

// Spreads the restarts of a fleet over a window without a coordinator: each node waits for a share of the window, by a hash of
// its name and the content. With `n` nodes and a window of `w` seconds, an average of `n/w` nodes restart per second; there is
// no upper bound.

/**
 * Milliseconds that `node` waits, from 0 to just under `windowMs`. It depends on the content, so that no node is always the
 * first.
 */
export function spreadDelay(node: string, content: string, windowMs: number): number {
  const share = createHash('sha256').update(`${node}\0${content}`).digest().readUInt32BE(0) / 2 ** 32;
  return Math.floor(share * windowMs);
}

/** Length of the window, and the share of one node by content. Milliseconds. */
export type Window = Readonly<ReturnType<typeof windowOf>>;

/** The window of `node`. */
export function windowOf(node: string, windowMs: number) {
  return { windowMs, delayMs: (source: string) => spreadDelay(node, source, windowMs) };
}

/**
 * The change in progress, rescheduled into a window that was shortened or removed since. A longer window delays no change, and a
 * wait after a failure does not depend on the window.
 */
export function inWindow(change: Change, { windowMs, delayMs }: Window): Change {
  const { phase, failures, waitMs, writtenAt, source } = change;
  if (phase !== 'restarting' || failures > 0 || waitMs === 0 || waitMs < windowMs) return change;
  const share = delayMs(source);
  return { ...change, notBefore: (writtenAt ?? change.notBefore - waitMs) + share, waitMs: share };
}

// The restart queue of a fleet: each node books the next free slot. The only shared state is the time of that slot. Slots are
// evenly spaced, so that within {@link RESTART_MS} no more nodes restart than the budget, however many book at once.

/** Time from a restart until the unit counts as up. Milliseconds. */
export const RESTART_MS = 6000;

/** Number of `nodes` that may restart at once: a tenth, at least one. */
export function restartBudget(nodes: number): number {
  return Math.max(1, Math.ceil(nodes / 10));
}

/** Time between two slots. Milliseconds. */
function turnMs(nodes: number): number {
  return Math.ceil(RESTART_MS / restartBudget(nodes));
}

/**
 * Time from the first slot of `nodes` to the last: 0 for one node, under a minute for any number. Milliseconds.
 */
export function restartWindowMs(nodes: number): number {
  return Math.max(0, nodes - 1) * turnMs(nodes);
}

/**
 * The slot of a node that books at `now`, when the next free one is `next` (undefined: no booking yet), and the next free one then.
 * Milliseconds since 1970. A slot further ahead than all nodes together can push it was booked by a wrong clock, and is ignored.
 *
 * @param asked `own`: the slot of this node if it booked last. Once that has passed its restart is complete, so the node does
 *   not wait for itself
 */
export function bookTurn(asked: {
  readonly now: number;
  readonly next: number | undefined;
  readonly nodes: number;
  readonly own?: number | undefined;
}) {
  const { now, nodes, own } = asked;
  const next = asked.next ?? now;
  const apart = turnMs(nodes);
  const believed = next - now <= restartWindowMs(nodes) + apart;
  const again = own !== undefined && own <= now;
  const at = believed && !again ? Math.max(now, next) : now;
  return { at, next: at + apart };
}
