/** One look at one cluster: read, decide, do, report. Keeps nothing. */
import { isApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeObject } from '../rules/kube-object.ts';
import type { AdapterStatus, Cluster } from './cluster.ts';
import { decide } from './decide.ts';
import { contentHash, type Decision, type Step } from './decision.ts';
import { faultReport } from './fault-report.ts';
import type { HyperfleetApi } from './hyperfleet-api.ts';
import { bindingName, clusterSelector, dataSecretName } from './names.ts';
import { type JobView, type SecretView, viewJob, viewSecret } from './observe.ts';
import { bindingObject, dataSecret, jobObject, managementNamespace } from './resources.ts';
import type { AdapterSettings } from './settings.ts';
import { type StatusReport, sameReport } from './status-report.ts';

export const FIELD_MANAGER = 'pullwright-pull-secret-adapter';

export interface LookContext {
  readonly api: Pick<HyperfleetApi, 'cluster' | 'statuses' | 'report'>;
  readonly kube: Pick<KubeClient, 'get' | 'list' | 'apply' | 'remove'>;
  readonly settings: AdapterSettings;
  readonly now: () => Date;
}

export interface LookResult {
  readonly phase: Decision['phase'] | 'gone';
  readonly reported: boolean;
  readonly reason: string;
  readonly requeueAfterMs?: number;
}

/** Pause after a report that the API discarded: another replica with a faster clock was first. */
const DISCARDED_MS = 2000;

/**
 * @param asked by an event, which wants an answer even if nothing has changed: the age of the report is what slows Sentinel down. Not more
 *   often than `repeatSeconds`, however many events there are
 * @throws PullwrightError when the API or the cluster cannot be reached
 */
export async function look(id: string, context: LookContext, asked: boolean): Promise<LookResult> {
  const { api, settings } = context;
  // Before anything is read: of two looks, the API keeps the one that saw more.
  const lookedAt = context.now();
  const cluster = await api.cluster(id);
  if (cluster === undefined) return forget(id, context);
  const [told, seen] = await Promise.allSettled([api.statuses(id), observe(id, context)]);
  if (told.status === 'rejected') throw told.reason;
  const own = told.value.find((status) => status.adapter === settings.adapterName);
  const report = async (body: StatusReport): Promise<'stored' | 'discarded' | 'gone' | 'same'> =>
    sameReport(body, own) && !(asked && isOld(own, lookedAt, settings))
      ? 'same'
      : api.report(id, { ...body, observed_time: lookedAt.toISOString() });
  let decision: Decision;
  try {
    if (seen.status === 'rejected') throw seen.reason;
    decision = decide({ cluster, statuses: told.value, ...seen.value, settings, now: lookedAt });
    for (const step of decision.steps) await run(step, cluster, context);
  } catch (error) {
    // What failed first counts, also when it cannot be reported.
    await report(faultReport(cluster, own, settings, error)).catch(() => undefined);
    throw error;
  }
  const answer = await report(decision.report);
  const known = answer === 'stored' || answer === 'same';
  if (known) for (const step of decision.afterReport) await run(step, cluster, context);
  return resultOf(decision, answer);
}

function resultOf(decision: Decision, answer: 'stored' | 'discarded' | 'gone' | 'same'): LookResult {
  const again = decision.afterReport.some((step) => step.do === 'remove-job') && decision.phase === 'failed';
  const requeueAfterMs =
    answer === 'discarded' ? DISCARDED_MS : again && answer !== 'gone' ? 100 : decision.requeueAfterMs;
  return {
    phase: decision.phase,
    reported: answer === 'stored',
    reason: decision.report.conditions[0]?.reason ?? '',
    ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
  };
}

function isOld(own: AdapterStatus | undefined, now: Date, { repeatSeconds }: AdapterSettings): boolean {
  const age = now.getTime() - Date.parse(own?.last_report_time ?? '');
  return !(age < repeatSeconds * 1000);
}

interface Observed {
  readonly jobs: readonly JobView[];
  readonly secret: SecretView | undefined;
}

async function observe(id: string, context: LookContext): Promise<Observed> {
  const [jobs, secret] = await Promise.all([readJobs(id, context), readSecret(id, context)]);
  return { jobs, secret };
}

