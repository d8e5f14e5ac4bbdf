/**
 * The rollout of one file of a node: write, restart the unit, verify, roll back. Pure: the journal and what is seen go in,
 * the journal to store and the next step come out. The shell stores the journal before it takes the step, so that a kill at
 * any instant is finished by the next start.
 *
 * Source of the rule: requirement 1 ("if the restart fails after 3 attempts, the system rolls back the file changes"), with
 * waits of 1 s and 2 s between the attempts as in the existing agent; absence is restored as absence.
 */
import { exponentialMs } from '../core/back-off.ts';
import {
  type Change,
  type Checkpoint,
  type FailureKind,
  inWindow,
  isOpen,
  opened,
  retryInMs,
  type Window,
  withoutBreaker,
} from './checkpoint.ts';

/** What the file should be. */
export interface Wanted {
  readonly digest: string;
  readonly source: string;
  /** Whether an entry of the present file is removed or gets another credential. */
  readonly removes: boolean;
}

/** What there is now. */
export interface Seen {
  readonly now: number;
  /** Undefined while the sources cannot be read or are not valid. */
  readonly wanted: Wanted | undefined;
  /** Digest of the file, or `absent`. */
  readonly present: string;
}

/** When the unit is restarted, and how often that is tried. */
export interface Policy {
  readonly restart: 'on-change' | 'on-removal' | 'never';
  /** How long after the write the restart of this change may happen, at the earliest. */
  readonly window: Window;
  /**
   * So many changes restart the unit within ten minutes at most, the next one waits; 0: no limit. Two programs that each keep "their"
   * content in the file would else restart the unit for ever.
   */
  readonly maxRestarts: number;
  /**
   * How long after a write the unit has reloaded the file by itself, at the latest. For a change that only adds entries, a restart
   * that has not begun by then is skipped. @default {never}
   */
  readonly rereadMs?: number;
}

const ATTEMPTS = 3;
const RESTARTS_COUNT_FOR_MS = 600_000;

/** What the shell does next. */
export type Step =
  /** Nothing until something changes; with `wakeInMs`, check again by then. */
  | {
      readonly do: 'rest';
      readonly ready: boolean;
      readonly reason: 'Settled' | 'NoSource' | 'BreakerOpen';
      readonly wakeInMs?: number;
    }
  /** The same, but a change is under way. */
  | { readonly do: 'wait'; readonly ms: number; readonly reason: 'Spread' | 'BackOff' | 'RateLimit' }
  /** Write the desired content. With `save`, the present content is saved first, even before the journal is stored. */
  | { readonly do: 'write'; readonly save: boolean }
  | { readonly do: 'restart'; readonly attempt: number; readonly invocation: string }
  /** Put back what was saved. */
  | { readonly do: 'roll-back' }
  /** Ensure that the unit runs, with the present file. */
  | {
      readonly do: 'recover';
      readonly invocation: string;
      /** Whether an attempt reached the unit. */
      readonly touched: boolean;
    };

export interface Decision {
  /** To be stored before the step is taken, when it differs. */
  readonly journal: Checkpoint;
  readonly step: Step;
}

/** The next step. */
export function decide(journal: Checkpoint, seen: Seen, policy: Policy): Decision {
  const { change } = journal;
  if (change === undefined) return fromRest(journal, seen, policy);
  if (supersedes(journal, change, seen)) return supersede(journal, change, seen, policy);
  const waitMs = remaining(change, seen.now);
  switch (change.phase) {
    case 'rolling-back':
      return { journal, step: waitMs > 0 ? backOff(waitMs) : { do: 'roll-back' } };
    case 'recovering':
      return { journal, step: waitMs > 0 ? backOff(waitMs) : recovery(change) };
    default:
      return forward(journal, inWindow(change, policy.window), seen, policy);
  }
}

function fromRest(journal: Checkpoint, seen: Seen, policy: Policy): Decision {
  const { wanted } = seen;
  if (wanted === undefined) return { journal, step: { do: 'rest', ready: false, reason: 'NoSource' } };
  if (wanted.digest === seen.present) return atRest(journal);
  if (isOpen(journal.breakers, wanted.source, seen.now)) return broken(journal, wanted.source, seen.now);
  const change: Change = {
    phase: 'writing',
    wanted: wanted.digest,
    source: wanted.source,
    restart: wantsRestart(policy, wanted),
    removes: wanted.removes,
    failures: 0,
    notBefore: seen.now,
    waitMs: 0,
    invocation: '',
  };
  return { journal: { ...journal, change }, step: { do: 'write', save: change.restart } };
}

