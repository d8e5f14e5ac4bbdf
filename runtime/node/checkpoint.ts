/**
 * The journal of a rollout: what survives a kill, and how it is read back. A journal that this version does not understand
 * is not a journal: the file itself and the sources say what is to be done, only a restart may happen once too often.
 */
import { createHash } from 'node:crypto';
import { exponentialMs } from '../core/back-off.ts';
import { isRecord } from '../core/record.ts';

/** Raised when the shape changes in a way that an older program would misread. */
export const JOURNAL_VERSION = 1;

/** Stands for "there is no such file" where a digest is expected. */
export const ABSENT = 'absent';

/** How the file became what it is, as far as it is not finished. */
export interface Change {
  readonly phase: 'writing' | 'restarting' | 'rolling-back' | 'recovering';
  /** Digest of the content that is being rolled out. */
  readonly wanted: string;
  /** Digest of the source that the content was made from; breakers go by it. */
  readonly source: string;
  readonly restart: boolean;
  /** Failures of the present phase. */
  readonly failures: number;
  /** Nothing is done before this time (milliseconds since 1970). */
  readonly notBefore: number;
  /** How long the present wait is; a clock that jumped back cannot make it longer. */
  readonly waitMs: number;
  /** Invocation of the unit right after the write; empty when it is unknown. */
  readonly invocation: string;
  /** Whether a credential is removed or replaced, so that the unit must not go on with its own copy of it. */
  readonly removes: boolean;
  /** When the file was written (milliseconds since 1970). */
  readonly writtenAt?: number;
  /** What the last failure was about. */
  readonly failedBy?: FailureKind;
}

/** What survives a kill. */
export interface Checkpoint {
  readonly version: typeof JOURNAL_VERSION;
  readonly change?: Change;
  readonly breakers: Breakers;
  /** When the unit was restarted, newest last (milliseconds since 1970). */
  readonly restarts: readonly number[];
}

export const EMPTY_JOURNAL: Checkpoint = { version: 1, breakers: {}, restarts: [] };

/**
 * Reads a stored journal. Anything that is not a journal of this version, whole and well-formed, gives undefined.
 */
export function parseJournal(document: unknown): Checkpoint | undefined {
  if (!isRecord(document) || document['version'] !== JOURNAL_VERSION) return undefined;
  const { change, breakers, restarts } = document;
  if (!isRecord(breakers) || !Object.values(breakers).every(isBreaker)) return undefined;
  if (!Array.isArray(restarts) || !restarts.every(Number.isFinite)) return undefined;
  const rest = {
    version: JOURNAL_VERSION,
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

// Breakers: a content with which the unit failed is not retried for ever. One per content.
// When the unit did not come up, the content gets a second chance after 5 minutes and a third after 30; then only other
// content is tried. When systemd could not even be reached, nothing was restarted, so it is tried for ever, ever more slowly.

/** `bus`: systemd was not reached, nothing was restarted. `unit`: the unit did not come up. */
export type FailureKind = 'bus' | 'unit';

export interface Breaker {
  /** How many times all attempts failed. */
  readonly rounds: number;
  /** When it closes by itself (milliseconds since 1970); absent: never. */
  readonly retryAt?: number;
  /** How long after opening that is. */
  readonly coolMs?: number;
  readonly kind: FailureKind;
}

/** By digest of the source, oldest first. */
export type Breakers = Readonly<Record<string, Breaker>>;

/** The newest so many are remembered. */
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

/** Milliseconds until `source` may be tried again; undefined: never by itself. Never longer than it was meant to be. */
export function retryInMs(breakers: Breakers, source: string, now: number): number | undefined {
  const breaker = Object.hasOwn(breakers, source) ? breakers[source] : undefined;
  if (breaker === undefined) return 0;
  if (breaker.retryAt === undefined || breaker.coolMs === undefined) return undefined;
  return Math.max(0, Math.min(breaker.retryAt - now, breaker.coolMs));
}

/** Forgets `source`: it worked. */
export function withoutBreaker(breakers: Breakers, source: string): Breakers {
  return Object.fromEntries(Object.entries(breakers).filter(([name]) => name !== source));
}

// Spreads the restarts of a fleet over a window without a coordinator: each node waits for a share of the window that its
// name and the content decide. With `n` nodes and a window of `w` seconds, `n/w` nodes restart in a second in expectation;
// it bounds no instant.

/**
 * Milliseconds that `node` waits, from 0 to just under `windowMs`: the same for the same node and content, and different
 * for another content, so that no node is always the first.
 */
export function spreadDelay(node: string, content: string, windowMs: number): number {
  const share = createHash('sha256').update(`${node}\0${content}`).digest().readUInt32BE(0) / 2 ** 32;
  return Math.floor(share * windowMs);
}

/** How long the restarts of a fleet are spread, and the share of one node for a content. Milliseconds. */
export interface Window {
  readonly windowMs: number;
  readonly delayMs: (source: string) => number;
}

/** The window as `node` has it. */
export function windowOf(node: string, windowMs: number): Window {
  return { windowMs, delayMs: (source) => spreadDelay(node, source, windowMs) };
}

/**
 * The change, rescheduled to the present window: after the window is shortened or removed, no node waits for its time in the longer one.
 * A longer window delays no change, and a wait after a failure does not depend on the window.
 *
 * @param change what is under way
 */
export function inWindow(change: Change, { windowMs, delayMs }: Window): Change {
  const { phase, failures, waitMs, writtenAt, source } = change;
  if (phase !== 'restarting' || failures > 0 || waitMs === 0 || waitMs < windowMs) return change;
  const share = delayMs(source);
  return { ...change, notBefore: (writtenAt ?? change.notBefore - waitMs) + share, waitMs: share };
}

// Turns of a fleet at a restart: who asks gets the next one, and so many nodes restart at once as the fleet can spare.
// All that is shared is one instant, that of the next free turn. Turns lie evenly, so that in no stretch of
// {@link RESTART_MS} more begin than the budget, however many nodes ask at once and whatever content they restart for.

/** What a restart takes until the unit is believed to be up. Milliseconds. */
export const RESTART_MS = 6000;

/** How many of `nodes` may restart at once: a tenth, and at least one. */
export function restartBudget(nodes: number): number {
  return Math.max(1, Math.ceil(nodes / 10));
}

/** From one turn to the next. Milliseconds. */
function turnMs(nodes: number): number {
  return Math.ceil(RESTART_MS / restartBudget(nodes));
}

/**
 * From the first turn of `nodes` to the last: nothing for one node, under a minute for any number.
 */
export function restartWindowMs(nodes: number): number {
  return Math.max(0, nodes - 1) * turnMs(nodes);
}

/** A turn, and when the one after it is. Milliseconds since 1970. */
export interface Turn {
  readonly at: number;
  readonly next: number;
}

/**
 * The turn of a node that asks at `now`, when the next free one is `next` (undefined: no booking yet). A turn that is
 * further away than all nodes together can have pushed it was booked by a clock that differs, and is not believed.
 *
 * @param asked `own`: the turn of this node, where it was the last to book. Once that has come the restart of it is over, since
 *   the node asks again, and there is no node to wait for
 */
export function bookTurn(asked: {
  readonly now: number;
  readonly next: number | undefined;
  readonly nodes: number;
  readonly own?: number | undefined;
}): Turn {
  const { now, nodes, own } = asked;
  const next = asked.next ?? now;
  const apart = turnMs(nodes);
  const believed = next - now <= restartWindowMs(nodes) + apart;
  const again = own !== undefined && own <= now;
  const at = believed && !again ? Math.max(now, next) : now;
  return { at, next: at + apart };
}
