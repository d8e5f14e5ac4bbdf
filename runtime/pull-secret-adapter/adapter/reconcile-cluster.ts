/**
 * One pass over one cluster: observes, reconciles, applies effects, reports. Stateless: replicas may reconcile a cluster
 * concurrently, and a pass restarts if another replica has written newer state.
 *
 * Sentinel sends events until a report is fresh, so an event needs a report even if nothing has changed, but not at every
 * redelivery. A report that the API discards as older is repeated two seconds later: a slow clock must not hide a Job's result.
 */
import { describeError, PullwrightError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { defined } from '../../core/record.ts';
import { immutableText, isApiError, unlessRefused } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { objectRef } from '../../kube/resources.ts';
import type { AdapterStatus, HyperfleetCluster } from '../cluster.ts';
import type { HyperfleetApi } from '../hyperfleet-api.ts';
import { CLUSTER_LABEL, clusterSelector, dataSecretName, recordName } from '../names.ts';
import type { AdapterSettings } from '../options.ts';
import type { OutcomeReason } from '../outcome.ts';
import { namespacesOf, wantedPlaces } from '../places.ts';
import {
  type AvailabilityVerdict,
  type ReportMetadata,
  type StatusReport,
  sameReport,
  statusReport,
} from '../status-report.ts';
import {
  type ClusterOutcome,
  contentHash,
  type DesiredState,
  type Effect,
  recordedPlaces,
} from './desired-state.ts';
import { type JobView, jobIdentity, viewJob, viewRecord, viewSecret } from './observe.ts';
import { reconcile } from './reconcile.ts';
import { bindingObject, boundNamespaces, dataSecret, jobObject, recordObject } from './resources.ts';

/**
 * The report when the Jobs' cluster is unreachable or rejects requests, so that users see the cause and Sentinel a fresh report.
 * Keeps the state of the pull secret and the recorded attempts.
 *
 * @param own our stored report, of any generation
 */
function faultReport(
  cluster: HyperfleetCluster,
  own: AdapterStatus | undefined,
  settings: Pick<AdapterSettings, 'adapterName'>,
  error: unknown,
): StatusReport {
  const reason: OutcomeReason = isApiError(error, 401, 403)
    ? 'ManagementPermissionDenied'
    : 'ManagementClusterUnavailable';
  const fault: AvailabilityVerdict = [false, reason, describeError(error)];
  const isCurrent =
    own?.observed_generation === cluster.generation && own.data['content'] === contentHash(cluster);
  const current = isCurrent ? own : undefined;
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
    // A report of an older generation still contains the recorded attempts and locations.
    current?.data ?? { ...own?.data, ...content, failed: false },
    (current?.metadata ?? {}) as ReportMetadata,
  );
}

export interface PassContext {
  readonly api: Pick<HyperfleetApi, 'cluster' | 'statuses' | 'report'>;
  readonly kube: Pick<KubeClient, 'get' | 'list' | 'apply' | 'create' | 'mergePatch' | 'remove'>;
  readonly settings: AdapterSettings;
  readonly now: () => Date;
  /** W3C Trace Context of the event, passed to the Job. */
  readonly traceparent?: string | undefined;
  /** Called after labels of a Job were restored. */
  readonly onRepair?: (job: Pick<JobView, 'name' | 'uid'>, labels: readonly string[]) => void;
}

export interface PassResult {
  readonly phase: ClusterOutcome['phase'] | 'gone' | 'fault';
  readonly reported: boolean;
  /** Reason of the condition `Available`. */
  readonly reason: string;
  /** The `data` of the report. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly requeueAfterMs?: number;
  /** Error of the Jobs' cluster, already reported to the API. */
  readonly fault?: unknown;
}

/** Maximum consecutive passes that other replicas may overtake. */
const MAX_OVERTAKEN = 5;
/** Requeue time after the API discarded a report, because another replica with a faster clock was first. */
const DISCARDED_MS = 2000;

