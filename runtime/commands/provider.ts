/**
 * Whether a call is one for the credential provider, by the name that it was called by: one file is the `pullwright` of an image,
 * the `crio-credential-provider` of a node and the `kubectl-pullwright` of a laptop.
 *
 * And the usual run of the provider, without the command line around it: no streams, no help, and an end at once. What it does not
 * know (help, version, dry run, check, wrong flags) is left to the command line, which says the same on Node.
 */
import { readFileSync, writeSync } from 'node:fs';
import { errnoOf } from '../core/errors.ts';
import { runProvider } from '../credential-provider/plugin/run.ts';
import { configBeside, type ParsedArguments, parseArguments } from '../credential-provider/provider-flags.ts';

/** Names that stand for a subcommand. Every other name is `pullwright`, whose first argument names the subcommand. */
const COMMAND_OF_NAME: Readonly<Record<string, string>> = { 'crio-credential-provider': 'provider' };

/**
 * The arguments that `pullwright` would have been given.
 *
 * `argv0` is what the caller wrote as the program's name: the kubelet passes the full path of the plugin, a shell passes
 * what was typed. Links are not resolved: the name of the link counts.
 */
export function argumentsFor(argv0: string, args: readonly string[]): readonly string[] {
  const name = argv0.slice(argv0.lastIndexOf('/') + 1);
  const command = Object.hasOwn(COMMAND_OF_NAME, name) ? COMMAND_OF_NAME[name] : undefined;
  return command === undefined ? args : [command, ...args];
}

/** Whether `args` were those of a usual run; then the process has exited. */
export async function ranAsProvider(args: readonly string[]): Promise<boolean> {
  if (process.platform !== 'linux') return false;
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
  return (await import('../http/proxy.ts')).takeProxySettings(env);
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

/** Everything is written: no listener, no timer and no collected garbage is worth waiting for. */
function endNow(code: number): void {
  const { reallyExit } = process as { readonly reallyExit?: (code: number) => never };
  if (reallyExit === undefined) process.exit(code);
  reallyExit.call(process, code);
}
