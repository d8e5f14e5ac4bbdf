/** For tests of the way out: a stand-in for the kubelet, and a run that is killed in the middle. */
import { spawn } from 'node:child_process';
import type { ControlPlane } from '../control-plane/control-plane.ts';
import { NODE } from '../reconcile/process.ts';

/** Pods of kube-system become ready, and go when they are deleted, as if a kubelet looked after them. */
export class StandIn {
  readonly #plane: ControlPlane;
  readonly #over = new AbortController();
  #work: Promise<void> = Promise.resolve();
  /** Pods whose container was told to uninstall, in the order in which they became ready. */
  readonly left: string[] = [];

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  start(): void {
    this.#work = this.#run(this.#over.signal);
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#work;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#pass();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  async #pass(): Promise<void> {
    const { client } = this.#plane;
    const { body } = await client.request('GET', '/api/v1/namespaces/kube-system/pods');
    for (const pod of body.items ?? []) {
      const path = `/api/v1/namespaces/kube-system/pods/${pod.metadata.name}`;
      if (pod.metadata.deletionTimestamp !== undefined)
        await client.request('DELETE', path, { gracePeriodSeconds: 0 });
      else if (pod.status?.phase !== 'Running') {
        const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
        await client.request('PATCH', `${path}/status`, { status }, 'application/merge-patch+json');
        if (pod.spec.containers[0].command.includes('--uninstall')) this.left.push(pod.metadata.name);
      }
    }
  }
}

export interface Ended {
  readonly killed: boolean;
  readonly code: number | null;
  readonly stderr: string;
}

/** Runs `uninstall --yes` and kills it when it has removed `count` objects; adds what it removed to `order`. */
export function killedAfter(kubeconfig: string, count: number, order: string[]): Promise<Ended> {
  const [program = '', ...args] = NODE;
  const child = spawn(program, [...args, 'uninstall', '--kubeconfig', kubeconfig, '--yes'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  let rest = '';
  let removed = 0;
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [, what] = /^\[\d+\/\d+\] [a-z ]+: ((?:removed|released) .*)$/.exec(line) ?? [];
      if (what === undefined) continue;
      order.push(what);
      removed += 1;
      if (removed >= count) child.kill('SIGKILL');
    }
  });
  return new Promise((resolve) =>
    child.once('close', (code, signal) => resolve({ killed: signal === 'SIGKILL', code, stderr })),
  );
}
