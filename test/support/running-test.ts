/**
 * Tracks the test that runs in this process. A file that is stopped, crashes, or does not exit after its last test
 * reports that test, or the handles that are still open; `test/run.ts` shows it.
 */

/** Long enough for connections that are about to close by themselves. */
const LINGER_MS = 30_000;
/** A test that failed did not come to its own clean-up: nothing more is to be expected. */
const LINGER_AFTER_FAILURE_MS = 500;

let running: { readonly name: string; readonly since: number } | undefined;
/** Failed tests with the reason. The framework prints them at the end, which a stopped file does not reach. */
const failures: { readonly name: string; readonly reason: string }[] = [];

function say(line: string): void {
  process.stdout.write(`\n${line}\n`);
}

function where(): string {
  if (running === undefined) return 'outside of a test';
  return `in ${running.name} after ${((performance.now() - running.since) / 1000).toFixed(1)} s`;
}

function sayFailures(): void {
  for (const { name, reason } of failures) say(`failed before: ${name}\n${reason}`);
}

function endLingering(): void {
  say(`does not end after its last test: ${process.getActiveResourcesInfo().join(', ')} still open`);
  process.exit(1);
}

process.on('exit', () => {
  if (running === undefined) return;
  sayFailures();
  say(`ended ${where()}`);
});
process.once('SIGTERM', () => {
  sayFailures();
  say(`stopped ${where()}`);
  running = undefined;
  process.exit(143);
});

/** The last test has ended: the process is expected to end by itself. */
export function testsEnded(): void {
  setTimeout(endLingering, failures.length > 0 ? LINGER_AFTER_FAILURE_MS : LINGER_MS).unref();
}

/** Runs the body as the test of that name. */
export async function runningAs(name: string, body: () => void | Promise<unknown>): Promise<void> {
  running = { name, since: performance.now() };
  try {
    await body();
  } catch (error) {
    const told = withCauses(error);
    failures.push({ name, reason: told.message });
    throw told;
  } finally {
    running = undefined;
  }
}

/** The runner prints the message alone: the causes go into it (a property's counterexample without its assertion says little). */
function withCauses(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`thrown: ${String(error)}`, { cause: error });
  for (let { cause } = error; cause instanceof Error; cause = cause.cause)
    error.message += `\n  caused by: ${cause.message}`;
  return error;
}
