/**
 * How several replicas of the reconciler divide the hosted clusters: each cluster belongs to a shard by its name alone, each shard to
 * one replica by a Lease. Who is to have which shard is decided here, by every replica for itself; that nobody else has it, by the Lease.
 */

import { createHash } from 'node:crypto';

/** Name of the Deployment, and of the Lease that its replicas hold: alone, or together as those of one number of shards. */
export const RECONCILER_LEASE = 'pullwright-reconciler';

/** More shards than this would cost more in Leases than they divide. */
export const MOST_SHARDS = 32;

/** Name of the Lease of a shard. */
export function shardLease(shard: number): string {
  return `${RECONCILER_LEASE}-shard-${shard}`;
}

/** Name of the Lease by which a replica is known to the others: one of as many places as there are shards. */
export function replicaLease(place: number): string {
  return `${RECONCILER_LEASE}-replica-${place}`;
}

/** Holder of {@link RECONCILER_LEASE} while so many shards are in force: clusters must not be divided in two ways at once. */
export function shardLayout(shards: number): string {
  return `shards-of-${shards}`;
}

/** All Leases of so many shards. */
export function shardLeases(shards: number): readonly string[] {
  const numbers = Array.from({ length: shards }, (_, number) => number);
  return [...numbers.map(shardLease), ...numbers.map(replicaLease)];
}

/** The Leases of which each has hosted clusters of its own. */
export function reportingLeases(shards = 1): readonly string[] {
  return shards === 1
    ? [RECONCILER_LEASE]
    : Array.from({ length: shards }, (_, number) => shardLease(number));
}

/**
 * The shard that a hosted cluster belongs to, from 0: the same for whoever asks, whatever other clusters there are.
 *
 * @param scope `<namespace>/<HostedCluster>`
 *
 * @example
 * ```ts
 * import { shardOf } from './shards.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(shardOf('clusters/prod', 6), 1);
 * assert.equal(shardOf('clusters/prod', 1), 0);
 * ```
 */
export function shardOf(scope: string, shards: number): number {
  return createHash('sha256').update(scope).digest().readUInt32BE(0) % shards;
}

/**
 * Which replica is to have each shard: nobody has two more than another one, and of those who have a shard only those lose it who
 * have too many. All replicas come to the same answer from the same Leases.
 *
 * @param holders by shard: who has it now; undefined when nobody has
 * @param replicas those that live, in any order
 * @returns by shard; undefined only where there are no replicas
 *
 * @example
 * ```ts
 * import { assignShards } from './shards.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(assignShards(['a', 'a', 'a', 'a'], ['b', 'a']), ['a', 'a', 'b', 'b']);
 * assert.deepEqual(assignShards(['a', 'a', 'gone', undefined], ['a', 'b']), ['a', 'a', 'b', 'b']);
 * ```
 */
export function assignShards(
  holders: readonly (string | undefined)[],
  replicas: readonly string[],
): readonly (string | undefined)[] {
  const shares = sharesOf(holders, replicas);
  const kept = holders.map((holder) => {
    const left = holder === undefined ? 0 : (shares.get(holder) ?? 0);
    if (holder === undefined || left === 0) return undefined;
    shares.set(holder, left - 1);
    return holder;
  });
  const wanting = [...shares].sort(byName).flatMap(([replica, left]) => Array<string>(left).fill(replica));
  return kept.map((holder) => holder ?? wanting.shift());
}

/** How many shards each is to have. One more than the others goes to those who have more now, so that nothing moves for it. */
function sharesOf(
  holders: readonly (string | undefined)[],
  replicas: readonly string[],
): Map<string, number> {
  const has = new Map(replicas.map((replica) => [replica, 0]));
  for (const holder of holders) {
    const count = holder === undefined ? undefined : has.get(holder);
    if (holder !== undefined && count !== undefined) has.set(holder, count + 1);
  }
  const least = has.size === 0 ? 0 : Math.floor(holders.length / has.size);
  const more = has.size === 0 ? 0 : holders.length % has.size;
  const byCount = [...has].sort((a, b) => b[1] - a[1] || byName(a, b));
  return new Map(byCount.map(([replica], place) => [replica, place < more ? least + 1 : least]));
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
