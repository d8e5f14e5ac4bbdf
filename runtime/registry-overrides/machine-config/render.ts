/**
 * The `[[registry]]` tables that the operator makes of mirror sets, insecure and blocked scopes, in the order of the file.
 *
 * Source of the rule: openshift/runtime-utils `EditRegistriesConfig`. The runtime follows only the entry with the longest scope, so
 * switches and mirrors are handed down to the entries below; here each entry looks for what is above it, which takes time by the
 * length of its scope and not by the number of entries.
 */

import { goQuote } from '../../core/go/text.ts';
import { parseImageReference } from '../../core/image-reference.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import {
  compileMirrors,
  isCanonical,
  type MirrorRule,
  type RuleMirror,
  type RuleOrigin,
  resolveMirrors,
} from '../../core/mirrors/resolve.ts';
import { type DraftRule, draftRules, type RegistriesFault, type SetEntry } from '../mirror-sets/collect.ts';
import { quoted } from '../mirror-sets/fix.ts';
import {
  confFaults,
  imageOrigin,
  loadedRules,
  loadProblem,
  policyFaults,
  releaseFault,
  wildcardFault,
} from './faults.ts';
import { isInside, type NodeInput, readNodeInput, scopesAround } from './input.ts';

interface RegistryEntries {
  readonly rules: readonly MirrorRule[];
  /** A wildcard source over a scope without mirrors of its own, which the operator cannot write. */
  readonly faults: readonly RegistriesFault[];
}

function editEntries(
  entries: readonly SetEntry[],
  insecureScopes: readonly string[],
  blockedScopes: readonly string[],
): RegistryEntries {
  const { drafts } = draftRules(entries);
  const insecure = new Set(insecureScopes);
  const blocked = new Set(blockedScopes);
  for (const { mirrors } of drafts.values()) markInsecure(mirrors, insecure);
  const sources = new Map([...drafts.keys()].map((source, rank) => [source, rank]));
  for (const scope of blocked) addScope(drafts, scope, imageOrigin('blockedRegistries'));
  for (const scope of insecure) addScope(drafts, scope, imageOrigin('insecureRegistries'));
  const faults = handDown(drafts, sources);
  return { rules: [...drafts.values()].map((draft) => ruleOf(draft, insecure, blocked)), faults };
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

/** Scopes without mirrors get those of the first source that contains them: digest before tag sources, wide before narrow. */
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
    const first = above.reduce<(typeof above)[number] | undefined>(
      (best, other) => (best === undefined || other.rank < best.rank ? other : best),
      undefined,
    );
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

function ruleOf(draft: DraftRule, insecure: ReadonlySet<string>, blocked: ReadonlySet<string>): MirrorRule {
  const around = insecure.size + blocked.size === 0 ? [] : scopesAround(draft.scope);
  return {
    prefix: draft.scope,
    location: draft.scope.startsWith('*.') ? '' : draft.scope,
    blocked: draft.never || around.some((scope) => blocked.has(scope)),
    insecure: around.some((scope) => insecure.has(scope)),
    mirrors: draft.mirrors,
    origins: draft.origins,
    ...(draft.never ? { never: true } : {}),
  };
}

// Text of one file of a MachineConfig: the operator writes small files as data URLs without compression.
// Source of the rule: Ignition 3, RFC 2397.

interface IgnitionFile {
  readonly path?: string;
  readonly contents?: { readonly source?: string; readonly compression?: string };
}

/**
 * Undefined when there is no such file, or it is compressed, remote or not text.
 */
export function ignitionText(machineConfig: KubeObject, path: string): string | undefined {
  const { source = '', compression = '' } =
    filesOf(machineConfig).findLast((one) => one.path === path)?.contents ?? {};
  const match = /^data:([^,]*),(.*)$/s.exec(source);
  return match === null || compression !== '' ? undefined : decoded(match[1] ?? '', match[2] ?? '');
}

function filesOf(machineConfig: KubeObject): readonly IgnitionFile[] {
  const spec = machineConfig.spec as
    | { readonly config?: { readonly storage?: { readonly files?: readonly IgnitionFile[] } } }
    | undefined;
  const files = spec?.config?.storage?.files;
  return Array.isArray(files) ? files : [];
}

function decoded(type: string, body: string): string | undefined {
  try {
    const bytes = type.endsWith(';base64')
      ? Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0))
      : new TextEncoder().encode(decodeURIComponent(body));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

// Which of the blocked registries are really blocked: a cluster must be able to pull its own release.
// Source of the rule: the Machine Config Operator's `getValidBlockedAndAllowedRegistries`. What it leaves out, it says in its log
// only.

/** The lists that go into the two files. */
export interface DerivedLists {
  /** Blocked in `registries.conf`. */
  readonly registries: readonly string[];
  /** Blocked in `policy.json`. */
  readonly policy: readonly string[];
  readonly allowed: readonly string[];
  /** Why an entry was ignored, in the words of the operator's log. */
  readonly skipped?: string;
}

const NOTHING = { registries: [], policy: [], allowed: [] } as const;

/** Repository of the release, without tag and digest; undefined for text that is not a full reference. */
export function payloadRepository(release: string): string | undefined {
  const parsed = parseImageReference(release);
  return parsed.ok && isCanonical(release) ? parsed.reference.repository : undefined;
}

/**
 * Derives the lists. Without a known release nothing is ignored.
 */
export function derivedLists(input: NodeInput): DerivedLists {
  const { sources, release } = input;
  const payload = release === undefined ? undefined : payloadRepository(release);
  if (release === undefined || payload === undefined)
    return { registries: sources.blocked, policy: sources.blocked, allowed: sources.allowed };
  const covering = new Set(sources.blocked.filter((scope) => isInside(payload, scope)));
  if (covering.size === 0)
    return { registries: sources.blocked, policy: sources.blocked, allowed: sources.allowed };
  const left = hasPlaceLeft(input, release);
  if (typeof left === 'string') return { ...NOTHING, skipped: left };
  const kept = sources.blocked.filter((scope) => left || !covering.has(scope));
  const dropped = sources.blocked.filter((scope) => !left && covering.has(scope));
  const mirrored = sources.blocked.filter((scope) => left && covering.has(scope));
  return {
    registries: kept,
    policy: kept.filter((scope) => scope !== payload),
    allowed: [...mirrored.map(() => payload), ...sources.allowed],
    ...(dropped.length === 0
      ? {}
      : {
          skipped: `error adding [${dropped.map(goQuote).join(' ')}] to blocked registries, cannot block the repository being used by the payload`,
        }),
  };
}

/** Whether the release can be pulled although every blocked scope is blocked; text where that cannot be found out. */
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
  return places.some(({ reference }) => {
    const parsed = parseImageReference(reference);
    const name = parsed.ok ? parsed.reference.repository : reference;
    return !blocked.some((scope) => isInside(name, scope));
  });
}

