/** Status reports for `/clusters/{id}/statuses`. */
import { isDeepStrictEqual } from 'node:util';
import type { AdapterStatus } from './cluster.ts';

/** A report without `observed_time`, which the caller adds. */
export type StatusReport = Readonly<ReturnType<typeof statusReport>>;
/** Of the Job and its attempt. */
export type ReportMetadata = Readonly<Record<string, string | number>>;

/** The body of a PUT (current API) or POST (API up to 1.0.2). */
export type StatusBody = StatusReport & { readonly observed_time: string };

/** Status, reason, message. */
export type AvailabilityVerdict = readonly [boolean, string, string];

const HEALTHY: AvailabilityVerdict = [true, 'Healthy', 'The adapter works'];
const IN_USE: AvailabilityVerdict = [false, 'InUse', 'The cluster is not being deleted'];

/** The conditions of a report. */
export interface Verdicts {
  readonly available: AvailabilityVerdict;
  readonly applied: AvailabilityVerdict;
  readonly health?: AvailabilityVerdict | undefined;
  readonly finalized?: AvailabilityVerdict | undefined;
}

/**
 * Builds a report with all four conditions: the API rejects a report without the first three, and never removes a cluster before
 * its adapters report `Finalized`. No condition is `Unknown`, because the API drops such reports.
 */
export function statusReport(
  adapter: string,
  generation: number,
  { available, applied, health = HEALTHY, finalized = IN_USE }: Verdicts,
  data: Readonly<Record<string, unknown>>,
  metadata: ReportMetadata,
) {
  return {
    adapter,
    observed_generation: generation,
    conditions: [
      condition('Available', available),
      condition('Applied', applied),
      condition('Health', health),
      condition('Finalized', finalized),
    ],
    data,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
}

function condition(
  type: 'Available' | 'Applied' | 'Health' | 'Finalized',
  [holds, reason, message]: AvailabilityVerdict,
) {
  return { type, status: holds ? 'True' : 'False', reason, message: message.slice(0, 1024) } as const;
}

/** Whether the report stored in the API equals this one. */
export function sameReport(report: StatusReport, stored: AdapterStatus | undefined): boolean {
  if (stored === undefined || stored.observed_generation !== report.observed_generation) return false;
  const same = report.conditions.every(({ type, status, reason, message }) => {
    const present = stored.conditions.find((candidate) => candidate.type === type);
    return present?.status === status && present.reason === reason && present.message === message;
  });
  return same && isDeepStrictEqual(JSON.parse(JSON.stringify(report.data)), stored.data);
}
