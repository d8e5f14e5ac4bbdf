/** What is said of hosted clusters: which replica has which shard of them, by what the Leases say, and how each fares. */

import { countedOf } from '../text/counted.ts';
import { readiness } from './conditions.ts';
import { describeObject, type KubeObject } from './object.ts';
import { templateContainers } from './pod-template.ts';
import type { PullStatusInput, Verdict } from './pull-status.ts';
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
 * import { shardRows } from './hosted-clusters.ts';
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

/** One hosted cluster, as the reconciler sees it. */
export interface SeenCluster {
  /** `<namespace>/<HostedCluster>` */
  readonly scope: string;
  /** `refused`: its kubeconfig leads to another one's cluster. */
  readonly state: 'ready' | 'starting' | 'failing' | 'refused';
  /** Why it is failing or refused; without it, it may pass. */
  readonly trouble?: { readonly code: string; readonly message: string; readonly hint?: string | undefined };
}

/** The CRD takes no longer ones. */
const MOST_SUBJECT = 1024;
const MOST_MESSAGE = 4096;

/**
 * Condition and verdicts: one verdict for each cluster that is in trouble, none for those that are not.
 *
 * @param clusters in any order
 *
 * @example
 * ```ts
 * import { hostedClustersSaid } from './hosted-clusters.ts';
 * import assert from 'node:assert/strict';
 *
 * const trouble = { code: 'KubeconfigMissing', message: 'Cannot read "Secret/clusters-a/kubeconfig"' };
 * const { conditions, verdicts } = hostedClustersSaid([
 *   { scope: 'clusters/a', state: 'failing', trouble },
 *   { scope: 'clusters/b', state: 'ready' },
 * ]);
 * assert.equal(conditions[0]?.status, 'False');
 * assert.equal(conditions[0]?.message, '1 of 2 hosted clusters is not looked after: "clusters/a" (KubeconfigMissing)');
 * assert.equal(verdicts[0]?.reason, 'KubeconfigMissing');
 * ```
 */
export function hostedClustersSaid(
  clusters: readonly SeenCluster[],
): Pick<PullStatusInput, 'conditions' | 'verdicts'> {
  const sorted = clusters.toSorted((a, b) => (a.scope < b.scope ? -1 : 1));
  const verdicts = sorted.flatMap(verdictOf);
  const ready = clusters.filter(({ state }) => state === 'ready').length;
  const starting = clusters.length - ready - verdicts.length;
  return { conditions: conditionsOf({ all: clusters.length, starting, verdicts }), verdicts };
}

function conditionsOf(count: {
  readonly all: number;
  readonly starting: number;
  readonly verdicts: readonly Verdict[];
}): PullStatusInput['conditions'] {
  const { all, starting, verdicts } = count;
  if (all === 0)
    return readiness('ready', {
      reason: 'NoHostedClusters',
      message: 'There is no hosted cluster to look after',
    });
  const are = (some: number): string =>
    countedOf(some, all, ['hosted cluster', 'hosted clusters'], ['is', 'are']);
  if (verdicts.length > 0) {
    const names = verdicts
      .slice(0, 3)
      .map(({ subject, reason }) => `"${subject.slice(0, 200)}" (${reason.slice(0, 64)})`);
    const more = verdicts.length > names.length ? ` and ${verdicts.length - names.length} more` : '';
    const message = `${are(verdicts.length)} not looked after: ${names.join(', ')}${more}`;
    return readiness('stalled', { reason: 'HostedClustersFailing', message });
  }
  if (starting > 0)
    return readiness('progressing', {
      reason: 'HostedClustersStarting',
      message: `${are(starting)} being read`,
    });
  return readiness('ready', {
    reason: 'HostedClustersServed',
    message: `${are(all)} looked after`,
  });
}

function verdictOf({ scope, state, trouble }: SeenCluster): readonly Verdict[] {
  if (trouble === undefined || (state !== 'failing' && state !== 'refused')) return [];
  const { code, message, hint } = trouble;
  return [
    {
      subject: scope.slice(0, MOST_SUBJECT),
      verdict: state === 'refused' ? 'Rejected' : 'Pending',
      reason: code.slice(0, MOST_SUBJECT),
      message: (hint === undefined ? message : `${message}. ${hint}`).slice(0, MOST_MESSAGE),
    },
  ];
}
