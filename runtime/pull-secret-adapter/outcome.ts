/**
 * How a run of the Job can end: reason codes, exit codes, and what the adapter does next. The exit codes are those of
 * `sysexits.h`, so that they do not collide with a shell's or a signal's.
 */
/** In a receipt: nothing was at that place. */
export const NOT_THERE = 'was not there';

/** `terminal`: until the cluster or the secret changes. `denied`: until access is granted, retried rarely. `retry`: retried with back-off. */
export type OutcomeClass = 'done' | 'terminal' | 'denied' | 'retry';

interface OutcomeKind {
  readonly exitCode: number;
  readonly class: OutcomeClass;
}

/** Every reason that a result file or a status may carry. */
export const OUTCOMES = {
  SecretStored: { exitCode: 0, class: 'done' },
  SecretUnchanged: { exitCode: 0, class: 'done' },
  SupersededByNewer: { exitCode: 75, class: 'retry' },
  SecretDeleted: { exitCode: 0, class: 'done' },
  DryRunPassed: { exitCode: 0, class: 'done' },
  InvalidPullSecret: { exitCode: 65, class: 'terminal' },
  IdentityUnavailable: { exitCode: 69, class: 'retry' },
  SecretNotOwned: { exitCode: 73, class: 'terminal' },
  PullSecretConflict: { exitCode: 73, class: 'terminal' },
  ReplicationMismatch: { exitCode: 73, class: 'terminal' },
  QuotaExceeded: { exitCode: 75, class: 'retry' },
  SecretManagerUnavailable: { exitCode: 75, class: 'retry' },
  ManagementClusterUnavailable: { exitCode: 75, class: 'retry' },
  ManagementNamespaceMissing: { exitCode: 75, class: 'retry' },
  Interrupted: { exitCode: 75, class: 'retry' },
  PayloadCorrupted: { exitCode: 76, class: 'retry' },
  IamPermissionDenied: { exitCode: 77, class: 'denied' },
  ManagementPermissionDenied: { exitCode: 77, class: 'denied' },
  ApiDisabled: { exitCode: 77, class: 'denied' },
  TenancyUnproven: { exitCode: 77, class: 'retry' },
  PolicyDenied: { exitCode: 77, class: 'denied' },
  BillingDisabled: { exitCode: 77, class: 'denied' },
  InvalidConfiguration: { exitCode: 78, class: 'terminal' },
  UnexpectedFailure: { exitCode: 1, class: 'retry' },
} as const;

export type OutcomeReason = keyof typeof OUTCOMES;

const KINDS: readonly OutcomeKind[] = Object.values(OUTCOMES);

/** A Job whose container ends with one of these fails at once (podFailurePolicy); every other code is tried again. */
export const FAIL_JOB_EXIT_CODES: readonly number[] = [
  ...new Set(
    KINDS.filter((kind) => kind.class === 'terminal' || kind.class === 'denied').map((kind) => kind.exitCode),
  ),
].sort((a, b) => a - b);

/** The contract of the result file that the status side-car of the sibling adapters reads; also the termination message. */
export interface JobResult {
  readonly status: 'success' | 'failure';
  /** At most 128 characters. */
  readonly reason: string;
  /** At most 1024 characters; for a person; never a value. */
  readonly message: string;
  readonly details: Readonly<Record<string, string | number | boolean>>;
  /** What became of each place, on deletion: the proof that it is gone, or why it stays. */
  readonly receipt?: Readonly<Record<string, string>>;
}

/** The class of a reason, or of an exit code when the reason is unknown; what is not understood is tried again. */
export function outcomeClass(reason: string | undefined, exitCode: number | undefined): OutcomeClass {
  if (reason !== undefined && Object.hasOwn(OUTCOMES, reason)) return OUTCOMES[reason as OutcomeReason].class;
  const kind = KINDS.find((candidate) => candidate.exitCode === exitCode && exitCode !== 0);
  return kind?.class ?? 'retry';
}
