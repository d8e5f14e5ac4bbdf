/**
 * Which hosted cluster is whose: two names that lead to one API server must not both write there.
 *
 * A cluster is known by a mark (the UID of its namespace `kube-system`). The name that had it first keeps it, across restarts by
 * what is remembered of it, until its own kubeconfig is seen to lead elsewhere or it is gone.
 */

/** Mark to name of the hosted cluster. */
export type Remembered = Readonly<Record<string, string>>;

/** Whether a name may have a cluster, and who has to leave it before; else who has it. */
export type OwnershipVerdict =
  | { readonly may: true; readonly yields: readonly string[] }
  | { readonly may: false; readonly holder: string };

/**
 * @example
 * ```ts
 * import { Claims } from './cluster-ownership.ts';
 * import assert from 'node:assert/strict';
 *
 * const claims = new Claims();
 * for (const name of ['clusters/a', 'clusters/b']) claims.enter(name);
 * assert.deepEqual(claims.judge('clusters/a', 'uid-1'), { may: true, yields: [] });
 * assert.deepEqual(claims.judge('clusters/b', 'uid-1'), { may: false, holder: 'clusters/a' });
 * claims.judge('clusters/a', 'uid-2');
 * assert.deepEqual(claims.judge('clusters/b', 'uid-1'), { may: true, yields: [] });
 * ```
 */
export class Claims {
  readonly #first = new Map<string, string>();
  /** By name: where its kubeconfig leads; undefined while nobody has looked. */
  readonly #leads = new Map<string, string | undefined>();
  /** By name: the cluster that is looked after under it. */
  readonly #open = new Map<string, string>();

  /** `name` is there. */
  enter(name: string): void {
    this.#leads.set(name, undefined);
  }

  /** `name` is gone for good: whatever it had is free. */
  leave(name: string): void {
    this.#leads.delete(name);
    this.#open.delete(name);
    for (const [mark, first] of this.#first) if (first === name) this.#first.delete(mark);
  }

  /** The kubeconfig of `name` leads to the cluster `mark`. A name that may have it is remembered for it. */
  judge(name: string, mark: string): OwnershipVerdict {
    this.#leads.set(name, mark);
    const first = this.#first.get(mark);
    if (first !== undefined && first !== name && this.#mayComeBack(first, mark))
      return { may: false, holder: first };
    this.#first.set(mark, name);
    return {
      may: true,
      yields: [...this.#open].flatMap(([other, open]) => (other !== name && open === mark ? [other] : [])),
    };
  }

  /** `name` looks after the cluster `mark` from now on, and after no other. */
  open(name: string, mark: string): void {
    this.#open.set(name, mark);
    for (const [other, first] of this.#first) if (first === name && other !== mark) this.#first.delete(other);
  }

  /** `name` looks after no cluster any more. */
  close(name: string): void {
    this.#open.delete(name);
  }

  /** The cluster that is looked after under `name`. */
  markOf(name: string): string | undefined {
    return this.#open.get(name);
  }

  /** The clusters that are looked after, each with its name. */
  opened(): Remembered {
    return Object.fromEntries([...this.#open].map(([name, mark]) => [mark, name]));
  }

  /** What another process, or this one before, remembered. It was there first. */
  remember(record: Remembered): void {
    for (const [mark, name] of Object.entries(record)) this.#first.set(mark, name);
  }

  /** Names that look after a cluster which, by what is remembered, belongs to another one. */
  overruled(): readonly string[] {
    return [...this.#open].flatMap(([name, mark]) => {
      const first = this.#first.get(mark);
      return first !== undefined && first !== name && this.#mayComeBack(first, mark) ? [name] : [];
    });
  }

  /** What is to be remembered: only names that are there. */
  record(): Remembered {
    const entries = [...this.#first].filter(([, name]) => this.#leads.has(name));
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** It leads there, or nobody has seen yet where it leads. */
  #mayComeBack(name: string, mark: string): boolean {
    if (!this.#leads.has(name)) return false;
    const leads = this.#leads.get(name);
    return leads === undefined || leads === mark;
  }
}
