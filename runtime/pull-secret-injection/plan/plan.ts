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
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { textOf } from '../../core/record.ts';
import { compareProfiles, type PullSecretProfile } from '../kinds/profile.ts';
import {
  compareSidecarSets,
  type PodIdentity,
  type SidecarSet,
  sidecarSetSelects,
} from '../kinds/sidecar-set.ts';

/** A core/v1 LocalObjectReference. The API server drops an empty name. */
export interface LocalObjectReference {
  readonly name?: string;
}

/** Merges names. Never throws: an entry without a name counts as the empty name, which the kubelet skips. */
export function mergeImagePullSecrets(pod: readonly LocalObjectReference[], injected: readonly string[]) {
  const own = pod.map((reference) => reference.name ?? '');
  const first = new Set(own);
  const all = new Set([...own, ...injected]);
  return {
    /** All names, each once, in first-seen order. */
    merged: [...all],
    /** Names that the pod did not have. */
    added: [...all].filter((name) => !first.has(name)),
    /** Whether the pod listed a Secret more than once; `merged` has no duplicates. */
    deduplicated: first.size !== own.length,
  };
}

/** A JSON-patch operation. `add` replaces an existing member of an object. */
export interface AddOperation {
  readonly op: 'add';
  readonly path: string;
  readonly value: unknown;
}

/** Returns the patch from the pod's list to the merged one: empty, or one operation that sets the whole list. */
export function patchImagePullSecrets(
  pod: readonly LocalObjectReference[],
  { merged, added, deduplicated }: Readonly<ReturnType<typeof mergeImagePullSecrets>>,
): readonly AddOperation[] {
  if (added.length === 0 && !deduplicated) return [];
  const kept = new Map(pod.toReversed().map((reference) => [reference.name ?? '', reference]));
  const value = merged.map((name) => kept.get(name) ?? { name });
  return [{ op: 'add', path: '/spec/imagePullSecrets', value }];
}

/** On a pod: the added names, and the profiles or SidecarSets that added them. */
export const INJECTED_ANNOTATION = 'pullwright.dev/injected-pull-secrets';
/** Longer texts of {@link INJECTED_ANNOTATION} are truncated: all annotations of an object share one size limit. */
export const MAX_INJECTED_TEXT = 16_384;

/** A profile or SidecarSet, and the names that it adds. */
interface InjectionSource {
  /** `profile/<name>` or `sidecarset/<name>` */
  readonly source: string;
  readonly names: readonly string[];
}

/**
 * Renders {@link INJECTED_ANNOTATION}: each source with the names that it added.
 *
 * @param before current value: on reinvocation, the names of the first call are already in the pod's list
 */
