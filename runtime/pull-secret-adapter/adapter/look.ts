/**
 * One look at one cluster: read, decide, do, report. Keeps nothing. Replicas look at the same cluster at the same time: who finds that
 * another one knew more begins anew.
 */
import type { AdapterStatus, Cluster } from '../cluster.ts';
import type { HyperfleetApi } from '../hyperfleet-api.ts';
import { clusterSelector, dataSecretName } from '../names.ts';
import { decide } from './decide.ts';
import type { Decision } from './decision.ts';
import { faultReport } from './fault-report.ts';
import { type JobView, jobIdentity, type SecretView, viewJob, viewSecret } from './observe.ts';
import type { AdapterSettings } from './settings.ts';
import { type StatusReport, sameReport } from './status-report.ts';
import { Overtaken, removeJob, removeSecret, runStep, type StepContext } from './steps.ts';

export interface LookContext extends StepContext {
  readonly api: Pick<HyperfleetApi, 'cluster' | 'statuses' | 'report'>;
  readonly now: () => Date;
}

export interface LookResult {
  readonly phase: Decision['phase'] | 'gone';
  readonly reported: boolean;
  readonly reason: string;
  /** The `data` of the report. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly requeueAfterMs?: number;
}

/** Looks in a row that others may overtake. */
const MAX_OVERTAKEN = 5;
/** Pause after a report that the API discarded: another replica with a faster clock was first. */
const DISCARDED_MS = 2000;

/**
 * @param asked by an event, which wants an answer even if nothing has changed: the age of the report is what slows Sentinel down. Not more
 *   often than `repeatSeconds`, however many events there are
 * @throws PullwrightError when the API or the cluster cannot be reached
 */
export async function look(id: string, context: LookContext, asked: boolean): Promise<LookResult> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await lookOnce(id, context, asked);
    } catch (error) {
      if (!(error instanceof Overtaken) || attempt >= MAX_OVERTAKEN) throw error;
    }
  }
}

async function lookOnce(id: string, context: LookContext, asked: boolean): Promise<LookResult> {
  const { api, settings } = context;
  // Before anything is read: of two looks, the API keeps the one that saw more.
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
  const report = async (body: StatusReport): Promise<'stored' | 'discarded' | 'gone' | 'same'> =>
    sameReport(body, own) && !(asked && isOld(own, lookedAt, settings))
      ? 'same'
      : api.report(id, { ...body, observed_time: lookedAt.toISOString() });
  if (seen.status === 'fulfilled') await assertNewest(cluster, seen.value, context);
  let decision: Decision;
  try {
    if (seen.status === 'rejected') throw seen.reason;
    decision = decide({ cluster, statuses: told.value, ...seen.value, settings, now: lookedAt });
    for (const step of decision.steps) await runStep(step, { cluster, secret: seen.value.secret }, context);
  } catch (error) {
    if (error instanceof Overtaken) throw error;
    // What failed first counts, also when it cannot be reported.
    await report(faultReport(cluster, own, settings, error)).catch(() => undefined);
    throw error;
  }
  const answer = await report(decision.report);
  const known = answer === 'stored' || answer === 'same';
  if (known)
    for (const step of decision.afterReport) await runStep(step, { cluster, secret: undefined }, context);
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
    data: decision.report.data,
    ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }),
  };
}

function isOld(own: AdapterStatus | undefined, now: Date, { repeatSeconds }: AdapterSettings): boolean {
  const age = now.getTime() - Date.parse(own?.last_report_time ?? '');
  return !(age < repeatSeconds * 1000);
}

/** What is there may be for a newer generation than the one that was read, by a replica that read later. */
async function assertNewest(cluster: Cluster, seen: Observed, { api }: LookContext): Promise<void> {
  const newest = Math.max(seen.secret?.generation ?? 0, ...seen.jobs.map((job) => job.generation));
  if (newest <= cluster.generation) return;
  const now = await api.cluster(cluster.id);
  if (now === undefined || now.generation > cluster.generation) throw new Overtaken(cluster.id);
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
  return { phase: 'gone', reported: false, reason: 'ClusterGone', data: {} };
}

async function readJobs(id: string, { kube, settings }: LookContext): Promise<readonly JobView[]> {
  const where = { namespace: settings.namespace };
  const selector = { labelSelector: clusterSelector(id) };
  const { items } = await kube.list({ apiVersion: 'batch/v1', kind: 'Job', ...where }, selector);
  const ended = items.some((job) => JSON.stringify(job.status ?? {}).includes('"conditions"'));
  const pods = ended ? (await kube.list({ apiVersion: 'v1', kind: 'Pod', ...where }, selector)).items : [];
  // A label may have been changed to this cluster's: the Job is that of another one, and none of ours to judge.
  return items.filter((job) => jobIdentity(job).clusterId === id).map((job) => viewJob(job, pods));
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
