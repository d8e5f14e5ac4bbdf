/** Runs every subcommand in the compiled executable. On Node, `main.ts` of the repository does. */

import { existsSync } from 'node:fs';
import { runMain } from './main.ts';

// The compiled runtime reads these variables before our first line runs, so a long-running command re-executes itself once
// with them set. That takes 5 ms, keeps the process id, and is invisible to the pod.

type Environment = Readonly<Record<string, string>>;

/**
 * Avoids idle wake-ups, because the agent runs on every node: the garbage collector's timer (it still collects on allocation)
 * and the allocator's thread fire every second.
 */
const QUIET: Environment = { BUN_GC_TIMER_DISABLE: '1', MIMALLOC_SCAVENGER: '0' };

/**
 * The garbage collector lets garbage grow with the machine's memory, and thousands of requests create much of it. A small memory
 * size makes it collect in time; it does not limit the memory in use. The last compiler tier is off: in bursts of seconds it
 * costs more time and memory than it saves. Variables that the user sets take precedence.
 */
const SMALL: Environment = {
  BUN_JSC_forceRAMSize: String(100 * 1024 * 1024),
  BUN_JSC_useFTLJIT: '0',
};

/** Flags with which a command runs once and exits, so that re-executing does not pay off. */
const SHORT: Readonly<Record<string, readonly string[]>> = {
  agent: ['--once', '--help'],
  reconcile: ['--from', '--dry-run', '--help'],
};

/**
 * Returns the variables with which the command re-executes itself; undefined if it needs none or all are set.
 *
 * @param args command-line arguments
 * @param env environment of the process
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
  return Object.keys(wanted).every((name) => env[name] !== undefined) ? undefined : wanted;
}

/** Re-executes the program if variables are missing, and then does not return. No-op on Node, which reads none of them. */
export function quietenFor(args: readonly string[]): void {
  if (process.versions['bun'] === undefined || process.execve === undefined) return;
  const wanted = wantedEnvironment(args, process.env);
  if (wanted === undefined || !existsSync(process.execPath)) return;
  process.execve(process.execPath, [process.argv0, ...args], { ...wanted, ...process.env });
}

// The executable is compiled with a slow tier-up of the just-in-time compiler, which suits a credential provider that runs for
// 15 milliseconds. Commands that run for hours restore the normal policy at start, so that one file serves both.

/** The part of Bun's global object that is used. Node does not have it. */
interface BunGlobal {
  readonly unsafe?: { readonly setJITPolicy?: (scale: number) => void };
}

/** Tier-up threshold scale that the executable starts with; see `--compile-jit-policy`. */
export const SHORT_LIVED_JIT_POLICY = 100;

const SHORT_LIVED: readonly (string | undefined)[] = ['provider', undefined];

/** Restores the normal policy for every command except the short-lived ones. No-op on Node. */
export function tuneFor(command: string | undefined): void {
  if (SHORT_LIVED.includes(command)) return;
  const bun = (globalThis as { Bun?: BunGlobal }).Bun;
  bun?.unsafe?.setJITPolicy?.(1);
}

/** Runs `args` as the program `pullwright` and sets the exit code. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  quietenFor(args);
  tuneFor(args[0]);
  process.exitCode = await runMain(args);
}
