/**
 * The `[[registry]]` tables that the operator renders from mirror sets, insecure and blocked scopes, in file order.
 *
 * Source of the rule: openshift/runtime-utils `EditRegistriesConfig`. The runtime follows only the entry with the longest scope,
 * so entries inherit switches and mirrors. Here each entry looks up its parents, in time by the length of its scope, not by the
 * number of entries.
 */
import { PullwrightError } from '../../core/errors.ts';
import { goQuote } from '../../core/go/text.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { registriesOf } from '../../core/mirrors/registries-conf.ts';
import {
  compileMirrors,
  isCanonical,
  type MirrorRule,
  type RuleMirror,
  type RuleOrigin,
  resolveMirrors,
  withoutTagAndDigest,
} from '../../core/mirrors/resolve.ts';
import { defined, distinctBy } from '../../core/record.ts';
import { trimEndOf } from '../../core/text.ts';
import {
  type DraftRule,
  draftRules,
  entryFaults,
  type RegistriesFault,
  ruleOf,
  type SetEntry,
} from '../mirror-sets/collect.ts';
import { quoted } from '../mirror-sets/fix.ts';
import { IMAGE_CONFIG, isInside, isScope, type NodeInput, readNodeInput, scopesAround } from './input.ts';

function editEntries(
  entries: readonly SetEntry[],
  insecureScopes: readonly string[],
  blockedScopes: readonly string[],
) {
  const { drafts } = draftRules(entries);
  const insecure = new Set(insecureScopes);
  const blocked = new Set(blockedScopes);
  for (const { mirrors } of drafts.values()) markInsecure(mirrors, insecure);
  const sources = new Map([...drafts.keys()].map((source, rank) => [source, rank]));
  for (const scope of blocked) addScope(drafts, scope, imageOrigin('blockedRegistries'));
  for (const scope of insecure) addScope(drafts, scope, imageOrigin('insecureRegistries'));
  /** A wildcard source that contains a scope without mirrors: the operator cannot write this scope. */
  const faults = handDown(drafts, sources);
  const rules = [...drafts.values()].map((draft) => {
    const around = insecure.size + blocked.size === 0 ? [] : scopesAround(draft.scope);
    const isIn = (scopes: ReadonlySet<string>): boolean => around.some((scope) => scopes.has(scope));
    return ruleOf(draft, { blocked: isIn(blocked), insecure: isIn(insecure) });
  });
  return { rules, faults };
}

function addScope(drafts: Map<string, DraftRule>, scope: string, origin: RuleOrigin): void {
  const found = drafts.get(scope);
  if (found === undefined) drafts.set(scope, { scope, mirrors: [], origins: [origin], never: false });
  else found.origins.push(origin);
}

function markInsecure(mirrors: RuleMirror[], insecure: ReadonlySet<string>): void {
  if (insecure.size === 0) return;
  for (const [at, mirror] of mirrors.entries())
    if (scopesAround(mirror.location).some((scope) => insecure.has(scope)))
      mirrors[at] = { ...mirror, insecure: true };
}

/** Scopes without mirrors inherit those of the first source that contains them: digest before tag sources, wide before narrow. */
function handDown(
  drafts: ReadonlyMap<string, DraftRule>,
  sources: ReadonlyMap<string, number>,
): readonly RegistriesFault[] {
  const faults: (readonly [rank: number, fault: RegistriesFault])[] = [];
  for (const draft of drafts.values()) {
    if (sources.has(draft.scope)) continue;
    const above = scopesAround(draft.scope).flatMap((scope) => {
      const rank = sources.get(scope);
      return rank === undefined ? [] : [{ rank, scope }];
    });
    const [first] = above.toSorted((a, b) => a.rank - b.rank);
    const from = first === undefined ? undefined : drafts.get(first.scope);
    if (first === undefined || from === undefined) continue;
    const rest = draft.scope.slice(first.scope.length);
    if (first.scope.startsWith('*.'))
      faults.push([first.rank, wildcardFault(first.scope, draft.scope, from.origins[0] ?? imageOrigin(''))]);
    else
      draft.mirrors.push(...from.mirrors.map((mirror) => ({ ...mirror, location: mirror.location + rest })));
  }
  return faults.sort(([a], [b]) => a - b).map(([, fault]) => fault);
}

// The effective blocked registries: a cluster must be able to pull its own release.
// Source of the rule: the Machine Config Operator's `getValidBlockedAndAllowedRegistries`. It reports ignored entries in
// its log only.