export function injectedText(by: readonly InjectionSource[], added: readonly string[], before: unknown = '') {
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

/** Returns the patch that sets {@link INJECTED_ANNOTATION}. @param annotations current annotations of the pod */
export function patchInjectedText(
  annotations: Readonly<Record<string, unknown>> | undefined,
  text: string,
): AddOperation {
  if (annotations === undefined)
    return { op: 'add', path: '/metadata/annotations', value: { [INJECTED_ANNOTATION]: text } };
  return { op: 'add', path: INJECTED_PATH, value: text };
}

/** JSON-patch path of {@link INJECTED_ANNOTATION}. */
const INJECTED_PATH = '/metadata/annotations/pullwright.dev~1injected-pull-secrets';

// The injection plan: all profiles and SidecarSets that inject, in order of application. The admission policy, the webhook, the
// offline preview and the audit use the same plan.

/** Pods and whole namespaces with this label and the value `false` are skipped. */
export const INJECT_LABEL = 'pullwright.dev/inject';
/** A namespace with this label and the value `false` gets no copies. */
export const DISTRIBUTE_LABEL = 'pullwright.dev/distribute';
/** The kubelet sets this on mirror pods; the API server rejects a mirror pod that references a Secret. */
const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Name of the webhook's Service, Deployment and MutatingWebhookConfiguration. */
export const WEBHOOK_NAME = 'pullwright-webhook';

/** The active profiles and SidecarSets, sorted. */
export type InjectionPlan = Readonly<ReturnType<typeof injectionPlan>>;

/** Sorts profiles and sets, and drops those that are suspended, paused or do not inject. */
export function injectionPlan(
  profiles: readonly PullSecretProfile[],
  sidecarSets: readonly SidecarSet[] = [],
  options: { readonly withoutContainers?: boolean } = {},
) {
  return {
    profiles: profiles.filter((profile) => profile.injects && !profile.suspended).sort(compareProfiles),
    /** With pinned content; without sets whose pod selector is invalid. */
    sidecarSets: sidecarSets.filter((set) => !set.paused && set.selector.ok).sort(compareSidecarSets),
    /** SidecarSets inject even if no matching set has a container. */
    withoutContainers: options.withoutContainers ?? false,
  };
}

/** The fields of a pod that the plan uses. */
export interface PlannedPod extends PodIdentity {
  readonly namespace: string;
  readonly annotations: Readonly<Record<string, unknown>>;
}

/** Not Kruise's own namespace. Kruise's webhook skips it as well, because otherwise Kruise could not start. */
const NOT_KRUISE: LabelRequirement = { key: 'control-plane', operator: 'NotIn', values: ['openkruise'] };
const NOT_OFF: LabelRequirement = { key: INJECT_LABEL, operator: 'NotIn', values: ['false'] };

// Match rules of the policy and the webhook: {@link isExempt}, as far as selectors and conditions can express it.

export const NEW_PODS = {
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: ['CREATE'],
  resources: ['pods'],
  scope: 'Namespaced',
} as const;

export const NOT_MIRROR: { readonly name: string; readonly expression: string } = {
  name: 'not-mirror',
  expression: `!('${MIRROR_ANNOTATION}' in object.metadata.?annotations.orValue({}))`,
};

/**
 * Returns the namespace and object selectors.
 *
 * @param excluded namespaces whose pods are skipped
 * @param only the only namespaces whose pods match; empty: all
 */
export function podSelectors(
  excluded: readonly string[],
  only: readonly string[] = [],
  more: readonly LabelRequirement[] = [],
) {
  const byName = (operator: 'In' | 'NotIn', names: readonly string[]): readonly LabelRequirement[] =>
    names.length === 0 ? [] : [{ key: NAMESPACE_NAME_LABEL, operator, values: names.toSorted() }];
  return {
    namespaceSelector: {
      matchExpressions: [NOT_OFF, ...more, ...byName('In', only), ...byName('NotIn', excluded)],
    },
    objectSelector: { matchExpressions: [NOT_OFF] },
  };
}

/** Reports whether injection skips the pod under any plan. */
export function isExempt(pod: PlannedPod, excludedNamespaces: readonly string[]): boolean {
  return (
    MIRROR_ANNOTATION in pod.annotations ||
    excludedNamespaces.includes(pod.namespace) ||
    !selects([NOT_OFF, NOT_KRUISE], pod.namespaceLabels ?? {}) ||
    !selects([NOT_OFF], pod.labels)
  );
}

/** Returns the names that the plan adds to a pod, unique and in order, and the profiles and SidecarSets that add them. */
export function planInjection(plan: InjectionPlan, pod: PodIdentity) {
  const namespaceLabels: Labels = pod.namespaceLabels ?? {};
  const profiles = plan.profiles
    .filter(
      (profile) =>
        selects(profile.selector, pod.labels) && selects(profile.namespaceSelector, namespaceLabels),
    )
    .map(({ name, secrets }) => ({ source: `profile/${name}`, names: secrets.map((secret) => secret.name) }));
  const by: readonly InjectionSource[] = [...profiles, ...sidecarSetInjection(plan, pod)];
  return { names: [...new Set(by.flatMap((one) => one.names))], by };
}

function sidecarSetInjection(plan: InjectionPlan, pod: PodIdentity): readonly InjectionSource[] {
  const matched = plan.sidecarSets.filter((set) => sidecarSetSelects(set, pod));
  const replaced = new Set(matched.map((set) => set.canaryOf));
  const effective = matched.filter((set) => !replaced.has(set.name));
  if (!plan.withoutContainers && !effective.some((set) => set.containers > 0)) return [];
  return effective.map((set) => ({ source: `sidecarset/${set.name}`, names: set.imagePullSecrets }));
}

// Compiles an injection plan to one MutatingAdmissionPolicy (Kubernetes >= 1.36; 1.34 and 1.35 with the feature gate).
//
// One policy covers the whole plan, because the API server does not order policies or parameters. The patch sets the whole list
// from CEL maps: typed initialisers crash the request handler of 1.36.3, and an apply configuration may not modify the list.

export const INJECTION_POLICY_NAME = 'pullwright-pull-secret-injection';

/**
 * On a ServiceAccount, the value `true` makes admission reject pods that reference a Secret not listed by the account.
 *
 * Source of the rule: the ServiceAccount admission plugin of kube-apiserver 1.36. The plugin runs before mutating policies
 * and webhooks, copies the account's list only into a pod without one, and validates after all mutation.
 */
export const ENFORCE_MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets';

/** A ServiceAccount with {@link ENFORCE_MOUNTABLE_SECRETS}, and its imagePullSecrets. */
export interface EnforcingAccount {
  readonly namespace: string;
  readonly name: string;
  readonly listed: readonly string[];
}

interface PolicyOptions {
  /** `admissionregistration.k8s.io/v1` or `/v1beta1`. */
  readonly apiVersion: string;
  readonly excludedNamespaces: readonly string[];
  /** The only namespaces whose pods match. @default all */
  readonly onlyNamespaces?: readonly string[];
  /** ServiceAccounts that enforce mountable secrets. @default {[]} */
  readonly enforcing?: readonly EnforcingAccount[];
}

/** The CEL parser of the API server rejects an expression above 100000 code points. */
export const MAX_EXPRESSION = 60_000;
/** etcd rejects objects of 1.5 MiB, and the policy is stored with its managed fields. */
const MAX_POLICY = 512_000;
/** The policy is evaluated at every pod creation: 500 profiles took 20 ms on a busy machine. */
const MAX_PLAN_ENTRIES = 1000;

/**
 * Compiles the plan: the policy and its binding, and the number of CEL characters. Returns a problem with a remedy if the policy
 * would exceed a limit of the API server.
 */
export function compileInjectionPolicy(plan: InjectionPlan, options: PolicyOptions) {
  const entries = plan.profiles.length + plan.sidecarSets.length;
  if (entries > MAX_PLAN_ENTRIES) {
    return tooLarge(
      `${entries} profiles and SidecarSets inject, at most ${MAX_PLAN_ENTRIES} fit into one policy`,
    );
  }
  const wants = [
    ...chunks(plan.profiles.map(profileTerm)).map((text, at) => ({ name: `profiles${at}`, text })),
    ...sidecarSetVariables(plan),
    ...enforcingVariables(options.enforcing ?? []),
  ];
  const size = wants.reduce((sum, { text }) => sum + text.length, 0);
  const longest = Math.max(0, ...wants.map(({ text }) => text.length));
  if (size > MAX_POLICY || longest > MAX_EXPRESSION * 1.5) {
    return tooLarge(
      `the selectors need ${size} characters of CEL, at most ${MAX_POLICY} fit into one policy`,
    );
  }
  const binding = {
    apiVersion: options.apiVersion,
    kind: 'MutatingAdmissionPolicyBinding',
    metadata: { name: INJECTION_POLICY_NAME },
    spec: { policyName: INJECTION_POLICY_NAME },
  };
  return { ok: true, size, policy: policyOf(wants, options), binding } as const;
}

function tooLarge(what: string) {
  return {
    ok: false,
    problem: `Cannot compile the injection policy: ${what}. Merge profiles with the same selectors, or use the webhook`,
  } as const;
}

interface Variable {
  readonly name: string;
  readonly text: string;
}

function policyOf(wants: readonly Variable[], options: PolicyOptions): KubeObject {
  const lists = wants
    .filter(({ name }) => name.startsWith('profiles') || name === 'sidecarsets')
    .map(({ name }) => `variables.${name}`);
  const variables: readonly Variable[] = [
    { name: 'own', text: "object.spec.?imagePullSecrets.orValue([]).map(s, s.?name.orValue(''))" },
    { name: 'have', text: 'variables.own.distinct()' },
    { name: 'l', text: 'object.metadata.?labels.orValue({})' },
    { name: 'nl', text: 'namespaceObject.metadata.?labels.orValue({})' },
    ...wants,
    { name: 'by', text: `[${lists.join(', ')}].flatten()` },
    { name: 'want', text: 'variables.by.map(b, b["names"]).flatten().distinct()' },
    { name: 'add', text: 'variables.want.filter(n, !(n in variables.have))' },
    { name: 'refused', text: wants.some(({ name }) => name === 'enforcing') ? REFUSED : 'false' },
    { name: 'text', text: TEXT },
  ];
  return {
    apiVersion: options.apiVersion,
    kind: 'MutatingAdmissionPolicy',
    metadata: { name: INJECTION_POLICY_NAME },
    spec: {
      failurePolicy: 'Ignore',
      reinvocationPolicy: 'Never',
      matchConstraints: {
        matchPolicy: 'Equivalent',
        ...podSelectors(options.excludedNamespaces, options.onlyNamespaces, [NOT_KRUISE]),
        resourceRules: [NEW_PODS],
      },
      matchConditions: [NOT_MIRROR],
      variables: variables.map(({ name, text }) => ({ name, expression: text })),
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: PATCH } }],
    },
  };
}

