/**
 * Errors that say what to do next.
 *
 * Most errors are a {@link PullwrightError}: a stable `code`, a message of one form (`Cannot <action> "<subject>": <present
 * state>, <expected state>`), and the retry policy of the engine. A message never contains a value of a Secret, a token or a
 * response body.
 */

/** The engine waits for a person to act, waits for `afterMs`, or retries with back-off. */
export type RetryPolicy = 'terminal' | 'waiting' | 'retry';

/** Options of {@link PullwrightError}. */
export interface ErrorOptions {
  /** Stable, CamelCase; used as condition and event reason. */
  readonly code: string;
  /** @default {'retry'} */
  readonly retryPolicy?: RetryPolicy;
  /** For `waiting`: retry after this many milliseconds. */
  readonly afterMs?: number | undefined;
  /** What the user should do, in one sentence. Shown after the message. */
  readonly hint?: string | undefined;
  /** Details, each on its own line below the message. Each must be a single line. */
  readonly details?: readonly string[] | undefined;
  readonly cause?: unknown;
}

/** An error with a code, a hint and a retry policy. Its message is safe to show. */
export class PullwrightError extends Error {
  readonly code: string;
  readonly retryPolicy: RetryPolicy;
  readonly afterMs: number | undefined;
  readonly hint: string | undefined;
  readonly details: readonly string[] | undefined;

  constructor(message: string, options: ErrorOptions) {
    const lines = (options.details ?? []).map((detail) => `\n  ${detail}`);
    super(message + lines.join(''), options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PullwrightError';
    this.code = options.code;
    this.retryPolicy = options.retryPolicy ?? 'retry';
    this.afterMs = options.afterMs;
    this.hint = options.hint;
    this.details = options.details;
  }
}

/** Invalid usage of a command: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** The message, and the hint if there is one: readers of a condition or an Event may not have access to logs. */
export function withHint({
  message,
  hint,
}: Pick<PullwrightError, 'message'> & Pick<ErrorOptions, 'hint'>): string {
  return hint === undefined ? message : `${message}. ${hint}`;
}

/** The message, with the hint if there is one, for users. Never a stack trace. */
export function describeError(error: unknown): string {
  if (error instanceof PullwrightError) return withHint(error);
  if (error instanceof Error) return error.message;
  return 'Unknown failure';
}

/** The `code` of a system error, such as `ENOSPC`. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