// `/etc/containers/policy.json`: which registries may be pulled from at all. Mirrors need no permission there.
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

/**
 * The document for derived lists (payload.ts).
 */
export function policyDocument(blocked: readonly string[], allowed: readonly string[]): PolicyDocument {
  const docker = new Map<string, readonly Requirement[]>();
  for (const scope of allowed) docker.set(scope, ACCEPT);
  for (const scope of blocked) docker.set(scope, REJECT);
  // The transport knows host, namespace and repository only.
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

// The text of the operator's files, letter for letter: the daemon of a node compares them as text.

/**
 * `registries.conf` with these entries.
 *
 * @param search short names are looked up there; the template of the operator has two. @default {TEMPLATE_SEARCH}
 */
export function registriesText(
  rules: readonly MirrorRule[],
  search: readonly string[] = TEMPLATE_SEARCH,
): string {
  return [headText(search), ...rules.map(tableText)].join('\n');
}

/** The drop-in with the search registries of the Image object. */
export function headText(search: readonly string[]): string {
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

// One run of the operator: from the objects of a cluster to the files of its nodes, or to the refusal of all of them.
// Source of the rule: the Machine Config Operator's `syncImageConfig` and `registriesConfigIgnition`, recorded in
// test/conformance/cases/mco-registries. One invalid entry rejects everything, and nodes keep their files.

export const REGISTRIES_CONF = '/etc/containers/registries.conf';
export const POLICY_JSON = '/etc/containers/policy.json';
export const SEARCH_DROP_IN = '/etc/containers/registries.conf.d/01-image-searchRegistries.conf';

/** What nodes get. */
export interface NodeFiles {
  readonly refused: false;
  /** Paths that the MachineConfig holds; nodes have the template's content of the others. */
  readonly files: readonly string[];
  /** Entries of `registries.conf`, in file order. */
  readonly rules: readonly MirrorRule[];
  /** The same as the runtime has them once they are loaded: what decides about a pull. */
  readonly loaded: readonly MirrorRule[];
  readonly policy?: PolicyDocument;
  /** Registries for short names: those of the drop-in, else those of the template. */
  readonly search: readonly string[];
  readonly lists: DerivedLists;
  /** Why the runtime does not load `registries.conf` although the operator wrote it: CRI-O keeps its previous configuration. */
  readonly loadError?: string;
  /** The same for the drop-in with the registries for short names. */
  readonly searchError?: string;
}

/** The operator writes nothing; nodes, new ones too, keep what was in force before. */
export interface NodeRefusal {
  readonly refused: true;
  /** The operator names the first only. Never empty. */
  readonly faults: readonly RegistriesFault[];
  readonly lists: DerivedLists;
}

export type NodeRendering = NodeFiles | NodeRefusal;

/**
 * Renders the objects of one cluster.
 */
export function renderNodeFiles(objects: readonly KubeObject[]): NodeRendering {
  return renderInput(readNodeInput(objects));
}

/** {@link renderNodeFiles}, of what was read before. */
export function renderInput(input: NodeInput): NodeRendering {
  const { sources, release } = input;
  const payload = release === undefined ? undefined : payloadRepository(release);
  const lists = derivedLists(input);
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
): NodeFiles {
  const loadError = loadProblem(rules ?? []);
  const searchError = loadProblem([], search);
  return {
    refused: false,
    files: [
      ...(rules === undefined ? [] : [REGISTRIES_CONF]),
      ...(hasPolicy ? [POLICY_JSON] : []),
      ...(search === undefined ? [] : [SEARCH_DROP_IN]),
    ],
    rules: rules ?? [],
    loaded: loadedRules(rules ?? []),
    ...(hasPolicy ? { policy: policyDocument(lists.policy, lists.allowed) } : {}),
    search: search ?? TEMPLATE_SEARCH,
    lists,
    ...(loadError === undefined ? {} : { loadError }),
    ...(searchError === undefined ? {} : { searchError }),
  };
}
