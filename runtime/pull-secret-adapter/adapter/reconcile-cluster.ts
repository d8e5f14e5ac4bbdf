/**
 * One pass over one cluster: observe, reconcile, effects, report. Keeps nothing. Replicas work on the same cluster at the same time: who
 * finds that another one knew more begins anew.
 *
 * Sentinel sends events until a report is fresh, so an event needs an answer even if nothing has changed; an answer to each
 * redelivery would be the same write over and over. A report that the API discards as older than its own is made again two
 * seconds later, so that a slow clock cannot hide the end of a Job.
 */
import { describeError } from '../../core/errors.ts';
import { isApiError } from '../../kube/api-error.ts';
import type { AdapterStatus, HyperfleetCluster } from '../cluster.ts';
import type { HyperfleetApi } from '../hyperfleet-api.ts';
import { clusterSelector, dataSecretName, recordName } from '../names.ts';
import type { AdapterSettings } from '../options.ts';
import type { OutcomeReason } from '../outcome.ts';
import { readPlace, wantedPlaces } from '../places.ts';
import { type AvailabilityVerdict, type StatusReport, sameReport, statusReport } from '../status-report.ts';
import { type ClusterOutcome, contentHash, type DesiredState, recordedPlaces } from './desired-state.ts';
import { type EffectContext, Overtaken, removeOwned, runEffect } from './effects.ts';
import {
  type JobView,
  jobIdentity,
  type NamespaceState,
  viewJob,
  viewNamespace,
  viewRecord,
  viewSecret,
} from './observe.ts';
import { reconcile } from './reconcile.ts';

// What is reported when the cluster of the Jobs cannot be worked with: silence would leave the user without a cause, and Sentinel without
// an age. What was true of the pull secret stays true, and what the report remembers of attempts stays in it.

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
  return statusReport(
    settings.adapterName,
    cluster.generation,
    {
      available: stands('Available'),
      applied: stands('Applied'),
      health: fault,
      finalized: cluster.deleting ? fault : undefined,
    },
    // Of whatever generation: what is remembered there must not be lost.
    current?.data ?? { ...own?.data, ...content, failed: false },
    (current?.metadata ?? {}) as NonNullable<StatusReport['metadata']>,
  );
}

function speaksOf(own: AdapterStatus, cluster: HyperfleetCluster): boolean {
  return own.observed_generation === cluster.generation && own.data['content'] === contentHash(cluster);
}

export interface PassContext extends EffectContext {
  readonly api: Pick<HyperfleetApi, 'cluster' | 'statuses' | 'report'>;
  readonly now: () => Date;
}

export interface PassResult {
  readonly phase: ClusterOutcome['phase'] | 'gone' | 'fault';
  readonly reported: boolean;
  /** Of the condition `Available`. */
  readonly reason: string;
  /** The `data` of the report. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly requeueAfterMs?: number;
  /** What the cluster of the Jobs rejected; already reported to the API. */
  readonly fault?: unknown;
}

/** Passes in a row that others may overtake. */
const MAX_OVERTAKEN = 5;
/** Pause after a report that the API discarded: another replica with a faster clock was first. */
const DISCARDED_MS = 2000;

/**
 * @param asked by an event, which needs an answer even if nothing has changed: the age of the report is what slows Sentinel down. Not more
 *   often than `repeatSeconds`, however many events there are
 * @throws PullwrightError when the API cannot be reached, or the cluster of the Jobs cannot and the API does not know it
 */
export async function reconcileCluster(
  id: string,
  context: PassContext,
  asked: boolean,
): Promise<PassResult> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await pass(id, context, asked);
    } catch (error) {
      if (!(error instanceof Overtaken) || attempt >= MAX_OVERTAKEN) throw error;
    }
  }
}

type Reported = 'stored' | 'discarded' | 'gone' | 'same';

async function pass(id: string, context: PassContext, asked: boolean): Promise<PassResult> {
  const { api, settings } = context;
  // Before anything is read: of two passes, the API keeps the one that saw more.
  const lookedAt = context.now();
  const [read, told, seen] = await Promise.allSettled([
    api.cluster(id),
    api.statuses(id),
    observe(id, context),
  ]);
  if (read.status === 'rejected') throw read.reason;
  const cluster = read.value;
  if (cluster === undefined) return forget(id, context);
  if (told.status === 'rejected') throw told.reason;
  const own = told.value.find((status) => status.adapter === settings.adapterName);
  const report = async (body: StatusReport): Promise<Reported> =>
    sameReport(body, own) && !(asked && isOld(own, lookedAt, settings))
      ? 'same'
      : api.report(id, { ...body, observed_time: lookedAt.toISOString() });
  if (seen.status === 'fulfilled') await assertNewest(cluster, seen.value, context);
  let result: ClusterOutcome;
  try {
    if (seen.status === 'rejected') throw seen.reason;
    result = await work(cluster, told.value, seen.value, { ...context, now: () => lookedAt });
  } catch (error) {
    if (error instanceof Overtaken) throw error;
    return fault(error, faultReport(cluster, own, settings, error), report);
  }
  const answer = await report(result.report);
  if (answer === 'stored' || answer === 'same') {
    const target = { cluster, secret: undefined, record: seen.value.record };
    for (const effect of result.afterReport) await runEffect(effect, target, context);
  }
  return resultOf(result, answer);
}

