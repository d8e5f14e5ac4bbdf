/** What keeps the work on a pull secret from starting, beside the preconditions of the requirement: names, tenancy, a namespace that ends. */
import type { HyperfleetCluster } from '../cluster.ts';
import { managementNamespace, nameFaults } from '../places.ts';
import type { Plan, PlanProblem } from '../plan.ts';
import type { AdapterSettings } from './settings.ts';
import type { Situation } from './situation.ts';

/** Nothing tells when a namespace has ended, or an allow-list was changed. */
const LOOK_AGAIN_MS = 30_000;

/** Undefined: work may start. */
export function storeGate(
  { cluster, namespaces, settings }: Situation,
  plan: Plan,
): PlanProblem<'waiting' | 'invalid'> | undefined {
  if (plan.verdict === 'waiting' || plan.verdict === 'invalid') return plan;
  const { preconditions } = plan;
  const faults = nameFaults(cluster, settings);
  if (faults.length > 0)
    return { verdict: 'invalid', reason: 'InvalidConfiguration', message: faults.join('; '), preconditions };
  const unproven = tenancyFault(cluster, settings);
  if (unproven !== undefined)
    return {
      verdict: 'waiting',
      reason: 'TenancyUnproven',
      message: unproven,
      preconditions,
      retryAfterMs: LOOK_AGAIN_MS,
    };
  const namespace = managementNamespace(cluster, settings);
  if (namespaces[namespace] !== 'terminating') return undefined;
  return {
    verdict: 'waiting',
    reason: 'ManagementNamespaceTerminating',
    message: `the management namespace "${namespace}" is being deleted`,
    preconditions,
    retryAfterMs: LOOK_AGAIN_MS,
  };
}

/**
 * Why the tenant of a cluster may not name its project; undefined: it may. The project is not touched before.
 *
 * @example
 * ```ts
 * import { readCluster } from '../cluster.ts';
 * import { DEFAULT_SETTINGS } from './settings.ts';
 * import { tenancyFault } from './store-gate.ts';
 * import assert from 'node:assert/strict';
 *
 * const read = readCluster({ id: 'cls-1', generation: 1, created_by: 'b@example.com', spec: { gcp: { projectId: 'of-a' } } });
 * assert.ok(read.ok);
 * const settings = { ...DEFAULT_SETTINGS, tenants: { 'a@example.com': ['of-a'], 'b@example.com': ['of-b', 'b-*'] } };
 * assert.match(tenancyFault(read.value, settings) ?? '', /not among the projects/);
 * ```
 */
export function tenancyFault(
  { tenantFields, projectId = '' }: Pick<HyperfleetCluster, 'tenantFields' | 'projectId'>,
  { tenants, tenantKey, challenge }: Pick<AdapterSettings, 'tenants' | 'tenantKey' | 'challenge'>,
): string | undefined {
  if (tenants === undefined && challenge === 'none') return undefined;
  const { [tenantKey]: tenant } = tenantFields;
  if (tenant === undefined || tenant === '')
    return `the cluster names no tenant: expected a value of "${tenantKey}"${tenants === undefined ? '' : ' that is in the list of tenants'}`;
  // The project itself is asked by the Job, before anything else is.
  if (tenants === undefined) return undefined;
  const allowed = Object.hasOwn(tenants, tenant) ? (tenants[tenant] ?? []) : [];
  const found = allowed.some((pattern) =>
    pattern.endsWith('*') ? projectId.startsWith(pattern.slice(0, -1)) : projectId === pattern,
  );
  return found
    ? undefined
    : 'spec.gcp.projectId is not among the projects of the tenant: expected it in the list of tenants';
}
