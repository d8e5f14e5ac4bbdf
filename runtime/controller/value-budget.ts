/**
 * What a wide read keeps of Secrets: their values up to a budget for each namespace, so that a tenant's heavy Secrets cost that
 * tenant, and of those beyond it the names. Copies that are ours are known by digests there, which are enough to compare.
 */
import { digestOfValue, LEFT_OUT } from '../kube/value-digest.ts';
import type { KubeObject, SecretObject } from '../rules/kubernetes/object.ts';
import { reveal } from '../rules/redacted.ts';
import { OWNER_LABEL } from './contract.ts';

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

/** Whether the object is less than the API server gave. Whoever reads it by name has all of it. */
export function isLightened(object: KubeObject): boolean {
  return lightened.has(object);
}

/** The accounts of one wide read. */
export class ValueBudget {
  readonly #limits: BudgetLimits;
  readonly #weights = new Map<string, number>();
  readonly #namespaces = new Map<string, number>();
  /** Secrets of which texts were not read, and the bytes that they would have with them. */
  readonly #unread = new WeakMap<KubeObject, number>();
  #total = 0;

  constructor(limits: BudgetLimits = BUDGET) {
    this.#limits = limits;
  }

  /** Bytes that are held. */
  get total(): number {
    return this.#total;
  }

  /**
   * What is kept of the Secret: it takes the place of an earlier one of the name.
   *
   * @param leftOut bytes of its texts that were not read, so that there is but a digest of them
   */
  keep(object: KubeObject, leftOut = 0): KubeObject {
    this.forget(object);
    const secret = withoutForeignNotes(object as SecretObject);
    const bytes = weightOf(secret);
    const isWhole = leftOut === 0 && this.#hasRoom(object, bytes);
    const kept = isWhole ? secret : withoutValues(secret);
    if (isWhole) this.#book(object, bytes);
    else if (leftOut > 0 && !isOurs(secret)) this.#unread.set(kept, bytes + leftOut);
    if (kept !== object) lightened.add(kept);
    return kept;
  }

  /** Whether there is room for the texts of a Secret that were not read. */
  wants(kept: KubeObject): boolean {
    const bytes = this.#unread.get(kept);
    return bytes !== undefined && this.#hasRoom(kept, bytes);
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

function isOurs({ metadata }: KubeObject): boolean {
  return metadata.labels?.[OWNER_LABEL] !== undefined;
}

function weightOf({ data = {}, metadata }: SecretObject): number {
  const values = Object.values(data).reduce((sum, value) => sum + reveal(value).length, 0);
  const notes = Object.values(metadata.annotations ?? {});
  return notes.reduce((sum, note) => sum + (typeof note === 'string' ? note.length : 0), values);
}

/** Of what is not ours, only what is said to us; who manages its fields is nobody's question here. */
function withoutForeignNotes(secret: SecretObject): SecretObject {
  if (isOurs(secret)) return secret;
  const { managedFields: _managed, labels, annotations, ...rest } = secret.metadata;
  return {
    ...secret,
    metadata: {
      ...rest,
      ...(labels === undefined ? {} : { labels: saidToUs(labels) }),
      ...(annotations === undefined ? {} : { annotations: saidToUs(annotations) }),
    },
  };
}

function saidToUs<V>(notes: Readonly<Record<string, V>>): Readonly<Record<string, V>> {
  return Object.fromEntries(Object.entries(notes).filter(([key]) => key.startsWith(OURS)));
}

function withoutValues(secret: SecretObject): SecretObject {
  const keep = isOurs(secret) ? digestOfValue : () => LEFT_OUT;
  const data = Object.entries(secret.data ?? {}).map(([key, value]) => [key, keep(value)] as const);
  return { ...secret, data: Object.fromEntries(data) };
}
