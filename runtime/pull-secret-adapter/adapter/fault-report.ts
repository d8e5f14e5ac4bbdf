/**
 * What is reported when the cluster of the Jobs cannot be worked with: silence would leave the user without a cause, and Sentinel without
 * an age. What was true of the pull secret stays true, and what the report remembers of attempts stays in it.
 */
import { isApiError } from '../../kube/api-error.ts';
import { describeError } from '../../rules/errors.ts';
import type { AdapterStatus, HyperfleetCluster } from '../cluster.ts';
import type { OutcomeReason } from '../outcome.ts';
import type { AdapterSettings } from './settings.ts';
import { contentHash } from './situation.ts';
import { type AvailabilityVerdict, type StatusReport, statusReport } from './status-report.ts';

/** @param own our report as the API holds it, of whatever generation */
export function faultReport(
  cluster: HyperfleetCluster,
  own: AdapterStatus | undefined,
  settings: Pick<AdapterSettings, 'adapterName'>,
  error: unknown,
): StatusReport {
  const reason: OutcomeReason = isApiError(error, 401, 403)
    ? 'ManagementPermissionDenied'
    : 'ManagementClusterUnavailable';
  const fault: AvailabilityVerdict = [false, reason, describeError(error)];
  const current = own !== undefined && speaksOf(own, cluster) ? own : undefined;
  const stands = (type: string): AvailabilityVerdict => {
    const found = current?.conditions.find((condition) => condition.type === type);
    if (found === undefined) return fault;
    return [found.status === 'True', found.reason ?? 'Reported', found.message ?? ''];
  };
  const content = { content: contentHash(cluster), gcpProject: cluster.projectId ?? '' };
  return statusReport({
    adapter: settings.adapterName,
    generation: cluster.generation,
    available: stands('Available'),
    applied: stands('Applied'),
    health: fault,
    ...(cluster.deleting ? { finalized: fault } : {}),
    // Of whatever generation: what is remembered there must not be lost.
    data: current?.data ?? { ...own?.data, ...content, failed: false },
    metadata: (current?.metadata ?? {}) as Readonly<Record<string, string | number>>,
  });
}

function speaksOf(own: AdapterStatus, cluster: HyperfleetCluster): boolean {
  return own.observed_generation === cluster.generation && own.data?.['content'] === contentHash(cluster);
}
