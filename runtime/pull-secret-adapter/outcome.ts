/** Outcomes of a Job run: reason, exit code and retry class. Codes of `sysexits.h` do not collide with shell or signal codes. */

/** In a receipt: the secret did not exist. */
export const NOT_THERE = 'was not there';

/** `terminal`: not retried before the cluster or the secret changes. `denied`: retried rarely. `retry`: retried with back-off. */
export type OutcomeClass = 'done' | 'terminal' | 'denied' | 'retry';

/** Every reason of a result file or a status. */
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

const KINDS: readonly { readonly exitCode: number; readonly class: OutcomeClass }[] = Object.values(OUTCOMES);

/** Exit codes that fail the Job at once (podFailurePolicy); all others are retried. */
export const FAIL_JOB_EXIT_CODES: readonly number[] = [
  ...new Set(
    KINDS.filter((kind) => kind.class === 'terminal' || kind.class === 'denied').map((kind) => kind.exitCode),
  ),
].sort((a, b) => a - b);

/** The result file, in the format of the sibling adapters' status sidecar; also the termination message. */
export interface JobResult {
  readonly status: 'success' | 'failure';
  /** At most 128 characters. */
  readonly reason: string;
  /** At most 1024 characters, for people; contains no secret value. */
  readonly message: string;
  readonly details: Readonly<Record<string, string | number | boolean>>;
  /** On deletion, the outcome for each location: removed, or why it was retained. */
  readonly receipt?: Readonly<Record<string, string>>;
}

/** The class of a reason, or of the exit code if the reason is unknown; `retry` if both are. */
export function outcomeClass(reason: string | undefined, exitCode: number | undefined): OutcomeClass {
  if (reason !== undefined && Object.hasOwn(OUTCOMES, reason)) return OUTCOMES[reason as OutcomeReason].class;
  const kind = KINDS.find((candidate) => candidate.exitCode === exitCode && exitCode !== 0);
  return kind?.class ?? 'retry';
}
