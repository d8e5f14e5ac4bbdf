/**
 * A write that the API server judged and refused is not sent again with every event: the same content against the same version of the
 * object gets the same answer. Without this, whoever makes events sends our refused writes, one for each.
 */
import { ApiError } from '../kube/api-error.ts';
import { PullwrightError } from '../rules/errors.ts';

/** For as long as a refusal of rights, of a policy or of a quota waits before it is asked again. */
const HELD_MS = 10_000;
/** Of the content, of rights, of size: what the next second does not change by itself. */
const JUDGED: readonly number[] = [400, 403, 413, 422];

/** What is written, as far as the answer depends on it. */
export interface Write {
  /** Verb and object. */
  readonly subject: string;
  /** `resourceVersion` of the object that is changed; undefined where none is there. */
  readonly version: string | undefined;
  /** Digest of what is written: the same for the same. Asked for once it was refused. */
  readonly digest: () => string;
}

interface Refused {
  readonly version: string | undefined;
  readonly digest: string;
  readonly refusal: Pick<ApiError, 'message' | 'code' | 'disposition' | 'hint'>;
  readonly until: number;
}

/**
 * @example
 * ```ts
 * import { HeldWrites } from './held-writes.ts';
 * import { apiErrorOf } from '../kube/api-error.ts';
 * import assert from 'node:assert/strict';
 *
 * const held = new HeldWrites(() => 0);
 * const write = { subject: 'apply Node/a', version: '7', digest: () => 'wanted' };
 * const refuse = () => Promise.reject(apiErrorOf({ verb: 'apply', subject: 'Node/a', status: 422, body: {} }));
 * await assert.rejects(held.unlessRefused(write, refuse), { code: 'Invalid' });
 * await assert.rejects(held.unlessRefused(write, async () => 'not sent'), { code: 'Invalid' });
 * assert.equal(await held.unlessRefused({ ...write, version: '8' }, async () => 'sent'), 'sent');
 * ```
 */
export class HeldWrites {
  readonly #now: () => number;
  readonly #refused = new Map<string, Refused>();

  /** @param now milliseconds of a clock that only goes forward */
  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Sends `write` by `send`, unless it was refused a moment ago.
   *
   * @throws PullwrightError the refusal of then, with what is left of the wait; else what `send` throws
   */
  async unlessRefused<T>(write: Write, send: () => Promise<T>): Promise<T> {
    const known = this.#refused.get(write.subject);
    if (known !== undefined) {
      const leftMs = known.until - this.#now();
      if (leftMs > 0 && known.version === write.version && known.digest === write.digest())
        throw again(known.refusal, leftMs);
      this.#refused.delete(write.subject);
    }
    try {
      return await send();
    } catch (error) {
      if (isJudged(error)) this.#remember(write, error);
      throw error;
    }
  }

  #remember({ subject, version, digest }: Write, { message, code, disposition, hint }: ApiError): void {
    const now = this.#now();
    // Each is held for as long as all others: those whose time is over stand in front.
    for (const [old, { until }] of this.#refused) {
      if (until > now) break;
      this.#refused.delete(old);
    }
    const refusal = { message, code, disposition, hint };
    this.#refused.delete(subject);
    this.#refused.set(subject, { version, digest: digest(), refusal, until: now + HELD_MS });
  }
}

/** A namespace that goes away may be made anew at any moment. */
function isJudged(error: unknown): error is ApiError {
  return error instanceof ApiError && JUDGED.includes(error.status) && error.code !== 'NamespaceTerminating';
}

function again({ message, code, disposition, hint }: Refused['refusal'], afterMs: number): PullwrightError {
  return new PullwrightError(message, {
    code,
    disposition,
    ...(hint === undefined ? {} : { hint }),
    afterMs,
  });
}
