/**
 * Errors that say what to do next.
 *
 * Every error that leaves a rule or a shell is a {@link PullwrightError}: a stable `code`, a message of one form
 * (`Cannot <action> "<subject>": <present state>, <expected state>`), and what the engine should do with it.
 * A message never holds a value of a Secret, a token or a response body.
 */

/** What the engine does: stop until a person acts, wait for something named, or retry with back-off. */
export type RetryPolicy = 'terminal' | 'waiting' | 'retry';

/** Options of {@link PullwrightError}. */
export interface ErrorOptions {
  /** Stable, CamelCase; used as condition and event reason. */
  readonly code: string;
  /** @default {'retry'} */
  readonly retryPolicy?: RetryPolicy;
  /** For `waiting`: look again after this many milliseconds. */
  readonly afterMs?: number | undefined;
  /** What the reader should do, in one sentence. Shown after the message. */
  readonly hint?: string | undefined;
  /** What is wrong, one by one: a line for each below the message. Only these begin lines of their own; what they hold is on one line already. */
  readonly details?: readonly string[] | undefined;
  readonly cause?: unknown;
}

/**
 */
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

/** Wrong use of a command: exit code 2. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageError';
  }
}

/** One line for a person: the message and, if there is one, the hint. Never a stack trace. */
export function describeError(error: unknown): string {
  if (error instanceof PullwrightError && error.hint !== undefined) return `${error.message}. ${error.hint}`;
  if (error instanceof Error) return error.message;
  return 'Unknown failure';
}

/** The `code` of a system error, such as `ENOSPC`. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
