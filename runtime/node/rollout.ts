/**
 * The rollout of one file of a node: write, restart the unit, verify, roll back. Pure: from the checkpoint and an observation
 * to the checkpoint to store and the next step. The engine stores the checkpoint before it takes the step, so that the next start
 * resumes after a kill at any instant.
 *
 * Source of the rule: requirement 1 ("if the restart fails after 3 attempts, the system rolls back the file changes"), with
 * waits of 1 s and 2 s between the attempts as in the existing agent. A file that did not exist is removed again.
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

/** Desired content of the file. */
export interface Wanted {
  readonly digest: string;
  readonly source: string;
  /** Whether an entry of the current file is removed or gets another credential. */
  readonly removes: boolean;
}

/** Current state. */
export interface Seen {
  readonly now: number;
  /** Undefined while the sources are unreadable or invalid. */
  readonly wanted: Wanted | undefined;
  /** Digest of the file, or `absent`. */
  readonly present: string;
}

/** When the unit is restarted, and how often. */
export interface Policy {
  readonly restart: 'on-change' | 'on-removal' | 'never';
  /** Delay of the restart after the write. */
  readonly window: Window;
  /**
   * Maximum restarts for changes within ten minutes, after which the next one waits; 0: no limit. Otherwise two programs that
   * fight over the file would restart the unit for ever.
   */
  readonly maxRestarts: number;
  /**
   * Time after a write within which the unit itself reloads the file. For a change that only adds entries, a restart that has
   * not begun by then is skipped. @default {never}
   */
  readonly rereadMs?: number;
}

const ATTEMPTS = 3;
const RESTARTS_COUNT_FOR_MS = 600_000;

/** The next step of the engine. */
export type Step =
  /** Wait for a change; with `wakeInMs`, check again by then. */
  | {
      readonly do: 'rest';
      readonly ready: boolean;
      readonly reason: 'Settled' | 'NoSource' | 'BreakerOpen';
      readonly wakeInMs?: number;
    }
  /** The same, while a change is in progress. */
  | { readonly do: 'wait'; readonly ms: number; readonly reason: 'Spread' | 'BackOff' | 'RateLimit' }
  /** Write the desired content. With `save`, back up the current content first, before the checkpoint is stored. */
  | { readonly do: 'write'; readonly save: boolean }
  | { readonly do: 'restart'; readonly attempt: number; readonly invocation: string }
  /** Restore the backup. */
  | { readonly do: 'roll-back' }
  /** Ensure that the unit runs with the current file. */
  | {
      readonly do: 'recover';
      readonly invocation: string;
      /** Whether an attempt may have stopped the unit. */
      readonly touched: boolean;
    };

export interface Decision {
  /** Stored before the step is taken, if changed. */
  readonly checkpoint: Checkpoint;
  readonly step: Step;
}

/** The next step. */
export function decide(checkpoint: Checkpoint, seen: Seen, policy: Policy): Decision {
  const { change } = checkpoint;
  if (change === undefined) return fromRest(checkpoint, seen, policy);
  const newer = supersede(checkpoint, change, seen, policy);
  if (newer !== undefined) return newer;
  const waitMs = remaining(change, seen.now);
  switch (change.phase) {
    case 'rolling-back':
      return { checkpoint, step: waitMs > 0 ? backOff(waitMs) : { do: 'roll-back' } };
    case 'recovering':
      return { checkpoint, step: waitMs > 0 ? backOff(waitMs) : recovery(change) };
    default:
      return forward(checkpoint, inWindow(change, policy.window), seen, policy);
  }
}

function fromRest(checkpoint: Checkpoint, seen: Seen, policy: Policy): Decision {
  const { wanted } = seen;
  if (wanted === undefined) return { checkpoint, step: { do: 'rest', ready: false, reason: 'NoSource' } };
  if (wanted.digest === seen.present) return atRest(checkpoint);
  if (isOpen(checkpoint.breakers, wanted.source, seen.now))
    return broken(checkpoint, wanted.source, seen.now);
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
  return { checkpoint: { ...checkpoint, change }, step: { do: 'write', save: change.restart } };
}

