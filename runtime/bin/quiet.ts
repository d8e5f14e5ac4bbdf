/**
 * A process that lives for months on every node of a fleet must not wake up for nothing. Two timers of the compiled runtime
 * go off every second; both are switched off by environment variables that are read before the first line of ours runs, so
 * the agent starts itself once more with them. That takes 5 ms, keeps the process id, and is invisible to its pod.
 */
import { existsSync } from 'node:fs';

/** The timer of the garbage collector (it still collects when memory is asked for), and the allocator's own thread. */
const QUIET: Readonly<Record<string, string>> = { BUN_GC_TIMER_DISABLE: '1', MIMALLOC_SCAVENGER: '0' };

const LONG_LIVED_AT_REST: readonly (string | undefined)[] = ['agent'];

/** Does not come back when the program is started once more. Does nothing on Node, which has no such timers. */
export function quietenFor(args: readonly string[]): void {
  if (!LONG_LIVED_AT_REST.includes(args[0]) || args.includes('--once') || args.includes('--help')) return;
  if (process.versions['bun'] === undefined || process.execve === undefined) return;
  const { env } = process;
  if (Object.entries(QUIET).every(([name, value]) => env[name] === value) || !existsSync(process.execPath))
    return;
  process.execve(process.execPath, [process.argv0, ...args], { ...env, ...QUIET });
}
