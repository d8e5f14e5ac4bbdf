/** A number of places; who finds none waits for its turn. */
import { afterAttended } from '../http/client.ts';

/** A place that somebody has. */
export interface HeldPlace {
  /** Whether somebody else has it by now. */
  readonly isLeft: boolean;
  /** Leaves it; more than once is no more than once. */
  leave(): void;
  /** It goes on: the patience begins anew. */
  moved(): void;
}

export interface PlacesOptions {
  readonly count: number;
  /** Who does not move for so long has left. @default {as long as it takes} */
  readonly patienceMs?: number;
  /** Calls `run` after `ms`; gives the way to cancel. */
  readonly after?: (ms: number, run: () => void) => () => void;
}

/**
 * @example
 * ```ts
 * import { Places } from './semaphore.ts';
 * import assert from 'node:assert/strict';
 *
 * const places = new Places({ count: 1 });
 * const first = await places.enter();
 * let entered = false;
 * const second = places.enter().then(() => {
 *   entered = true;
 * });
 * assert.equal(entered, false);
 * first.leave();
 * await second;
 * assert.equal(entered, true);
 * ```
 */
export class Places {
  readonly #options: PlacesOptions;
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(options: PlacesOptions) {
    this.#options = options;
    this.#free = options.count;
  }

  /** Resolves when there is a place. Whoever enters must leave it. */
  async enter(): Promise<HeldPlace> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.#taken();
  }

  #taken(): HeldPlace {
    const { patienceMs, after = afterAttended } = this.#options;
    let isLeft = false;
    let cancel: (() => void) | undefined;
    const leave = (): void => {
      cancel?.();
      if (!isLeft) this.#next();
      isLeft = true;
    };
    const moved = (): void => {
      if (isLeft || patienceMs === undefined) return;
      cancel?.();
      cancel = after(patienceMs, leave);
    };
    moved();
    return {
      leave,
      moved,
      get isLeft() {
        return isLeft;
      },
    };
  }

  #next(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