/** The API does not know the cluster any more: what is left of it here goes. */
async function forget(id: string, context: LookContext): Promise<LookResult> {
  const { jobs, secret } = await observe(id, context);
  if (secret !== undefined) await removeSecret(id, secret.uid, context);
  for (const job of jobs) await removeJob(job.name, job.uid, false, context);
  return { phase: 'gone', reported: false, reason: 'ClusterGone' };
}

async function readJobs(id: string, { kube, settings }: LookContext): Promise<readonly JobView[]> {
  const where = { namespace: settings.namespace };
  const selector = { labelSelector: clusterSelector(id) };
  const { items } = await kube.list({ apiVersion: 'batch/v1', kind: 'Job', ...where }, selector);
  const ended = items.some((job) => JSON.stringify(job.status ?? {}).includes('"conditions"'));
  const pods = ended ? (await kube.list({ apiVersion: 'v1', kind: 'Pod', ...where }, selector)).items : [];
  return items.map((job) => viewJob(job, pods));
}

async function readSecret(id: string, { kube, settings }: LookContext): Promise<SecretView | undefined> {
  const secret = await kube.get({
    apiVersion: 'v1',
    kind: 'Secret',
    namespace: settings.namespace,
    name: dataSecretName(id),
  });
  return secret === undefined ? undefined : viewSecret(secret);
}

async function run(step: Step, cluster: Cluster, context: LookContext): Promise<void> {
  switch (step.do) {
    case 'start':
      return start(step, cluster, context);
    case 'repair-secret':
      return apply(dataSecret(cluster, context.settings, { name: step.job, uid: step.jobUid }), context).then(
        () => undefined,
      );
    case 'remove-secret':
      return removeSecret(cluster.id, step.uid, context);
    case 'remove-job':
      return removeJob(step.job, step.uid, step.waitForPods, context);
    case 'remove-binding':
      return removeBinding(cluster, context);
  }
}

async function start(
  step: Extract<Step, { do: 'start' }>,
  cluster: Cluster,
  context: LookContext,
): Promise<void> {
  const { settings } = context;
  const binding = bindingObject(cluster, settings);
  if (binding !== undefined) await bind(binding, context);
  const withSecret = step.purpose === 'store' && contentHash(cluster) !== '';
  if (withSecret) await apply(dataSecret(cluster, settings, undefined), context);
  const job = await apply(jobObject(cluster, settings, step), context);
  const uid = job?.metadata.uid;
  if (withSecret && uid !== undefined)
    await apply(dataSecret(cluster, settings, { name: step.job, uid }), context);
}

/** The namespace may come later; the Job says so if it is still missing then. */
async function bind(binding: KubeObject, context: LookContext): Promise<void> {
  try {
    await apply(binding, context);
  } catch (error) {
    if (!isApiError(error, 404)) throw error;
  }
}

/** Undefined: another replica was faster with the same, which is as good. */
async function apply(object: KubeObject, { kube }: LookContext): Promise<KubeObject | undefined> {
  try {
    return await kube.apply(object, { manager: FIELD_MANAGER, force: true });
  } catch (error) {
    if (isApiError(error, 409)) return undefined;
    throw error;
  }
}

async function removeSecret(id: string, uid: string, { kube, settings }: LookContext): Promise<void> {
  const ref = { apiVersion: 'v1', kind: 'Secret', namespace: settings.namespace, name: dataSecretName(id) };
  await unlessChanged(kube.remove(ref, { uid }));
}

async function removeJob(
  name: string,
  uid: string,
  waitForPods: boolean,
  { kube, settings }: LookContext,
): Promise<void> {
  const ref = { apiVersion: 'batch/v1', kind: 'Job', namespace: settings.namespace, name };
  await unlessChanged(kube.remove(ref, { uid, propagation: waitForPods ? 'Foreground' : 'Background' }));
}

async function removeBinding(cluster: Cluster, { kube, settings }: LookContext): Promise<void> {
  const namespace = managementNamespace(cluster, settings);
  if (namespace === '') return;
  const ref = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    namespace,
    name: bindingName(cluster.id),
  };
  await unlessChanged(kube.remove(ref));
}

/** A conflict means that another object has the name by now: that one is not ours to remove. */
async function unlessChanged(removal: Promise<void>): Promise<void> {
  try {
    await removal;
  } catch (error) {
    if (!isApiError(error, 404, 409)) throw error;
  }
}