/**
 * Reconciles one cluster, and restarts when another replica overtakes the pass.
 *
 * @param asked by an event: Sentinel expects a fresh report even if nothing has changed, at most every `repeatSeconds`
 * @throws PullwrightError if the API fails, or if an error of the Jobs' cluster cannot be reported to it
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
  // Taken before any read: of two reports, the API keeps the one with the later time.
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
  const ageMs = lookedAt.getTime() - Date.parse(own?.last_report_time ?? '');
  const report = async (body: StatusReport): Promise<Reported> =>
    sameReport(body, own) && (!asked || ageMs < settings.repeatSeconds * 1000)
      ? 'same'
      : api.report(id, { ...body, observed_time: lookedAt.toISOString() });
  if (seen.status === 'fulfilled') await assertNewest(cluster, seen.value, context);
  let result: ClusterOutcome;
  try {
    if (seen.status === 'rejected') throw seen.reason;
    result = await work(cluster, told.value, seen.value, { ...context, now: () => lookedAt });
  } catch (error) {
    if (error instanceof Overtaken) throw error;
    const body = faultReport(cluster, own, settings, error);
    const answer = await report(body).catch(() => {
      // The first error is the relevant one.
      throw error;
    });
    const { reason = '' } = body.conditions.find(({ type }) => type === 'Health') ?? {};
    return { phase: 'fault', reported: answer === 'stored', reason, data: body.data, fault: error };
  }
  const answer = await report(result.report);
  if (answer === 'stored' || answer === 'same') {
    const target = { cluster, secret: undefined, record: seen.value.record };
    for (const effect of result.afterReport) await runEffect(effect, target, context);
  }
  return resultOf(result, answer);
}

/** Reconciles and applies the effects. @throws errors of the Jobs' cluster */
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

function resultOf(result: ClusterOutcome, answer: Reported): PassResult {
  const again = result.afterReport.some((effect) => effect.do === 'remove-job') && result.phase !== 'deleted';
  const requeueAfterMs =
    answer === 'discarded' ? DISCARDED_MS : again && answer !== 'gone' ? 100 : result.requeueAfterMs;
  return {
    phase: result.phase,
    reported: answer === 'stored',
    reason: result.report.conditions[0]?.reason ?? '',
    data: result.report.data,
    ...defined({ requeueAfterMs }),
  };
}

/** Detects objects of a newer generation, from a replica that read the cluster later. @throws Overtaken */
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

/** Removes Secret and Jobs of a cluster that the API has deleted. The record stays, since locations may still have the secret. */
async function forget(id: string, context: PassContext): Promise<PassResult> {
  const { jobs, secret } = await observe(id, context);
  if (secret !== undefined) await removeOwned('Secret', dataSecretName(id), { uid: secret.uid }, context);
  for (const { name, uid } of jobs)
    await removeOwned('Job', name, { uid, propagation: 'Background' }, context);
  return { phase: 'gone', reported: false, reason: 'ClusterGone', data: {} };
}

/** Lists the Jobs of a cluster, with their results. */
async function readJobs(id: string, { kube, settings }: PassContext): Promise<readonly JobView[]> {
  const where = { namespace: settings.namespace };
  const selector = { labelSelector: clusterSelector(id) };
  const { items } = await kube.list({ apiVersion: 'batch/v1', kind: 'Job', ...where }, selector);
  const ended = items.some((job) => JSON.stringify(job.status ?? {}).includes('"conditions"'));
  const pods = ended ? (await kube.list({ apiVersion: 'v1', kind: 'Pod', ...where }, selector)).items : [];
  // Skip Jobs of other clusters whose labels were changed to this cluster.
  return items.filter((job) => jobIdentity(job).clusterId === id).map((job) => viewJob(job, pods));
}