/** @throws when the cluster of the Jobs rejects a request */
async function work(
  cluster: HyperfleetCluster,
  statuses: readonly AdapterStatus[],
  seen: Observed,
  context: PassContext,
): Promise<ClusterOutcome> {
  const { settings } = context;
  const situation = { cluster, statuses, ...seen, settings, namespaces: {}, now: context.now() };
  const places = [...recordedPlaces(situation), ...wantedPlaces(cluster, settings)];
  const result = reconcile({ ...situation, namespaces: await readNamespaces(places, context) });
  const target = { cluster, secret: seen.secret, record: seen.record };
  for (const effect of result.effects) await runEffect(effect, target, context);
  return result;
}

/** Reported to the API, the failure is retried by the queue; otherwise the caller has to retry. */
async function fault(
  error: unknown,
  body: StatusReport,
  report: (body: StatusReport) => Promise<Reported>,
): Promise<PassResult> {
  let answer: Reported;
  try {
    answer = await report(body);
  } catch {
    // What failed first counts, also when it cannot be reported.
    throw error;
  }
  return {
    phase: 'fault',
    reported: answer === 'stored',
    reason: body.conditions.find((one) => one.type === 'Health')?.reason ?? '',
    data: body.data,
    fault: error,
  };
}

function resultOf(result: ClusterOutcome, answer: Reported): PassResult {
  const again = result.afterReport.some((effect) => effect.do === 'remove-job') && result.phase !== 'deleted';
  const requeueAfterMs =
    answer === 'discarded' ? DISCARDED_MS : again && answer !== 'gone' ? 100 : result.requeueAfterMs;
  return {
    phase: result.phase,
    reported: answer === 'stored',
    reason: result.report.conditions[0]?.reason ?? '',
    data: result.report.data,
    ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
  };
}

function isOld(own: AdapterStatus | undefined, now: Date, { repeatSeconds }: AdapterSettings): boolean {
  const age = now.getTime() - Date.parse(own?.last_report_time ?? '');
  return !(age < repeatSeconds * 1000);
}

/** What is there may be for a newer generation than the one that was read, by a replica that read later. */
async function assertNewest(cluster: HyperfleetCluster, seen: Observed, { api }: PassContext): Promise<void> {
  const newest = Math.max(seen.secret?.generation ?? 0, ...seen.jobs.map((job) => job.generation));
  if (newest <= cluster.generation) return;
  const now = await api.cluster(cluster.id);
  if (now === undefined || now.generation > cluster.generation) throw new Overtaken(cluster.id);
}

type Observed = Pick<DesiredState, 'jobs' | 'secret' | 'record'>;

async function observe(id: string, context: PassContext): Promise<Observed> {
  const { kube, settings } = context;
  const where = { apiVersion: 'v1', namespace: settings.namespace };
  const [jobs, secret, record] = await Promise.all([
    readJobs(id, context),
    kube.get({ ...where, kind: 'Secret', name: dataSecretName(id) }),
    kube.get({ ...where, kind: 'ConfigMap', name: recordName(id) }),
  ]);
  return { jobs, secret: secret && viewSecret(secret), record: record && viewRecord(record) };
}

/** The API does not know the cluster any more: what is left of it here goes. The record stays while something may be left elsewhere. */
async function forget(id: string, context: PassContext): Promise<PassResult> {
  const { jobs, secret } = await observe(id, context);
  if (secret !== undefined) await removeOwned('Secret', dataSecretName(id), { uid: secret.uid }, context);
  for (const { name, uid } of jobs)
    await removeOwned('Job', name, { uid, propagation: 'Background' }, context);
  return { phase: 'gone', reported: false, reason: 'ClusterGone', data: {} };
}

/** The Jobs of a cluster, with their results. */
async function readJobs(
  id: string,
  { kube, settings }: Pick<PassContext, 'kube' | 'settings'>,
): Promise<readonly JobView[]> {
  const where = { namespace: settings.namespace };
  const selector = { labelSelector: clusterSelector(id) };
  const { items } = await kube.list({ apiVersion: 'batch/v1', kind: 'Job', ...where }, selector);
  const ended = items.some((job) => JSON.stringify(job.status ?? {}).includes('"conditions"'));
  const pods = ended ? (await kube.list({ apiVersion: 'v1', kind: 'Pod', ...where }, selector)).items : [];
  // A label may have been changed to this cluster's: such a Job belongs to another cluster.
  return items.filter((job) => jobIdentity(job).clusterId === id).map((job) => viewJob(job, pods));
}

/** By a right of the whole cluster: one inside a namespace says "forbidden" when it is gone. */
async function readNamespaces(
  places: readonly string[],
  { kube }: PassContext,
): Promise<Readonly<Record<string, NamespaceState>>> {
  const names = new Set(
    places.map(readPlace).flatMap((place) => (place?.kind === 'kubernetes' ? [place.namespace] : [])),
  );
  const states = [...names].map(async (name) => {
    const namespace = await kube.get({ apiVersion: 'v1', kind: 'Namespace', name });
    return [name, viewNamespace(namespace)] as const;
  });
  return Object.fromEntries(await Promise.all(states));
}