/** The lists that go into the two files. */
interface DerivedLists {
  /** Blocked in `registries.conf`. */
  readonly registries: readonly string[];
  /** Blocked in `policy.json`. */
  readonly policy: readonly string[];
  readonly allowed: readonly string[];
  /** Message in the operator's log about ignored entries. */
  readonly skipped?: string;
}

/**
 * Derives the lists. Without a known release nothing is ignored.
 *
 * @param payload repository of the release
 */
function derivedLists(input: NodeInput, payload: string | undefined): DerivedLists {
  const { release, sources } = input;
  const { allowed, blocked } = sources;
  const covering = blocked.filter((scope) => payload !== undefined && isInside(payload, scope));
  if (release === undefined || payload === undefined || covering.length === 0)
    return { registries: blocked, policy: blocked, allowed };
  const left = hasPlaceLeft(input, release);
  if (typeof left === 'string') return { registries: [], policy: [], allowed: [], skipped: left };
  if (left)
    return {
      registries: blocked,
      policy: blocked.filter((scope) => scope !== payload),
      allowed: [...covering.map(() => payload), ...allowed],
    };
  const kept = blocked.filter((scope) => !covering.includes(scope));
  const skipped = `error adding [${covering.map(goQuote).join(' ')}] to blocked registries, cannot block the repository being used by the payload`;
  return { registries: kept, policy: kept, allowed, skipped };
}

/** Whether the release has a pull source outside the blocked scopes; the operator's error when that is unknown. */
function hasPlaceLeft({ entries, sources }: NodeInput, release: string): boolean | string {
  const { insecure = [], blocked } = sources;
  const byDigest = entries.filter(({ pullFrom }) => pullFrom === 'digest-only');
  const { rules, faults } = editEntries(byDigest, insecure, blocked);
  const fault = faults[0]?.text.replace(/^could not update registries config with new changes: /, '');
  const unloadable = fault ?? loadProblem(rules);
  if (unloadable !== undefined) return unloadable;
  const { candidates, skipped, refusal } = resolveMirrors(compileMirrors(rules), release);
  if (refusal !== undefined) return refusal;
  const places = [...candidates, ...skipped.filter(({ reason }) => reason === 'Blocked')];
  return places.some(
    ({ reference }) => !blocked.some((scope) => isInside(withoutTagAndDigest(reference), scope)),
  );
}

// `/etc/containers/policy.json`: the registries that images may name. It does not apply to mirrors.
// Source of the rule: the Machine Config Operator's `updatePolicyJSON`.

interface Requirement {
  readonly type: 'insecureAcceptAnything' | 'reject';
}

type Scopes = Readonly<Record<string, readonly Requirement[]>>;

export interface PolicyDocument {
  readonly default: readonly Requirement[];
  readonly transports: Readonly<Record<string, Scopes>>;
}

const ACCEPT: readonly Requirement[] = [{ type: 'insecureAcceptAnything' }];
const REJECT: readonly Requirement[] = [{ type: 'reject' }];

/** The document for derived lists. */
function policyDocument(blocked: readonly string[], allowed: readonly string[]): PolicyDocument {
  const docker = new Map<string, readonly Requirement[]>();
  for (const scope of allowed) docker.set(scope, ACCEPT);
  for (const scope of blocked) docker.set(scope, REJECT);
  // The atomic transport has host, namespace and repository only.
  const scopes = [...docker].sort(([a], [b]) => (a < b ? -1 : 1));
  const atomic = scopes.filter(([scope]) => scope.split('/').length <= 3);
  return {
    default: allowed.length > 0 && blocked.length === 0 ? REJECT : ACCEPT,
    transports: {
      atomic: Object.fromEntries(atomic),
      docker: Object.fromEntries(scopes),
      'docker-daemon': { '': ACCEPT },
    },
  };
}

// The text of the operator's files, byte for byte: the Machine Config Daemon compares them as text.

/** `registries.conf` with these entries. */
export function registriesText(rules: readonly MirrorRule[]): string {
  return [headText(), ...rules.map(tableText)].join('\n');
}

/** The drop-in with the search registries of the Image object. */
export function headText(search = TEMPLATE_SEARCH): string {
  return `unqualified-search-registries = [${search.map(quoted).join(', ')}]\nshort-name-mode = ""\nadditional-layer-store-auth-helper = ""\n`;
}

