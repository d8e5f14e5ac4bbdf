/** `pullwright reconcile` as a process of its own, with its log as data. Never outlives the test. */
import assert from 'node:assert/strict';
import { eventually } from '../control-plane/eventually.ts';
import { RunningProgram } from '../support/running-program.ts';

export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

const root = new URL('../..', import.meta.url).pathname;

/** Ways to run the program. */
export const NODE: readonly string[] = [process.execPath, `${root}main.ts`];
export const NODE_CONFINED: readonly string[] = [
  process.execPath,
  '--permission',
  '--allow-fs-read=*',
  `${root}main.ts`,
];

const PASSES = /^controller_runtime_reconcile_total\{/;
const UNDONE = /^(workqueue_depth|controller_runtime_active_workers)\{/;

export class ReconcilerProcess extends RunningProgram {
  readonly lines: LogLine[] = [];

  /** @param env beside the environment of this process */
  constructor(program: readonly string[], args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    super([...program, 'reconcile', '--log-level=debug', ...args], env);
    let text = '';
    this.process.stdout?.on('data', (chunk: Buffer) => {
      const parts = (text + chunk.toString()).split('\n');
      text = parts.pop() ?? '';
      for (const part of parts) this.lines.push(JSON.parse(part) as LogLine);
    });
  }

  get pid(): number {
    return this.process.pid ?? -1;
  }

  said(msg: string): readonly LogLine[] {
    return this.lines.filter((line) => line.msg === msg);
  }

  /** Waits for a line; fails with the end of the log. */
  async says(msg: string, withinMs = 60_000): Promise<LogLine> {
    return eventually(
      () => {
        const [line] = this.said(msg);
        if (line === undefined)
          throw new Error(
            `"${msg}" was not logged (${this.running ? 'running' : 'ended'}):\n${this.log.slice(-1500)}`,
          );
        return line;
      },
      { withinMs },
    );
  }

  /** The port of a server that it listens on. */
  async port(serves: 'health' | 'metrics' | 'report'): Promise<number> {
    await this.says('listening');
    return eventually(() => {
      const line = this.said('listening').find((one) => one['serves'] === serves);
      if (line === undefined) throw new Error(`it does not serve ${serves}`);
      return Number(line['port']);
    });
  }

  /** The sum of the samples whose lines match; needs `--metrics-port=0`. */
  async metric(line: RegExp): Promise<number> {
    const text = await (await fetch(`http://127.0.0.1:${await this.port('metrics')}/metrics`)).text();
    return text
      .split('\n')
      .filter((one) => line.test(one))
      .reduce((sum, one) => sum + Number(one.split(' ').at(-1)), 0);
  }

  /** Number of write requests that it has sent. */
  writes(): Promise<number> {
    return this.metric(/^rest_client_requests_total\{.*method="(PATCH|POST|PUT|DELETE)"/);
  }

  /** Makes a change, and waits until the process has looked at the world since and has nothing left to do. */
  async looksAfter<T>(change: () => Promise<T>): Promise<T> {
    await this.#idle(0);
    const before = await this.metric(PASSES);
    const changed = await change();
    await this.#idle(before + 1);
    return changed;
  }

  async #idle(passes: number): Promise<void> {
    await eventually(async () => {
      assert.ok((await this.metric(PASSES)) >= passes, 'it has not looked since');
      assert.equal(await this.metric(UNDONE), 0, 'it has work left');
    });
  }

  signal(name: NodeJS.Signals): void {
    this.process.kill(name);
  }
}

/** With discovery of hosted clusters, whose API servers are on loopback here. */
export function discovering(
  kubeconfig: string,
  config: string,
  flags: readonly string[] = [],
  program: readonly string[] = NODE,
): ReconcilerProcess {
  const found = ['--discover', '--allow-address=127.0.0.0/8'];
  return new ReconcilerProcess(program, [
    `--kubeconfig=${kubeconfig}`,
    `--config=${config}`,
    ...found,
    ...flags,
  ]);
}
