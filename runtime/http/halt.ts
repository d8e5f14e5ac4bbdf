/** What ends a request from outside. As an AbortController, at a small part of its cost: there are two for each request. */
export interface Halting {
  readonly halted: boolean;
  /** Calls `listener` when it is halted, once, unless {@link Halting.unlisten} comes first. */
  listen(listener: () => void): void;
  unlisten(listener: () => void): void;
}

export class Halt implements Halting {
  halted = false;
  readonly #listeners = new Set<() => void>();

  listen(listener: () => void): void {
    this.#listeners.add(listener);
  }

  unlisten(listener: () => void): void {
    this.#listeners.delete(listener);
  }

  halt(): void {
    this.halted = true;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
}

/** An AbortSignal as {@link Halting}. */
export function haltingBy(signal: AbortSignal): Halting {
  return {
    get halted() {
      return signal.aborted;
    },
    listen: (listener) => signal.addEventListener('abort', listener, { once: true }),
    unlisten: (listener) => signal.removeEventListener('abort', listener),
  };
}
