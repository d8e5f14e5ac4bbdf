/**
 * Remembers for a while whether an image could be reached with a credential. Never part of desired state: it only saves
 * questions.
 *
 * Source of the rule: HyperShift's mirror availability cache (five minutes for yes, one for no).
 */

const AVAILABLE_MS = 300_000;
const UNAVAILABLE_MS = 60_000;
const MAX_ENTRIES = 1000;

export class AvailabilityCache {
  readonly #entries = new Map<string, { readonly available: boolean; readonly until: number }>();
  readonly #now: () => number;

  /** `now` gives milliseconds of any clock that only goes forward. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Entries that are held, expired ones included until somebody asks for them. */
  get size(): number {
    return this.#entries.size;
  }

  /** `fingerprint` tells credentials apart without holding one. */
  set(image: string, fingerprint: string, available: boolean): void {
    const key = keyOf(image, fingerprint);
    this.#entries.delete(key);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= MAX_ENTRIES && oldest.done !== true) this.#entries.delete(oldest.value);
    this.#entries.set(key, { available, until: this.#now() + (available ? AVAILABLE_MS : UNAVAILABLE_MS) });
  }

  /** Undefined when nothing is known, or no longer. */
  get(image: string, fingerprint: string): boolean | undefined {
    const key = keyOf(image, fingerprint);
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.until > this.#now()) return entry.available;
    this.#entries.delete(key);
    return undefined;
  }

  /** How long the answer still counts, in seconds; 0 when there is none. */
  secondsLeft(image: string, fingerprint: string): number {
    const entry = this.#entries.get(keyOf(image, fingerprint));
    return entry === undefined ? 0 : Math.max(0, (entry.until - this.#now()) / 1000);
  }
}

function keyOf(image: string, fingerprint: string): string {
  return `${image}|${fingerprint}`;
}
