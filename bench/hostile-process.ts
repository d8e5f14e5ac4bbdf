/** Starts and asks the program of `hostile-cluster.ts`. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Hostility } from './hostile-answers.ts';

/** Where it is, or what it was asked and how many changes it has told of since it was given its hostility. */
export type HostileReport =
  | { readonly kubeconfig: string }
  | { readonly requests: number; readonly changes: number };

export class HostileProcess {
  readonly #child: ChildProcess;
  requests = 0;
  changes = 0;

  constructor() {
    this.#child = fork(new URL('hostile-cluster.ts', import.meta.url));
    this.#child.on('message', (report: HostileReport) => {
      if ('requests' in report) [this.requests, this.changes] = [report.requests, report.changes];
    });
  }

  /** Resolves with the text of the kubeconfig that leads to it. */
  async become(hostility: Hostility): Promise<string> {
    this.#child.send(hostility);
    for (;;) {
      const [report] = (await once(this.#child, 'message')) as [HostileReport];
      if (!('kubeconfig' in report)) continue;
      [this.requests, this.changes] = [0, 0];
      return report.kubeconfig;
    }
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