/** Reads the namespaces with cluster-wide RBAC: a namespaced Role would cause a 403 for a deleted namespace. */
async function readNamespaces(places: readonly string[], { kube }: PassContext) {
  const states = namespacesOf(places).map(async (name) => {
    const namespace = await kube.get({ apiVersion: 'v1', kind: 'Namespace', name });
    const isTerminating = namespace?.metadata.deletionTimestamp !== undefined;
    return [name, namespace === undefined ? 'gone' : isTerminating ? 'terminating' : 'active'] as const;
  });
  return Object.fromEntries(await Promise.all(states));
}

// Effects of a pass in the Jobs' cluster.

const FIELD_MANAGER = 'pullwright-pull-secret-adapter';
/** The object is missing, or another one has its name by now. */
const REPLACED = [404, 409];

/** The observed state that the effects are based on. */
type EffectTarget = Pick<DesiredState, 'cluster' | 'secret' | 'record'>;

/** Another replica has written since this pass read: start again. */
class Overtaken extends PullwrightError {
  constructor(subject: string) {
    super(`Cannot reconcile "${subject}": another replica has changed it`, { code: 'Overtaken' });
  }
}

/** Applies an effect. @throws Overtaken if another replica has written meanwhile; PullwrightError if the cluster fails */
async function runEffect(effect: Effect, target: EffectTarget, context: PassContext): Promise<void> {
  const { cluster, secret, record } = target;
  const { settings } = context;
  switch (effect.do) {
    case 'record': {
      const object = recordObject({ cluster, settings }, effect.places);
      return void (await writeExactly(object, record?.resourceVersion, context));
    }
    case 'start':
      return start(effect, target, context);
    case 'repair-secret': {
      const object = dataSecret({ cluster, settings }, { name: effect.job, uid: effect.jobUid });
      return void (await writeExactly(object, secret?.resourceVersion, context));
    }
    case 'repair-labels':
      return repairLabels(effect, context);
    case 'remove-secret':
      return removeOwned('Secret', dataSecretName(cluster.id), { uid: effect.uid }, context);
    case 'remove-job': {
      const propagation = effect.waitForPods ? 'Foreground' : 'Background';
      return removeOwned('Job', effect.job, { uid: effect.uid, propagation }, context);
    }
    case 'remove-binding':
      return removeBinding(bindingObject({ cluster, settings }, effect.namespace), cluster.id, context);
    case 'remove-record':
      return removeOwned('ConfigMap', recordName(cluster.id), { uid: effect.uid }, context);
  }
}

async function start(
  effect: Extract<Effect, { do: 'start' }>,
  { cluster, secret, record }: EffectTarget,
  context: PassContext,
): Promise<void> {
  const subject = { cluster, settings: context.settings };
  for (const namespace of boundNamespaces(subject, effect))
    await bind(bindingObject(subject, namespace), context);
  const withSecret = effect.purpose === 'store' && contentHash(cluster) !== '';
  const written = withSecret
    ? await writeExactly(dataSecret(subject, undefined), secret?.resourceVersion, context)
    : undefined;
  const { verifyRequest, revokeRequest } = record ?? {};
  const task = { ...effect, verifyRequest, revokeRequest, traceparent: context.traceparent };
  const job = await applyJob(jobObject(subject, task), context);
  const uid = job?.metadata.uid;
  if (written !== undefined && uid !== undefined)
    await writeExactly(
      dataSecret(subject, { name: effect.job, uid }),
      written.metadata.resourceVersion ?? '',
      context,
    );
}

/** Applies the Job. A Job that exists, hidden by changed labels or of another adapter version, continues with repaired labels. */
async function applyJob(wanted: KubeObject, context: PassContext): Promise<KubeObject | undefined> {
  try {
    return await apply(wanted, context);
  } catch (error) {
    const causes = isApiError(error, 422) ? error.causes.filter(({ immutable }) => immutable) : [];
    if (causes.length === 0) throw error;
    const { metadata } = wanted;
    const present = await context.kube.get(objectRef(wanted));
    if (present?.metadata.uid === undefined) throw new Overtaken(metadata.name);
    const [is, should] = [jobIdentity(present), jobIdentity(wanted)];
    if (is.clusterId !== should.clusterId || is.purpose !== should.purpose) {
      const fields = causes.map(({ field }) => field);
      const { message, hint } = immutableText(present, wanted, fields);
      throw new PullwrightError(message, { code: 'FieldImmutable', retryPolicy: 'terminal', hint });
    }
    const { labels = {} } = metadata;
    await repairLabels({ job: metadata.name, jobUid: present.metadata.uid, labels }, context);
    throw new Overtaken(metadata.name);
  }
}

