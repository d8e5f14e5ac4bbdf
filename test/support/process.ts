/** Runs a program to its end, with a deadline, and collects what it prints. The whole process group is killed at the deadline. */
import { spawn } from 'node:child_process';
import { assertPrintedBy } from './json-output.ts';

export interface ProcessOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly stdin?: string | Uint8Array;
  /** @default {180000} */
  readonly deadlineMs?: number;
  /** Time between SIGTERM and the kill at the deadline, in milliseconds. @default {0} not at all */
  readonly graceMs?: number;
}

export interface ProcessResult {
  /** Exit code; -1 when a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
  readonly seconds: number;
}

const MAIN = new URL('../../main.ts', import.meta.url).pathname;
/** Process groups of the programs that run now. */
const running = new Set<number>();

/** Kills every program that {@link runProcess} started and that still runs; for callers that are told to stop. */
export function killRunning(): void {
  for (const group of running) killIfThere(-group, 'SIGKILL');
}

/**
 * Runs `[program, ...args]`. Rejects when the program cannot be started, and when it is ours and prints JSON that is not as its schema
 * says.
 */
export async function runProcess(
  [program = '', ...args]: readonly string[],
  options: ProcessOptions = {},
): Promise<ProcessResult> {
  const started = performance.now();
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    stdio: [options.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const { pid } = child;
  if (pid !== undefined) running.add(pid);
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
  // A program that does not read its input closes the pipe; that is its business.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(options.stdin);
  let timedOut = false;
  const killGroup = (): void => {
    if (pid !== undefined) killIfThere(-pid, 'SIGKILL');
  };
  let timer = setTimeout(() => {
    timedOut = true;
    const { graceMs = 0 } = options;
    if (graceMs > 0 && pid !== undefined) killIfThere(pid, 'SIGTERM');
    timer = setTimeout(killGroup, graceMs);
  }, options.deadlineMs ?? 180_000);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exit) => resolve(exit ?? -1));
  }).finally(() => {
    clearTimeout(timer);
    // The program may have ended in its grace, with others of its group still there.
    if (timedOut) killGroup();
    if (pid !== undefined) running.delete(pid);
  });
  const text = (chunks: readonly Buffer[]): string => Buffer.concat(chunks).toString('utf8');
  const printed = text(stdout);
  // A killed program may have printed only a part.
  if (!timedOut) assertPrintedBy([program, ...args], { code, stdout: printed });
  return {
    code,
    stdout: printed,
    stderr: text(stderr),
    timedOut,
    seconds: (performance.now() - started) / 1000,
  };
}

/** Runs `pullwright` from its source. */
export const runMain = (args: readonly string[], options?: ProcessOptions): Promise<ProcessResult> =>
  runProcess([process.execPath, MAIN, ...args], options);

/** Sends a signal to a process (a group when negative) that may have ended since it was listed. */
export function killIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
