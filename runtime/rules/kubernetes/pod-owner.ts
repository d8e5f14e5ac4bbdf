/**
 * Who makes a pod again that was evicted. A pod with any other controller is part of something that ends with it (a step of a
 * pipeline), and a Job counts it as a failure.
 */
import { recordOf, scalarText } from '../record.ts';
import type { KubeObject } from './object.ts';

const REPLACES: Readonly<Record<string, readonly string[]>> = {
  '': ['ReplicationController'],
  apps: ['ReplicaSet', 'StatefulSet', 'DaemonSet'],
  batch: ['Job'],
  'apps.kruise.io': ['CloneSet', 'StatefulSet', 'DaemonSet'],
};

/**
 * Whether a controller of this kind makes another pod in place of one that went.
 *
 * @example
 * ```ts
 * import { replacesPods } from './pod-owner.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.ok(replacesPods({ apiVersion: 'apps/v1', kind: 'ReplicaSet' }));
 * assert.ok(!replacesPods({ apiVersion: 'tekton.dev/v1', kind: 'TaskRun' }));
 * ```
 */
export function replacesPods({
  apiVersion,
  kind,
}: {
  readonly apiVersion: string;
  readonly kind: string;
}): boolean {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return Object.hasOwn(REPLACES, group) && (REPLACES[group] ?? []).includes(kind);
}

/**
 * How somebody gets another pod in place of one whose list of Secrets cannot be changed.
 *
 * @example
 * ```ts
 * import { recreation } from './pod-owner.ts';
 * import assert from 'node:assert/strict';
 *
 * const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'a', uid: 'u', controller: true };
 * const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a-1', ownerReferences: [owner] } };
 * assert.equal(recreation(pod), 'delete it, and its DaemonSet makes another');
 * ```
 */
export function recreation({ metadata: { ownerReferences = [] } }: KubeObject): string {
  const owner = ownerReferences.find(({ controller }) => controller === true);
  if (owner === undefined || !replacesPods(owner)) return 'create it again';
  if (owner.kind === 'Job')
    return 'create its Job again: a pod that is deleted is one of the tries that it has';
  return `delete it, and its ${owner.kind} makes another`;
}

const DEFAULT_TRIES = 6;
const FAILURES_OF_INDEX = 'batch.kubernetes.io/job-index-failure-count';

/**
 * Whether a Job goes on when `pod` is evicted: it counts that as one more failure, unless its policy for failed pods says otherwise.
 *
 * @param evicted pods of it that were evicted a moment ago, which it may not have counted yet
 * @example
 * ```ts
 * import { outlivesEviction } from './pod-owner.ts';
 * import assert from 'node:assert/strict';
 *
 * const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'a' }, spec: { backoffLimit: 1 }, status: { failed: 0 } };
 * const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a-1' } };
 * assert.ok(outlivesEviction(job, pod, 0));
 * assert.ok(!outlivesEviction(job, pod, 1));
 * ```
 */
export function outlivesEviction(job: KubeObject, pod: KubeObject, evicted: number): boolean {
  const spec = recordOf(job.spec);
  const action = actionOnDisruption(spec);
  if (action === 'Ignore') return true;
  if (action !== undefined && action !== 'Count') return false;
  const { backoffLimitPerIndex: perIndex } = spec;
  if (typeof perIndex === 'number')
    return Number(pod.metadata.annotations?.[FAILURES_OF_INDEX] ?? 0) < perIndex;
  const limit = typeof spec['backoffLimit'] === 'number' ? spec['backoffLimit'] : DEFAULT_TRIES;
  return failuresOf(recordOf(job.status)) + evicted < limit;
}

/** Counted ones, those that are being counted, and pods that are on their way out. */
function failuresOf({
  failed,
  terminating,
  uncountedTerminatedPods,
}: Readonly<Record<string, unknown>>): number {
  const uncounted = recordOf(uncountedTerminatedPods)['failed'];
  return numberOf(failed) + numberOf(terminating) + (Array.isArray(uncounted) ? uncounted.length : 0);
}

/** What the first rule of the policy that an eviction meets says; undefined: none does. */
function actionOnDisruption(spec: Readonly<Record<string, unknown>>): string | undefined {
  const { rules } = recordOf(spec['podFailurePolicy']);
  if (!Array.isArray(rules)) return undefined;
  const met = rules.map(recordOf).find(({ onPodConditions }) => {
    return (
      Array.isArray(onPodConditions) &&
      onPodConditions.map(recordOf).some(({ type, status = 'True' }) => {
        return type === 'DisruptionTarget' && status === 'True';
      })
    );
  });
  return met === undefined ? undefined : scalarText(met['action']);
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
