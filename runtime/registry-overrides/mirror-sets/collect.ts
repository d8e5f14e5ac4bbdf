/**
 * Reads the mirror sets of a cluster (ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet) into rules, and problems
 * for their authors.
 *
 * Source of the rule: the three kinds' documentation and the Machine Config Operator, which writes them into
 * `registries.conf`: mirrors for digests first, then mirrors for tags; `NeverContactSource` in any set of a source blocks it.
 * The order of the objects does not matter: they are read by kind and name.
 */
import { goQuote } from '../../core/go/text.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { PullFrom } from '../../core/mirrors/registries-conf.ts';
import { type MirrorRule, originText, type RuleMirror, type RuleOrigin } from '../../core/mirrors/resolve.ts';
import { recordOf, textOf } from '../../core/record.ts';

// Merges several lists of mirrors for one source, in the order of the nodes' file.
// Source of the rule: openshift/runtime-utils `pkg/registries` (`addMirrorSet`, `topoGraph.Sorted`), recorded in
// test/conformance/cases/mco-registries: a topological sort, level by level, with ties and cycles broken by name.

/**
 * Merges the mirrors that several entries list for `source`. Neither the order of the lists nor their repetition matters,
 * only the order within a list; mirrors that no list orders are sorted by name. Ignores a list with the source alone. If lists
 * contradict each other, or one repeats a mirror, the cycle is broken by name, and the source may be placed among its mirrors.
 *
 * @returns `order`: without a trailing source, which the runtime tries last anyway; `conflict`: the first pair with opposite
 *   orders, if any
 */
export function mergeOrders(source: string, lists: readonly (readonly string[])[]) {
  const counting = lists.filter((list) => list.some((mirror) => mirror !== source));
  const { order, conflict } = sorted(graphOf(source, counting));
  return { order: order.at(-1) === source ? order.slice(0, -1) : order, conflict };
}

interface Node {
  readonly after: Set<string>;
  /** Number of predecessors that are not sorted yet. */
  waits: number;
}

type Graph = ReadonlyMap<string, Node>;

function graphOf(source: string, lists: readonly (readonly string[])[]): Graph {
  const graph = new Map<string, Node>();
  const nodeOf = (name: string): Node => {
    const node = graph.get(name) ?? { after: new Set(), waits: 0 };
    graph.set(name, node);
    return node;
  };
  for (const list of lists) {
    const whole = list.includes(source) ? list : [...list, source];
    for (const [at, name] of whole.entries()) {
      const { after } = nodeOf(name);
      const next = whole[at + 1];
      if (next === undefined || after.has(next)) continue;
      after.add(next);
      nodeOf(next).waits += 1;
    }
  }
  return graph;
}

function sorted(graph: Graph) {
  const names = [...graph.keys()].sort();
  const queue = names.filter((name) => graph.get(name)?.waits === 0);
  const used = new Set<string>();
  let conflict: readonly [string, string] | undefined;
  let cursor = 0;
  for (let at = 0; used.size < names.length; at += 1) {
    if (at === queue.length) {
      while (used.has(names[cursor] ?? '')) cursor += 1;
      const next = names[cursor] ?? '';
      conflict ??= conflictAt(graph, next, used);
      queue.push(next);
    }
    const name = queue[at] ?? '';
    used.add(name);
    queue.push(...released(graph, name, used));
  }
  return { order: queue, conflict };
}

/** A remaining predecessor of `name`, which breaks a cycle; a mirror that is listed twice does not conflict. */
function conflictAt(graph: Graph, name: string, used: ReadonlySet<string>) {
  for (const [earlier, { after }] of graph)
    if (earlier !== name && !used.has(earlier) && after.has(name)) return [earlier, name] as const;
  return undefined;
}

/** Successors of `name` without further predecessors. */
function released(graph: Graph, name: string, used: ReadonlySet<string>): readonly string[] {
  const free: string[] = [];
  for (const next of graph.get(name)?.after ?? []) {
    const node = graph.get(next);
    if (node === undefined) continue;
    node.waits -= 1;
    if (node.waits === 0 && !used.has(next)) free.push(next);
  }
  return free.sort();
}

// Syntax of sources and mirrors: `host[:port][/path]`, and for a source also `*.domain`.
// Source of the rule: the patterns in the CRDs of ImageDigestMirrorSet and ImageTagMirrorSet, which the Machine Config
// Operator also requires of an ImageContentSourcePolicy (whose CRD has none).

