/** Changes that a pass makes in the cluster of the Jobs. */
import { PullwrightError } from '../../core/errors.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { Logger } from '../../core/logger.ts';
import type { Metrics } from '../../engine/metrics.ts';
import { type ApiError, immutableText, isApiError } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { EventRecorder } from '../../kube/events.ts';
import type { HyperfleetCluster } from '../cluster.ts';
import { CLUSTER_LABEL, dataSecretName, recordName } from '../names.ts';
import type { AdapterSettings } from '../options.ts';
import { contentHash, type DesiredState, type Effect } from './desired-state.ts';
import { jobIdentity } from './observe.ts';
import { bindingObject, boundNamespaces, dataSecret, jobObject, recordObject } from './resources.ts';

export const FIELD_MANAGER = 'pullwright-pull-secret-adapter';

export interface EffectContext {
  readonly kube: Pick<KubeClient, 'get' | 'list' | 'apply' | 'create' | 'mergePatch' | 'remove'>;
  readonly settings: AdapterSettings;
  /** W3C Trace Context of the event that asked; goes on into the Job. */
  readonly traceparent?: string;
  /** Called for restored labels. */
  readonly onRepair?: (
    job: { readonly name: string; readonly uid: string },
    labels: readonly string[],
  ) => void;
}

/** What an effect is on, as it was seen when it was decided. */
export type EffectTarget = Pick<DesiredState, 'cluster' | 'secret' | 'record'>;

/** Another replica has written since this one read: read again. */
export class Overtaken extends PullwrightError {
  constructor(subject: string) {
    super(`Cannot go on with "${subject}": another replica has written meanwhile`, { code: 'Overtaken' });
  }
}