/** CEL: whether admission would reject the pod for a name that its ServiceAccount does not list. Nothing is added then. */
const REFUSED =
  'variables.account in variables.enforcing && (variables.have + variables.add).exists(n, !(n in variables.enforcing[variables.account]))';

/** The CEL form of `injectedText`, for a pod without earlier injections. */
const TEXT = `variables.by.filter(b, b["names"].exists(n, !(n in variables.have)))
  .map(b, b["by"][0] + ": " + b["names"].filter(n, !(n in variables.have)).join(", ")).join("; ")`;

/** CEL: the patch. Deduplicates the pod's own list only if a profile or SidecarSet selects the pod, as Kruise does. */
const PATCH = `variables.refused || (size(variables.add) == 0 && (size(variables.want) == 0 || size(variables.have) == size(variables.own)))
  ? []
  : [JSONPatch{op: "add", path: "/spec/imagePullSecrets", value: (variables.have + variables.add).map(n, {"name": n})}]
    + (size(variables.add) == 0
      ? []
      : has(object.metadata.annotations)
        ? [JSONPatch{op: "add", path: "${INJECTED_PATH}", value: ${cutText('variables.text')}}]
        : [JSONPatch{op: "add", path: "/metadata/annotations", value: {"${INJECTED_ANNOTATION}": ${cutText('variables.text')}}}])`;

