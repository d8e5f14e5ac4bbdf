/**
 * The usual run of the credential provider, without the command line around it: no streams, no help, and an end at once.
 * What it does not know (help, version, dry run, check, wrong flags) is left to the command line, which says the same on Node.
 */
import { readFileSync, writeSync } from 'node:fs';
import { configBeside, type ParsedArguments, parseArguments } from '../credential-provider/plugin/options.ts';
import { runProvider } from '../credential-provider/plugin/run.ts';
import { errnoOf } from '../host/file-errors.ts';

/** Whether `args` were those of a usual run; then it has ended with the process. */
export async function ranAsProvider(args: readonly string[]): Promise<boolean> {
  const parsed = parsedOf(args);
  if (parsed === undefined || parsed.dryRun || parsed.check || parsed.version !== undefined) return false;
  const env = await environment();
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort(signal));
  const result = await runProvider(parsed.options, { env, signal: stop.signal, writeError });
  endNow(answered(result.stdout) ? result.exitCode : 1);
  return true;
}

/** The runtime's fetch obeys proxy variables by itself; which proxy is used is our choice. */
async function environment(): Promise<NodeJS.ProcessEnv> {
  const { env } = process;
  if (!Object.keys(env).some((name) => /_proxy$/i.test(name))) return env;
  return (await import('../commands/proxy-settings.ts')).takeProxySettings(env);
}

/** Whether the kubelet has taken the response; a failed run has none. */
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
    return parseArguments(
      args,
      process.env['HOME'],
      (path) => readFileSync(path, 'utf8'),
      configBeside(process.execPath),
    );
  } catch {
    return undefined;
  }
}

/** A line that nobody takes must not fail a pull. */
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

/** Everything is written: no listener, no timer and no collected garbage is worth waiting for. */
function endNow(code: number): void {
  const { reallyExit } = process as { readonly reallyExit?: (code: number) => never };
  if (reallyExit === undefined) process.exit(code);
  reallyExit.call(process, code);
}
