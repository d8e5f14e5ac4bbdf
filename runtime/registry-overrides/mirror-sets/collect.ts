/**
 * Mirror sets of a cluster (ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet) become rules, and problems that
 * their authors should know about.
 *
 * Source of the rule: the three kinds' documentation and the Machine Config Operator, which writes them into
 * `registries.conf`: mirrors for digests first, then mirrors for tags; `NeverContactSource` in any set of a source blocks it.
 * The order in which objects are listed does not matter: they are read by kind and name.
 */
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { PullFrom } from '../../core/mirrors/registries-conf.ts';
import type { MirrorRule, RuleMirror, RuleOrigin } from '../../core/mirrors/resolve.ts';
import { recordOf } from '../../core/record.ts';

// Several lists of mirrors for one source become one list, in the order that the nodes get.
// Source of the rule: openshift/runtime-utils `pkg/registries` (`addMirrorSet`, `topoGraph.Sorted`), recorded in
// test/conformance/cases/mco-registries: a topological sort, level by level, with ties and loops decided by name.

/** The merged order, and the first pair that the lists put in opposite orders, if any. */
export interface MergedOrder {
  /** Without the source where that is last: the runtime tries it last anyway. */
  readonly order: readonly string[];
  readonly conflict?: readonly [string, string];
}

/**
 * Merges the mirrors that several entries list for `source`. Neither the order of the lists nor their repetition matters: a
 * mirror comes before another where a list says so, and by name where none does. A list that holds nothing but the source counts
 * for nothing. Where lists contradict each other, or one repeats a mirror, the loop is broken by name, and the source may come to
 * stand among its mirrors.
 */
export function mergeOrders(source: string, lists: readonly (readonly string[])[]): MergedOrder {
  const counting = lists.filter((list) => list.some((mirror) => mirror !== source));
  const [only] = counting;
  // One list without repetition is a chain, which sorts to itself.
  const isChain = counting.length === 1 && only !== undefined && new Set(only).size === only.length;
  const { order, conflict }: MergedOrder = isChain ? { order: only } : sorted(graphOf(source, counting));
  const mirrors = order.at(-1) === source ? order.slice(0, -1) : order;
  return conflict === undefined ? { order: mirrors } : { order: mirrors, conflict };
}

