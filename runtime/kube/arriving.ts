/**
 * What has come of bodies that are not whole yet, answers of servers and requests of clients. Whoever begins many and ends none has them held in memory: an API server an object
 * on each of fifty watches, anybody who reaches the webhook's port a request on each connection. All together have a bound, and beyond it the largest goes, of whoever has the most.
 */
import { HttpError } from '../http/http-error.ts';
import type { HttpAnswer } from '../http/request.ts';

/** Twice the largest object of an API server; good ones have some kilobytes under way. */
export const MOST_TOGETHER: number = 64 * 1024 * 1024;

/** What is held of one body. */
export interface HeldBody {
  /** Whether it had to go. */
  readonly isRefused: boolean;
  /** So many bytes of it are held now. False when it has to go, or had to before. */
  hold(bytes: number): boolean;
  /** Nothing is held any more. */
  release(): void;
}

/**
 * @example
 * ```ts
 * import { Arriving } from './arriving.ts';
 * import assert from 'node:assert/strict';
 *
 * const arriving = new Arriving(1_000_000);
 * let ended = 0;
 * const [ours, theirs] = [{}, {}];
 * const small = arriving.begin(ours, () => (ended += 1));
 * const large = arriving.begin(theirs, () => (ended += 1));
 * small.hold(300_000);
 * large.hold(600_000);
 * small.hold(450_000);
 * assert.deepEqual([small.isRefused, large.isRefused, ended], [false, true, 1]);
 * ```
 */
export class Arriving {
  readonly #most: number;
  readonly #senders = new Map<object, Set<Body>>();
  #held = 0;

  /** @param most bytes of all together */
  constructor(most: number = MOST_TOGETHER) {
    this.#most = most;
  }

  /**
   * @param sender whose it is
   * @param end ends it, so that whoever reads it lets go of it
   */
  begin(sender: object, end: () => void): HeldBody {
    return new Body(end, (body, bytes) => this.#count(sender, body, bytes));
  }

  /**
   * What `read` makes of an answer.
   *
   * @param read to be told how much of the answer is held, as it grows
   * @throws HttpError `AnswerTooLarge` when it has to go, else what `read` throws
   */
  async reading<T>(
    sender: object,
    answer: Pick<HttpAnswer, 'discard'>,
    read: (hold: (bytes: number) => void) => Promise<T>,
  ): Promise<T> {
    const held = this.begin(sender, () => answer.discard());
    try {
      return await read((bytes) => {
        if (!held.hold(bytes)) throw mostOfAll();
      });
    } catch (error) {
      throw held.isRefused ? mostOfAll() : error;
    } finally {
      held.release();
    }
  }

  #count(sender: object, body: Body, bytes: number): void {
    const bodies = this.#senders.get(sender) ?? new Set();
    this.#held += bytes - body.bytes;
    body.bytes = bytes;
    if (bytes === 0) bodies.delete(body);
    else bodies.add(body);
    if (bodies.size === 0) this.#senders.delete(sender);
    else this.#senders.set(sender, bodies);
    if (this.#held > this.#most) largestOf(mostOf(this.#senders.values()))?.refuse();
  }
}

/** Of all API servers that this process asks: memory is one for all clusters. */
export const ARRIVING: Arriving = new Arriving();

/** Why an answer had to go. */
export function mostOfAll(): HttpError {
  return new HttpError(
    'AnswerTooLarge',
    `more than ${MOST_TOGETHER / 1024 ** 2} MiB of answers had begun and not ended, and this was the largest of the server that had sent the most of them`,
  );
}

class Body implements HeldBody {
  bytes = 0;
  isRefused = false;
  readonly #end: () => void;
  readonly #count: (body: Body, bytes: number) => void;

  constructor(end: () => void, count: (body: Body, bytes: number) => void) {
    this.#end = end;
    this.#count = count;
  }

  hold(bytes: number): boolean {
    if (!this.isRefused && bytes !== this.bytes) this.#count(this, bytes);
    return !this.isRefused;
  }

  release(): void {
    if (this.bytes > 0) this.#count(this, 0);
  }

  refuse(): void {
    this.isRefused = true;
    this.release();
    this.#end();
  }
}

function mostOf(senders: Iterable<ReadonlySet<Body>>): ReadonlySet<Body> {
  let [most, found]: [number, ReadonlySet<Body>] = [-1, new Set()];
  for (const bodies of senders) {
    const sum = bodies.values().reduce((bytes, one) => bytes + one.bytes, 0);
    if (sum > most) [most, found] = [sum, bodies];
  }
  return found;
}

function largestOf(bodies: ReadonlySet<Body>): Body | undefined {
  return bodies
    .values()
    .reduce<Body | undefined>(
      (most, one) => (most === undefined || one.bytes > most.bytes ? one : most),
      undefined,
    );
}
