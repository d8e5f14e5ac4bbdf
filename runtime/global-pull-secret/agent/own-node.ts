/** The labels of the node that the agent runs on, for who must know its pool. Asked for when they are first wanted. */
import type { Clock } from '../../host/clock.ts';
import type { KubeClient } from '../../kube/client.ts';
import { describeError } from '../../rules/errors.ts';
import type { Logger } from '../../telemetry/logger.ts';

export interface OwnNodeOptions {
  readonly client: () => Promise<KubeClient>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told when they are known. */
  readonly changed: () => void;
}

/** A label that somebody moves is seen after this long. */
const FRESH_MS = 60_000;

export class OwnNode {
  readonly #options: OwnNodeOptions;
  #labels: Readonly<Record<string, string>> | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(options: OwnNodeOptions) {
    this.#options = options;
  }

  /** The value of a label, empty where the node has none; undefined while nobody knows. */
  label(key: string): string | undefined {
    const now = this.#options.clock.monotonic();
    if (now - this.#askedAt >= FRESH_MS) {
      this.#askedAt = now;
      void this.#ask();
    }
    return this.#labels === undefined ? undefined : (this.#labels[key] ?? '');
  }

  async #ask(): Promise<void> {
    const { nodeName, log, changed } = this.#options;
    try {
      const client = await this.#options.client();
      const node = await client
        .get({ apiVersion: 'v1', kind: 'Node', name: nodeName })
        .finally(() => client.close());
      this.#labels = node?.metadata.labels ?? {};
      changed();
    } catch (error) {
      log.warn('Cannot read the labels of this node', { error: describeError(error) });
    }
  }
}
