/** Child processes that can be paused, killed and started again, and that never outlive the test, however it ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface DaemonOptions {
  readonly name: string;
  readonly command: readonly string[];
  /** Folder of its log and the list of processes. */
  readonly folder: string;
  /** Resolves true once it answers. */
  readonly ready: () => Promise<boolean>;
}

/** One process of a control plane. */
export class Daemon {
  readonly #options: DaemonOptions;
  #child: ChildProcess | undefined;

  constructor(options: DaemonOptions) {
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts it and waits until it answers. */
  async start(deadlineMs = 60_000): Promise<void> {
    const { command, name, ready } = this.#options;
    const [program = '', ...args] = command;
    const log = openSync(this.logPath, 'a');
    const child = spawn(program, args, { stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    this.#child = child;
    if (child.pid !== undefined) appendFileSync(join(this.#options.folder, 'pids'), `${child.pid}\n`);
    const deadline = Date.now() + deadlineMs;
    while (!(await ready())) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(
          `Cannot start ${name}: it ended with ${child.exitCode ?? child.signalCode}\n${this.logTail()}`,
        );
      if (Date.now() > deadline)
        throw new Error(`Cannot start ${name}: no answer within ${deadlineMs} ms\n${this.logTail()}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  /** SIGKILL: as a machine that loses power. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** SIGTERM, and SIGKILL after five seconds. */
  async terminate(): Promise<void> {
    await this.#end('SIGTERM');
  }

  /** Starts the same process again on the same ports and data. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Freezes it: connections stay open, nothing is answered. */
  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  get logPath(): string {
    return join(this.#options.folder, `${this.#options.name}.log`);
  }

  logTail(): string {
    return readFileSync(this.logPath, 'utf8').split('\n').slice(-20).join('\n');
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    child.kill('SIGCONT');
    const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
    await gone;
    clearTimeout(timer);
  }
}

/**
 * Starts a shell in a session of its own that waits for this process to end (its end of the pipe closes, whatever the
 * reason), then kills what `<folder>/pids` lists and removes the folder. Ending the returned pipe does the same at once.
 */
export function startWatchdog(folder: string): { finish(): Promise<void> } {
  const script =
    'cat >/dev/null; for p in $(cat "$1/pids" 2>/dev/null); do kill -9 "$p" 2>/dev/null; done; rm -rf "$1"';
  const shell = spawn('/bin/sh', ['-c', script, 'sh', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  // The pipe is for its closing only; neither it nor the shell keeps the test alive.
  shell.unref();
  const pipe = shell.stdin;
  (pipe as unknown as { unref?: () => void }).unref?.();
  return {
    finish: async () => {
      const gone = once(shell, 'exit');
      shell.ref();
      pipe.end();
      await gone;
    },
  };
}
