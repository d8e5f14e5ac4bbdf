/** Runs every subcommand in the compiled executable. On Node, `main.ts` of the repository does. */

import { existsSync } from 'node:fs';
import { runMain } from './main.ts';

// The compiled runtime reads these variables before our first line runs, so a long-running command re-executes itself once
// with them set. That takes 5 ms, keeps the process id, and is invisible to the pod.

interface LongRunning {
  /** Those that the user sets take precedence. */
  readonly variables: Readonly<Record<string, string>>;
  /** Flags with which the command runs once and exits, so that re-executing does not pay off. */
  readonly short: readonly string[];
}

const LONG_RUNNING: ReadonlyMap<string | undefined, LongRunning> = new Map([
  [
    'agent',
    {
      // Avoids idle wake-ups, because the agent runs on every node: the garbage collector's timer (it still collects on
      // allocation) and the allocator's thread fire every second.
      variables: { BUN_GC_TIMER_DISABLE: '1', MIMALLOC_SCAVENGER: '0' },
      short: ['--once', '--help'],
    },
  ],
  [
    'reconcile',
    {
      // The garbage collector lets garbage grow with the machine's memory, and thousands of requests create much of it. A small
      // memory size makes it collect in time; it does not limit the memory in use. The last compiler tier is off: in bursts of
      // seconds it costs more time and memory than it saves.
      variables: { BUN_JSC_forceRAMSize: String(100 * 1024 * 1024), BUN_JSC_useFTLJIT: '0' },
      short: ['--from', '--dry-run', '--help'],
    },
  ],
]);

/** Re-executes the program if variables are missing, and then does not return. No-op on Node, which reads none of them. */
function quietenFor(args: readonly string[]): void {
  if (process.versions['bun'] === undefined || process.execve === undefined) return;
  const { variables = {}, short = [] } = LONG_RUNNING.get(args[0]) ?? {};
  const isShort = short.some((flag) => args.some((arg) => arg === flag || arg.startsWith(`${flag}=`)));
  const areSet = Object.keys(variables).every((name) => process.env[name] !== undefined);
  if (isShort || areSet || !existsSync(process.execPath)) return;
  process.execve(process.execPath, [process.argv0, ...args], { ...variables, ...process.env });
}

// The executable is compiled with a slow tier-up of the just-in-time compiler, which suits a credential provider that runs for
// 15 milliseconds. Commands that run for hours restore the normal policy at start, so that one file serves both.

/** Tier-up threshold scale that the executable starts with; see `--compile-jit-policy`. */
export const SHORT_LIVED_JIT_POLICY = 100;

/** Restores the normal policy for every command except the short-lived ones. No-op on Node. */
function tuneFor(command: string | undefined): void {
  if (command === 'provider' || command === undefined) return;
  const { Bun: bun } = globalThis as { Bun?: { unsafe?: { setJITPolicy?: (scale: number) => void } } };
  bun?.unsafe?.setJITPolicy?.(1);
}

/** Runs `args` as the program `pullwright` and sets the exit code. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  quietenFor(args);
  tuneFor(args[0]);
  process.exitCode = await runMain(args);
}
