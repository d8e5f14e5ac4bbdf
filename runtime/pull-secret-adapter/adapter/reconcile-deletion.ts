/**
 * Deletion: whatever other adapters say by then, every place that was ever written to is removed and proven gone, and `Finalized=True` is
 * reported with the receipt, without which the API never lets the cluster go.
 */
import { jobName } from '../names.ts';
import { type Place, readPlace, tenancyFault, wantedPlaces } from '../places.ts';
import {
  type ClusterOutcome,
  type DesiredState,
  type Effect,
  failedAttempt,
  outcomeOf,
  ownStatus,
  pauseLeftMs,
  type Reported,
  recordedPlaces,
  removal,
  secretRemoval,
} from './desired-state.ts';
import { type JobView, readReceipt } from './observe.ts';

type Receipt = Readonly<Record<string, string>>;

/** Places that one Job goes to: its result has to fit into a termination message. */
const PLACES_PER_JOB = 10;

/** Reconciles a cluster that is being deleted. */
export function reconcileDeletion(situation: DesiredState): ClusterOutcome {
  const { jobs } = situation;
  const own = ownStatus(situation);
  const isFinal =
    own?.observed_generation === situation.cluster.generation &&
    own.conditions.some((one) => one.type === 'Finalized' && one.status === 'True');
  const receipt = receiptOf(situation);
  if (isFinal) return gone(situation, receipt);
  // A running Job could store the secret again: it must be gone before anything is deleted.
  const storing = jobs.filter((job) => job.purpose === 'store');
  if (storing.length > 0) {
    const effects = [...secretRemoval(situation), ...storing.filter((job) => !job.removing).map(removal)];
    const message = 'Jobs that store are being removed';
    return pending(situation, message, receipt, { effects, requeueAfterMs: 1000 });
  }
  const left = placesToRemove(situation).filter((place) => receipt[place] === undefined);
  if (left.length === 0) return gone(situation, receipt);
  const job = jobs.find((candidate) => candidate.purpose === 'delete');
  return job === undefined ? startDeletion(situation, receipt, left) : byJob(situation, receipt, job);
}

/** Everything recorded. Of a cluster of which nothing was ever said, what its document names: another adapter may have stored it. */
function placesToRemove(situation: DesiredState): readonly string[] {
  const { cluster, settings, record } = situation;
  const recorded = recordedPlaces(situation);
  const isUnknown = recorded.length === 0 && record === undefined && ownStatus(situation) === undefined;
  if (!isUnknown || tenancyFault(cluster, settings) !== undefined) return recorded;
  return wantedPlaces(cluster, settings);
}

/** Proven removals: by earlier Jobs, the finished Job, deleted namespaces, or policy. */
function receiptOf(situation: DesiredState): Receipt {
  const { jobs, settings, namespaces } = situation;
  const reported = readReceipt(ownStatus(situation)?.data['receipt']);
  const told = jobs.filter((job) => job.purpose === 'delete').map((job) => job.result?.receipt ?? {});
  const seen = placesToRemove(situation).flatMap((text): readonly (readonly [string, string])[] => {
    const place = readPlace(text);
    const became = place === undefined ? undefined : becameOf(place, namespaces, settings.onDeletion);
    return became === undefined ? [] : [[text, became]];
  });
  return Object.assign({}, Object.fromEntries(seen), reported, ...told) as Receipt;
}

function becameOf(
  place: Place,
  namespaces: DesiredState['namespaces'],
  onDeletion: 'delete' | 'retain',
): string | undefined {
  if (place.kind === 'google') return onDeletion === 'retain' ? 'retained by policy' : undefined;
  const { [place.namespace]: state } = namespaces;
  if (state === 'gone') return 'its namespace is gone';
  return state === 'terminating' ? 'its namespace is being deleted' : undefined;
}

