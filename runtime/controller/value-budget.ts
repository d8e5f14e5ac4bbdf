/**
 * What a wide read keeps of Secrets. Values only of those that somebody asked for, up to a budget for each namespace, so that heavy
 * Secrets cost their tenant; of the others what is said to us, or digests, which are enough to compare.
 */
import { digestOfValue } from '../kube/value-digest.ts';
import type { KubeObject, SecretObject } from '../rules/kubernetes/object.ts';
import { type Redacted, reveal } from '../rules/redacted.ts';

/** Bytes of values (base64) and annotations. */
export interface BudgetLimits {
  /** Of the Secrets of one namespace. */
  readonly namespace: number;
  /** Of all namespaces together. */
  readonly total: number;
  /** What a namespace has in any case, however much the others hold. */
  readonly share: number;
}

export const BUDGET: BudgetLimits = { namespace: 2 * 2 ** 20, total: 32 * 2 ** 20, share: 16 * 2 ** 10 };

/** Labels and annotations that say something to us. */
const OURS = 'pullwright.dev/';
/** Keys of a Secret that are known by digest: what we write has one. */
const MOST_DIGESTS = 100;

/**
 * Whether a Secret's values may be kept beside what is held already.
 *
 * @example
 * ```ts
 * import { BUDGET, fits } from './value-budget.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.ok(fits(1_400_000, { namespace: 0, total: 0 }, BUDGET));
 * assert.ok(!fits(1_400_000, { namespace: 3_000_000, total: 3_000_000 }, BUDGET));
 * assert.ok(fits(4000, { namespace: 0, total: BUDGET.total }, BUDGET));
 * ```
 */
export function fits(
  bytes: number,
  held: { readonly namespace: number; readonly total: number },
  limits: BudgetLimits,
): boolean {
  if (held.namespace + bytes <= limits.share) return true;
  return held.namespace + bytes <= limits.namespace && held.total + bytes <= limits.total;
}

const lightened = new WeakSet<KubeObject>();

/** Whether the object is less than the API server has. Whoever reads it by name has all of it. */
export function isLightened(object: KubeObject): boolean {
  return lightened.has(object);
}

/** Whether `a` has more of one version than `b`: it is whole, or says at least which values there are. */
export function hasMore(a: KubeObject, b: KubeObject): boolean {
  return isLightened(b) && (!isLightened(a) || (b['data'] === undefined && a['data'] !== undefined));
}

/** The accounts of one wide read. */
export class ValueBudget {
  readonly #keeps: 'on-demand' | 'digest';
  readonly #limits: BudgetLimits;
  readonly #weights = new Map<string, number>();
  readonly #namespaces = new Map<string, number>();
  readonly #wanted = new Map<object, ReadonlySet<string>>();
  /** Of Secrets that were read and did not fit, the bytes that they would have. */
  readonly #unfit = new WeakMap<KubeObject, number>();
  #total = 0;

  /** @param keeps what is kept of Secrets that nobody wants */
  constructor(keeps: 'on-demand' | 'digest', limits: BudgetLimits = BUDGET) {
    this.#keeps = keeps;
    this.#limits = limits;
  }

  /** Bytes that are held. */
  get total(): number {
    return this.#total;
  }

  /** The Secrets whose values `who` wants from now on, as `<namespace>/<name>`. */
  want(who: object, places: ReadonlySet<string>): void {
    if (places.size === 0) this.#wanted.delete(who);
    else this.#wanted.set(who, places);
  }

  /**
   * What is kept of the Secret: it takes the place of an earlier one of the name.
   *
   * @param leftOut bytes of its texts that were not read, so that there is but a digest of them
   */
  keep(object: KubeObject, leftOut = 0): KubeObject {
    this.forget(object);
    const secret = this.#keeps === 'digest' ? object : saidToUs(object);
    const { data } = object as SecretObject;
    const bytes = data === undefined ? 0 : weightOf(secret, data) + leftOut;
    const isWhole = data !== undefined && this.#isWanted(object);
    if (isWhole && leftOut === 0 && this.#hasRoom(object, bytes)) {
      this.#book(object, bytes);
      return { ...secret, data };
    }
    const kept = this.#keeps === 'digest' || isWhole ? { ...secret, data: digestsOf(data ?? {}) } : secret;
    if (isWhole) this.#unfit.set(kept, bytes);
    lightened.add(kept);
    return kept;
  }

  /** Whether the values of a Secret are to be read that are not kept. */
  wants(kept: KubeObject): boolean {
    return isLightened(kept) && this.#isWanted(kept) && this.#hasRoom(kept, this.#unfit.get(kept) ?? 0);
  }

  /** Whether the values of a Secret are kept that nobody wants any more. */
  isIdle(kept: KubeObject): boolean {
    return !isLightened(kept) && !this.#isWanted(kept);
  }

  #isWanted(object: KubeObject): boolean {
    const id = idOf(object);
    return this.#wanted.values().some((places) => places.has(id));
  }

  #hasRoom({ metadata: { namespace = '' } }: KubeObject, bytes: number): boolean {
    const held = { namespace: this.#namespaces.get(namespace) ?? 0, total: this.#total };
    return fits(bytes, held, this.#limits);
  }

  forget(object: KubeObject): void {
    const bytes = this.#weights.get(idOf(object)) ?? 0;
    if (bytes > 0) this.#book(object, -bytes);
  }

  #book(object: KubeObject, bytes: number): void {
    const { namespace = '' } = object.metadata;
    const left = (this.#namespaces.get(namespace) ?? 0) + bytes;
    if (left > 0) this.#namespaces.set(namespace, left);
    else this.#namespaces.delete(namespace);
    if (bytes > 0) this.#weights.set(idOf(object), bytes);
    else this.#weights.delete(idOf(object));
    this.#total += bytes;
  }
}

function idOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

type Values = Readonly<Record<string, Redacted<string>>>;

function weightOf({ metadata }: KubeObject, data: Values): number {
  const values = Object.values(data).reduce((sum, value) => sum + reveal(value).length, 0);
  const notes = Object.values(metadata.annotations ?? {});
  return notes.reduce((sum, note) => sum + (typeof note === 'string' ? note.length : 0), values);
}

/** Who it is, and what is said to us: nothing else that a tenant may make as large as it likes. */
function saidToUs(secret: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, deletionTimestamp, labels, annotations } = secret.metadata;
  const { apiVersion, kind, type } = secret as SecretObject;
  const metadata: KubeObject['metadata'] = {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(labels === undefined ? {} : { labels: ours(labels) }),
    ...(annotations === undefined ? {} : { annotations: ours(annotations) }),
  };
  return { apiVersion, kind, metadata, ...(type === undefined ? {} : { type }) };
}

function ours<V>(notes: Readonly<Record<string, V>>): Readonly<Record<string, V>> {
  return Object.fromEntries(Object.entries(notes).filter(([key]) => key.startsWith(OURS)));
}

function digestsOf(data: Values): Values {
  const entries = Object.entries(data).slice(0, MOST_DIGESTS);
  return Object.fromEntries(entries.map(([key, value]) => [key, digestOfValue(value)]));
}
