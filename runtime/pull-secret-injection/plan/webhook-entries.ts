/**
 * Compiles the plan to entries of the webhook's configuration, so that the API server calls the webhook only for pods that
 * injection changes. Each distinct namespaceSelector has its own entry. The rendered entry is the template of the others and
 * matches no pod.
 */
import { allOf, type InjectionPlan, MAX_EXPRESSION, podsTerm, requirementTerm } from './plan.ts';

/** Name of the rendered entry. */
export const BASE_HOOK = 'inject.pullwright.dev';
/** Name of the match condition on {@link BASE_HOOK} and on each of our entries. */
const CONDITION = 'profiles';
/** Above this, all profiles share one entry for all namespaces: the API server evaluates each entry for every pod. */
const MAX_ENTRIES = 50;

/** The fields of an element of `webhooks` that are used here. */
export interface Hook {
  readonly name: string;
  readonly clientConfig?: { readonly caBundle?: string };
  readonly namespaceSelector?: { readonly matchExpressions?: readonly unknown[] };
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
}

/** Returns the desired `webhooks`, with foreign entries kept; undefined if the rendered entry is missing. */
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

/** The rendered entry, without our condition. */
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
  // Above the limit, the API server sends all pods of these namespaces, and the webhook decides.
  return expression.length > MAX_EXPRESSION ? entry : withCondition(entry, expression);
}

/** Groups profiles and SidecarSets with equal namespace selectors, in a stable order. */
function groupsOf(plan: InjectionPlan): readonly (readonly Adder[])[] {
  const adders = addersOf(plan);
  const groups = Map.groupBy(adders, ({ namespaces }) => JSON.stringify(namespaces));
  if (groups.size > MAX_ENTRIES) return [adders.map((one) => ({ ...one, namespaces: [] }))];
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group);
}

type Adder = ReturnType<typeof addersOf>[number];

/** Profiles and SidecarSets: namespace requirements, CEL condition on the pod labels `l`, and injected names. */
function addersOf({ profiles, sidecarSets, withoutContainers }: InjectionPlan) {
  const ofProfiles = profiles.map(({ selector, namespaceSelector, secrets }) => {
    const condition = allOf(selector.map((one) => requirementTerm(one, 'l')));
    return { namespaces: namespaceSelector, condition, names: secrets.map(({ name }) => name) };
  });
  if (!withoutContainers && !sidecarSets.some(({ containers }) => containers > 0)) return ofProfiles;
  const ofSets = sidecarSets.flatMap((set) => {
    const { selector, namespaceSelector: namespaces, imagePullSecrets: names } = set;
    if (!selector.ok || selector.requirements.length === 0 || namespaces?.ok === false) return [];
    return [{ namespaces: namespaces?.requirements ?? [], condition: podsTerm(set, 'l'), names }];
  });
  return [...ofProfiles, ...ofSets];
}

/** Matches pods that injection changes: they lack a name, or their own list has duplicates. */
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
