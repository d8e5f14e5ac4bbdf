/**
 * Merging `imagePullSecrets` into a pod: the pod's own first, then the injected ones, the first occurrence of a name wins.
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

/** What a merge gives. */
export interface MergedPullSecrets {
  /** All names, each once, in first-seen order. */
  readonly merged: readonly string[];
  /** Names that the pod did not have. */
  readonly added: readonly string[];
  /** Whether the pod named a secret more than once; the repetitions are gone from `merged`. */
  readonly deduplicated: boolean;
}

/**
 * Merges names. Total: an entry without a name counts as the empty name, which a kubelet skips.
 */
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

/** A JSON-patch operation. `add` on a member of an object replaces it if it is there. */
export interface AddOperation {
  readonly op: 'add';
  readonly path: string;
  readonly value: unknown;
}

/**
 * The patch that turns the pod's list into the merged one: nothing when it is that already, else one operation that sets
 * the whole list.
 */
export function patchImagePullSecrets(
  pod: readonly LocalObjectReference[],
  { merged, added, deduplicated }: MergedPullSecrets,
): readonly AddOperation[] {
  if (added.length === 0 && !deduplicated) return [];
  const kept = new Map(pod.toReversed().map((reference) => [reference.name ?? '', reference]));
  const value = merged.map((name) => kept.get(name) ?? { name });
  return [{ op: 'add', path: '/spec/imagePullSecrets', value }];
}

/** On a pod: the names that were added to it, and by whom. */
export const INJECTED_ANNOTATION = 'pullwright.dev/injected-pull-secrets';
/** Characters of the text in {@link INJECTED_ANNOTATION}; a longer one is cut, lest it take the room of the pod's own annotations. */
export const MAX_INJECTED_TEXT = 16_384;

/** Who adds names. */
export interface InjectionSource {
  /** `profile/<name>` or `sidecarset/<name>` */
  readonly source: string;
  readonly names: readonly string[];
}

/**
 * The text of {@link INJECTED_ANNOTATION}: each source with those of its names that were added.
 *
 * @param before the text that is there: when a pod is looked at a second time, names of the first time are its own
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

/** Where {@link INJECTED_ANNOTATION} stands, for a JSON patch. */
export const INJECTED_PATH = '/metadata/annotations/pullwright.dev~1injected-pull-secrets';

// The injection plan: everything in a cluster that adds pull secrets to pods, in the order in which it does. One plan is
// compiled to the admission policy, evaluated by the webhook, previewed offline and audited.

/** Pods, and whole namespaces, that carry this label with the value `false` are left alone. */
export const INJECT_LABEL = 'pullwright.dev/inject';
/** A namespace with this label and the value `false` gets no copies. */
export const DISTRIBUTE_LABEL = 'pullwright.dev/distribute';
/** The kubelet's mark on the API object of a static pod; the API server refuses such a pod when it names a secret. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Service, Deployment and MutatingWebhookConfiguration of the webhook. */
export const WEBHOOK_NAME = 'pullwright-webhook';

/** What injects, sorted. */
export interface InjectionPlan {
  readonly profiles: readonly PullSecretProfile[];
  /** With pinned content; without sets whose pod selector is invalid. */
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

/** Label of OpenKruise's own namespace, which its webhook leaves alone: it could not start without itself. */
export const KRUISE_PLANE = { key: 'control-plane', value: 'openkruise' } as const;

// Which pods the API server gives to the policy and to the webhook: what {@link exemption} says, as far as it can be rendered.

/** The resource rule. */
export const NEW_PODS = {
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: ['CREATE'],
  resources: ['pods'],
  scope: 'Namespaced',
} as const;

/** The match condition. */
export const NOT_MIRROR: { readonly name: string; readonly expression: string } = {
  name: 'not-mirror',
  expression: `!('${MIRROR_ANNOTATION}' in object.metadata.?annotations.orValue({}))`,
};

interface MatchExpressions {
  readonly matchExpressions: readonly LabelRequirement[];
}

/**
 * The selectors.
 *
 * @param excluded pods of these namespaces are left alone
 * @param only pods of other namespaces are left alone; empty: all are meant
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

/** Whether the pod is excluded from every plan. */
export function exemption(pod: PlannedPod, excludedNamespaces: readonly string[]): Exemption | undefined {
  if (MIRROR_ANNOTATION in pod.annotations) return 'mirror';
  const isKruise = pod.namespaceLabels?.[KRUISE_PLANE.key] === KRUISE_PLANE.value;
  if (isKruise || excludedNamespaces.includes(pod.namespace)) return 'excluded-namespace';
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