/** Defaults of the operator's template for fields that the Image object does not set. */
export const TEMPLATE_SEARCH: readonly string[] = ['registry.access.redhat.com', 'docker.io'];

function tableText(rule: MirrorRule): string {
  const lines = [
    '[[registry]]',
    `  prefix = ${quoted(rule.prefix.startsWith('*.') ? rule.prefix : '')}`,
    ...(rule.location === '' ? [] : [`  location = ${quoted(rule.location)}`]),
    ...(rule.insecure ? ['  insecure = true'] : []),
    ...(rule.blocked ? ['  blocked = true'] : []),
  ];
  for (const mirror of rule.mirrors) {
    lines.push('', '  [[registry.mirror]]', `    location = ${quoted(mirror.location)}`);
    if (mirror.insecure === true) lines.push('    insecure = true');
    if (mirror.pullFrom !== 'all') lines.push(`    pull-from-mirror = ${quoted(mirror.pullFrom)}`);
  }
  return `${lines.join('\n')}\n`;
}

// One run of the operator: from the objects of a cluster to the files of its nodes, or to the rejection of all of them.
// Source of the rule: the Machine Config Operator's `syncImageConfig` and `registriesConfigIgnition`, recorded in
// test/conformance/cases/mco-registries. One invalid entry rejects everything, and nodes keep their files.

export const REGISTRIES_CONF = '/etc/containers/registries.conf';
const POLICY_JSON = '/etc/containers/policy.json';
export const SEARCH_DROP_IN = '/etc/containers/registries.conf.d/01-image-searchRegistries.conf';

/** Files of the nodes. */
export type NodeFiles = Readonly<ReturnType<typeof files>>;

/** The operator writes nothing; all nodes, new ones included, keep the previous files. */
interface NodeRefusal {
  readonly refused: true;
  /** Never empty. The operator reports the first only. */
  readonly faults: readonly RegistriesFault[];
  readonly lists: DerivedLists;
}

export type NodeRendering = NodeFiles | NodeRefusal;

/** Renders the objects of one cluster. */
export function renderNodeFiles(objects: readonly KubeObject[]): NodeRendering {
  const input = readNodeInput(objects);
  const { sources, release } = input;
  const payload = release !== undefined && isCanonical(release) ? withoutTagAndDigest(release) : undefined;
  const lists = derivedLists(input, payload);
  if (release !== undefined && payload === undefined)
    return { refused: true, faults: [releaseFault(release)], lists };
  const hasConf = sources.insecure !== undefined || lists.registries.length > 0 || input.hasSets;
  const hasPolicy = lists.policy.length > 0 || lists.allowed.length > 0;
  const invalid = hasConf ? confFaults(input, lists.registries) : [];
  const edited = editEntries(input.entries, sources.insecure ?? [], lists.registries);
  const faults = [
    ...invalid,
    ...edited.faults,
    ...(hasPolicy ? policyFaults(lists.policy, lists.allowed, payload) : []),
  ];
  if (faults.length > 0) return { refused: true, faults, lists };
  return files(sources.search, lists, hasConf ? edited.rules : undefined, hasPolicy);
}

function files(
  search: readonly string[] | undefined,
  lists: DerivedLists,
  rules: readonly MirrorRule[] | undefined,
  hasPolicy: boolean,
) {
  return {
    refused: false as const,
    /** Paths in the MachineConfig; the template provides the other files. */
    files: [
      ...(rules === undefined ? [] : [REGISTRIES_CONF]),
      ...(hasPolicy ? [POLICY_JSON] : []),
      ...(search === undefined ? [] : [SEARCH_DROP_IN]),
    ],
    /** Entries of `registries.conf`, in file order. */
    rules: rules ?? [],
    /** The entries after loading by the runtime, which determine pulls. */
    loaded: loadedRules(rules ?? []),
    ...(hasPolicy ? { policy: policyDocument(lists.policy, lists.allowed) } : {}),
    /** Registries for short names, from the Image object. @default {TEMPLATE_SEARCH} */
    search,
    lists,
    /** Why the runtime does not load `registries.conf` although the operator wrote it: CRI-O keeps its previous configuration. */
    loadError: loadProblem(rules ?? []),
    /** The same for the drop-in with the registries for short names. */
    searchError: loadProblem([], search),
  };
}

// Faults for which the operator rejects the whole configuration of a cluster, in its order of checks.
//
// Source of the rule: the Machine Config Operator's `validateRegistriesConfScopes` and `updatePolicyJSON`. It stops at the first
// fault; here all are reported, so that they can be corrected together.

