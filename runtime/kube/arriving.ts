/**
 * What has come of answers that are not whole yet. An API server can begin fifty watches with an object each that never ends, and a process of all hosted clusters
 * would hold sixteen megabytes of each. All together have a bound, and beyond it the largest goes, of the cluster that has the most.
 */
import { HttpError } from '../http/http-error.ts';
import type { HttpAnswer } from '../http/request.ts';

/** Twice the largest object; good servers have some kilobytes under way. */
const MOST_TOGETHER = 64 * 1024 * 1024;
/** So little of an answer is not counted. */
const COUNTED = 64 * 1024;

/** What is held of one answer. */
export interface HeldAnswer {
  /** Whether it had to go. */
  readonly isRefused: boolean;
  /** So many bytes of it are held now. @throws HttpError `AnswerTooLarge` when it has to go */
  hold(bytes: number): void;
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
 * const [mine, theirs] = [{}, {}];
 * const small = arriving.begin(mine, () => (ended += 1));
 * const large = arriving.begin(theirs, () => (ended += 1));
 * small.hold(300_000);
 * large.hold(600_000);
 * small.hold(450_000);
 * assert.deepEqual([small.isRefused, large.isRefused, ended], [false, true, 1]);
 * ```
 */
export class Arriving {
  readonly #most: number;
  readonly #clusters = new Map<object, Set<Answer>>();
  #held = 0;

  /** @param most bytes of all answers together */
  constructor(most: number = MOST_TOGETHER) {
    this.#most = most;
  }

  /**
   * @param cluster who is asked
   * @param end ends the answer, so that whoever reads it lets go of it
   */
  begin(cluster: object, end: () => void): HeldAnswer {
    return new Answer(end, (answer, bytes) => this.#count(cluster, answer, bytes));
  }

  /**
   * What `read` makes of an answer.
   *
   * @param read to be told how much of the answer is held, as it grows
   * @throws HttpError `AnswerTooLarge` when it has to go, else what `read` throws
   */
  async reading<T>(
    cluster: object,
    answer: Pick<HttpAnswer, 'discard'>,
    read: (hold: (bytes: number) => void) => Promise<T>,
  ): Promise<T> {
    const held = this.begin(cluster, () => answer.discard());
    try {
      return await read((bytes) => held.hold(bytes));
    } catch (error) {
      throw held.isRefused ? mostOfAll() : error;
    } finally {
      held.release();
    }
  }

  #count(cluster: object, answer: Answer, bytes: number): void {
    const answers = this.#clusters.get(cluster) ?? new Set();
    this.#held += bytes - answer.bytes;
    answer.bytes = bytes;
    if (bytes === 0) answers.delete(answer);
    else answers.add(answer);
    if (answers.size === 0) this.#clusters.delete(cluster);
    else this.#clusters.set(cluster, answers);
    if (this.#held > this.#most) largestOf(mostOf(this.#clusters.values()))?.refuse();
  }
}

/** Of this process: memory is one for all clusters. */
export const ARRIVING: Arriving = new Arriving();

/** Why an answer had to go. */
export function mostOfAll(): HttpError {
  return new HttpError(
    'AnswerTooLarge',
    `of the answers that have begun and not ended, ${MOST_TOGETHER} bytes at most are held, and this one had the most`,
  );
}

class Answer implements HeldAnswer {
  bytes = 0;
  isRefused = false;
  readonly #end: () => void;
  readonly #count: (answer: Answer, bytes: number) => void;

  constructor(end: () => void, count: (answer: Answer, bytes: number) => void) {
    this.#end = end;
    this.#count = count;
  }

  hold(bytes: number): void {
    const counted = bytes < COUNTED ? 0 : bytes;
    if (!this.isRefused && counted !== this.bytes) this.#count(this, counted);
    if (this.isRefused) throw mostOfAll();
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

function mostOf(clusters: Iterable<ReadonlySet<Answer>>): ReadonlySet<Answer> {
  let [most, found]: [number, ReadonlySet<Answer>] = [-1, new Set()];
  for (const answers of clusters) {
    const sum = answers.values().reduce((bytes, one) => bytes + one.bytes, 0);
    if (sum > most) [most, found] = [sum, answers];
  }
  return found;
}

function largestOf(answers: ReadonlySet<Answer>): Answer | undefined {
  return answers
    .values()
    .reduce<Answer | undefined>(
      (most, one) => (most === undefined || one.bytes > most.bytes ? one : most),
      undefined,
    );
}
