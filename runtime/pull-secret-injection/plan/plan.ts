/**
 * Merges `imagePullSecrets` into a pod: the pod's own first, then the injected ones; the first occurrence of a name wins.
 *
 * Source of the rule: the SidecarSet proposal (`mergeSidecarSecrets`) and its implementation in Kruise.
 */
import {
  type LabelRequirement,
  type Labels,
  NAMESPACE_NAME_LABEL,
  selects,
} from '../../core/kubernetes/label-selector.ts';
import { textOf } from '../../core/record.ts';
import { compareProfiles, type PullSecretProfile } from '../kinds/profile.ts';
import {
  compareSidecarSets,
  type PodIdentity,
  type SidecarSet,
  sidecarSetSelects,
} from '../kinds/sidecar-set.ts';

/** A core/v1 LocalObjectReference. The API server stores an empty name as an absent one. */
export interface LocalObjectReference {
  readonly name?: string;
}

/** The result of a merge. */
export interface MergedPullSecrets {
  /** All names, each once, in first-seen order. */
  readonly merged: readonly string[];
  /** Names that the pod did not have. */
  readonly added: readonly string[];
  /** True if the pod listed a Secret more than once; `merged` has no duplicates. */
  readonly deduplicated: boolean;
}

/** Merges names. Never throws: an entry without a name counts as the empty name, which the kubelet skips. */
export function mergeImagePullSecrets(
  pod: readonly LocalObjectReference[],
  injected: readonly string[],
): MergedPullSecrets {
  const own = pod.map((reference) => reference.name ?? '');
  const first = new Set(own);
  const all = new Set([...own, ...injected]);
  return {
    merged: [...all],
    added: [...all].filter((name) => !first.has(name)),
    deduplicated: first.size !== own.length,
  };
}

/** A JSON-patch operation. `add` replaces an existing member of an object. */
export interface AddOperation {
  readonly op: 'add';
  readonly path: string;
  readonly value: unknown;
}

/** The patch from the pod's list to the merged one: empty if nothing changes, else one operation that sets the whole list. */
export function patchImagePullSecrets(
  pod: readonly LocalObjectReference[],
  { merged, added, deduplicated }: MergedPullSecrets,
): readonly AddOperation[] {
  if (added.length === 0 && !deduplicated) return [];
  const kept = new Map(pod.toReversed().map((reference) => [reference.name ?? '', reference]));
  const value = merged.map((name) => kept.get(name) ?? { name });
  return [{ op: 'add', path: '/spec/imagePullSecrets', value }];
}

/** On a pod: the added names, and the profiles or SidecarSets that added them. */
export const INJECTED_ANNOTATION = 'pullwright.dev/injected-pull-secrets';
/** Limit of characters in {@link INJECTED_ANNOTATION}; the rest is cut, because annotations share a size limit. */
export const MAX_INJECTED_TEXT = 16_384;

/** A profile or SidecarSet, and the names that it adds. */
export interface InjectionSource {
  /** `profile/<name>` or `sidecarset/<name>` */
  readonly source: string;
  readonly names: readonly string[];
}

/**
 * The text of {@link INJECTED_ANNOTATION}: each source with those of its names that were added.
 *
 * @param before the present text: on reinvocation the names of the first call are already in the pod's list
 */
export function injectedText(
  by: readonly InjectionSource[],
  added: readonly string[],
  before: unknown = '',
): string {
  const isAdded = new Set(added);
  const wasAdded = new Set(
    textOf(before)
      .split('; ')
      .flatMap((part) => {
        const [source = '', names = ''] = part.split(': ');
        return names.split(', ').map((name) => `${source}: ${name}`);
      }),
  );
  const text = by
    .flatMap(({ source, names }) => {
      const given = names.filter((name) => isAdded.has(name) || wasAdded.has(`${source}: ${name}`));
      return given.length === 0 ? [] : [`${source}: ${given.join(', ')}`];
    })
    .join('; ');
  return text.length > MAX_INJECTED_TEXT ? `${text.slice(0, MAX_INJECTED_TEXT)}...` : text;
}

/** Sets {@link INJECTED_ANNOTATION} on a pod with these annotations. */
export function patchInjectedText(
  annotations: Readonly<Record<string, unknown>> | undefined,
  text: string,
): AddOperation {
  if (annotations === undefined)
    return { op: 'add', path: '/metadata/annotations', value: { [INJECTED_ANNOTATION]: text } };
  return { op: 'add', path: INJECTED_PATH, value: text };
}

