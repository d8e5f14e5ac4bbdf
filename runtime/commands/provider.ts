/**
 * Runs the credential provider if the executable is called by its name: one file is the `pullwright` of an image, the
 * `crio-credential-provider` of a node and the `kubectl-pullwright` of a laptop.
 *
 * A normal run skips the command line: it opens no streams and exits at once. Other calls (help, version, dry run, check,
 * invalid flags) are left to the command line, which behaves the same on Node.
 */
import { writeSync } from 'node:fs';
import { errnoOf } from '../core/errors.ts';
import { argumentsOf, runProvider } from '../credential-provider/plugin/run.ts';
import type { ParsedArguments } from '../credential-provider/provider-flags.ts';

/**
 * Returns `args`, preceded by the subcommand if `argv0` is the name of the credential provider. By every other name the program
 * is `pullwright`, whose first argument is the subcommand.
 *
 * The kubelet passes the full path of the plugin as `argv0`; a shell passes what was typed. Links are not resolved: the name of
 * the link counts.
 */
export function argumentsFor(argv0: string, args: readonly string[]): readonly string[] {
  const name = argv0.slice(argv0.lastIndexOf('/') + 1);
  return name === 'crio-credential-provider' ? ['provider', ...args] : args;
}

/** Runs the provider and ends the process if `args` are those of a normal run; otherwise returns false. */
export async function ranAsProvider(args: readonly string[]): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const parsed = parsedOf(args);
  if (parsed === undefined || parsed.dryRun || parsed.check || parsed.version !== undefined) return false;
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort(signal));
  const result = await runProvider(parsed.options, { env: process.env, signal: stop.signal, writeError });
  endNow(answered(result.stdout) ? result.exitCode : 1);
  return true;
}

/** Writes the response; false if that fails. A failed run has no response. */
function answered(response: string): boolean {
  try {
    if (response !== '') writeWhole(1, response);
    return true;
  } catch (error) {
    writeError(
      `Failed to run credential provider: cannot write the response: ${errnoOf(error) ?? 'closed'}\n`,
    );
    return false;
  }
}

function parsedOf(args: readonly string[]): ParsedArguments | undefined {
  if (args.includes('--help') || args.includes('-h')) return undefined;
  try {
    return argumentsOf(args, process.env['HOME']);
  } catch {
    return undefined;
  }
}

/** A closed stderr must not fail a pull. */
function writeError(line: string): void {
  try {
    writeWhole(2, line);
  } catch {
    // Closed or full.
  }
}

function writeWhole(fd: 1 | 2, text: string): void {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
}

/** Exits without waiting for listeners, timers or garbage collection, because everything is written. */
function endNow(code: number): void {
  const { reallyExit } = process as { readonly reallyExit?: (code: number) => never };
  if (reallyExit === undefined) process.exit(code);
  reallyExit.call(process, code);
}