/** The desired content changed under way, and the newer content is not known to be bad. A rollback is always finished first. */
function supersedes(journal: Checkpoint, change: Change, seen: Seen): boolean {
  if (seen.wanted === undefined || seen.wanted.digest === change.wanted) return false;
  if (change.phase === 'rolling-back') return false;
  return !isOpen(journal.breakers, seen.wanted.source, seen.now);
}

/** Goes on with the newer content. What was saved stays saved: it is the last content that is known to be good. */
function supersede(journal: Checkpoint, change: Change, seen: Seen, policy: Policy): Decision {
  const wanted = seen.wanted as Wanted;
  const recovered = change.phase === 'recovering';
  const next: Change = {
    ...change,
    phase: 'writing',
    wanted: wanted.digest,
    source: wanted.source,
    restart: change.restart || wantsRestart(policy, wanted),
    removes: change.removes || wanted.removes,
    failures: 0,
    // A restart that is waiting for its turn covers the newer content too; only a failed one is not a reason to wait.
    ...(change.failures > 0 || recovered ? { notBefore: seen.now, waitMs: 0 } : {}),
  };
  return {
    journal: { ...journal, change: next },
    step: { do: 'write', save: next.restart && !change.restart },
  };
}

function forward(before: Checkpoint, change: Change, seen: Seen, policy: Policy): Decision {
  const journal = { ...before, change };
  if (seen.present !== change.wanted) return rewrite(journal, change, seen, policy);
  if (!change.restart) return atRest(settled(journal, change));
  if (change.phase === 'writing') {
    // Killed right after the write: what the unit was doing then is not known.
    const next = written({ ...change, failures: 0, waitMs: 0 }, '', seen.now, policy);
    return forward(journal, next, seen, policy);
  }
  if (change.failures >= ATTEMPTS) return giveUp(journal, change, seen.now);
  const rereadMs = rereadInMs(change, seen.now, policy);
  if (rereadMs <= 0) return atRest(settled(journal, change));
  const ms = Math.min(remaining(change, seen.now), rereadMs);
  if (ms > 0)
    return { journal, step: { do: 'wait', ms, reason: change.failures > 0 ? 'BackOff' : 'Spread' } };
  const limited = change.failures > 0 ? 0 : limitedMs(journal.restarts, seen.now, policy);
  if (limited > 0)
    return { journal, step: { do: 'wait', ms: Math.min(limited, rereadMs), reason: 'RateLimit' } };
  return { journal, step: { do: 'restart', attempt: change.failures + 1, invocation: change.invocation } };
}

/** When the unit has read the file anew by itself; never where that does not do: something was removed, or the unit was touched. */
function rereadInMs({ removes, writtenAt, failures }: Change, now: number, policy: Policy): number {
  const { rereadMs } = policy;
  if (rereadMs === undefined || writtenAt === undefined || removes || failures > 0)
    return Number.POSITIVE_INFINITY;
  return writtenAt + rereadMs - now;
}

/** How long the limit on restarts still holds. */
function limitedMs(restarts: readonly number[], now: number, { maxRestarts }: Policy): number {
  const oldest = maxRestarts === 0 ? undefined : restarts.at(-maxRestarts);
  // A restart in the future is one of before the clock was set back.
  return oldest === undefined || oldest > now ? 0 : oldest + RESTARTS_COUNT_FOR_MS - now;
}

/** The write did not happen yet, or was undone. */
function rewrite(journal: Checkpoint, change: Change, seen: Seen, policy: Policy): Decision {
  // Other content is desired by now, but its breaker is open: there is nothing to write either.
  if (seen.wanted?.digest !== change.wanted) {
    if (!change.restart) return fromRest(without(journal), seen, policy);
    // Nothing to write, and the unit may not have read the present file: it is restarted with that. The source that
    // was on its way is not to blame if it fails: its content was never in the file.
    const { present } = seen;
    const there: Change = { ...change, phase: 'writing', wanted: present, source: present, removes: true };
    return forward(journal, there, seen, policy);
  }
  const waitMs = remaining(change, seen.now);
  if (change.phase === 'writing' && change.failures > 0 && waitMs > 0)
    return { journal, step: backOff(waitMs) };
  return {
    journal: { ...journal, change: { ...change, phase: 'writing' } },
    step: { do: 'write', save: false },
  };
}