/** Patches the labels of the observed Job; its UID in the patch prevents changes of a new one. */
async function repairLabels(
  { job, jobUid: uid, labels }: Pick<Extract<Effect, { do: 'repair-labels' }>, 'job' | 'jobUid' | 'labels'>,
  { kube, settings, onRepair }: PassContext,
): Promise<void> {
  const ref = { apiVersion: 'batch/v1', kind: 'Job', namespace: settings.namespace, name: job };
  const patched = kube.mergePatch(ref, { metadata: { uid, labels } }, FIELD_MANAGER);
  // Undefined if the Job was deleted or replaced.
  if ((await unlessRefused(patched, ...REPLACED)) !== undefined)
    onRepair?.({ name: job, uid }, Object.keys(labels).sort());
}

/**
 * Writes the temporary Secret or the record only over the observed version. Otherwise a pass of an older generation could
 * overwrite the pull secret of a newer Job, or remove a location that another replica has recorded.
 *
 * @param seen the observed resource version; undefined to create the object
 */
async function writeExactly(
  object: KubeObject,
  seen: string | undefined,
  { kube }: PassContext,
): Promise<KubeObject> {
  try {
    if (seen === undefined) return await kube.create(object, FIELD_MANAGER);
    const exact = { ...object, metadata: { ...object.metadata, resourceVersion: seen } };
    return await kube.apply(exact, { manager: FIELD_MANAGER, force: true });
  } catch (error) {
    // An apply with the resource version of a deleted object returns 404 or 409.
    if (isApiError(error, 409) || (seen !== undefined && isApiError(error, 404)))
      throw new Overtaken(object.metadata.name);
    throw error;
  }
}

/** Applies the RoleBinding. Ignores a missing namespace, which the Job reports if it does not exist by then. */
async function bind(binding: KubeObject, context: PassContext): Promise<void> {
  const present = await context.kube.get(objectRef(binding));
  // A RoleBinding with the same subjects is equivalent, even if it was created for another cluster.
  if (present !== undefined && JSON.stringify(present['subjects']) === JSON.stringify(binding['subjects']))
    return;
  await unlessRefused(apply(binding, context), 404);
}

/** Applies an object; undefined on a conflict, when another replica has applied the same. */
function apply(object: KubeObject, { kube }: PassContext): Promise<KubeObject | undefined> {
  return unlessRefused(kube.apply(object, { manager: FIELD_MANAGER, force: true }), 409);
}

async function removeBinding(binding: KubeObject, id: string, { kube }: PassContext): Promise<void> {
  const ref = objectRef(binding);
  const present = await kube.get(ref);
  const uid = present?.metadata.uid;
  if (uid === undefined || present?.metadata.labels?.[CLUSTER_LABEL] !== id) return;
  await unlessRefused(kube.remove(ref, { uid }), ...REPLACED);
}

/** Removes the observed object in the namespace of the Jobs. */
function removeOwned(
  kind: 'Secret' | 'ConfigMap' | 'Job',
  name: string,
  seen: Parameters<KubeClient['remove']>[1],
  { kube, settings }: PassContext,
): Promise<void> {
  const apiVersion = kind === 'Job' ? 'batch/v1' : 'v1';
  const removal = kube.remove({ apiVersion, kind, namespace: settings.namespace, name }, seen);
  return unlessRefused(removal, ...REPLACED);
}
