/**
 * Compiles an injection plan to one MutatingAdmissionPolicy (Kubernetes >= 1.36; 1.34 and 1.35 with the feature gate).
 *
 * One policy covers the whole plan, because the API server does not order policies or parameters. The patch sets the whole list
 * from CEL maps: typed initialisers crash the request handler of 1.36.3, and an apply configuration may not modify the list.
 */
import type { LabelRequirement } from '../../core/kubernetes/label-selector.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { SidecarSet } from '../kinds/sidecar-set.ts';
import {
  INJECTED_ANNOTATION,
  INJECTED_PATH,
  type InjectionPlan,
  KRUISE_PLANE,
  MAX_INJECTED_TEXT,
  NEW_PODS,
  NOT_MIRROR,
  podSelectors,
} from './plan.ts';

export const INJECTION_POLICY_NAME = 'pullwright-pull-secret-injection';

/**
 * An account with this annotation and the value `true` rejects pods that reference a Secret which it does not list.
 *
 * Source of the rule: the ServiceAccount admission plugin of kube-apiserver 1.36. It runs before mutating policies and webhooks,
 * copies the account's list only into a pod that has none, and validates after all mutation.
 */
export const ENFORCE_MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets';

/** An account with {@link ENFORCE_MOUNTABLE_SECRETS}, and the names that it lists. */
export interface EnforcingAccount {
  readonly namespace: string;
  readonly name: string;
  readonly listed: readonly string[];
}

export interface PolicyOptions {
  /** `admissionregistration.k8s.io/v1` or `/v1beta1`. */
  readonly apiVersion: string;
  /** Pods of these namespaces are skipped. */
  readonly excludedNamespaces: readonly string[];
  /** Pods of all other namespaces are skipped. @default all */
  readonly onlyNamespaces?: readonly string[];
  /** Accounts whose pods are rejected for a name that the account does not list. @default {[]} */
  readonly enforcing?: readonly EnforcingAccount[];
}

/** The policy and its binding, and the number of CEL characters. */
export type CompiledPolicy =
  | { readonly ok: true; readonly policy: KubeObject; readonly binding: KubeObject; readonly size: number }
  | { readonly ok: false; readonly problem: string };

/** The CEL parser of the API server rejects an expression above 100000 code points. */
const MAX_EXPRESSION = 60_000;
/** etcd rejects objects of 1.5 MiB, and the policy is stored with its managed fields. */
const MAX_POLICY = 512_000;
/** Every pod creation pays for the evaluation: 500 profiles took 20 ms on a busy machine. */
export const MAX_PLAN_ENTRIES = 1000;

/** Compiles the plan. Above a limit of the API server it returns a problem with a remedy, and the present policy stays. */
export function compileInjectionPolicy(plan: InjectionPlan, options: PolicyOptions): CompiledPolicy {
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
  return { ok: true, size, policy: policyOf(wants, options), binding };
}

function tooLarge(what: string): CompiledPolicy {
  return {
    ok: false,
    problem: `Cannot compile the injection policy: ${what}. Merge profiles that select alike, or use the webhook`,
  };
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

const NOT_KRUISE: LabelRequirement = {
  key: KRUISE_PLANE.key,
  operator: 'NotIn',
  values: [KRUISE_PLANE.value],
};

/** Adds nothing if the account would reject the pod for a name that it does not list, as in the webhook. */
const REFUSED =
  'variables.account in variables.enforcing && (variables.have + variables.add).exists(n, !(n in variables.enforcing[variables.account]))';

/** The CEL form of `injectedText`, for a pod without earlier injections. */
const TEXT = `variables.by.filter(b, b["names"].exists(n, !(n in variables.have)))
  .map(b, b["by"][0] + ": " + b["names"].filter(n, !(n in variables.have)).join(", ")).join("; ")`;

/** Removes duplicates from the pod's own list only if some source selects the pod, as SidecarSets do. */
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

/** SidecarSets depend on each other: a canary hides its base, and nothing is injected if no set has a container. */
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

/** CEL condition on the labels of the pods that a set with a selector selects. */
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

/** The source and its names if the condition holds. Both are lists, because the values of a CEL map have one type. */
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

/** Joins list terms into expressions below the parser's limit. */
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