/** JSON-patch path of {@link INJECTED_ANNOTATION}. */
export const INJECTED_PATH = '/metadata/annotations/pullwright.dev~1injected-pull-secrets';

// The injection plan: everything in a cluster that adds pull secrets to pods, in order of application. One plan is compiled to
// the admission policy, evaluated by the webhook, previewed offline and audited.

/** Pods and whole namespaces with this label and the value `false` are skipped. */
export const INJECT_LABEL = 'pullwright.dev/inject';
/** A namespace with this label and the value `false` gets no copies. */
export const DISTRIBUTE_LABEL = 'pullwright.dev/distribute';
/** The kubelet sets this on the API object of a static pod; the API server rejects such a pod if it references a Secret. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Service, Deployment and MutatingWebhookConfiguration of the webhook. */
export const WEBHOOK_NAME = 'pullwright-webhook';

/** The active profiles and SidecarSets, sorted. */
export interface InjectionPlan {
  readonly profiles: readonly PullSecretProfile[];
  /** With pinned content; without sets whose pod selector is invalid. */
  readonly sidecarSets: readonly SidecarSet[];
  /** SidecarSets inject even if no matching set has a container. @default {false} */
  readonly withoutContainers: boolean;
}

/** Sorts profiles and sets, and drops those that are suspended, paused or do not inject. */
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

/** Why a pod is skipped. */
export type Exemption = 'mirror' | 'opted-out' | 'excluded-namespace';

/** The fields of a pod that the plan uses. */
export interface PlannedPod extends PodIdentity {
  readonly namespace: string;
  readonly annotations: Readonly<Record<string, unknown>>;
}

/** Label of OpenKruise's own namespace, which its webhook skips: otherwise Kruise could not start. */
export const KRUISE_PLANE = { key: 'control-plane', value: 'openkruise' } as const;

// The pods that the API server sends to the policy and the webhook: {@link exemption}, as far as selectors can express it.

/** The resource rule for both. */
export const NEW_PODS = {
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: ['CREATE'],
  resources: ['pods'],
  scope: 'Namespaced',
} as const;

/** The match condition for both. */
export const NOT_MIRROR: { readonly name: string; readonly expression: string } = {
  name: 'not-mirror',
  expression: `!('${MIRROR_ANNOTATION}' in object.metadata.?annotations.orValue({}))`,
};

interface MatchExpressions {
  readonly matchExpressions: readonly LabelRequirement[];
}

/**
 * The namespace and object selectors for both.
 *
 * @param excluded namespaces whose pods are skipped
 * @param only pods of all other namespaces are skipped; empty: no restriction
 */
export function podSelectors(
  excluded: readonly string[],
  only: readonly string[] = [],
  more: readonly LabelRequirement[] = [],
): { readonly namespaceSelector: MatchExpressions; readonly objectSelector: MatchExpressions } {
  const notFalse: LabelRequirement = { key: INJECT_LABEL, operator: 'NotIn', values: ['false'] };
  const byName = (operator: 'In' | 'NotIn', names: readonly string[]): readonly LabelRequirement[] =>
    names.length === 0 ? [] : [{ key: NAMESPACE_NAME_LABEL, operator, values: names.toSorted() }];
  return {
    namespaceSelector: {
      matchExpressions: [notFalse, ...more, ...byName('In', only), ...byName('NotIn', excluded)],
    },
    objectSelector: { matchExpressions: [notFalse] },
  };
}

/** Returns why every plan skips the pod; undefined if none does. */
export function exemption(pod: PlannedPod, excludedNamespaces: readonly string[]): Exemption | undefined {
  if (MIRROR_ANNOTATION in pod.annotations) return 'mirror';
  const isKruise = pod.namespaceLabels?.[KRUISE_PLANE.key] === KRUISE_PLANE.value;
  if (isKruise || excludedNamespaces.includes(pod.namespace)) return 'excluded-namespace';
  const optedOut = pod.labels[INJECT_LABEL] === 'false' || pod.namespaceLabels?.[INJECT_LABEL] === 'false';
  return optedOut ? 'opted-out' : undefined;
}

/** The names to add, and their sources. */
export interface PlannedInjection {
  /** Unique, in order. */
  readonly names: readonly string[];
  readonly by: readonly InjectionSource[];
}

/** Returns the names that the plan adds to a pod. */
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
