/**
 * Decides from a cluster document and the statuses of other adapters whether work may start. Pure and total.
 *
 * Source of the rule: the six preconditions of the requirement. All of them are checked, so that the report lists every problem.
 * Reasons contain no values. Dependencies must be available at the current generation. A cluster that is being deleted skips
 * them, because the other adapters clean up at the same time.
 */

import type { AdapterStatus, HyperfleetCluster } from './cluster.ts';
import { DEFAULT_DEPENDENCIES } from './options.ts';
import { PROJECT_ID } from './places.ts';
import { judgePullSecret } from './pull-secret.ts';

/** One precondition, with a reason if it is not met. */
type Precondition = Readonly<ReturnType<typeof precondition>>;

export type Plan =
  /** `deleting`: remove everything of the adapter. */
  { readonly verdict: 'ready' | 'deleting'; readonly preconditions: readonly Precondition[] } | PlanProblem;

/** A plan that blocks work. */
export type PlanProblem = Readonly<ReturnType<typeof problem>>;

/**
 * Checks the preconditions of one cluster.
 *
 * @param statuses the status list of the cluster; empty if the API has none
 * @param dependencies adapters that must be available at the current generation
 */
export function planCluster(
  cluster: HyperfleetCluster,
  statuses: readonly AdapterStatus[],
  dependencies: readonly string[] = DEFAULT_DEPENDENCIES,
): Plan {
  const spec = specPreconditions(cluster);
  if (cluster.deleting) return { verdict: 'deleting', preconditions: spec };
  const others = dependencies.map((name) => dependency(cluster, statuses, name));
  const preconditions = [...spec, ...others];
  const unmet = reasonsOf(spec);
  if (unmet.length > 0) return problem('invalid', 'PreconditionNotMet', unmet, preconditions);
  const judged = cluster.pullSecret === undefined ? [] : judgePullSecret(cluster.pullSecret);
  if (judged.length > 0) {
    return problem('invalid', 'InvalidPullSecret', judged.slice(0, 10), preconditions);
  }
  const waiting = reasonsOf(others);
  if (waiting.length > 0) return problem('waiting', 'PreconditionNotMet', waiting, preconditions);
  return { verdict: 'ready', preconditions };
}

/** Reasons of the unmet preconditions. */
function reasonsOf(preconditions: readonly Precondition[]): readonly string[] {
  return preconditions.flatMap(({ reason }) => reason ?? []);
}

/**
 * A plan that blocks work for these reasons.
 *
 * @param verdict `waiting`: may resolve by itself; `invalid`: the cluster document must change
 * @param retryAfterMs requeue time, for changes without an event
 */
export function problem(
  verdict: 'waiting' | 'invalid',
  reason:
    | 'PreconditionNotMet'
    | 'InvalidPullSecret'
    | 'InvalidConfiguration'
    | 'TenancyUnproven'
    | 'ManagementNamespaceTerminating',
  reasons: readonly string[],
  preconditions: readonly Precondition[],
  retryAfterMs?: number,
) {
  const text = reasons.join('; ');
  // Bounds the status of a pull secret with many registries.
  const message = text.length <= 1024 ? text : `${text.slice(0, 1020)} ...`;
  return { verdict, reason, message, preconditions, retryAfterMs };
}

function specPreconditions(cluster: HyperfleetCluster): readonly Precondition[] {
  const { provider, projectId, pullSecret } = cluster;
  return [
    precondition(
      'provider',
      provider === 'gcp',
      provider === undefined ? 'spec.provider is missing: expected "gcp"' : 'spec.provider is not "gcp"',
    ),
    precondition(
      'projectId',
      projectId !== undefined && PROJECT_ID.test(projectId),
      projectId === undefined ? 'spec.gcp.projectId is missing' : 'spec.gcp.projectId is not a project ID',
    ),
    precondition('pullSecret', pullSecret !== undefined, 'spec.pullSecret.data is missing'),
  ];
}

function precondition(name: string, met: boolean, reason: string) {
  return met ? { name, met } : { name, met, reason };
}

/**
 * Checks one adapter by the most exact source: its report, else the mirrored condition, else `status.adapters`, which has no
 * generation.
 */
function dependency(
  cluster: HyperfleetCluster,
  statuses: readonly AdapterStatus[],
  name: string,
): Precondition {
  const { generation, conditions, adapters } = cluster;
  const report = statuses.find((status) => status.adapter === name);
  const type = mirroredType(name).toLowerCase();
  const found =
    report === undefined
      ? conditions.find((condition) => condition.type.toLowerCase() === type)
      : {
          status: report.conditions.find((condition) => condition.type === 'Available')?.status,
          observed_generation: report.observed_generation,
        };
  const { status, observed_generation: observed = generation } = found ?? { status: adapters[name] };
  if (status === undefined) return precondition(name, false, `adapter "${name}" has not reported`);
  return observed === generation
    ? precondition(name, status === 'True', `adapter "${name}" is not available`)
    : precondition(
        name,
        false,
        `adapter "${name}" has reported for generation ${observed}, not for ${generation}`,
      );
}

/** Type of the condition that the API mirrors for an adapter. */
export function mirroredType(adapter: string): string {
  const parts = adapter.split('-').map((part) => part.charAt(0).toUpperCase() + part.slice(1));
  return `${parts.join('')}Successful`;
}
