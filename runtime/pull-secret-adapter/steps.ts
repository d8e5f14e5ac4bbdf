/** What a decision wants done in the cluster of the Jobs. */
import { isApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { PullwrightError } from '../rules/errors.ts';
import type { KubeObject } from '../rules/kube-object.ts';
import type { Cluster } from './cluster.ts';
import { contentHash, type Step } from './decision.ts';
import { bindingName, dataSecretName } from './names.ts';
import type { SecretView } from './observe.ts';
import { bindingObject, dataSecret, jobObject, managementNamespace } from './resources.ts';
import type { AdapterSettings } from './settings.ts';

export const FIELD_MANAGER = 'pullwright-pull-secret-adapter';

export interface StepContext {
  readonly kube: Pick<KubeClient, 'get' | 'list' | 'apply' | 'create' | 'remove'>;
  readonly settings: AdapterSettings;
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
  const job = await apply(jobObject(cluster, settings, step), context);
  const uid = job?.metadata.uid;
  if (written !== undefined && uid !== undefined)
    await writeSecret(
      dataSecret(cluster, settings, { name: step.job, uid }),
      written.metadata.resourceVersion ?? '',
      context,
    );
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
