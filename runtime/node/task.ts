/** A node task: one file, one unit that reads it, and a function that computes the desired content. */
import { describeError, type PullwrightError } from '../core/errors.ts';
import { type ConditionInput, readiness } from '../core/kubernetes/conditions.ts';
import { defined } from '../core/record.ts';
import type { Redacted } from '../core/redacted.ts';
import type { FileContent } from './atomic-file.ts';
import type { Step, Wanted } from './rollout.ts';

/** Entries of the file that we own: entry to digests of what we wrote. Stored by the engine, interpreted by the task. */
export type OwnedEntries = Readonly<Record<string, readonly string[]>>;

/** Desired content, and the ownership of entries on the way there. */
export interface WantedContent extends Wanted {
  readonly bytes: Redacted<Uint8Array>;
  /** Stored before the write: entries that are ours before or after it. */
  readonly ownedDuring: OwnedEntries;
  /** Stored when the change is settled. */
  readonly ownedAfter: OwnedEntries;
}

/** One observation of the sources and the file. */
export interface Observation {
  /** Digest of the file, or `absent`. */
  readonly present: string;
  readonly wanted: WantedContent | undefined;
  /** Why a node without desired content is ready: there is nothing to deliver. */
  readonly idle?: string;
  /** Why there is no desired content; with desired content, which part of the source is ignored. */
  readonly problem?: PullwrightError;
  /** For the log: the source, the number of desired entries, and of foreign ones among them. */
  readonly from?: string;
  readonly entries?: number;
  readonly foreign?: number;
  /** For programs that compare nodes: digests and versions, never a value. */
  readonly facts?: Readonly<Record<string, string>>;
}

export interface NodeTask {
  /** Whether the file holds credentials and always gets mode 0600. @default {false} */
  readonly secret?: boolean;
  readonly file: string;
  readonly unit: string;
  /** Whether the file is part of the unit, so that systemd must reload its units. @default {false} */
  readonly isPartOfUnit?: boolean;
  /** Observes the sources. Never throws for their content. */
  look(present: FileContent | undefined, owned: OwnedEntries): Observation;
}

// Events on a node, for log lines, metrics and Kubernetes Events. They hold no credential.

/** One event on the node. */
export type NodeEvent =
  | {
      readonly event: 'written';
      readonly file: string;
      readonly from: string;
      readonly entries: number;
      readonly foreign: number;
    }
  | { readonly event: 'write-failed'; readonly file: string; readonly error: PullwrightError }
  | { readonly event: 'restarting'; readonly unit: string; readonly attempt: number }
  | {
      readonly event: 'restarted' | 'recovered';
      readonly unit: string;
      readonly attempt: number;
      readonly ms: number;
      /** False when another program restarted the unit since the write, or no restart was needed. */
      readonly byUs: boolean;
    }
  | {
      readonly event: 'restart-failed' | 'recover-failed';
      readonly unit: string;
      readonly attempt: number;
      readonly ms: number;
      readonly error: PullwrightError;
    }
  | { readonly event: 'rolled-back'; readonly file: string; readonly to: 'saved' | 'absent' | 'none' }
  | { readonly event: 'turn-failed' | 'state-failed'; readonly error: PullwrightError }
  | { readonly event: 'journal-damaged'; readonly path: string }
  | { readonly event: 'resumed'; readonly phase: string }
  | { readonly event: 'swept'; readonly files: number }
  /** The file holds credentials, and was readable by other users. */
  | { readonly event: 'made-private'; readonly file: string };

/** Whether the node is in sync, and why not. */
export interface NodeState {
  readonly ready: boolean;
  /** CamelCase, stable. */
  readonly reason: string;
  /** For a person; holds no value of a Secret. */
  readonly message: string;
  /** A change is in progress: not ready, but no action is needed. */
  readonly busy?: boolean;
  /** See {@link Observation.facts}. */
  readonly facts?: Readonly<Record<string, string>>;
}

const WAITING: Readonly<Record<Extract<Step, { do: 'wait' }>['reason'], string>> = {
  Spread: 'The file is written; the restart is waiting for its turn in the window',
  BackOff: 'The last attempt failed; it is retried',
  RateLimit: 'The file is written; too many recent restarts of the unit, so the restart is delayed',
};

const ACTING: Readonly<Record<Exclude<Step['do'], 'wait' | 'rest'>, readonly [string, string]>> = {
  write: ['Writing', 'The file differs from the desired content'],
  restart: ['Restarting', 'The unit is being restarted'],
  'roll-back': [
    'RollingBack',
    'The unit did not start with the new content; the old content is being restored',
  ],
  recover: ['Recovering', 'The old content is restored; the unit is being restarted with it'],
};

/** The state before a step is taken. */
export function stateOf(step: Step, look: Observation): NodeState {
  return { ...bareState(step, look), ...defined({ facts: look.facts }) };
}

function bareState(step: Step, look: Observation): NodeState {
  if (step.do === 'wait')
    return { ready: false, reason: step.reason, message: WAITING[step.reason], busy: true };
  if (step.do !== 'rest') {
    const [reason, message] = ACTING[step.do];
    return { ready: false, reason, message, busy: true };
  }
  if (step.reason === 'Settled') return settled(look);
  if (step.reason === 'BreakerOpen') {
    const again =
      step.wakeInMs === undefined ? 'it is not retried until the content changes' : 'it is retried later';
    return {
      ready: false,
      reason: 'BreakerOpen',
      message: `The unit did not start with this content; ${again}`,
    };
  }
  const { problem, idle } = look;
  if (idle !== undefined && problem === undefined)
    return { ready: true, reason: 'NothingToBring', message: idle };
  if (problem === undefined) return { ready: false, reason: 'NoSource', message: 'No source found' };
  const busy = problem.retryPolicy === 'waiting' ? { busy: true } : {};
  return { ready: false, reason: problem.code, message: describeError(problem), ...busy };
}

/** An unusable part of the source does not make the node not ready, but is reported. */
function settled({ problem }: Observation): NodeState {
  const whole = 'The file matches the desired content';
  if (problem === undefined) return { ready: true, reason: 'InSync', message: whole };
  const message = `${whole}, as far as it can be used: ${problem.message}`;
  return { ready: true, reason: problem.code, message };
}

/** `Ready`, with `Reconciling` while a change is in progress, else `Stalled`. */
export function stateConditions({ ready, reason, message, busy }: NodeState): readonly ConditionInput[] {
  const waits = busy === true ? 'progressing' : 'stalled';
  return readiness(ready ? 'ready' : waits, { reason, message });
}

/** Reason while a removal is held. */
export const NODE_HOLDS_REMOVAL = 'RemovalHeld';
