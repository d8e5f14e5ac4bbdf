/**
 * The pods of one namespace against the plan: who was created without what the plan adds now, and who cannot pull because
 * of it. The list of a pod cannot be changed, so the remedy is a new pod.
 */

import type { Apply, Outcome, Sample, World } from '../../controller/contract.ts';
import { reportPullStatus } from '../../controller/pull-status.ts';
import { mergeImagePullSecrets } from '../../rules/injection/image-pull-secrets.ts';
import { type InjectionPlan, planInjection } from '../../rules/injection/profile-plan.ts';
import { type ConditionInput, readiness } from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { recreation } from '../../rules/kubernetes/pod-owner.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import { counted } from '../../rules/text/counted.ts';
import { RECONCILER_NAME } from '../name.ts';
import { exemptionOf, type InjectionOptions } from '../options.ts';
import { injectionState } from './injecting.ts';
import { namespaceRef } from './names.ts';
import { refusesNames } from './service-accounts.ts';
import type { UninjectedPod } from './uninjected-pod.ts';
import { isTerminating, namespaceLabels, planIn } from './view.ts';

/** What should be true of the pods of one namespace. */
export function reconcilePods(world: World, name: string, options: InjectionOptions): Outcome {
  const namespace = world.get(namespaceRef(name));
  if (namespace === undefined || isTerminating(namespace)) return { keep: 'all' };
  const plan = planIn(world, options);
  const found = uninjectedPods(world, namespace, plan, options);
  const previews = found.filter((one) => isPlanned(one.pod)).flatMap((one) => previewOf(world, one));
  const created = found.filter((one) => !isPlanned(one.pod));
  if (created.length === 0) return { apply: previews };
  const stuck = created.filter((one) => one.stuck).length;
  const hindrance = hindranceIn(world, options);
  const said = reportPullStatus(world, 'hosted', {
    reporter: RECONCILER_NAME,
    about: { apiVersion: 'v1', kind: 'PodList', namespace: name, name },
    conditions: summary(created.length, stuck, hindrance),
    verdicts: created.map((one) => verdictOf(one, hindrance)),
  });
  const sample = (state: 'stuck' | 'running', value: number): Sample =>
    podsSample({ scope: world.scope.name, namespace: name, state }, value);
  return {
    apply: [...previews, said.apply],
    status: [said.status],
    metrics: [sample('stuck', stuck), sample('running', created.length - stuck)],
  };
}

/** A pod that runs is nobody's trouble: every profile finds pods that were there before it, our own agents among them. */
function summary(pods: number, stuck: number, hindrance: string | undefined): readonly ConditionInput[] {
  const reason = 'PodsUninjected';
  const lack = `${counted(pods, 'pod lacks', 'pods lack')} pull secrets that profiles add`;
  if (stuck === 0) {
    const message = `${lack}; none is kept from pulling, and new pods get them`;
    return readiness('ready', { reason, message });
  }
  const remedy =
    hindrance === undefined ? 'recreate what is stuck' : `new ones would lack them too: ${hindrance}`;
  const message = `${lack}, and ${stuck} cannot pull; ${remedy}`;
  return readiness('stalled', { reason, message });
}

/** Why a new pod would be no better off. A policy that is being made is there in a moment. */
function hindranceIn(world: World, options: InjectionOptions): string | undefined {
  const { status, reason, message } = injectionState(world, options);
  return status === 'False' && reason !== 'PolicyPending' ? message : undefined;
}

function podsSample(labels: Readonly<Record<string, string>>, value: number): Sample {
  const help =
    'Pods that lack pull secrets of their profiles: stuck for want of an image, or running all the same';
  return { name: 'pullwright_uninjected_pods', help, value, labels };
}