function giveUp(journal: Checkpoint, change: Change, now: number): Decision {
  const breakers = opened(journal.breakers, { source: change.source, kind: change.failedBy ?? 'unit', now });
  const next: Change = { ...change, phase: 'rolling-back', failures: 0, notBefore: now, waitMs: 0 };
  return { journal: { ...journal, breakers, change: next }, step: { do: 'roll-back' } };
}

function broken(journal: Checkpoint, source: string, now: number): Decision {
  const wakeInMs = retryInMs(journal.breakers, source, now);
  const step = { do: 'rest', ready: false, reason: 'BreakerOpen' } as const;
  return { journal, step: wakeInMs === undefined ? step : { ...step, wakeInMs } };
}

/** Result of a step. */
export type Ended =
  | { readonly step: 'write'; readonly ok: true; readonly invocation: string }
  | { readonly step: 'restart' | 'recover' | 'roll-back'; readonly ok: true }
  | { readonly step: Step['do']; readonly ok: false; readonly kind: FailureKind };

/** The journal after a step. */
export function after(journal: Checkpoint, ended: Ended, now: number, policy: Policy): Checkpoint {
  const { change } = journal;
  if (change === undefined) return journal;
  if (!ended.ok) return { ...journal, change: failed(change, ended.kind, now) };
  switch (ended.step) {
    case 'write':
      return { ...journal, change: written(change, ended.invocation, now, policy) };
    case 'restart':
      return settled({ ...journal, restarts: [...journal.restarts, now].slice(-MAX_RESTARTS) }, change);
    case 'roll-back':
      return {
        ...journal,
        change: { ...change, phase: 'recovering', failures: 0, notBefore: now, waitMs: 0 },
      };
    default:
      return without(journal);
  }
}

function written(change: Change, invocation: string, now: number, policy: Policy): Change {
  // A change that already waits for its turn keeps it.
  const next = { ...change, phase: 'restarting', invocation, writtenAt: now } as const;
  if (change.waitMs > 0 && change.failures === 0) return next;
  const waitMs = change.restart ? policy.window.delayMs(change.source) : 0;
  return { ...next, failures: 0, notBefore: now + waitMs, waitMs };
}

const BACK_OFF = { firstMs: 1000, maxMs: 60_000 };
const MAX_RESTARTS = 32;

function failed(change: Change, kind: FailureKind, now: number): Change {
  const failures = change.failures + 1;
  // Attempts at a restart wait 1 s, then 2 s. Everything else is retried until it works, ever more slowly.
  const waitMs = change.phase === 'restarting' ? failures * 1000 : exponentialMs(BACK_OFF, failures - 1);
  return {
    ...change,
    failures,
    notBefore: now + waitMs,
    waitMs,
    failedBy: change.failedBy === 'unit' ? 'unit' : kind,
  };
}

function settled(journal: Checkpoint, change: Change): Checkpoint {
  return without({ ...journal, breakers: withoutBreaker(journal.breakers, change.source) });
}

function without(journal: Checkpoint): Checkpoint {
  return { version: 1, breakers: journal.breakers, restarts: journal.restarts };
}

function wantsRestart(policy: Policy, wanted: Wanted): boolean {
  return policy.restart === 'on-change' || (policy.restart === 'on-removal' && wanted.removes);
}

function recovery({ invocation, failedBy }: Change): Step {
  return { do: 'recover', invocation, touched: failedBy === 'unit' };
}

function atRest(journal: Checkpoint): Decision {
  return { journal, step: { do: 'rest', ready: true, reason: 'Settled' } };
}

function backOff(ms: number): Step {
  return { do: 'wait', ms, reason: 'BackOff' };
}

/** Never more than the wait was meant to be, however the clock was set. */
function remaining(change: Change, now: number): number {
  return Math.min(change.notBefore - now, change.waitMs);
}