function cutText(variable: string): string {
  return `(size(${variable}) > ${MAX_INJECTED_TEXT} ? ${variable}.substring(0, ${MAX_INJECTED_TEXT}) + "..." : ${variable})`;
}

/** A policy cannot read ServiceAccounts, so the enforcing ones are inlined. */
function enforcingVariables(accounts: readonly EnforcingAccount[]): readonly Variable[] {
  if (accounts.length === 0) return [];
  const entries = accounts.map(
    ({ namespace, name, listed }) => `${text(`${namespace}/${name}`)}: ${listTerm(listed)}`,
  );
  return [
    { name: 'enforcing', text: `{${entries.join(', ')}}` },
    {
      name: 'account',
      text: "namespaceObject.metadata.name + '/' + object.spec.?serviceAccountName.orValue('default')",
    },
  ];
}

function profileTerm(profile: InjectionPlan['profiles'][number]): string {
  const condition = allOf([
    ...profile.selector.map((one) => requirementTerm(one, 'variables.l')),
    ...profile.namespaceSelector.map((one) => requirementTerm(one, 'variables.nl')),
  ]);
  return when(
    condition,
    `profile/${profile.name}`,
    profile.secrets.map((secret) => secret.name),
  );
}

/** SidecarSets depend on each other: a canary replaces its base, and nothing is injected if no set has a container. */
function sidecarSetVariables({ sidecarSets: sets, withoutContainers }: InjectionPlan): readonly Variable[] {
  if (sets.length === 0) return [];
  const effective = sets.map(({ name }, at) =>
    allOf([
      `variables.sets[${at}]`,
      ...sets.flatMap(({ canaryOf }, index) => (canaryOf === name ? [`!variables.sets[${index}]`] : [])),
    ]),
  );
  const lists = sets.map(({ name, imagePullSecrets }, at) =>
    when(effective[at] ?? 'false', `sidecarset/${name}`, imagePullSecrets),
  );
  const bringing = effective.filter((_, at) => (sets[at]?.containers ?? 0) > 0);
  const all = `[${lists.join(', ')}].flatten()`;
  const isBringing = bringing.length === 0 ? 'false' : `[${bringing.join(', ')}].exists(m, m)`;
  return [
    { name: 'sets', text: `[${sets.map(setCondition).join(', ')}]` },
    { name: 'sidecarsets', text: withoutContainers ? all : `(${isBringing} ? ${all} : [])` },
  ];
}

