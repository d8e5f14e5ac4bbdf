/**
 * Spares a registry that cannot answer, and us the waiting for it: after a "too many requests", and after some silence in a
 * row, the next questions for the same host and credential are answered from memory, for a bounded time.
 *
 * Source of the rule: `Retry-After` of RFC 9110, bounded, because a tenant's registry may ask for any time.
 *
 * A registry that is down would cost a deadline for each of hundreds of images, and one that limits requests would be pressed
 * further by our asking. Nothing is remembered between runs.
 */
import type { ProbeResult } from './probe.ts';

/** Failures to connect in a row, after which a host counts as silent. */
const SILENT_AFTER = 3;
const REMEMBER_MS = 60_000;
const DEFAULT_WAIT_MS = 10_000;
const MAX_HOSTS = 1000;

interface Known {
  readonly failures: number;
  readonly answer?: ProbeResult;
  readonly until: number;
}

export class HostMemory {
  readonly #hosts = new Map<string, Known>();
  readonly #now: () => number;

  /** `now` gives milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** What is known about `host` without asking; undefined when it should be asked. */
  get(host: string, fingerprint: string): ProbeResult | undefined {
    for (const key of [host, `${host} ${fingerprint}`]) {
      const known = this.#hosts.get(key);
      if (known?.answer !== undefined && known.until > this.#now()) return known.answer;
    }
    return undefined;
  }

  /** Takes notice of an answer. */
  set(host: string, fingerprint: string, result: ProbeResult): void {
    if (result.verdict === 'RateLimited') {
      const wait = Math.min((result.retryAfterSeconds ?? DEFAULT_WAIT_MS / 1000) * 1000, REMEMBER_MS);
      this.#remember(`${host} ${fingerprint}`, { failures: 0, answer: result, until: this.#now() + wait });
      return;
    }
    if (result.silence === undefined) {
      this.#hosts.delete(host);
      return;
    }
    const failures = (this.#hosts.get(host)?.failures ?? 0) + 1;
    const silent = failures >= SILENT_AFTER;
    this.#remember(host, {
      failures,
      ...(silent ? { answer: result } : {}),
      until: this.#now() + REMEMBER_MS,
    });
  }

  #remember(key: string, known: Known): void {
    this.#hosts.delete(key);
    const oldest = this.#hosts.keys().next();
    if (this.#hosts.size >= MAX_HOSTS && oldest.done !== true) this.#hosts.delete(oldest.value);
    this.#hosts.set(key, known);
  }
}