const CONF = 'could not update registries config with new changes: ';
const POLICY = 'could not update policy json with new changes: ';

/** Faults of the scopes and entries that go into `registries.conf`. `blocked`: the derived list. */
function confFaults(input: NodeInput, blocked: readonly string[]): readonly RegistriesFault[] {
  return [
    ...scopeFaults('insecure', input.sources.insecure ?? [], CONF),
    ...scopeFaults('blocked', blocked, CONF),
    ...entryFaults(input.entries).map((fault) => ({ ...fault, text: CONF + fault.text })),
  ];
}

/** Faults of the lists that go into `policy.json`; `payload`: repository of the release. */
function policyFaults(
  blocked: readonly string[],
  allowed: readonly string[],
  payload: string | undefined,
): readonly RegistriesFault[] {
  const both = blocked.length > 0 && allowed.length > 0;
  if (both && !(allowed.length === 1 && allowed[0] === payload)) {
    const text = 'invalid images config: only one of AllowedRegistries or BlockedRegistries may be specified';
    const message = 'has both allowed and blocked registries: keep one of the two lists';
    return [
      { code: 'AllowedAndBlocked', origin: imageOrigin('blockedRegistries'), text: POLICY + text, message },
    ];
  }
  return [...scopeFaults('blocked', blocked, POLICY), ...scopeFaults('allowed', allowed, POLICY)];
}

/** Origin of a list in the Image object. */
function imageOrigin(list: string): RuleOrigin {
  const path = list === '' ? 'spec.registrySources' : `spec.registrySources.${list}`;
  return { kind: IMAGE_CONFIG.kind, name: IMAGE_CONFIG.name, path };
}

/** Scopes below a wildcard source cannot inherit its mirrors. */
function wildcardFault(source: string, scope: string, origin: RuleOrigin): RegistriesFault {
  const text = `internal error: mirrorsAdjustedForNestedScope for a wildcard scope ${goQuote(source)}`;
  const message = `has the wildcard source "${source}", and Image/cluster names "${scope}" below it as insecure or blocked: add a source "${scope}" with mirrors, or remove it there`;
  return { code: 'WildcardOverScope', origin, text: CONF + text, message };
}

function releaseFault(image: string): RegistriesFault {
  const origin: RuleOrigin = { kind: 'ClusterVersion', name: 'version', path: 'status.desired.image' };
  const message = `has the release image "${image}": expected a reference with host, repository and tag or digest`;
  return { code: 'ReleaseImageInvalid', origin, text: 'error parsing reference of release image', message };
}

function scopeFaults(
  list: 'insecure' | 'blocked' | 'allowed',
  scopes: readonly string[],
  head: string,
): readonly RegistriesFault[] {
  return scopes
    .filter((scope) => !isScope(scope))
    .map((scope) => ({
      code: 'ScopeInvalid',
      origin: imageOrigin(`${list}Registries`),
      text: `${head}invalid entry for ${list} registries ${goQuote(scope)}`,
      message: `has the entry "${scope}": expected a host with optional port and path, or "*.example.com"`,
    }));
}

// Whether the runtime can load the operator's file: for some scopes that the operator accepts, CRI-O rejects the whole file, and
// keeps its previous rules or does not start.

/**
 * The runtime's error for a file with these entries and search registries; undefined when it loads.
 */
function loadProblem(rules: readonly MirrorRule[], search: readonly string[] = []): string | undefined {
  try {
    registriesOf({
      'unqualified-search-registries': search,
      registry: rules.map(({ prefix, location, blocked, insecure, mirrors }) => ({
        prefix: prefix.startsWith('*.') ? prefix : '',
        location,
        blocked,
        insecure,
        mirror: mirrors.map(({ pullFrom, ...mirror }) => ({
          location: mirror.location,
          'pull-from-mirror': pullFrom,
        })),
      })),
    });
    return undefined;
  } catch (error) {
    if (error instanceof PullwrightError) return error.message;
    throw error;
  }
}

/** The entries after loading by the runtime: without trailing slashes, and only the first of equal ones. */
function loadedRules(rules: readonly MirrorRule[]): readonly MirrorRule[] {
  if (!rules.some(({ prefix }) => prefix.endsWith('/'))) return rules;
  const loaded = rules.map((rule) => ({
    ...rule,
    prefix: trimEndOf(rule.prefix, '/'),
    location: trimEndOf(rule.location, '/'),
  }));
  return distinctBy(loaded, ({ prefix }) => prefix);
}

