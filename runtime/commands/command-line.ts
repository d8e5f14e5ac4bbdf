/** Every subcommand of the compiled executable, as `main.ts` runs them on Node. */

import { existsSync } from 'node:fs';
import { runMain } from './main.ts';

// What the compiled runtime reads from its environment before the first line of ours runs: a program that lives for months starts itself
// once more with it. That takes 5 ms, keeps the process id, and is invisible to its pod.

type Environment = Readonly<Record<string, string>>;

/**
 * A process on every node of a fleet must not wake up for nothing: the timer of the garbage collector (it still collects on
 * allocation), and the allocator's own thread, fire every second.
 */
const QUIET: Environment = { BUN_GC_TIMER_DISABLE: '1', MIMALLOC_SCAVENGER: '0' };

/**
 * The garbage collector lets garbage grow with the memory of the machine, and thousands of requests leave much of it. A small
 * memory size makes it collect in time, and does not limit memory in use. The last compiler tier is off: for bursts of seconds
 * it costs more time and memory than its code saves. Variables that the user sets take precedence.
 */
const SMALL: Environment = {
  BUN_JSC_forceRAMSize: String(100 * 1024 * 1024),
  BUN_JSC_useFTLJIT: '0',
};

/** Flags with which a command ends by itself, when it has done one thing. */
const SHORT: Readonly<Record<string, readonly string[]>> = {
  agent: ['--once', '--help'],
  reconcile: ['--from', '--dry-run', '--help'],
};

/**
 * The environment in which the command starts itself once more; undefined where nothing is to be set, or all is set.
 *
 * @param args the words of the command line
 * @param env the environment of the process
 * @returns what is to be added to `env`
 */
export function wantedEnvironment(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Environment | undefined {
  const [command = ''] = args;
  const wanted = command === 'agent' ? QUIET : command === 'reconcile' ? SMALL : undefined;
  const isShort = SHORT[command]?.some((flag) =>
    args.some((arg) => arg === flag || arg.startsWith(`${flag}=`)),
  );
  if (wanted === undefined || isShort === true) return undefined;
  const set = Object.entries(wanted).map(([name, value]) => [name, env[name] ?? value] as const);
  return Object.keys(wanted).every((name) => env[name] !== undefined) ? undefined : Object.fromEntries(set);
}

/** Does not come back when the program is started once more. Does nothing on Node, which reads none of it. */
export function quietenFor(args: readonly string[]): void {
  if (process.versions['bun'] === undefined || process.execve === undefined) return;
  const wanted = wantedEnvironment(args, process.env);
  if (wanted === undefined || !existsSync(process.execPath)) return;
  process.execve(process.execPath, [process.argv0, ...args], { ...process.env, ...wanted });
}

// The executable is compiled with a slow tier-up of the just-in-time compiler, which suits a credential provider that lives
// for 15 milliseconds. Commands that run for hours get the normal policy back before they start, so that one file serves both.

/** What the compiled runtime offers and Node does not have. */
interface BunGlobal {
  readonly unsafe?: { readonly setJITPolicy?: (scale: number) => void };
}

/** Tier-up threshold scale that the executable starts with; see `--compile-jit-policy`. */
export const SHORT_LIVED_JIT_POLICY = 100;

const SHORT_LIVED: readonly (string | undefined)[] = ['provider', undefined];

/** Puts the normal policy back for every command but the short-lived ones. Does nothing on Node. */
export function tuneFor(command: string | undefined): void {
  if (SHORT_LIVED.includes(command)) return;
  const bun = (globalThis as { Bun?: BunGlobal }).Bun;
  bun?.unsafe?.setJITPolicy?.(1);
}

/** Runs `args` as the program `pullwright` would. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  quietenFor(args);
  tuneFor(args[0]);
  process.exitCode = await runMain(args);
}
