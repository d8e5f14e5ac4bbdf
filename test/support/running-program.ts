/** A program that runs beside a test, and does not outlive it. */
import { type ChildProcess, spawn } from 'node:child_process';

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export class RunningProgram {
  readonly process: ChildProcess;
  #log = '';
  readonly #ended: Promise<number | null>;

  /**
   * @param env beside the environment of this process
   * @param file descriptor of what it writes to, in place of a pipe to {@link log}
   */
  constructor([program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv = {}, file?: number) {
    const output = file ?? 'pipe';
    const child = spawn(program, args, {
      stdio: ['ignore', output, output],
      env: { ...process.env, ...env },
    });
    this.process = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => (this.#log += chunk.toString()));
    running.add(child);
    this.#ended = new Promise((resolve) => child.once('close', (code) => resolve(code)));
    child.once('exit', () => running.delete(child));
  }

  get running(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  /** Everything that it wrote. */
  get log(): string {
    return this.#log;
  }

  /** Waits for its end; gives the exit code, null after a deadly signal. */
  ended(): Promise<number | null> {
    return this.#ended;
  }

  /** Ends it, unless it has ended. */
  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.running) this.process.kill(signal);
    return this.#ended;
  }
}