/**
 * Continues with newer content, if there is any: not during a rollback, nor while its breaker is open. Keeps the backup, which is
 * the last known good content.
 */
function supersede(
  checkpoint: Checkpoint,
  change: Change,
  { wanted, now }: Seen,
  policy: Policy,
): Decision | undefined {
  if (wanted === undefined || wanted.digest === change.wanted || change.phase === 'rolling-back')
    return undefined;
  if (isOpen(checkpoint.breakers, wanted.source, now)) return undefined;
  const recovered = change.phase === 'recovering';
  const next: Change = {
    ...change,
    phase: 'writing',
    wanted: wanted.digest,
    source: wanted.source,
    restart: change.restart || wantsRestart(policy, wanted),
    removes: change.removes || wanted.removes,
    failures: 0,
    // A pending restart covers the newer content too; only the back-off after a failure is reset.
    ...(change.failures > 0 || recovered ? { notBefore: now, waitMs: 0 } : {}),
  };
  return {
    checkpoint: { ...checkpoint, change: next },
    step: { do: 'write', save: next.restart && !change.restart },
  };
}

function forward(before: Checkpoint, change: Change, seen: Seen, policy: Policy): Decision {
  const checkpoint = { ...before, change };
  if (seen.present !== change.wanted) return rewrite(checkpoint, change, seen, policy);
  if (!change.restart) return atRest(settled(checkpoint, change));
  if (change.phase === 'writing') {
    // Killed right after the write: the invocation of the unit at that time is unknown.
    const next = written({ ...change, failures: 0, waitMs: 0 }, '', seen.now, policy);
    return forward(checkpoint, next, seen, policy);
  }
  if (change.failures >= ATTEMPTS) return giveUp(checkpoint, change, seen.now);
  const rereadMs = rereadInMs(change, seen.now, policy);
  if (rereadMs <= 0) return atRest(settled(checkpoint, change));
  const ms = Math.min(remaining(change, seen.now), rereadMs);
  if (ms > 0)
    return { checkpoint, step: { do: 'wait', ms, reason: change.failures > 0 ? 'BackOff' : 'Spread' } };
  const limited = change.failures > 0 ? 0 : limitedMs(checkpoint.restarts, seen.now, policy);
  if (limited > 0)
    return { checkpoint, step: { do: 'wait', ms: Math.min(limited, rereadMs), reason: 'RateLimit' } };
  return { checkpoint, step: { do: 'restart', attempt: change.failures + 1, invocation: change.invocation } };
}

/** Milliseconds until the unit has reloaded the file by itself; infinite after a removal or a failed restart. */
function rereadInMs({ removes, writtenAt, failures }: Change, now: number, policy: Policy): number {
  const { rereadMs } = policy;
  if (rereadMs === undefined || writtenAt === undefined || removes || failures > 0)
    return Number.POSITIVE_INFINITY;
  return writtenAt + rereadMs - now;
}

/** Milliseconds until the rate limit permits a restart. */
function limitedMs(restarts: readonly number[], now: number, { maxRestarts }: Policy): number {
  const oldest = maxRestarts === 0 ? undefined : restarts.at(-maxRestarts);
  // A restart in the future dates from before the clock was set back.
  return oldest === undefined || oldest > now ? 0 : oldest + RESTARTS_COUNT_FOR_MS - now;
}

/** The write did not happen yet, or was undone. */
function rewrite(checkpoint: Checkpoint, change: Change, seen: Seen, policy: Policy): Decision {
  // Other content is desired now, but its breaker is open: there is nothing to write.
  if (seen.wanted?.digest !== change.wanted) {
    if (!change.restart) return fromRest(without(checkpoint), seen, policy);
    // The unit may not have read the current file: restart it. If that fails, open the breaker of the current content, since the
    // content of the change was never in the file.
    const { present } = seen;
    const there: Change = { ...change, phase: 'writing', wanted: present, source: present, removes: true };
    return forward(checkpoint, there, seen, policy);
  }
  const waitMs = remaining(change, seen.now);
  if (change.phase === 'writing' && change.failures > 0 && waitMs > 0)
    return { checkpoint, step: backOff(waitMs) };
  return {
    checkpoint: { ...checkpoint, change: { ...change, phase: 'writing' } },
    step: { do: 'write', save: false },
  };
}

