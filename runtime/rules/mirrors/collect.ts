/**
 * Mirror sets of a cluster (ImageContentSourcePolicy, ImageDigestMirrorSet, ImageTagMirrorSet) become rules, and problems that
 * their authors should know about.
 *
 * Source of the rule: the three kinds' documentation and the Machine Config Operator, which writes them into
 * `registries.conf`: mirrors for digests first, then mirrors for tags; `NeverContactSource` in any set of a source blocks it.
 * The order in which objects are listed does not matter: they are read by kind and name.
 */
import type { KubeObject } from '../kubernetes/object.ts';
import type { MirrorRule, RuleMirror, RuleOrigin } from './mirrors.ts';
import { mergeOrders } from './order.ts';
import type { PullFrom } from './registries-conf.ts';
import { mirrorProblem, sourceProblem } from './syntax.ts';

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
 * Rules of `objects`; objects of other kinds are skipped. An entry that cannot be used is left out and reported, the
 * others go on.
 *
 * @example
 * ```ts
 * import { collectMirrors } from './collect.ts';
 * import assert from 'node:assert/strict';
 *
 * const { rules } = collectMirrors([{
 *   apiVersion: 'config.openshift.io/v1', kind: 'ImageDigestMirrorSet', metadata: { name: 'release' },
 *   spec: { imageDigestMirrors: [{ source: 'quay.io/ocp', mirrors: ['mirror.example.com/ocp'], mirrorSourcePolicy: 'NeverContactSource' }] },
 * }]);
 * assert.equal(rules[0]?.blocked, true);
 * assert.equal(rules[0]?.mirrors[0]?.pullFrom, 'digest-only');
 * ```
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

/** Every usable entry of the three kinds, by kind, name and place; and what is wrong with the others. */
export function readMirrorEntries(objects: readonly KubeObject[]): {
  readonly entries: readonly MirrorEntry[];
  readonly problems: readonly MirrorProblem[];
} {
  const entries: MirrorEntry[] = [];
  const problems: MirrorProblem[] = [];
  for (const set of MIRROR_SET_KINDS) {
    const own = objects
      .filter((object) => object.kind === set.kind && groupOf(object.apiVersion) === groupOf(set.apiVersion))
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    for (const object of own) readObject(object, set, entries, problems);
  }
  return { entries, problems };
}

function groupOf(apiVersion: string): string {
  return apiVersion.split('/')[0] ?? '';
}

function readObject(
  object: KubeObject,
  set: MirrorSetKind,
  entries: MirrorEntry[],
  problems: MirrorProblem[],
): void {
  const list = (object.spec as Readonly<Record<string, unknown>> | null | undefined)?.[set.list];
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

function problem(
  code: string,
  origin: RuleOrigin,
  text: string,
  severity: MirrorProblem['severity'] = 'error',
): MirrorProblem {
  return { severity, code, origin, message: `${origin.kind}/${origin.name} ${origin.path} ${text}` };
}
