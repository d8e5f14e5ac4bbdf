/**
 * What the compiled runtime reads from its environment before the first line of ours runs: a program that lives for months starts itself
 * once more with it. That takes 5 ms, keeps the process id, and is invisible to its pod.
 */
import { existsSync } from 'node:fs';

type Environment = Readonly<Record<string, string>>;

/**
 * A process on every node of a fleet must not wake up for nothing: the timer of the garbage collector (it still collects when memory is
 * asked for), and the allocator's own thread, go off every second.
 */
const QUIET: Environment = { BUN_GC_TIMER_DISABLE: '1', MIMALLOC_SCAVENGER: '0' };

/**
 * The collector lets garbage grow by the memory of the machine, and thousands of requests leave much of it. It is told of a small
 * machine, so that it collects in time; what is in use may be as much as it needs. And the last tier of the compiler is left out: for
 * work that comes in bursts of seconds it costs more time and memory than its code saves. Whoever sets them has the last word.
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
 * @example
 * ```ts
 * import { wantedEnvironment } from './quiet.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(Object.keys(wantedEnvironment(['reconcile'], {}) ?? {}), ['BUN_JSC_forceRAMSize', 'BUN_JSC_useFTLJIT']);
 * assert.equal(wantedEnvironment(['reconcile', '--from=manifests'], {}), undefined);
 * assert.equal(wantedEnvironment(['agent'], { BUN_GC_TIMER_DISABLE: '1', MIMALLOC_SCAVENGER: '0' }), undefined);
 * ```
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
