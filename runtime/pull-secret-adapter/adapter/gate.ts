/** What a pass comes to that starts nothing: the work is gated, or done, or has failed and waits. */
import type { HyperfleetCluster } from '../cluster.ts';
import type { AdapterSettings } from '../options.ts';
import { outcomeClass } from '../outcome.ts';
import { managementNamespace, nameFaults } from '../places.ts';
import type { Plan, PlanProblem } from '../plan.ts';
import type { AvailabilityVerdict } from '../status-report.ts';
import {
  type Attempt,
  attemptData,
  attemptOf,
  availability,
  type ClusterOutcome,
  currentStored,
  type DesiredState,
  failureVerdicts,
  livingReport,
  type StoredState,
  secretRemoval,
  storedOf,
  work,
} from './desired-state.ts';

/** Nothing may start now. */
export function gated(
  situation: DesiredState,
  plan: Exclude<Plan, { verdict: 'ready' | 'deleting' }>,
): ClusterOutcome {
  const unmet: AvailabilityVerdict = [false, plan.reason, plan.message];
  const stored = currentStored(situation);
  const own = situation.statuses.find((status) => status.adapter === situation.settings.adapterName);
  return {
    phase: plan.verdict,
    effects: secretRemoval(situation),
    afterReport: [],
    report: livingReport(
      situation,
      {
        available: availability(stored, unmet),
        applied: unmet,
        stored: storedOf(situation),
        data: {
          ...attemptData(situation),
          preconditions: plan.preconditions,
          retriable: plan.verdict === 'waiting',
        },
        ...(attemptOf(situation)?.failed === true
          ? { metadata: (own?.metadata ?? {}) as Readonly<Record<string, string | number>> }
          : {}),
      },
      false,
    ),
    ...(plan.retryAfterMs === undefined ? {} : { requeueAfterMs: plan.retryAfterMs }),
  };
}

/** It is stored, and nothing is to be done until it is proved again. */
export function standing(situation: DesiredState, stored: StoredState, dueMs: number): ClusterOutcome {
  const { details } = stored;
  return {
    phase: 'stored',
    effects: secretRemoval(situation),
    afterReport: [],
    report: livingReport(
      situation,
      {
        available: availability(stored, [false, '', '']),
        applied: [true, 'SecretCreated', stored.message],
        stored,
        data: { ...details, ...work(situation) },
        metadata: ownMetadata(situation),
      },
      false,
    ),
    ...(Number.isFinite(dueMs) ? { requeueAfterMs: dueMs } : {}),
  };
}

function ownMetadata({ statuses, settings }: DesiredState): Readonly<Record<string, string | number>> {
  const own = statuses.find((status) => status.adapter === settings.adapterName);
  return (own?.metadata ?? {}) as Readonly<Record<string, string | number>>;
}

export function failedBefore(situation: DesiredState, attempt: Attempt): ClusterOutcome {
  const { reason, message, verifyRequest } = attempt;
  const kind = outcomeClass(reason, undefined);
  return {
    phase: 'failed',
    effects: secretRemoval(situation),
    afterReport: [],
    report: livingReport(
      situation,
      {
        ...failureVerdicts(situation, reason, message),
        applied: [false, 'JobFailed', message],
        data: {
          ...work(situation),
          failed: true,
          failure: { reason, message, verifyRequest },
          retriable: kind !== 'terminal',
        },
        metadata: ownMetadata(situation),
      },
      false,
    ),
  };
}

// What keeps the work on a pull secret from starting, beside the preconditions of the requirement: names, tenancy, a namespace that ends.

/** Nothing tells when a namespace has ended, or an allow-list was changed. */
const LOOK_AGAIN_MS = 30_000;

/** Undefined: work may start. */
export function storeGate(
  { cluster, namespaces, settings }: DesiredState,
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
