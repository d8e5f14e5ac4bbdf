/** What a decision wants done in the cluster of the Jobs. */
import { type ApiError, isApiError } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { PullwrightError } from '../../rules/errors.ts';
import { immutableText } from '../../rules/kubernetes/immutable-field.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Cluster } from '../cluster.ts';
import { bindingName, dataSecretName } from '../names.ts';
import { contentHash, type Step } from './decision.ts';
import { jobIdentity, type SecretView } from './observe.ts';
import { bindingObject, dataSecret, jobObject, managementNamespace } from './resources.ts';
import type { AdapterSettings } from './settings.ts';

export const FIELD_MANAGER = 'pullwright-pull-secret-adapter';

export interface StepContext {
  readonly kube: Pick<KubeClient, 'get' | 'list' | 'apply' | 'create' | 'mergePatch' | 'remove'>;
  readonly settings: AdapterSettings;
  /** Told of labels that were put back. */
  readonly onRepair?: (
    job: { readonly name: string; readonly uid: string },
    labels: readonly string[],
  ) => void;
}

/** What a step is done to, as it was seen when it was decided. */
export interface Target {
  readonly cluster: Cluster;
  readonly secret: SecretView | undefined;
}

/** Another replica has written since this one looked: to be looked at anew. */
export class Overtaken extends PullwrightError {
  constructor(subject: string) {
    super(`Cannot go on with "${subject}": another replica has written meanwhile`, { code: 'Overtaken' });
  }
}

/** @throws Overtaken when another replica has written meanwhile; PullwrightError when the cluster refuses or does not answer */
export async function runStep(step: Step, target: Target, context: StepContext): Promise<void> {
  const { cluster, secret } = target;
  switch (step.do) {
    case 'start':
      return start(step, target, context);
    case 'repair-secret':
      await writeSecret(
        dataSecret(cluster, context.settings, { name: step.job, uid: step.jobUid }),
        secret?.resourceVersion,
        context,
      );
      return;
    case 'repair-labels':
      return repairLabels(step, context);
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
  { cluster, secret }: Target,
  context: StepContext,
): Promise<void> {
  const { settings } = context;
  const binding = bindingObject(cluster, settings);
  if (binding !== undefined) await bind(binding, context);
  const withSecret = step.purpose === 'store' && contentHash(cluster) !== '';
  const written = withSecret
    ? await writeSecret(dataSecret(cluster, settings, undefined), secret?.resourceVersion, context)
    : undefined;
  const job = await applyJob(jobObject(cluster, settings, step), context);
  const uid = job?.metadata.uid;
  if (written !== undefined && uid !== undefined)
    await writeSecret(
      dataSecret(cluster, settings, { name: step.job, uid }),
      written.metadata.resourceVersion ?? '',
      context,
    );
}

/** One of that name may be there whose labels hide it, and which another version of the adapter made: it goes on. */
async function applyJob(wanted: KubeObject, context: StepContext): Promise<KubeObject | undefined> {
  try {
    return await apply(wanted, context);
  } catch (error) {
    if (!isApiError(error, 422) || !error.causes.some(({ immutable }) => immutable)) throw error;
    const { apiVersion, kind, metadata } = wanted;
    const ref = { apiVersion, kind, name: metadata.name, namespace: context.settings.namespace };
    const present = await context.kube.get(ref);
    if (present?.metadata.uid === undefined) throw new Overtaken(metadata.name);
    if (!isSameWork(present, wanted)) throw notThisJob(present, wanted, error);
    const { labels = {} } = metadata;
    await repairLabels({ job: metadata.name, jobUid: present.metadata.uid, labels }, context);
    throw new Overtaken(metadata.name);
  }
}

function isSameWork(present: KubeObject, wanted: KubeObject): boolean {
  const [a, b] = [jobIdentity(present), jobIdentity(wanted)];
  return a.clusterId === b.clusterId && a.purpose === b.purpose;
}

function notThisJob(present: KubeObject, wanted: KubeObject, { causes }: ApiError): PullwrightError {
  const fields = causes.filter(({ immutable }) => immutable).map(({ field }) => field);
  const { message, hint } = immutableText(present, wanted, fields);
  return new PullwrightError(message, { code: 'FieldImmutable', disposition: 'terminal', hint });
}

/** Nothing but labels of exactly the Job that was seen. */
async function repairLabels(
  { job, jobUid: uid, labels }: Pick<Extract<Step, { do: 'repair-labels' }>, 'job' | 'jobUid' | 'labels'>,
  { kube, settings, onRepair }: StepContext,
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
 * Writes the temporary Secret exactly over what was seen: else a look at an older generation could put the older pull secret under the
 * Job of the newer one.
 *
 * @param seen its resource version; undefined: there was none
 */
async function writeSecret(
  secret: KubeObject,
  seen: string | undefined,
  { kube }: StepContext,
): Promise<KubeObject> {
  try {
    if (seen === undefined) return await kube.create(secret, FIELD_MANAGER);
    const exact = { ...secret, metadata: { ...secret.metadata, resourceVersion: seen } };
    return await kube.apply(exact, { manager: FIELD_MANAGER, force: true });
  } catch (error) {
    // Applying to a version of what has gone is answered with 404 or 409.
    if (isApiError(error, 409) || (seen !== undefined && isApiError(error, 404)))
      throw new Overtaken(secret.metadata.name);
    throw error;
  }
}

/** The namespace may come later; the Job says so if it is still missing then. */
async function bind(binding: KubeObject, context: StepContext): Promise<void> {
  try {
    await apply(binding, context);
  } catch (error) {
    if (!isApiError(error, 404)) throw error;
  }
}

/** Undefined: another replica was faster with the same, which is as good. */
async function apply(object: KubeObject, { kube }: StepContext): Promise<KubeObject | undefined> {
  try {
    return await kube.apply(object, { manager: FIELD_MANAGER, force: true });
  } catch (error) {
    if (isApiError(error, 409)) return undefined;
    throw error;
  }
}

export async function removeSecret(id: string, uid: string, { kube, settings }: StepContext): Promise<void> {
  const ref = { apiVersion: 'v1', kind: 'Secret', namespace: settings.namespace, name: dataSecretName(id) };
  await unlessChanged(kube.remove(ref, { uid }));
}

export async function removeJob(
  name: string,
  uid: string,
  waitForPods: boolean,
  { kube, settings }: StepContext,
): Promise<void> {
  const ref = { apiVersion: 'batch/v1', kind: 'Job', namespace: settings.namespace, name };
  await unlessChanged(kube.remove(ref, { uid, propagation: waitForPods ? 'Foreground' : 'Background' }));
}

async function removeBinding(cluster: Cluster, { kube, settings }: StepContext): Promise<void> {
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
