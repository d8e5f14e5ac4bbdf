/** Waits for a condition of the outside world; the one place where tests poll. */

export interface EventuallyOptions {
  /** Generous: a busy machine is no failure. @default {120000} */
  readonly withinMs?: number;
  /** @default {20} */
  readonly everyMs?: number;
}

/** Runs `check` until it does not throw, and gives its result; throws its last error after the deadline. */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { withinMs = 120_000, everyMs = 20 }: EventuallyOptions = {},
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > deadline) throw overdue(error, withinMs);
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

function overdue(error: unknown, withinMs: number): unknown {
  if (error instanceof Error) error.message = `not within ${withinMs} ms: ${error.message}`;
  return error;
}
