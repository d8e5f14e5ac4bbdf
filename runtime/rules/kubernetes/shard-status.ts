/** Which replica has which shard of the hosted clusters, by what their Leases say. */
import { describeObject, type KubeObject } from './object.ts';
import { templateContainers } from './pod-template.ts';
import { MOST_SHARDS, shardLease } from './shards.ts';

/** What is to be said of one shard: a row of `status`. */
export interface ShardRow {
  readonly system: 'pullwright';
  readonly object: string;
  readonly state: 'Ready' | 'Attention' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** Clocks of people and of clusters differ: a Lease that is late by less says nothing. */
const PATIENCE_SECONDS = 60;

/** The number of shards by the arguments of a Deployment of the reconciler; 1 where one replica looks after all. */
export function shardsOfDeployment(deployment: KubeObject): number {
  const counts = templateContainers(deployment)
    .flatMap(argumentsOf)
    .flatMap((arg) => {
      const count = typeof arg === 'string' ? /^--shards=(\d{1,2})$/.exec(arg)?.[1] : undefined;
      return count === undefined ? [] : [Number(count)];
    });
  return Math.min(MOST_SHARDS, Math.max(1, ...counts));
}

function argumentsOf({ args }: Readonly<Record<string, unknown>>): readonly unknown[] {
  return Array.isArray(args) ? args : [];
}

/**
 * One row for every shard; none where one replica looks after all.
 *
 * @param deployment of the reconciler
 * @param leases those of its namespace
 * @param now undefined where the Leases are those of another time, as in a dump: how old they are says nothing there
 *
 * @example
 * ```ts
 * import { shardRows } from './shard-status.ts';
 * import assert from 'node:assert/strict';
 *
 * const metadata = { name: 'pullwright-reconciler', namespace: 'pullwright-system' };
 * const template = { spec: { containers: [{ args: ['--shards=2'] }] } };
 * const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { template } };
 * const lease = {
 *   apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...metadata, name: 'pullwright-reconciler-shard-0' },
 *   spec: { holderIdentity: 'pod-a_7e57' },
 * };
 * const rows = shardRows(deployment, [lease], undefined);
 * assert.deepEqual(rows.map(({ state, message }) => [state, message.split(':')[0]]), [
 *   ['Ready', 'replica pod-a'],
 *   ['Attention', 'no replica has it'],
 * ]);
 * ```
 */
export function shardRows(
  deployment: KubeObject,
  leases: readonly KubeObject[],
  now: Date | undefined,
): readonly ShardRow[] {
  const shards = shardsOfDeployment(deployment);
  if (shards === 1) return [];
  const { namespace = 'default' } = deployment.metadata;
  const byName = new Map(leases.map((lease) => [lease.metadata.name, lease]));
  // Rendered manifests hold no Lease: nothing has been seen of them.
  const isSeen = leases.length > 0 || now !== undefined;
  return Array.from({ length: shards }, (_, shard) => {
    const name = shardLease(shard);
    const object = describeObject({ kind: 'Lease', namespace, name });
    return { system: 'pullwright', object, ...judged(byName.get(name), isSeen, now) };
  });
}

function judged(
  lease: KubeObject | undefined,
  isSeen: boolean,
  now: Date | undefined,
): Pick<ShardRow, 'state' | 'reason' | 'message'> {
  if (!isSeen) return { state: 'Unknown', reason: 'NotReported', message: 'nothing has reported on it yet' };
  const {
    holderIdentity,
    renewTime,
    leaseDurationSeconds = 15,
  } = (lease?.spec ?? {}) as {
    holderIdentity?: string;
    renewTime?: string;
    leaseDurationSeconds?: number;
  };
  if ((holderIdentity ?? '') === '')
    return {
      state: 'Attention',
      reason: 'ShardWithoutOwner',
      message: 'no replica has it: its hosted clusters keep what they have, and no change reaches them',
    };
  const replica = String(holderIdentity).split('_')[0];
  const lateMs = now === undefined ? 0 : now.getTime() - Date.parse(renewTime ?? '');
  if (lateMs > (leaseDurationSeconds + PATIENCE_SECONDS) * 1000)
    return {
      state: 'Attention',
      reason: 'ShardWithoutOwner',
      message: `replica ${replica} had it, and renewed it last at ${renewTime}: no change reaches its hosted clusters`,
    };
  return { state: 'Ready', reason: 'ShardOwned', message: `replica ${replica}` };
}
