/**
 * The webhook's part of the plan: which pods are sent to it. Each set of namespaces that profiles select has an entry of its own in the
 * webhook's configuration, whose condition lets through only pods that would get something there. What is rendered stays as the entry
 * that others are made from; it sends nothing any more.
 */
import type { LabelRequirement } from '../../core/kubernetes/label-selector.ts';
import type { InjectionPlan } from './plan.ts';
import { allOf, podsTerm, requirementTerm } from './policy.ts';

/** The entry that is rendered. */
export const BASE_HOOK = 'inject.pullwright.dev';
/** The condition that is added to {@link BASE_HOOK}, and to each entry of ours. */
const CONDITION = 'profiles';
/** More sets of namespaces than these share one entry for all namespaces: each entry is looked at for every pod of the cluster. */
const MAX_ENTRIES = 50;
/** As for the admission policy: the parser refuses 100000 code points. */
const MAX_EXPRESSION = 60_000;

/** An element of `webhooks`, as far as it is looked at. */
export interface Hook {
  readonly name: string;
  readonly clientConfig?: { readonly caBundle?: string };
  readonly namespaceSelector?: { readonly matchExpressions?: readonly unknown[] };
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
}

/** What adds names to a pod: requirements of its labels as one condition over `l`, and the names. */
interface Adder {
  readonly namespaces: readonly LabelRequirement[];
  readonly condition: string;
  readonly names: readonly string[];
}

/**
 * The list `webhooks` as it should be; undefined when the rendered entry is missing. Foreign entries stay.
 */
export function mirroredHooks(plan: InjectionPlan, hooks: readonly Hook[]): readonly Hook[] | undefined {
  const base = baseHook(hooks);
  if (base === undefined) return undefined;
  const others = hooks.filter(({ name }) => name !== BASE_HOOK && !name.endsWith(`.${BASE_HOOK}`));
  return [
    withCondition(base, 'false'),
    ...groupsOf(plan).map((group, at) => entryOf(base, group, `profiles-${at}.${BASE_HOOK}`)),
    ...others,
  ];
}

/** The entry that is rendered, as it was rendered. */
export function baseHook(hooks: readonly Hook[]): Hook | undefined {
  const found = hooks.find(({ name }) => name === BASE_HOOK);
  if (found?.matchConditions === undefined) return found;
  return { ...found, matchConditions: found.matchConditions.filter(({ name }) => name !== CONDITION) };
}

function withCondition(hook: Hook, expression: string): Hook {
  const { matchConditions = [] } = hook;
  return { ...hook, matchConditions: [...matchConditions, { name: CONDITION, expression }] };
}

function entryOf(base: Hook, group: readonly Adder[], name: string): Hook {
  const requirements = (group[0]?.namespaces ?? []).map(({ key, operator, values = [] }) =>
    values.length === 0 ? { key, operator } : { key, operator, values },
  );
  const given = base.namespaceSelector?.matchExpressions ?? [];
  const entry = {
    ...base,
    name,
    namespaceSelector: { ...base.namespaceSelector, matchExpressions: [...given, ...requirements] },
  };
  const expression = conditionOf(group);
  // Too long to be evaluated: the pods of these namespaces are all sent, and the webhook decides.
  return expression.length > MAX_EXPRESSION ? entry : withCondition(entry, expression);
}

/** Those that select the same namespaces together, in a stable order. */
function groupsOf(plan: InjectionPlan): readonly (readonly Adder[])[] {
  const adders = addersOf(plan);
  const groups = Map.groupBy(adders, ({ namespaces }) => JSON.stringify(namespaces));
  if (groups.size > MAX_ENTRIES) return [adders.map((one) => ({ ...one, namespaces: [] }))];
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
}

function addersOf({ profiles, sidecarSets, withoutContainers }: InjectionPlan): readonly Adder[] {
  const ofProfiles = profiles.map(({ selector, namespaceSelector, secrets }): Adder => {
    const condition = allOf(selector.map((one) => requirementTerm(one, 'l')));
    return { namespaces: namespaceSelector, condition, names: secrets.map(({ name }) => name) };
  });
  if (!withoutContainers && !sidecarSets.some(({ containers }) => containers > 0)) return ofProfiles;
  const ofSets = sidecarSets.flatMap((set): readonly Adder[] => {
    const { selector, namespaceSelector: namespaces, imagePullSecrets: names } = set;
    if (!selector.ok || selector.requirements.length === 0 || namespaces?.ok === false) return [];
    return [{ namespaces: namespaces?.requirements ?? [], condition: podsTerm(set, 'l'), names }];
  });
  return [...ofProfiles, ...ofSets];
}

/** A pod that injection changes: it lacks a name, or it repeats names, and the list without repetitions replaces its own. */
function conditionOf(group: readonly Adder[]): string {
  const terms = group
    .filter(({ names }) => names.length > 0)
    .map(({ condition, names }) => `(${condition} && (d || ${JSON.stringify(names)}.exists(n, !(n in h))))`);
  if (terms.length === 0) return 'false';
  const labels = 'object.metadata.?labels.orValue({})';
  const own = "object.spec.?imagePullSecrets.orValue([]).map(s, s.?name.orValue(''))";
  const repeats = 'h.exists(a, h.filter(b, b == a).size() > 1)';
  return `[${labels}].exists(l, [${own}].exists(h, [${repeats}].exists(d, ${terms.join(' || ')})))`;
}
