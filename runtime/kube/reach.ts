/**
 * Whether a cluster answers at all. A process follows some fifty lists of each, and while an API server, or the network to a hundred of them, is gone,
 * each list on its own would try again and again. Here one of them tries for all, ever more rarely, and the first answer wakes the others.
 */

import type { HttpFailure } from '../http/http-error.ts';
import { pause } from '../http/retry.ts';
import type { PullwrightError } from '../rules/errors.ts';

/** From one try to the next lies this share of the time for which nobody has answered: it is back for a fifth longer at most before somebody sees it. */
const SHARE = 0.2;
const MOST_MS = 10_000;
/** After so long a silence nobody's own back-off counts any more; after a shorter one it may be the caller's own request that fails. */
const LONG_MS = 5000;

/** What says that nobody was there to answer. */
const SILENT: ReadonlySet<string> = new Set<HttpFailure>([
  'CertificateNotTrusted',
  'ConnectionLost',
  'ConnectionRefused',
  'HostNotFound',
  'ProxyFailed',
  'Timeout',
  'TlsFailed',
  'TlsWanted',
]);

interface Waiting {
  readonly end: () => void;
  /** Its own back-off is over. */
  readonly isDue: boolean;
}

/**
 * @example
 * ```ts
 * import { Reach } from './reach.ts';
 * import { PullwrightError } from '../rules/errors.ts';
 * import assert from 'node:assert/strict';
 *
 * let now = 0;
 * const reach = new Reach(() => now);
 * const lost = new PullwrightError('Cannot list', { code: 'ConnectionRefused' });
 * const { signal } = new AbortController();
 * await reach.again(lost, 1, signal);
 * now = 60_000;
 * // Ten seconds from each try to the next by now, of whichever list.
 * await reach.again(lost, 1, signal);
 * const tried = reach.again(lost, 1, signal);
 * reach.answered();
 * await tried;
 * assert.equal(reach.silentMs, 0);
 * ```
 */
export class Reach {
  readonly #now: () => number;
  readonly #waiting = new Set<Waiting>();
  #silentSince: number | undefined;
  #nextTryAt = 0;

  /** @param now milliseconds that only grow */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** For so long nobody has answered, milliseconds. */
  get silentMs(): number {
    return this.#silentSince === undefined ? 0 : this.#now() - this.#silentSince;
  }

  /** The cluster said something, whatever it was. */
  answered(): void {
    if (this.#silentSince === undefined) return;
    const isLong = this.silentMs >= LONG_MS;
    this.#silentSince = undefined;
    this.#nextTryAt = 0;
    for (const one of this.#waiting) if (one.isDue || isLong) one.end();
  }

  /** A request failed: nobody has answered since now, if it failed for that. */
  unanswered({ code }: Pick<PullwrightError, 'code'>): void {
    if (SILENT.has(code)) this.#silentSince ??= this.#now();
  }

  /**
   * After `failure`: resolves when the caller may try again, or when `signal` is aborted.
   *
   * @param waitMs the caller's own back-off
   */
  async again(failure: PullwrightError, waitMs: number, signal: AbortSignal): Promise<void> {
    if (!SILENT.has(failure.code)) return pause(waitMs, signal);
    this.unanswered(failure);
    let isUp = await this.#wait(waitMs, false, signal);
    for (let turnMs = this.#turnMs(); isUp && turnMs > 0; turnMs = this.#turnMs())
      isUp = await this.#wait(turnMs, true, signal);
  }

  /** Milliseconds until the next try; none for whoever takes it. */
  #turnMs(): number {
    if (this.#silentSince === undefined) return 0;
    const now = this.#now();
    if (now < this.#nextTryAt) return this.#nextTryAt - now;
    this.#nextTryAt = now + Math.min(MOST_MS, SHARE * this.silentMs);
    return 0;
  }

  /** False when it ended before its time. */
  async #wait(ms: number, isDue: boolean, signal: AbortSignal): Promise<boolean> {
    const early = new AbortController();
    const end = (): void => early.abort();
    const waiting = { end, isDue };
    this.#waiting.add(waiting);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    await pause(ms, early.signal);
    this.#waiting.delete(waiting);
    signal.removeEventListener('abort', end);
    return !early.signal.aborted;
  }
}
