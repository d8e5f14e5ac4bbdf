/**
 * Which hosted cluster is whose, where several replicas divide them: none sees the kubeconfigs of all, so each writes down what its
 * own lead to before it writes there, in the ConfigMap of `cluster-ownership-memory.ts`, by its resource version.
 */
import { createHash } from 'node:crypto';
import { isApiError } from '../kube/api-error.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Cluster } from './cluster.ts';
import type { Remembered } from './cluster-ownership.ts';
import { CLAIM_MEMORY, claimConfigMap, DISCOVERY_MANAGER } from './cluster-ownership-memory.ts';

/** Whether there is a hosted cluster of that name, whoever looks after it. */
export type IsThere = (name: string) => boolean;

/** Replicas that change it at the same instant: each is through after a few tries. */
const TRIES = 8;

export class SharedClaims {
  readonly #management: Cluster;
  readonly #namespace: string;
  /** Keys by the names that are about to open them. */
  readonly #opening = new Map<string, string>();

  constructor(management: Cluster, namespace: string) {
    this.#management = management;
    this.#namespace = namespace;
  }

  /**
   * Writes down that `name` has the cluster `mark`, unless another one has it that is there.
   *
   * @returns who has it
   * @throws PullwrightError when that cannot be written down: nobody may have it then
   */
  async hold(name: string, mark: string, isThere: IsThere): Promise<string> {
    const key = keyOf(mark);
    const isFree = (holder: string | undefined): boolean => holder === undefined || !isThere(holder);
    const after = await this.#change((data) => (isFree(data[key]) ? { ...data, [key]: name } : data));
    const holder = after[key] ?? name;
    if (holder === name) this.#opening.set(name, key);
    return holder;
  }

  /** Takes back what names had before that are open by now, and what names had that are gone. */
  async settle(opened: () => Remembered, isThere: IsThere): Promise<void> {
    await this.#change((data) => {
      const open = Object.entries(opened()).map(([mark, name]) => [keyOf(mark), name] as const);
      for (const [key, name] of open) if (this.#opening.get(name) === key) this.#opening.delete(name);
      const has = new Map(open.map(([key, name]) => [name, key]));
      const kept = Object.entries(data).filter(
        ([key, name]) => isThere(name) && [has.get(name) ?? key, this.#opening.get(name)].includes(key),
      );
      const taken = new Map(kept);
      return Object.fromEntries([...open.filter(([key]) => !taken.has(key)), ...kept]);
    });
  }

  /** @throws PullwrightError */
  async #change(change: (data: Remembered) => Remembered, triesLeft = TRIES): Promise<Remembered> {
    const { client } = this.#management;
    const before = await this.#read();
    const data = (before['data'] ?? {}) as Remembered;
    const wanted = change(data);
    if (same(wanted, data)) return data;
    this.#management.assertMayWrite();
    try {
      await client.replace({ ...before, data: wanted }, DISCOVERY_MANAGER);
      return wanted;
    } catch (error) {
      if (triesLeft > 0 && isApiError(error, 409)) return this.#change(change, triesLeft - 1);
      throw error;
    }
  }

  /** By server-side apply, since rights to create go by name there: an empty one takes nothing from one that was made meanwhile. */
  async #read(): Promise<KubeObject> {
    const { client } = this.#management;
    const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: this.#namespace, name: CLAIM_MEMORY };
    const found = await client.get(ref);
    if (found !== undefined) return found;
    this.#management.assertMayWrite();
    return client.apply(claimConfigMap(this.#namespace), { manager: DISCOVERY_MANAGER });
  }
}

/** Keys of a ConfigMap are narrower than addresses. */
function keyOf(mark: string): string {
  if (/^[\w.-]{1,253}$/.test(mark)) return mark;
  return `address-${createHash('sha256').update(mark).digest('hex')}`;
}

function same(one: Remembered, other: Remembered): boolean {
  const entries = Object.entries(one);
  return entries.length === Object.keys(other).length && entries.every(([key, name]) => other[key] === name);
}
