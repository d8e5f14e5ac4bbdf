/** Answers to what reconcilers need from outside the API server: looked up once, kept for a while, each look-up once at a time. */
import type { Fact, Need } from './contract.ts';

/** Looks a need up. Never rejects: that it is not known is an answer. */
export type LookUp = (need: Need) => Promise<Fact>;

/** How long a good and a bad answer are believed. */
const GOOD_MS = 600_000;
const BAD_MS = 60_000;
const REMEMBERED = 1000;

export class FactCache {
  readonly #lookUp: LookUp;
  readonly #now: () => number;
  readonly #facts = new Map<string, { readonly fact: Fact; readonly until: number }>();
  readonly #pending = new Set<string>();

  constructor(lookUp: LookUp, now: () => number = () => performance.now()) {
    this.#lookUp = lookUp;
    this.#now = now;
  }

  /** The answer, if there is one that may still be believed. */
  get(need: Need): Fact | undefined {
    const known = this.#facts.get(idOf(need));
    return known !== undefined && known.until > this.#now() ? known.fact : undefined;
  }

  /** Looks up what is not known, and calls `answered` for each answer. */
  request(needs: readonly Need[], answered: () => void): void {
    for (const need of needs) {
      const id = idOf(need);
      if (this.get(need) !== undefined || this.#pending.has(id)) continue;
      this.#pending.add(id);
      void this.#answer(need, id, answered);
    }
  }

  async #answer(need: Need, id: string, answered: () => void): Promise<void> {
    const fact = await this.#lookUp(need);
    this.#pending.delete(id);
    this.#facts.set(id, { fact, until: this.#now() + (fact.ok ? GOOD_MS : BAD_MS) });
    const [oldest] = this.#facts.keys();
    if (this.#facts.size > REMEMBERED && oldest !== undefined) this.#facts.delete(oldest);
    answered();
  }
}

/** Clusters with other credentials get other answers. */
function idOf({ kind, image, pullSecret, asked }: Need): string {
  return JSON.stringify([kind, image, pullSecret?.namespace, pullSecret?.name, asked]);
}

/** The answer where no look-up is configured: nothing is known, and nothing is wrong. */
export const NOT_ASKED = 'no look-up of registries is configured';

/** Where no look-up is configured. */
export const noLookUp: LookUp = () => Promise.resolve({ ok: false, reason: NOT_ASKED });