interface Node {
  readonly after: Set<string>;
  /** How many others have to come first. */
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

function sorted(graph: Graph): MergedOrder {
  const names = [...graph.keys()].sort(byText);
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
  return conflict === undefined ? { order: queue } : { order: queue, conflict };
}

/** What would have to precede `name`, which is next only for lack of others; a mirror listed twice does not conflict. */
function conflictAt(
  graph: Graph,
  name: string,
  used: ReadonlySet<string>,
): readonly [string, string] | undefined {
  for (const [earlier, { after }] of graph)
    if (earlier !== name && !used.has(earlier) && after.has(name)) return [earlier, name];
  return undefined;
}

/** What may come as soon as `name` is out. */
function released(graph: Graph, name: string, used: ReadonlySet<string>): readonly string[] {
  const free: string[] = [];
  for (const next of graph.get(name)?.after ?? []) {
    const node = graph.get(next);
    if (node === undefined) continue;
    node.waits -= 1;
    if (node.waits === 0 && !used.has(next)) free.push(next);
  }
  return free.sort(byText);
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

// What may stand as source and as mirror: `host[:port][/path]`, and for a source also `*.domain`.
// Source of the rule: the patterns in the CRDs of ImageDigestMirrorSet and ImageTagMirrorSet, which the Machine Config
// Operator also demands of an ImageContentSourcePolicy (whose CRD has none).

const LABEL = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const HOST_TEXT = `${LABEL}(?:\\.${LABEL})*(?::[0-9]+)?`;
const HOST: RegExp = new RegExp(`^${HOST_TEXT}$`);
const WILDCARD: RegExp = new RegExp(`^\\*(?:\\.${LABEL})+$`);
// Not the CRD's nested quantifiers: they accept the same texts, but take exponential time for some that do not match.
const SEGMENT_TEXT = '[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*';
const SEGMENT: RegExp = new RegExp(`^${SEGMENT_TEXT}$`);
const MIRROR: RegExp = new RegExp(`^${HOST_TEXT}(?:/${SEGMENT_TEXT})*$`);

/** What is wrong with `text` as a source; `undefined` when nothing is. */
export function sourceProblem(text: string): string | undefined {
  if (!text.startsWith('*')) return mirrorProblem(text);
  if (WILDCARD.test(text)) return undefined;
  return `"${text}" is no wildcard: expected "*.example.com", without port or path`;
}

/** What is wrong with `text` as a mirror; `undefined` when nothing is. */
export function mirrorProblem(text: string): string | undefined {
  if (MIRROR.test(text)) return undefined;
  if (text === '') return 'it is empty';
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

/** The three kinds, where their lists are, and for which pulls their mirrors serve. */
export const MIRROR_SET_KINDS: readonly MirrorSetKind[] = [
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
];

export interface MirrorSetKind {
  readonly kind: string;
  readonly apiVersion: string;
  readonly list: string;
  readonly pullFrom: PullFrom;
}

/** One entry of one mirror set, as written. */
export interface MirrorEntry {
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly neverContactSource: boolean;
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

export interface CollectedMirrors {
  /** Sorted by source. */
  readonly rules: readonly MirrorRule[];
  readonly problems: readonly MirrorProblem[];
}

/**
 * Rules of `objects`; objects of other kinds are skipped. An invalid entry is ignored and reported, the
 * others go on.
 */
export function collectMirrors(objects: readonly KubeObject[]): CollectedMirrors {
  const { entries, problems } = readMirrorEntries(objects);
  const bySource = new Map<string, [MirrorEntry, ...MirrorEntry[]]>();
  for (const entry of entries) {
    const group = bySource.get(entry.source);
    if (group === undefined) bySource.set(entry.source, [entry]);
    else group.push(entry);
  }
  const found = [...problems];
  const groups = [...bySource.values()].sort((a, b) => (a[0].source < b[0].source ? -1 : 1));
  const rules = groups.map((group) => ruleOf(group, found));
  return { rules, problems: found };
}

/** Every valid entry of the three kinds, by kind, name and field; and what is wrong with the others. */
export function readMirrorEntries(objects: readonly KubeObject[]): {
  readonly entries: readonly MirrorEntry[];
  readonly problems: readonly MirrorProblem[];
} {
  const entries: MirrorEntry[] = [];
  const problems: MirrorProblem[] = [];
  for (const set of MIRROR_SET_KINDS) {
    const own = objects
      .filter((object) => isOf(object, set))
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    for (const object of own) readObject(object, set, entries, problems);
  }
  return { entries, problems };
}

/** Whether `object` is of a kind, in whatever version of its group. */
export function isOf(
  object: KubeObject,
  set: { readonly kind: string; readonly apiVersion: string },
): boolean {
  const group = (apiVersion: string): string => apiVersion.split('/', 1)[0] ?? '';
  return object.kind === set.kind && group(object.apiVersion) === group(set.apiVersion);
}

function readObject(
  object: KubeObject,
  set: MirrorSetKind,
  entries: MirrorEntry[],
  problems: MirrorProblem[],
): void {
  const list = recordOf(object.spec)[set.list];
  const origin = (path: string): RuleOrigin => ({ kind: set.kind, name: object.metadata.name, path });
  if (list === undefined || list === null) return;
  if (!Array.isArray(list)) {
    problems.push(
      problem('NotAList', origin(`spec.${set.list}`), 'is no list: expected a list of sources with mirrors'),
    );
    return;
  }
  for (const [at, item] of list.entries()) {
    const entry = readEntry(item, origin(`spec.${set.list}[${at}]`), set.pullFrom, problems);
    if (entry !== undefined) entries.push(entry);
  }
}

function readEntry(
  item: unknown,
  origin: RuleOrigin,
  pullFrom: PullFrom,
  problems: MirrorProblem[],
): MirrorEntry | undefined {
  const { source, mirrors, mirrorSourcePolicy: policy } = (item ?? {}) as Readonly<Record<string, unknown>>;
  const wrong = typeof source === 'string' ? sourceProblem(source) : 'it is missing';
  if (wrong !== undefined || typeof source !== 'string') {
    problems.push(problem('SourceInvalid', origin, `has no usable source: ${wrong}`));
    return undefined;
  }
  const usable: string[] = [];
  for (const [at, mirror] of (Array.isArray(mirrors) ? mirrors : []).entries()) {
    const reason = typeof mirror === 'string' ? mirrorProblem(mirror) : 'it is no text';
    if (reason === undefined) usable.push(mirror as string);
    else {
      const place = { ...origin, path: `${origin.path}.mirrors[${at}]` };
      problems.push(problem('MirrorInvalid', place, `cannot be used as mirror of "${source}": ${reason}`));
    }
  }
  if (usable.every((mirror) => mirror === source)) {
    problems.push(
      problem(
        'NoMirror',
        origin,
        `has no mirror for "${source}" and does nothing, not even block it`,
        'warning',
      ),
    );
    return undefined;
  }
  return { source, mirrors: usable, neverContactSource: policy === 'NeverContactSource', pullFrom, origin };
}

/** The rule of all entries of one source. */
function ruleOf(
  group: readonly [MirrorEntry, ...(readonly MirrorEntry[])],
  problems: MirrorProblem[],
): MirrorRule {
  const [first] = group;
  const { source } = first;
  const blocked = group.some((entry) => entry.neverContactSource);
  const contrary = group.find((entry) => entry.neverContactSource !== first.neverContactSource);
  if (contrary !== undefined) {
    const text = `and ${first.origin.kind}/${first.origin.name} disagree about contacting "${source}": it is not contacted, and the Machine Config Operator refuses both; ${policyAdvice([first.origin, contrary.origin])}`;
    problems.push(problem('PolicyConflict', contrary.origin, text));
  }
  const mirrors = group.every((entry) => entry.pullFrom === first.pullFrom)
    ? mirrorsOf(source, group, problems)
    : (['digest-only', 'tag-only'] as const).flatMap((pullFrom) =>
        mirrorsOf(
          source,
          group.filter((entry) => entry.pullFrom === pullFrom),
          problems,
        ),
      );
  if (blocked && mirrors.some((mirror) => mirror.location === source))
    problems.push(
      problem(
        'SourceIsMirror',
        first.origin,
        `lists "${source}" as its own mirror and forbids to contact it`,
      ),
    );
  return {
    prefix: source,
    location: source.startsWith('*.') ? '' : source,
    blocked,
    insecure: false,
    mirrors,
    origins: group.map((entry) => entry.origin),
  };
}

/** What to do about two entries with different policies for one source. */
export function policyAdvice(entries: readonly RuleOrigin[]): string {
  const policy = entries.find(({ kind }) => kind === 'ImageContentSourcePolicy');
  return policy === undefined
    ? 'give both the same mirrorSourcePolicy'
    : `ImageContentSourcePolicy cannot forbid its source: replace ImageContentSourcePolicy/${policy.name} by an ImageDigestMirrorSet with the same mirrorSourcePolicy ("oc adm migrate icsp" writes one without), or drop the policy`;
}

function mirrorsOf(
  source: string,
  group: readonly MirrorEntry[],
  problems: MirrorProblem[],
): readonly RuleMirror[] {
  const [first] = group;
  if (first === undefined) return [];
  const { order, conflict } = mergeOrders(
    source,
    group.map((entry) => entry.mirrors),
  );
  if (conflict !== undefined) {
    const text = `and others list "${conflict[0]}" and "${conflict[1]}" for "${source}" in opposite orders: the tie is broken by name, for nodes as well as here`;
    problems.push(problem('OrderConflict', first.origin, text, 'warning'));
  }
  return order.map((location) => ({ location, pullFrom: first.pullFrom, ...originOf(location, group) }));
}

function originOf(location: string, group: readonly MirrorEntry[]): { readonly origin?: RuleOrigin } {
  const entry = group.find((candidate) => candidate.mirrors.includes(location));
  if (entry === undefined) return {};
  return { origin: { ...entry.origin, path: `${entry.origin.path}.mirrors` } };
}

/** A problem, worded for the field that it is about. */
export function problem(
  code: string,
  origin: RuleOrigin,
  text: string,
  severity: MirrorProblem['severity'] = 'error',
): MirrorProblem {
  return { severity, code, origin, message: `${origin.kind}/${origin.name} ${origin.path} ${text}` };
}
