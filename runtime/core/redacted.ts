/**
 * A value that must not be printed: a password, a token, a pull secret.
 *
 * String conversion, JSON, template literals, `console` and `util.inspect` all show `[redacted]`. Only {@link reveal} returns
 * the value; `test/architecture` lists every file that may call it.
 */
export class Redacted<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  /** Returns the value of `wrapped`. Prefer {@link reveal}, which is easy to search for. */
  static reveal<V>(wrapped: Redacted<V>): V {
    return wrapped.#value;
  }

  toString(): string {
    return REDACTED_TEXT;
  }

  toJSON(): string {
    return REDACTED_TEXT;
  }

  get [Symbol.toStringTag](): string {
    return 'Redacted';
  }

  [Symbol.toPrimitive](): string {
    return REDACTED_TEXT;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return REDACTED_TEXT;
  }
}

/** Printed instead of a credential. */
export const REDACTED_TEXT = '[redacted]';

/** Wraps `value` so that it cannot be printed. */
export function redact<T>(value: T): Redacted<T> {
  return new Redacted(value);
}

/** Unwraps the value. Call it only where the value is parsed, compared or written to its destination. */
export function reveal<T>(wrapped: Redacted<T>): T {
  return Redacted.reveal(wrapped);
}

/** Whether two wrapped texts are equal, without printing either. */
export function sameSecret(a: Redacted<string>, b: Redacted<string>): boolean {
  return reveal(a) === reveal(b);
}
