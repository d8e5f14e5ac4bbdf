/** How the reports of a cluster that lives are made: what is stored, what was tried, where. */
import { type OutcomeReason, outcomeClass } from '../outcome.ts';
import { wantedPlaces } from '../places.ts';
import { attemptOf, currentStored, type StoredState, storedOf } from './memory.ts';
import type { JobView } from './observe.ts';
import { type ClusterOutcome, contentHash, recordedPlaces, type Situation, targetHash } from './situation.ts';
import { type AvailabilityVerdict, statusReport } from './status-report.ts';

/** What is known in every report of a cluster that lives. */
export interface Told {
  readonly available: AvailabilityVerdict;
  readonly applied: AvailabilityVerdict;
  readonly health?: AvailabilityVerdict;
  readonly stored: StoredState | undefined;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, string | number>>;
}

export function livingReport(situation: Situation, told: Told, started: boolean): ClusterOutcome['report'] {
  const { cluster, settings } = situation;
  const places = started
    ? [...new Set([...recordedPlaces(situation), ...wantedPlaces(cluster, settings)])].sort()
    : recordedPlaces(situation);
  return statusReport({
    adapter: settings.adapterName,
    generation: cluster.generation,
    available: told.available,
    applied: told.applied,
    ...(told.health === undefined ? {} : { health: told.health }),
    data: {
      ...(told.stored === undefined ? {} : { ...told.stored.details, stored: told.stored }),
      ...told.data,
      ...(places.length === 0 ? {} : { places }),
    },
    ...(told.metadata === undefined ? {} : { metadata: told.metadata }),
  });
}

/** `Available` speaks of what is stored, whatever is being done. */
export function availability(
  stored: StoredState | undefined,
  otherwise: AvailabilityVerdict,
): AvailabilityVerdict {
  return stored === undefined ? otherwise : [true, 'SecretAvailable', stored.message];
}

/** The memory of the last attempt, carried on. */
export function attemptData(situation: Situation): Readonly<Record<string, unknown>> {
  const attempt = attemptOf(situation);
  if (attempt?.failed !== true) return {};
  const { reason, message, verifyRequest } = attempt;
  return { ...work(situation), failed: true, failure: { reason, message, verifyRequest } };
}

/** What the report is about. */
export function work({ cluster, settings }: Situation): Readonly<Record<string, unknown>> {
  return {
    content: contentHash(cluster),
    target: targetHash(cluster, settings),
    gcpProject: cluster.projectId ?? '',
  };
}

/** Reasons by which a Job has seen that what is stored is not as it should be. The others: that it could not look. */
const CONTRADICTS: readonly OutcomeReason[] = [
  'PayloadCorrupted',
  'ManagementNamespaceMissing',
  'SupersededByNewer',
];

/** A failure to look at what is stored does not take it away. */
export function failureVerdicts(
  situation: Situation,
  reason: string,
  message: string,
): Pick<Told, 'available' | 'health' | 'stored'> {
  const kind = outcomeClass(reason, undefined);
  const contradicted = kind === 'terminal' || CONTRADICTS.some((one) => one === reason);
  const stored = contradicted ? undefined : currentStored(situation);
  const verdict: AvailabilityVerdict = [false, reason, message];
  return {
    available: availability(stored, verdict),
    ...(kind === 'retry' || stored !== undefined ? { health: verdict } : {}),
    stored: contradicted ? undefined : storedOf(situation),
  };
}

export function metadata({ settings }: Situation, job: JobView): Readonly<Record<string, string | number>> {
  return { job_name: job.name, job_namespace: settings.namespace, attempt: job.attempt, ...times(job) };
}

export function times(job: JobView | undefined): Readonly<Record<string, string>> {
  const started = job?.startedAt;
  const completed = job?.finishedAt;
  const seconds = (Date.parse(completed ?? '') - Date.parse(started ?? '')) / 1000;
  return {
    ...(started === undefined ? {} : { started_time: started }),
    ...(completed === undefined ? {} : { completed_time: completed }),
    ...(Number.isFinite(seconds) ? { duration: `${seconds}s` } : {}),
  };
}
