/** When hosted clusters get their merged secrets, as the server of a bench sees it. */
import type { Json } from './hosted-objects.ts';

export class Merges {
  /** When each cluster had its first one, by its name. */
  readonly at: Map<string, number> = new Map();
  /** The registry that each cluster's next one has to hold. */
  readonly #expected = new Map<string, { readonly registry: string; readonly done: () => void }>();

  /** Resolves once the merged secret of the cluster holds the registry, with the milliseconds from now. */
  until(cluster: string, registry: string): Promise<number> {
    const started = performance.now();
    return new Promise((resolve) => {
      // A client that skips a superseded rotation has handled that one too.
      const before = this.#expected.get(cluster);
      const done = (): void => {
        before?.done();
        resolve(performance.now() - started);
      };
      this.#expected.set(cluster, { registry, done });
    });
  }

  /** The merged secret of the cluster was written. */
  saw(cluster: string, { data }: Json): void {
    if (!this.at.has(cluster)) this.at.set(cluster, performance.now());
    const expected = this.#expected.get(cluster);
    if (expected === undefined) return;
    const text = Buffer.from(String((data as Json)['.dockerconfigjson']), 'base64').toString();
    if (!text.includes(expected.registry)) return;
    this.#expected.delete(cluster);
    expected.done();
  }

  clear(): void {
    this.at.clear();
    this.#expected.clear();
  }
}