function giveUp(checkpoint: Checkpoint, change: Change, now: number): Decision {
  const breakers = opened(checkpoint.breakers, {
    source: change.source,
    kind: change.failedBy ?? 'unit',
    now,
  });
  const next: Change = { ...change, phase: 'rolling-back', failures: 0, notBefore: now, waitMs: 0 };
  return { checkpoint: { ...checkpoint, breakers, change: next }, step: { do: 'roll-back' } };
}

function broken(checkpoint: Checkpoint, source: string, now: number): Decision {
  const wakeInMs = retryInMs(checkpoint.breakers, source, now);
  const step = { do: 'rest', ready: false, reason: 'BreakerOpen' } as const;
  return { checkpoint, step: wakeInMs === undefined ? step : { ...step, wakeInMs } };
}

/** Result of a step. */
export type Ended =
  | { readonly step: 'write'; readonly ok: true; readonly invocation: string }
  | { readonly step: 'restart' | 'recover' | 'roll-back'; readonly ok: true }
  | { readonly step: Step['do']; readonly ok: false; readonly kind: FailureKind };

/** The checkpoint after a step. */
export function after(checkpoint: Checkpoint, ended: Ended, now: number, policy: Policy): Checkpoint {
  const { change } = checkpoint;
  if (change === undefined) return checkpoint;
  if (!ended.ok) return { ...checkpoint, change: failed(change, ended.kind, now) };
  switch (ended.step) {
    case 'write':
      return { ...checkpoint, change: written(change, ended.invocation, now, policy) };
    case 'restart':
      return settled({ ...checkpoint, restarts: [...checkpoint.restarts, now].slice(-MAX_RESTARTS) }, change);
    case 'roll-back':
      return {
        ...checkpoint,
        change: { ...change, phase: 'recovering', failures: 0, notBefore: now, waitMs: 0 },
      };
    default:
      return without(checkpoint);
  }
}

function written(change: Change, invocation: string, now: number, policy: Policy): Change {
  // A change that already waits for its slot keeps it.
  const next = { ...change, phase: 'restarting', invocation, writtenAt: now } as const;
  if (change.waitMs > 0 && change.failures === 0) return next;
  const waitMs = change.restart ? policy.window.delayMs(change.source) : 0;
  return { ...next, failures: 0, notBefore: now + waitMs, waitMs };
}

const BACK_OFF = { firstMs: 1000, maxMs: 60_000 };
const MAX_RESTARTS = 32;

function failed(change: Change, kind: FailureKind, now: number): Change {
  const failures = change.failures + 1;
  // Restarts wait 1 s, then 2 s. Everything else is retried without limit, with back-off.
  const waitMs = change.phase === 'restarting' ? failures * 1000 : exponentialMs(BACK_OFF, failures - 1);
  return {
    ...change,
    failures,
    notBefore: now + waitMs,
    waitMs,
    failedBy: change.failedBy === 'unit' ? 'unit' : kind,
  };
}

function settled(checkpoint: Checkpoint, change: Change): Checkpoint {
  return without({ ...checkpoint, breakers: withoutBreaker(checkpoint.breakers, change.source) });
}

function without(checkpoint: Checkpoint): Checkpoint {
  return { version: 1, breakers: checkpoint.breakers, restarts: checkpoint.restarts };
}

function wantsRestart(policy: Policy, wanted: Wanted): boolean {
  return policy.restart === 'on-change' || (policy.restart === 'on-removal' && wanted.removes);
}

function recovery({ invocation, failedBy }: Change): Step {
  return { do: 'recover', invocation, touched: failedBy === 'unit' };
}

function atRest(checkpoint: Checkpoint): Decision {
  return { checkpoint, step: { do: 'rest', ready: true, reason: 'Settled' } };
}

function backOff(ms: number): Step {
  return { do: 'wait', ms, reason: 'BackOff' };
}

/** Remaining wait, at most its full length even when the clock was set back. */
function remaining(change: Change, now: number): number {
  return Math.min(change.notBefore - now, change.waitMs);
}
