/**
 * The injection plan: everything in a cluster that adds pull secrets to pods, in the order in which it does. One plan is
 * compiled to the admission policy, evaluated by the webhook, previewed offline and audited.
 */
import { type Labels, selects } from '../kubernetes/label-selector.ts';
import type { InjectionSource } from './image-pull-secrets.ts';
import { compareProfiles, type PullSecretProfile } from './profile.ts';
import { compareSidecarSets, type PodIdentity, type SidecarSet, sidecarSetSelects } from './sidecar-set.ts';

/** Pods, and whole namespaces, that carry this label with the value `false` are left alone. */
export const INJECT_LABEL = 'pullwright.dev/inject';
/** A namespace that carries this label with the value `false` is brought nothing. */
export const DISTRIBUTE_LABEL = 'pullwright.dev/distribute';
/** The kubelet's mark on the API object of a static pod; the API server refuses such a pod when it names a secret. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Service, Deployment and MutatingWebhookConfiguration of the webhook. */
export const WEBHOOK_NAME = 'pullwright-webhook';

/** What injects, sorted. */
export interface InjectionPlan {
  readonly profiles: readonly PullSecretProfile[];
  /** Pinned content is put in already; sets with a broken pod selector are left out. */
  readonly sidecarSets: readonly SidecarSet[];
  /** SidecarSets inject even where no matching set brings a container. @default {false} */
  readonly withoutContainers: boolean;
}

/** Sorts, and leaves out what is suspended, paused, or does not inject. */
export function injectionPlan(
  profiles: readonly PullSecretProfile[],
  sidecarSets: readonly SidecarSet[] = [],
  options: { readonly withoutContainers?: boolean } = {},
): InjectionPlan {
  return {
    profiles: profiles.filter((profile) => profile.injects && !profile.suspended).sort(compareProfiles),
    sidecarSets: sidecarSets.filter((set) => !set.paused && set.selector.ok).sort(compareSidecarSets),
    withoutContainers: options.withoutContainers ?? false,
  };
}

/** Why a pod is not looked at. */
export type Exemption = 'mirror' | 'opted-out' | 'excluded-namespace';

/** A pod as the plan sees it. */
export interface PlannedPod extends PodIdentity {
  readonly namespace: string;
  readonly annotations: Readonly<Record<string, unknown>>;
}

/** Whether the pod is left alone whatever the plan says. */
export function exemption(pod: PlannedPod, excludedNamespaces: readonly string[]): Exemption | undefined {
  if (MIRROR_ANNOTATION in pod.annotations) return 'mirror';
  if (excludedNamespaces.includes(pod.namespace)) return 'excluded-namespace';
  const optedOut = pod.labels[INJECT_LABEL] === 'false' || pod.namespaceLabels?.[INJECT_LABEL] === 'false';
  return optedOut ? 'opted-out' : undefined;
}

/** Names to add, and who adds them. */
export interface PlannedInjection {
  /** Each once, in order. */
  readonly names: readonly string[];
  readonly by: readonly InjectionSource[];
}

/**
 * What the plan adds to a pod.
 *
 * @example
 * ```ts
 * import { readProfile } from './profile.ts';
 * import { injectionPlan, planInjection } from './profile-plan.ts';
 * import assert from 'node:assert/strict';
 *
 * const read = readProfile({
 *   apiVersion: 'pullwright.dev/v1alpha1', kind: 'PullSecretProfile', metadata: { name: 'team' },
 *   spec: { namespaceSelector: { matchLabels: { team: 'a' } }, selector: {}, secrets: [{ name: 'team-a' }] },
 * });
 * assert.ok(read.ok);
 * const pod = { namespace: 'shop', labels: {}, annotations: {}, namespaceLabels: { team: 'a' } };
 * assert.deepEqual(planInjection(injectionPlan([read.profile]), pod).names, ['team-a']);
 * ```
 */
export function planInjection(plan: InjectionPlan, pod: PodIdentity): PlannedInjection {
  const namespaceLabels: Labels = pod.namespaceLabels ?? {};
  const profiles = plan.profiles
    .filter(
      (profile) =>
        selects(profile.selector, pod.labels) && selects(profile.namespaceSelector, namespaceLabels),
    )
    .map(({ name, secrets }) => ({ source: `profile/${name}`, names: secrets.map((secret) => secret.name) }));
  const by = [...profiles, ...sidecarSetInjection(plan, pod)];
  return { names: [...new Set(by.flatMap((one) => one.names))], by };
}

function sidecarSetInjection(plan: InjectionPlan, pod: PodIdentity): readonly InjectionSource[] {
  const matched = plan.sidecarSets.filter((set) => sidecarSetSelects(set, pod) === true);
  const replaced = new Set(matched.map((set) => set.canaryOf));
  const effective = matched.filter((set) => !replaced.has(set.name));
  if (!plan.withoutContainers && !effective.some((set) => set.containers > 0)) return [];
  return effective.map((set) => ({ source: `sidecarset/${set.name}`, names: set.imagePullSecrets }));
}