function setCondition(set: SidecarSet): string {
  const { selector, namespaceSelector: namespaces } = set;
  if (!selector.ok || selector.requirements.length === 0 || namespaces?.ok === false) return 'false';
  return allOf([
    podsTerm(set, 'variables.l'),
    ...(namespaces?.requirements ?? []).map((one) => requirementTerm(one, 'variables.nl')),
  ]);
}

/** CEL condition on pod labels for a set with a valid selector. */
export function podsTerm({ selector, only }: SidecarSet, map: string): string {
  const own = allOf((selector.ok ? selector.requirements : []).map((one) => requirementTerm(one, map)));
  if (only === undefined) return own;
  const meets = allOf(only.requirements.map((one) => requirementTerm(one, map)));
  return `${own} && ${only.meeting ? '' : '!'}(${meets})`;
}

/** CEL condition for one requirement on a map of labels. */
export function requirementTerm({ key, operator, values = [] }: LabelRequirement, map: string): string {
  const present = `${text(key)} in ${map}`;
  if (operator === 'Exists') return `(${present})`;
  if (operator === 'DoesNotExist') return `!(${present})`;
  const member = `${map}[${text(key)}] in ${listTerm(values)}`;
  return `${operator === 'NotIn' ? '!' : ''}(${present} && ${member})`;
}

/** Joins the terms with `&&`. */
export function allOf(terms: readonly string[]): string {
  return terms.length === 0 ? 'true' : terms.join(' && ');
}

/** CEL list of the source and its names if the condition is true. Both are lists: values of a CEL map have one type. */
function when(condition: string, source: string, names: readonly string[]): string {
  return `(${condition} ? [{"by": [${text(source)}], "names": ${listTerm(names)}}] : [])`;
}

function listTerm(names: readonly string[]): string {
  return `[${names.map(text).join(', ')}]`;
}

/** A CEL string literal. JSON's escapes are a subset of CEL's. */
function text(value: string): string {
  return JSON.stringify(value);
}

/** Concatenates list terms to expressions below the parser's limit. */
function chunks(terms: readonly string[]): readonly string[] {
  const groups: string[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const term of terms) {
    if (length + term.length > MAX_EXPRESSION) {
      groups.push([]);
      length = 0;
    }
    groups.at(-1)?.push(term);
    length += term.length + 2;
  }
  return groups.map((group) => `[${group.join(', ')}].flatten()`);
}