/** Running and starting pods of the namespace that lack what the plan adds. */
export function uninjectedPods(
  world: World,
  namespace: KubeObject,
  plan: InjectionPlan,
  options: InjectionOptions,
): readonly UninjectedPod[] {
  const labels = namespaceLabels(namespace);
  const { name } = namespace.metadata;
  if (plan.profiles.length + plan.sidecarSets.length === 0) return [];
  return world.list({ role: 'hosted', apiVersion: 'v1', kind: 'Pod', namespace: name }).flatMap((pod) => {
    const { annotations = {}, labels: own = {} } = pod.metadata;
    const seen = { namespace: name, labels: own, annotations, namespaceLabels: labels };
    if (!isActive(pod) || exemptionOf(seen, options) !== undefined) return [];
    const { names, by } = planInjection(plan, seen);
    const has = new Set(pullSecretsOf(pod));
    const missing = names.filter((secret) => !has.has(secret));
    // Nobody would add them to a new one either: its account is spoken of instead.
    if (missing.length === 0 || isLeftOut(world, pod, missing)) return [];
    const sources = by.filter((one) => one.names.some((secret) => missing.includes(secret)));
    return [{ pod, missing, by: sources.map(({ source }) => source), stuck: isStuck(pod) }];
  });
}

function isLeftOut(world: World, pod: KubeObject, missing: readonly string[]): boolean {
  const names = [...pullSecretsOf(pod), ...missing];
  return refusesNames(world, pod.metadata.namespace ?? '', accountOf(pod), names);
}

/** The names in `spec.imagePullSecrets`. */
export function pullSecretsOf(pod: KubeObject): readonly string[] {
  const references = (pod.spec as { imagePullSecrets?: unknown } | undefined)?.imagePullSecrets;
  if (!Array.isArray(references)) return [];
  return (references as readonly ({ name?: string } | null)[]).map((reference) => reference?.name ?? '');
}

interface PodStatus {
  readonly phase?: string;
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
}

interface ContainerStatus {
  readonly state?: { readonly waiting?: { readonly reason?: string } };
}

function isActive(pod: KubeObject): boolean {
  const { phase } = (pod.status ?? {}) as PodStatus;
  return pod.metadata.deletionTimestamp === undefined && phase !== 'Succeeded' && phase !== 'Failed';
}

function isStuck(pod: KubeObject): boolean {
  const { containerStatuses = [], initContainerStatuses = [] } = (pod.status ?? {}) as PodStatus;
  return [...containerStatuses, ...initContainerStatuses].some(({ state }) =>
    ['ErrImagePull', 'ImagePullBackOff'].includes(state?.waiting?.reason ?? ''),
  );
}

/** An object in a folder that no API server has seen. A pod shows what admission will make of it. Templates are never touched. */
export function isPlanned(pod: KubeObject): boolean {
  return pod.metadata.creationTimestamp === undefined;
}

function previewOf(world: World, { pod, missing }: UninjectedPod): readonly Apply[] {
  const { namespace, name, uid } = pod.metadata;
  if (uid === undefined || namespace === undefined) return [];
  const listed = pullSecretsOf(pod);
  const own = (listed.length > 0 ? listed : accountSecrets(world, pod)).map((secret) => ({ name: secret }));
  const { merged } = mergeImagePullSecrets(own, missing);
  return [
    {
      part: { role: 'hosted', apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
      fields: { spec: { imagePullSecrets: merged.map((secret) => ({ name: secret })) } },
    },
  ];
}

/** The list of the service account, which the API server gives to a pod without one of its own before anybody injects. */
function accountSecrets(world: World, pod: KubeObject): readonly string[] {
  const { namespace = '' } = pod.metadata;
  const ref = { role: 'hosted', apiVersion: 'v1', kind: 'ServiceAccount', namespace } as const;
  const account = world.get({ ...ref, name: accountOf(pod) });
  const references = account?.['imagePullSecrets'] as readonly { name?: string }[] | undefined;
  return (references ?? []).map((reference) => reference.name ?? '');
}

function accountOf(pod: KubeObject): string {
  const { serviceAccountName = '' } = (pod.spec ?? {}) as { serviceAccountName?: string };
  return serviceAccountName === '' ? 'default' : serviceAccountName;
}

function verdictOf({ pod, missing, by, stuck }: UninjectedPod, hindrance: string | undefined): Verdict {
  const remedy =
    stuck && hindrance !== undefined ? `a new one would lack them too: ${hindrance}` : recreation(pod);
  return {
    subject: `pod/${pod.metadata.name}`,
    verdict: stuck ? 'Rejected' : 'Warning',
    reason: stuck ? 'StuckUninjected' : 'Uninjected',
    message: `lacks ${missing.join(', ')} from ${by.join(', ')}: it was created before, or while nothing injected; ${remedy}`,
  };
}