const LABEL = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const HOST_TEXT = `${LABEL}(?:\\.${LABEL})*(?::[0-9]+)?`;
const HOST: RegExp = new RegExp(`^${HOST_TEXT}$`);
const WILDCARD: RegExp = new RegExp(`^\\*(?:\\.${LABEL})+$`);
// Not the CRD's nested quantifiers: they accept the same texts, but take exponential time for some that do not match.
const SEGMENT_TEXT = '[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*';
const SEGMENT: RegExp = new RegExp(`^${SEGMENT_TEXT}$`);
const MIRROR: RegExp = new RegExp(`^${HOST_TEXT}(?:/${SEGMENT_TEXT})*$`);

/** Why `text` is invalid as a source; undefined when it is valid. */
export function sourceProblem(text: string): string | undefined {
  if (!text.startsWith('*')) return mirrorProblem(text);
  if (WILDCARD.test(text)) return undefined;
  return `"${text}" is not a wildcard: expected "*.example.com", without port or path`;
}

/** Why `text` is invalid as a mirror; undefined when it is valid. */
export function mirrorProblem(text: string): string | undefined {
  if (MIRROR.test(text)) return undefined;
  if (text === '') return 'it is missing, empty or not a string';
  if (/^[a-z]+:\/\//i.test(text))
    return `"${text}" has a scheme: expected a host with optional port and path`;
  if (text.includes('@')) return `"${text}" has a digest: expected a host with optional port and path`;
  const [host = '', ...path] = text.split('/');
  if (!HOST.test(host))
    return `"${text}" does not start with a host name: expected a host with optional port and path`;
  const wrong = path.find((segment) => !SEGMENT.test(segment)) ?? '';
  if (/^[^:]+:[^:]*$/.test(wrong) && wrong === path.at(-1))
    return `"${text}" has a tag: expected a host with optional port and path`;
  return `"${text}" has the path part "${wrong}": expected lower-case letters and digits, joined by ".", "_", "__" or "-"`;
}

/** The three kinds, the field of their lists, and the pulls that their mirrors serve. */
export const MIRROR_SET_KINDS = [
  {
    kind: 'ImageDigestMirrorSet',
    apiVersion: 'config.openshift.io/v1',
    list: 'imageDigestMirrors',
    pullFrom: 'digest-only',
  },
  {
    kind: 'ImageContentSourcePolicy',
    apiVersion: 'operator.openshift.io/v1alpha1',
    list: 'repositoryDigestMirrors',
    pullFrom: 'digest-only',
  },
  {
    kind: 'ImageTagMirrorSet',
    apiVersion: 'config.openshift.io/v1',
    list: 'imageTagMirrors',
    pullFrom: 'tag-only',
  },
] as const;

export type MirrorSetKind = (typeof MIRROR_SET_KINDS)[number];

/** One entry of one mirror set, not validated. */
export interface SetEntry {
  readonly source: string;
  readonly mirrors: readonly string[];
  /** `AllowContactingSource` unless set. */
  readonly policy: string;
  readonly pullFrom: PullFrom;
  readonly origin: RuleOrigin;
}

export interface MirrorProblem {
  readonly severity: 'error' | 'warning';
  /** CamelCase, stable. */
  readonly code: string;
  readonly origin: RuleOrigin;
  readonly message: string;
}

/**
 * Rules of `objects`, sorted by source; ignores other kinds. Reports and ignores invalid entries.
 *
 * @param isFollowed selects entries; the others are not reported either. @default {all}
 */
export function collectMirrors(
  objects: readonly KubeObject[],
  isFollowed: (entry: SetEntry) => boolean = () => true,
) {
  const { entries, problems } = readMirrorEntries(objects, isFollowed);
  const { drafts, conflicts } = draftRules(entries);
  const rules = [...drafts.values()]
    .sort((a, b) => (a.scope < b.scope ? -1 : 1))
    .map((draft) => ruleOf(draft, { blocked: false, insecure: false }));
  return { entries, rules, problems: [...problems, ...conflicts] };
}

/** Valid entries of the three kinds, by kind, name and field, and problems of the others. */
export function readMirrorEntries(
  objects: readonly KubeObject[],
  isFollowed: (entry: SetEntry) => boolean = () => true,
) {
  const all = setEntries(objects).filter(isFollowed);
  const problems = [
    ...objects.flatMap(listProblem),
    ...entryFaults(all).map(({ code, origin, message }) => problem(code, origin, message)),
  ];
  const valid = all
    .filter(({ source }) => sourceProblem(source) === undefined)
    .map((entry) => ({
      ...entry,
      mirrors: entry.mirrors.filter((mirror) => mirrorProblem(mirror) === undefined),
    }));
  for (const entry of valid.filter((one) => !hasMirror(one))) {
    const text = `has no mirror for "${entry.source}" and has no effect, it does not even block it`;
    problems.push(problem('NoMirror', entry.origin, text, 'warning'));
  }
  return { entries: valid.filter(hasMirror), problems };
}

function listProblem(object: KubeObject): readonly MirrorProblem[] {
  const set = MIRROR_SET_KINDS.find((one) => isOf(object, one));
  const list = set && recordOf(object.spec)[set.list];
  if (set === undefined || list === undefined || list === null || Array.isArray(list)) return [];
  const origin = { kind: set.kind, name: object.metadata.name, path: `spec.${set.list}` };
  return [problem('NotAList', origin, 'must be a list of sources with mirrors')];
}

/** Every entry of the three kinds, not validated, by kind, name and field. */
export function setEntries(objects: readonly KubeObject[]): readonly SetEntry[] {
  return MIRROR_SET_KINDS.flatMap((set) =>
    objects
      .filter((object) => isOf(object, set))
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
      .flatMap((object) => {
        const list = recordOf(object.spec)[set.list];
        return (Array.isArray(list) ? list : []).map((item: unknown, at): SetEntry => {
          const { source, mirrors, mirrorSourcePolicy: policy } = recordOf(item);
          const isPolicy = textOf(policy) !== '' && !set.kind.endsWith('Policy');
          return {
            source: textOf(source),
            mirrors: Array.isArray(mirrors) ? mirrors.map(textOf) : [],
            policy: isPolicy ? textOf(policy) : 'AllowContactingSource',
            pullFrom: set.pullFrom,
            origin: { kind: set.kind, name: object.metadata.name, path: `spec.${set.list}[${at}]` },
          };
        });
      }),
  );
}

/** Whether `object` is of a kind, in any version of its group. */
export function isOf(object: KubeObject, set: Pick<KubeObject, 'kind' | 'apiVersion'>): boolean {
  const group = (apiVersion: string): string => apiVersion.split('/', 1)[0] ?? '';
  return object.kind === set.kind && group(object.apiVersion) === group(set.apiVersion);
}

/** Why the Machine Config Operator rejects an entry or a scope, and with it the whole configuration. */
export interface RegistriesFault {
  /** CamelCase, stable. */
  readonly code: string;
  readonly origin: RuleOrigin;
  /** Message of the operator. */
  readonly text: string;
  /** One sentence for users: the fault, and what to do. */
  readonly message: string;
}

/** All faults, in the operator's order of checks; it stops at the first. */
export function entryFaults(entries: readonly SetEntry[]): readonly RegistriesFault[] {
  const policies = new Map<string, SetEntry>();
  return entries.flatMap((entry): readonly RegistriesFault[] => {
    const { source, origin } = entry;
    const wrong = sourceProblem(source);
    if (wrong !== undefined) {
      const text = `invalid format for source ${goQuote(source)}`;
      return [{ code: 'SourceInvalid', origin, text, message: `has no usable source: ${wrong}` }];
    }
    const first = policies.get(source);
    if (first === undefined) policies.set(source, entry);
    const conflict = first === undefined || first.policy === entry.policy ? [] : [conflictOf(first, entry)];
    return [...conflict, ...mirrorFaults(entry)];
  });
}

function conflictOf(first: SetEntry, { source, policy, origin }: SetEntry): RegistriesFault {
  const text = `conflicting mirrorSourcePolicy is set for the same source ${goQuote(source)} in imagedigestmirrorsets, imagetagmirrorsets, or imagecontentsourcepolicies`;
  const other = originText(first.origin);
  const message = `sets ${policy} for "${source}", but ${other} sets ${first.policy}: ${policyAdvice([first.origin, origin])}`;
  return { code: 'PolicyConflict', origin, text, message };
}

function mirrorFaults({ source, mirrors, policy, origin: of }: SetEntry): readonly RegistriesFault[] {
  return mirrors.flatMap((mirror, at): readonly RegistriesFault[] => {
    const wrong = mirrorProblem(mirror);
    const origin = { ...of, path: `${of.path}.mirrors[${at}]` };
    if (wrong !== undefined) {
      const text = `invalid format for mirror ${goQuote(mirror)}`;
      const message = `cannot be used as mirror of "${source}": ${wrong}`;
      return [{ code: 'MirrorInvalid', origin, text, message }];
    }
    if (policy !== 'NeverContactSource' || mirror !== source) return [];
    const text = `cannot set mirrorSourcePolicy: NeverContactSource if the source ${goQuote(mirror)} is one of the mirrors`;
    const message = `lists "${mirror}" as its own mirror and sets NeverContactSource: remove it from the mirrors, or drop NeverContactSource`;
    return [{ code: 'SourceIsMirror', origin, text, message }];
  });
}

/** What to do about two entries with different policies for one source. */
function policyAdvice(entries: readonly RuleOrigin[]): string {
  const policy = entries.find(({ kind }) => kind === 'ImageContentSourcePolicy');
  return policy === undefined
    ? 'give both the same mirrorSourcePolicy'
    : `ImageContentSourcePolicy cannot block its source: replace ImageContentSourcePolicy/${policy.name} with an ImageDigestMirrorSet with the same mirrorSourcePolicy ("oc adm migrate icsp" writes one without), or drop the policy`;
}

/** A rule under construction. */
export interface DraftRule {
  readonly scope: string;
  readonly mirrors: RuleMirror[];
  readonly origins: RuleOrigin[];
  never: boolean;
}

/** The rule of a draft. @param image whether the Image object blocks its scope, or makes it insecure */
export function ruleOf(
  { scope, mirrors, origins, never }: DraftRule,
  image: Pick<MirrorRule, 'blocked' | 'insecure'>,
): MirrorRule {
  return {
    prefix: scope,
    location: scope.startsWith('*.') ? '' : scope,
    blocked: never || image.blocked,
    insecure: image.insecure,
    mirrors,
    origins,
    ...(never ? { never } : {}),
  };
}

/**
 * Rules by source: mirrors for digests first, then those for tags.
 *
 * @returns `conflicts`: lists that contradict each other
 */
export function draftRules(entries: readonly SetEntry[]) {
  const drafts = new Map<string, DraftRule>();
  const conflicts: MirrorProblem[] = [];
  for (const pullFrom of ['digest-only', 'tag-only'] as const) {
    const own = entries.filter((entry) => entry.pullFrom === pullFrom && hasMirror(entry));
    const bySource = [...Map.groupBy(own, ({ source }) => source)].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [source, group] of bySource) {
      const draft = drafts.get(source) ?? { scope: source, mirrors: [], origins: [], never: false };
      drafts.set(source, draft);
      draft.never ||= group.some(({ policy }) => policy === 'NeverContactSource');
      draft.origins.push(...group.map(({ origin }) => origin));
      const places = placesOf(group);
      const lists = group.map(({ mirrors }) => mirrors);
      const { order, conflict } = mergeOrders(source, lists);
      for (const location of order) {
        const origin = places.get(location);
        draft.mirrors.push({ location, pullFrom, ...(origin === undefined ? {} : { origin }) });
      }
      if (conflict === undefined || group[0] === undefined) continue;
      const text = `and others list "${conflict[0]}" and "${conflict[1]}" for "${source}" in opposite orders: nodes and Pullwright break the tie by name`;
      conflicts.push(problem('OrderConflict', group[0].origin, text, 'warning'));
    }
  }
  return { drafts, conflicts };
}

/** Whether the entry has a mirror other than the source; without one it has no effect, not even blocking. */
function hasMirror({ source, mirrors }: SetEntry): boolean {
  return mirrors.some((mirror) => mirror !== source);
}

/** First origin of each mirror. */
function placesOf(entries: readonly SetEntry[]): ReadonlyMap<string, RuleOrigin> {
  const places = entries.flatMap(({ mirrors, origin }) =>
    mirrors.map((mirror, at): [string, RuleOrigin] => [
      mirror,
      { ...origin, path: `${origin.path}.mirrors[${at}]` },
    ]),
  );
  return new Map(places.reverse());
}

/** A problem whose message begins with object and field. */
export function problem(
  code: string,
  origin: RuleOrigin,
  text: string,
  severity: MirrorProblem['severity'] = 'error',
): MirrorProblem {
  return { severity, code, origin, message: `${originText(origin)} ${text}` };
}
