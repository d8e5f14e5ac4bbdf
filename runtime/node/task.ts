/** What a node task is: one file, one unit that reads it, and a function that says what should be in the file. */
import type { FileContent } from '../host/atomic-file.ts';
import type { PullwrightError } from '../rules/errors.ts';
import type { Redacted } from '../rules/redacted.ts';
import type { Wanted } from '../rules/rollout/rollout.ts';

/** Which entries of the file are ours: entry to digests of what we wrote. Kept by the engine, understood by the task. */
export type Ledger = Readonly<Record<string, readonly string[]>>;

/** What the file should be, and how to get there. */
export interface WantedContent extends Wanted {
  readonly bytes: Redacted<Uint8Array>;
  /** Stored before the write: whatever is ours before or after it. */
  readonly ledgerDuring: Ledger;
  /** Stored when the change is settled. */
  readonly ledgerAfter: Ledger;
}

/** One look at the sources and the file. */
export interface Look {
  /** Digest of the file, or `absent`. */
  readonly present: string;
  readonly wanted: WantedContent | undefined;
  /** Why all is well although nothing is wanted: there is nothing to bring to the node. */
  readonly idle?: string;
  /** Why nothing is wanted; beside a wanted content, what of the source is left out of it. */
  readonly problem?: PullwrightError;
  /** For people: which source was taken, how many entries are wanted, and how many of them belong to others. */
  readonly from?: string;
  readonly entries?: number;
  readonly foreign?: number;
  /** For programs that compare nodes: digests and versions, never a value. */
  readonly facts?: Readonly<Record<string, string>>;
}

export interface NodeTask {
  readonly name: string;
  /** Whether the file holds credentials: it is written for its owner alone, whatever mode it had. @default {false} */
  readonly secret?: boolean;
  readonly file: string;
  readonly unit: string;
  /** Looks at the sources. Never throws for what they hold. */
  look(present: FileContent | undefined, ledger: Ledger): Look;
}