function startDeletion(situation: DesiredState, receipt: Receipt, left: readonly string[]): ClusterOutcome {
  const { cluster } = situation;
  const own = ownStatus(situation);
  const name = jobName(cluster.id, cluster.generation);
  // Failures of an older generation are not those of the deletion.
  const failures =
    own?.observed_generation === cluster.generation && own.data['failed'] === true
      ? Number(own.metadata['attempt'] ?? 0) || 0
      : 0;
  const places = left.slice(0, PLACES_PER_JOB);
  const attempt = failures + 1;
  const recorded = situation.record?.places ?? [];
  const effects: readonly Effect[] = [
    ...secretRemoval(situation),
    ...(left.every((place) => recorded.includes(place))
      ? []
      : [{ do: 'record', places: [...new Set([...recorded, ...left])].sort() } as const]),
    { do: 'start', purpose: 'delete', job: name, attempt, places },
  ];
  return pending(situation, `Job "${name}" removes the pull secret`, receipt, { effects }, attempt);
}

function byJob(situation: DesiredState, receipt: Receipt, job: JobView): ClusterOutcome {
  if (job.phase === 'running')
    return pending(situation, `Job "${job.name}" removes the pull secret`, receipt, {}, job.attempt);
  if (job.phase === 'failed') return failedDeletion(situation, receipt, job);
  // It has done its part, and others are left.
  const next = { afterReport: [removal(job)], requeueAfterMs: 100 };
  return pending(situation, `Job "${job.name}" has removed a part of what was stored`, receipt, next);
}

function pending(
  situation: DesiredState,
  message: string,
  receipt: Receipt,
  next: Pick<Partial<Reported>, 'effects' | 'afterReport' | 'requeueAfterMs'>,
  attempt = 1,
): ClusterOutcome {
  return deletion(situation, 'deleting', receipt, {
    available: [false, 'Deleting', message],
    finalized: [false, 'CleanupInProgress', message],
    // Deletion must not count as a failed try before it has failed.
    ...(attempt < 2 ? {} : { metadata: { attempt: attempt - 1 }, data: { failed: true } }),
    ...next,
  });
}

function gone(situation: DesiredState, receipt: Receipt): ClusterOutcome {
  const { jobs, namespaces, record } = situation;
  const message = receiptText(receipt);
  const bindings = Object.entries(namespaces)
    .filter(([, state]) => state === 'active')
    .map(([namespace]): Effect => ({ do: 'remove-binding', namespace }));
  return deletion(situation, 'deleted', receipt, {
    available: [false, 'SecretDeleted', message],
    finalized: [true, 'CleanupConfirmed', message],
    effects: [...secretRemoval(situation), ...bindings],
    // Job and record may go once the receipt is stored; until then they are the only witnesses.
    afterReport: [
      ...jobs.map(removal),
      ...(record === undefined ? [] : [{ do: 'remove-record', uid: record.uid } as const]),
    ],
  });
}

/** Shows each place with what became of it, as far as a message reaches; the data of the report has them all. */
function receiptText(receipt: Receipt): string {
  const lines = Object.entries(receipt).map(([place, became]) => `${place}: ${became}`);
  return lines.length === 0 ? 'Nothing was ever written' : lines.sort().join('; ');
}

function failedDeletion(situation: DesiredState, receipt: Receipt, job: JobView): ClusterOutcome {
  const { settings, now } = situation;
  const attempt = failedAttempt(job, now);
  const { reason, message, kind } = attempt;
  // A deletion never stops retrying: the cluster would stay for ever. Terminal failures are retried as rarely as denied ones.
  const rarely = { ...attempt, kind: kind === 'retry' ? kind : 'denied' } as const;
  const left = pauseLeftMs(rarely, settings) ?? 3_600_000 - attempt.ageMs;
  return deletion(situation, 'failed', receipt, {
    available: [false, reason, message],
    finalized: [false, reason, message],
    afterReport: left > 0 ? [] : [removal(job)],
    data: { ...job.result?.details, failed: true },
    metadata: { job_name: job.name, job_namespace: settings.namespace, attempt: job.attempt },
    requeueAfterMs: Math.max(left, 1000),
  });
}

type Deletion = Omit<Reported, 'applied' | 'data'> & Pick<Partial<Reported>, 'data'>;

function deletion(
  situation: DesiredState,
  phase: ClusterOutcome['phase'],
  receipt: Receipt,
  { data, ...reported }: Deletion,
): ClusterOutcome {
  const { available } = reported;
  return outcomeOf(situation, phase, {
    ...reported,
    applied: [false, available[1], available[2]],
    data: { ...data, ...(Object.keys(receipt).length === 0 ? {} : { receipt }) },
    places: placesToRemove(situation),
  });
}
