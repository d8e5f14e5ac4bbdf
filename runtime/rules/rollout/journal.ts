/**
 * The journal of a rollout: what survives a kill, and how it is read back. A journal that this version does not understand
 * is no journal: the file itself and the sources say what is to be done, only a restart may happen once too often.
 */
import { isRecord } from '../record.ts';
import type { Breaker, Breakers, FailureKind } from './breaker.ts';

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
  /** Invocation of the unit right after the write; empty when it could not be asked. */
  readonly invocation: string;
  /** Whether a credential is removed or replaced, so that the unit must not go on with its own copy of it. */
  readonly removes?: boolean;
  /** When the file was written (milliseconds since 1970). */
  readonly writtenAt?: number;
  /** What the last failure was about. */
  readonly failedBy?: FailureKind;
}

/** What survives a kill. */
export interface Journal {
  readonly version: typeof JOURNAL_VERSION;
  readonly change?: Change;
  readonly breakers: Breakers;
  /** When the unit was restarted, newest last (milliseconds since 1970). */
  readonly restarts: readonly number[];
}

export const EMPTY_JOURNAL: Journal = { version: 1, breakers: {}, restarts: [] };

/**
 * Reads a stored journal. Anything that is not a journal of this version, whole and well-formed, gives undefined.
 *
 * @example
 * ```ts
 * import { EMPTY_JOURNAL, parseJournal } from './journal.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(parseJournal(JSON.parse(JSON.stringify(EMPTY_JOURNAL))), EMPTY_JOURNAL);
 * assert.equal(parseJournal({ version: 2 }), undefined);
 * ```
 */
export function parseJournal(document: unknown): Journal | undefined {
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
  const texts = ['wanted', 'source', 'invocation'].every((name) => typeof value[name] === 'string');
  const numbers = ['failures', 'notBefore', 'waitMs'].every((name) => Number.isFinite(value[name]));
  const { failedBy, removes, writtenAt } = value;
  return (
    texts &&
    numbers &&
    typeof value['restart'] === 'boolean' &&
    (failedBy === undefined || KINDS.includes(failedBy)) &&
    (removes === undefined || typeof removes === 'boolean') &&
    (writtenAt === undefined || Number.isFinite(writtenAt))
  );
}

function isBreaker(value: unknown): value is Breaker {
  if (!isRecord(value) || !Number.isFinite(value['rounds']) || !KINDS.includes(value['kind'])) return false;
  return [value['retryAt'], value['coolMs']].every((one) => one === undefined || Number.isFinite(one));
}
