/**
 * Leader election with a coordination.k8s.io Lease, like client-go: the holder renews it; a candidate that sees it unchanged for
 * its whole duration, by its own clock, takes it.
 */
import { jitterMs } from '../core/back-off.ts';
import type { PullwrightError } from '../core/errors.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { asPullwrightError, isApiError } from './api-error.ts';
import type { KubeClient } from './client.ts';
import { microTime } from './events.ts';
import type { ObjectRef } from './resources.ts';

/** Time for the election, so that tests can control it. */
export interface LeaseClock {
  /** Milliseconds since 1970, for the Lease. */
  now(): number;
  /** Monotonic milliseconds, for durations. */
  monotonic(): number;
  sleep(ms: number, signal: AbortSignal): Promise<unknown>;
}

export interface LeaseOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Unique per process. */
  readonly identity: string;
  readonly clock: LeaseClock;
  /** @default {15} */
  readonly leaseSeconds?: number;
  readonly random?: () => number;
  /** Labels of a Lease that this process creates. @default none */
  readonly labels?: Readonly<Record<string, string>>;
  /** Called once per change of the failure. */
  readonly onError?: (error: PullwrightError) => void;
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

const LEASE = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
const MANAGER = 'pullwright-leader-election';
/** One attempt for each renewal that may be in flight, and one more. */
const RELEASE_TRIES = 3;

export class LeaderElection {
  readonly #options: LeaseOptions;
  readonly #leaseMs: number;
  readonly #renewMs: number;
  readonly #retryMs: number;
  /** The Lease as last seen, and when it was first seen in that state. */
  #seen: { readonly text: string; readonly at: number } | undefined;
  #renewedAt: number | undefined;
  /** Number of releases: a renewal in flight during a release does not count. */
  #releases = 0;
  #lastError = '';

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#leaseMs = (options.leaseSeconds ?? 15) * 1000;
    // The ratio of client-go: 15, 10 and 2 seconds.
    this.#renewMs = (this.#leaseMs * 2) / 3;
    this.#retryMs = (this.#leaseMs * 2) / 15;
  }

  /**
   * Whether this process may write now. False as soon as the renewal is overdue, so that a process that was frozen stops before
   * its next write, without a request.
   */
  isLeader(): boolean {
    return this.#renewedAt !== undefined && this.#options.clock.monotonic() - this.#renewedAt < this.#renewMs;
  }

  /** Retries until this process leads. False when `signal` was aborted before. */
  async acquire(signal: AbortSignal): Promise<boolean> {
    const { clock, random = Math.random } = this.#options;
    while (!signal.aborted) {
      if (await this.#try()) return true;
      await clock.sleep(jitterMs(this.#retryMs, 0.2, random()), signal);
    }
    return false;
  }

  /** Renews the Lease; returns when it is lost or `signal` is aborted. */
  async keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.isLeader()) {
      await this.#options.clock.sleep(this.#retryMs, signal);
      if (!signal.aborted) await this.#try();
    }
  }

  /** Releases the Lease, so that the next leader need not wait. Retries when a renewal of this process interferes. */
  async release(): Promise<void> {
    if (!this.isLeader()) return;
    this.#renewedAt = undefined;
    this.#releases += 1;
    for (let left = RELEASE_TRIES; ; left -= 1) {
      try {
        return await this.#release();
      } catch (error) {
        if (left === 1 || !isApiError(error, 409)) throw error;
      }
    }
  }

  async #release(): Promise<void> {
    const { client, identity, clock } = this.#options;
    const lease = await client.get(this.#ref);
    if (lease === undefined || specOf(lease).holderIdentity !== identity) return;
    const time = microTime(clock.now());
    const spec = {
      ...specOf(lease),
      holderIdentity: '',
      leaseDurationSeconds: 1,
      renewTime: time,
      acquireTime: time,
    };
    await client.replace({ ...lease, spec }, MANAGER);
  }

  async #try(): Promise<boolean> {
    try {
      const started = this.#options.clock.monotonic();
      const releases = this.#releases;
      const mine = await this.#acquireOrRenew();
      // From before the request: other candidates may count from then.
      if (mine && releases === this.#releases) this.#renewedAt = started;
      this.#lastError = '';
      return mine;
    } catch (error) {
      const failure = asPullwrightError(error);
      // Another candidate was faster.
      if (isApiError(error, 409)) return false;
      if (failure.message !== this.#lastError) this.#options.onError?.(failure);
      this.#lastError = failure.message;
      return false;
    }
  }

  async #acquireOrRenew(): Promise<boolean> {
    const { client, identity } = this.#options;
    const lease = await client.get(this.#ref);
    if (lease === undefined) {
      const { namespace, name, labels } = this.#options;
      const metadata = { namespace, name, ...(labels === undefined ? {} : { labels }) };
      await client.create({ ...LEASE, metadata, spec: this.#spec({}) }, MANAGER);
      return true;
    }
    const spec = specOf(lease);
    if (spec.holderIdentity !== identity && !this.#expired(spec)) {
      this.#renewedAt = undefined;
      return false;
    }
    await client.replace({ ...lease, spec: this.#spec(spec) }, MANAGER);
    return true;
  }

  /** By our own clock, since the Lease last changed: clocks of other machines are not trusted. */
  #expired(spec: LeaseSpec): boolean {
    const text = `${spec.holderIdentity} ${spec.renewTime} ${spec.leaseTransitions}`;
    const now = this.#options.clock.monotonic();
    if (this.#seen?.text !== text) this.#seen = { text, at: now };
    if ((spec.holderIdentity ?? '') === '') return true;
    return now - this.#seen.at >= (spec.leaseDurationSeconds ?? this.#leaseMs / 1000) * 1000;
  }

  #spec(before: LeaseSpec): LeaseSpec {
    const { identity, clock } = this.#options;
    const time = microTime(clock.now());
    const renewal = before.holderIdentity === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.round(this.#leaseMs / 1000)),
      acquireTime: renewal ? (before.acquireTime ?? time) : time,
      renewTime: time,
      leaseTransitions:
        (before.leaseTransitions ?? 0) + (renewal || before.holderIdentity === undefined ? 0 : 1),
    };
  }

  get #ref(): ObjectRef {
    const { namespace, name } = this.#options;
    return { ...LEASE, namespace, name };
  }
}

function specOf(lease: KubeObject): LeaseSpec {
  return lease.spec ?? {};
}