// Effect of changed files on nodes: none, a reload of CRI-O, a drain, or a drain and a reboot.
//
// Source of the rule: the Machine Config Daemon's `isSafeContainerRegistryConfChanges` and the default node disruption policies.

export interface Disruption {
  /** Paths, sorted. */
  readonly changedFiles: readonly string[];
  /** `Special` reloads CRI-O and drains only where the change is not safe. */
  readonly actions: readonly ('Reboot' | 'Reload crio.service' | 'Special')[];
  readonly drain: boolean;
  readonly reboot: boolean;
  /** The change in `registries.conf` that requires the drain, as a sentence; undefined without one. */
  readonly because?: string;
}

/**
 * Compares the current files of nodes with the next ones. Files that are not rendered have the content of the operator's
 * template.
 */
export function disruptionOf(before: NodeFiles, after: NodeFiles): Disruption {
  const conf = confText(before) !== confText(after);
  const policy = JSON.stringify(before.policy) !== JSON.stringify(after.policy);
  const search = searchText(before) !== searchText(after);
  const changedFiles = [
    ...(policy ? [POLICY_JSON] : []),
    ...(conf ? [REGISTRIES_CONF] : []),
    ...(search ? [SEARCH_DROP_IN] : []),
  ];
  if (search) {
    const because = 'the search registries for short names change';
    return { changedFiles, actions: ['Reboot'], drain: true, reboot: true, because };
  }
  const because = conf ? unsafeChange(before.rules, after.rules) : undefined;
  return {
    changedFiles,
    actions: [...(policy ? ['Reload crio.service' as const] : []), ...(conf ? ['Special' as const] : [])],
    drain: because !== undefined,
    reboot: false,
    ...defined({ because }),
  };
}

function confText(rendering: NodeFiles): string {
  return rendering.files.includes(REGISTRIES_CONF) ? registriesText(rendering.rules) : '';
}

function searchText(rendering: NodeFiles): string {
  return rendering.files.includes(SEARCH_DROP_IN) ? headText(rendering.search) : '';
}

/** The first change that requires a drain; undefined when all are safe. */
function unsafeChange(before: readonly MirrorRule[], after: readonly MirrorRule[]): string | undefined {
  const old = new Map(before.map((rule) => [rule.prefix, rule]));
  const kept = new Set(after.map((rule) => rule.prefix));
  const gone = before.find((rule) => !kept.has(rule.prefix));
  if (gone !== undefined) return `the entry "${gone.prefix}" is removed`;
  for (const rule of after) {
    const own = old.get(rule.prefix);
    const reason = own === undefined ? unsafeEntry(rule) : unsafeEdit(own, rule);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function unsafeEntry(rule: MirrorRule): string | undefined {
  if (rule.mirrors.length === 0) return `the entry "${rule.prefix}" is added without mirrors`;
  const tag = rule.mirrors.find(({ pullFrom }) => pullFrom !== 'digest-only');
  return tag && `the entry "${rule.prefix}" is added with the mirror "${tag.location}", which serves tags`;
}

function unsafeEdit(before: MirrorRule, after: MirrorRule): string | undefined {
  if (registriesText([before]) === registriesText([after])) return undefined;
  if (before.blocked !== after.blocked)
    return `"${after.prefix}" ${after.blocked ? 'is' : 'is no longer'} blocked`;
  if (before.insecure !== after.insecure)
    return `"${after.prefix}" ${after.insecure ? 'is' : 'is no longer'} insecure`;
  const had = firstByLocation(before.mirrors);
  const has = firstByLocation(after.mirrors);
  const gone = before.mirrors.find(({ location }) => !has.has(location));
  if (gone !== undefined) return `mirror "${gone.location}" of "${after.prefix}" is removed`;
  const changed = after.mirrors.find(
    ({ location, pullFrom }) => pullFrom !== 'digest-only' && pullFrom !== had.get(location)?.pullFrom,
  );
  if (changed === undefined) return undefined;
  return `mirror "${changed.location}" for tags is added to "${after.prefix}"`;
}

/** Mirrors by location; like the daemon, only the first entry of a location that serves digests and tags. */
function firstByLocation(mirrors: readonly RuleMirror[]): ReadonlyMap<string, RuleMirror> {
  return new Map(mirrors.map((mirror) => [mirror.location, mirror] as const).reverse());
}