/** @throws Overtaken when another replica has written meanwhile; PullwrightError when the cluster refuses or does not answer */
export async function runEffect(effect: Effect, target: EffectTarget, context: EffectContext): Promise<void> {
  const { cluster, secret, record } = target;
  const { settings } = context;
  switch (effect.do) {
    case 'record': {
      const object = recordObject(cluster, settings, effect.places);
      return void (await writeExactly(object, record?.resourceVersion, context));
    }
    case 'start':
      return start(effect, target, context);
    case 'repair-secret': {
      const object = dataSecret(cluster, settings, { name: effect.job, uid: effect.jobUid });
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
      return removeBinding(cluster, effect.namespace, context);
    case 'remove-record':
      return removeOwned('ConfigMap', recordName(cluster.id), { uid: effect.uid }, context);
  }
}

async function start(
  effect: Extract<Effect, { do: 'start' }>,
  { cluster, secret, record }: EffectTarget,
  context: EffectContext,
): Promise<void> {
  const { settings } = context;
  for (const namespace of boundNamespaces(cluster, settings, effect)) await bind(cluster, namespace, context);
  const withSecret = effect.purpose === 'store' && contentHash(cluster) !== '';
  const written = withSecret
    ? await writeExactly(dataSecret(cluster, settings, undefined), secret?.resourceVersion, context)
    : undefined;
  const { traceparent } = context;
  const task = {
    ...effect,
    verifyRequest: record?.verifyRequest ?? '',
    revokeRequest: record?.revokeRequest ?? '',
    ...(traceparent === undefined ? {} : { traceparent }),
  };
  const job = await applyJob(jobObject(cluster, settings, task), context);
  const uid = job?.metadata.uid;
  if (written !== undefined && uid !== undefined)
    await writeExactly(
      dataSecret(cluster, settings, { name: effect.job, uid }),
      written.metadata.resourceVersion ?? '',
      context,
    );
}

/** One of that name may be there whose labels hide it, and which another version of the adapter made: it goes on. */
async function applyJob(wanted: KubeObject, context: EffectContext): Promise<KubeObject | undefined> {
  try {
    return await apply(wanted, context);
  } catch (error) {
    if (!isApiError(error, 422) || !error.causes.some(({ immutable }) => immutable)) throw error;
    const { metadata } = wanted;
    const present = await context.kube.get(refOf(wanted));
    if (present?.metadata.uid === undefined) throw new Overtaken(metadata.name);
    const [is, should] = [jobIdentity(present), jobIdentity(wanted)];
    if (is.clusterId !== should.clusterId || is.purpose !== should.purpose)
      throw notThisJob(present, wanted, error);
    const { labels = {} } = metadata;
    await repairLabels({ job: metadata.name, jobUid: present.metadata.uid, labels }, context);
    throw new Overtaken(metadata.name);
  }
}

function notThisJob(present: KubeObject, wanted: KubeObject, { causes }: ApiError): PullwrightError {
  const fields = causes.filter(({ immutable }) => immutable).map(({ field }) => field);
  const { message, hint } = immutableText(present, wanted, fields);
  return new PullwrightError(message, { code: 'FieldImmutable', retryPolicy: 'terminal', hint });
}

/** Nothing but labels of exactly the Job that was seen. */
async function repairLabels(
  { job, jobUid: uid, labels }: Pick<Extract<Effect, { do: 'repair-labels' }>, 'job' | 'jobUid' | 'labels'>,
  { kube, settings, onRepair }: EffectContext,
): Promise<void> {
  const ref = { apiVersion: 'batch/v1', kind: 'Job', namespace: settings.namespace, name: job };
  try {
    await kube.mergePatch(ref, { metadata: { uid, labels } }, FIELD_MANAGER);
  } catch (error) {
    // It has gone, or is another one by now.
    if (isApiError(error, 404, 409)) return;
    throw error;
  }
  onRepair?.({ name: job, uid }, Object.keys(labels).sort());
}

/**
 * Writes the temporary Secret, or the record, exactly over what was seen: else a pass at an older generation could put the older pull
 * secret under the Job of the newer one, or drop a place that another replica has added.
 *
 * @param seen its resource version; undefined: there was none
 */
async function writeExactly(
  object: KubeObject,
  seen: string | undefined,
  { kube }: EffectContext,
): Promise<KubeObject> {
  try {
    if (seen === undefined) return await kube.create(object, FIELD_MANAGER);
    const exact = { ...object, metadata: { ...object.metadata, resourceVersion: seen } };
    return await kube.apply(exact, { manager: FIELD_MANAGER, force: true });
  } catch (error) {
    // Applying to a version of what has gone is answered with 404 or 409.
    if (isApiError(error, 409) || (seen !== undefined && isApiError(error, 404)))
      throw new Overtaken(object.metadata.name);
    throw error;
  }
}

/** The namespace may come later; the Job says so if it is still missing then. */
async function bind(cluster: HyperfleetCluster, namespace: string, context: EffectContext): Promise<void> {
  const binding = bindingObject(cluster, context.settings, namespace);
  const present = await context.kube.get(refOf(binding));
  // By the same name it gives the same right, whichever cluster's it is.
  if (present !== undefined && JSON.stringify(present['subjects']) === JSON.stringify(binding['subjects']))
    return;
  try {
    await apply(binding, context);
  } catch (error) {
    if (!isApiError(error, 404)) throw error;
  }
}

function refOf({
  apiVersion,
  kind,
  metadata: { name, namespace },
}: KubeObject): Parameters<KubeClient['get']>[0] {
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

/** Undefined: another replica was faster with the same, which is as good. */
async function apply(object: KubeObject, { kube }: EffectContext): Promise<KubeObject | undefined> {
  try {
    return await kube.apply(object, { manager: FIELD_MANAGER, force: true });
  } catch (error) {
    if (isApiError(error, 409)) return undefined;
    throw error;
  }
}

async function removeBinding(
  cluster: HyperfleetCluster,
  namespace: string,
  { kube, settings }: EffectContext,
): Promise<void> {
  const ref = refOf(bindingObject(cluster, settings, namespace));
  const present = await kube.get(ref);
  const uid = present?.metadata.uid;
  if (uid === undefined || present?.metadata.labels?.[CLUSTER_LABEL] !== cluster.id) return;
  await unlessChanged(kube.remove(ref, { uid }));
}

/** Removes exactly the object that was seen, beside the Jobs. */
export function removeOwned(
  kind: 'Secret' | 'ConfigMap' | 'Job',
  name: string,
  seen: Parameters<KubeClient['remove']>[1],
  { kube, settings }: Pick<EffectContext, 'kube' | 'settings'>,
): Promise<void> {
  const apiVersion = kind === 'Job' ? 'batch/v1' : 'v1';
  return unlessChanged(kube.remove({ apiVersion, kind, namespace: settings.namespace, name }, seen));
}

/** A conflict means that another object has the name by now: that one is not ours to remove. */
async function unlessChanged(removal: Promise<void>): Promise<void> {
  try {
    await removal;
  } catch (error) {
    if (!isApiError(error, 404, 409)) throw error;
  }
}

// Reports Job labels that were changed and then restored: in the log, by an Event on the Job, by a counter.

/** Makes the reporter of one process. */
export function labelReporter(process: {
  readonly kube: KubeClient;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly instance: string;
  readonly settings: { readonly namespace: string };
}): NonNullable<EffectContext['onRepair']> {
  const { kube, logger, metrics, instance, settings } = process;
  const events = new EventRecorder({
    client: kube,
    controller: 'pullwright.dev/pull-secret-adapter',
    instance,
    now: () => Date.now(),
  });
  return ({ name, uid }, labels) => {
    logger.warn('labels of a Job were put back', { job: name, labels });
    metrics.count({
      name: 'pullwright_adapter_repairs_total',
      help: 'Manual changes that the adapter reverted',
      labels: { what: 'job-labels' },
    });
    events
      .record({
        regarding: { apiVersion: 'batch/v1', kind: 'Job', namespace: settings.namespace, name, uid },
        type: 'Warning',
        reason: 'LabelsPutBack',
        action: 'Repair',
        note: `Reverted changed labels: ${labels.join(', ')}. They identify the Job, which continues`,
      })
      // A courtesy: the log has said it.
      .catch(() => undefined);
  };
}
