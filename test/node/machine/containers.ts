/** The containers of a machine's pods as processes, which works without the API server. */
import { setTimeout as delay } from 'node:timers/promises';
import type { NodeMachine } from './node.ts';

interface Running {
  /** Number of earlier starts of the container. */
  readonly attempt: number;
  readonly pid: string;
}

export class ContainersOf {
  readonly #node: NodeMachine;
  /** Earlier starts of each killed container, by pod. */
  readonly #killed = new Map<string, number>();
  #at = 0;

  constructor(node: NodeMachine) {
    this.#node = node;
  }

  /** A pod whose container is killed a second time waits for the kubelet's back-off. */
  kill(pods: readonly string[]): void {
    const found = pods.map((pod) => ({ pod, container: this.#running(pod) }));
    for (const { pod, container } of found) {
      if (container === undefined) throw new Error(`pod ${pod} has no running container`);
      this.#killed.set(pod, container.attempt);
      this.#node.run('/bin/kill', '-9', container.pid);
    }
    this.#at = performance.now();
  }

  /** Waits until each runs again; returns the milliseconds since the kill, by pod. */
  async again(pods: readonly string[], withinMs = 120_000): Promise<Readonly<Record<string, number>>> {
    const took: Record<string, number> = {};
    for (;;) {
      for (const pod of pods.filter((one) => took[one] === undefined)) {
        const now = this.#running(pod);
        if (now !== undefined && now.attempt > (this.#killed.get(pod) ?? 0))
          took[pod] = Math.round(performance.now() - this.#at);
      }
      if (Object.keys(took).length === pods.length) return took;
      if (performance.now() - this.#at > withinMs)
        throw new Error(`not running again, but ${JSON.stringify(took)}\n${this.#node.logs()}`);
      await delay(50);
    }
  }

  /** The container `main` of a pod: conmon names it in its arguments, and is its parent. */
  #running(pod: string): Running | undefined {
    const processes = this.#node
      .run('/bin/ps', '-eo', 'pid=,ppid=,args=')
      .split('\n')
      .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []);
    const found = processes.flatMap(([, pid, , args = '']) => {
      const attempt = new RegExp(` -n k8s_main_${pod}_\\S+_(\\d+) `).exec(args)?.[1];
      const child = processes.find(([, , parent]) => parent === pid)?.[1];
      return attempt === undefined || child === undefined ? [] : [{ attempt: Number(attempt), pid: child }];
    });
    return found.toSorted((a, b) => b.attempt - a.attempt)[0];
  }
}
