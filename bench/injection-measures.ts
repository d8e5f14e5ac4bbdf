/** Measuring tools of the distribution bench: parallel work, a separate watch that counts writes, and the usage of a process. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../runtime/kube/client.ts';
import type { RunningReconciler } from '../test/pull-secret-injection/live.ts';

/** Milliseconds until `work` was done for every item, by so many workers. */
export async function parallel(
  items: readonly string[],
  work: (name: string) => Promise<unknown>,
  workers: number,
): Promise<number> {
  const started = performance.now();
  const queue = [...items];
  const worker = async (): Promise<void> => {
    for (let name = queue.pop(); name !== undefined; name = queue.pop()) await work(name);
  };
  await Promise.all(Array.from({ length: workers }, worker));
  return performance.now() - started;
}

/** Writes of Secrets of one name, as the API server tells them to a watch of its own. */
export class Witness {
  readonly #client: KubeClient;
  readonly #controller = new AbortController();
  readonly seenAt: Map<string, number> = new Map();
  writes = 0;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  async start(name: string): Promise<void> {
    const secrets = { apiVersion: 'v1', kind: 'Secret' };
    const fieldSelector = `metadata.name=${name}`;
    let { resourceVersion } = await this.#client.list(secrets, { fieldSelector, limit: 1 });
    const watch = (): ReturnType<KubeClient['watch']> =>
      this.#client.watch(secrets, {
        fieldSelector,
        resourceVersion,
        seconds: 3000,
        signal: this.#controller.signal,
      });
    let events = await watch();
    const follow = async (): Promise<void> => {
      for await (const event of events) {
        const seen =
          event.type === 'BOOKMARK' ? event.resourceVersion : event.object.metadata.resourceVersion;
        resourceVersion = seen ?? resourceVersion;
        if (event.type !== 'BOOKMARK') this.#saw(event.object.metadata.namespace ?? '');
      }
      events = await watch();
    };
    void (async () => {
      while (!this.#controller.signal.aborted) await follow().catch(() => delay(100));
    })();
  }

  #saw(namespace: string): void {
    this.writes += 1;
    this.seenAt.set(namespace, performance.now());
  }

  async until(writes: number): Promise<void> {
    while (this.writes < writes) await delay(5);
  }

  async of(namespace: string): Promise<number> {
    while (!this.seenAt.has(namespace)) await delay(0.5);
    return this.seenAt.get(namespace) ?? 0;
  }

  stop(): void {
    this.#controller.abort();
  }
}

/** MiB that are resident. */
export function memoryOf({ process: child }: RunningReconciler): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

/** Milliseconds of processor time, by all its threads, the kernel's part included. */
export function processorMs({ process: child }: RunningReconciler): number {
  const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const ticksPerSecond = 100;
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

/** Until no write was seen for two seconds. */
export async function quiet(witness: Witness): Promise<void> {
  for (let before = -1; before !== witness.writes; ) {
    before = witness.writes;
    await delay(2000);
  }
}
