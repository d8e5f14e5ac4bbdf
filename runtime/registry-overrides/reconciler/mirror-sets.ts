/** The management cluster's mirror sets that one hosted cluster follows: rules, values, and verdicts for their authors. */

import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { type MirrorRule, originText } from '../../core/mirrors/resolve.ts';
import { oncePer, remember, scalarText } from '../../core/record.ts';
import type { Reader, Watch } from '../../engine/contract.ts';
import { isInside } from '../machine-config/input.ts';
import {
  collectMirrors,
  MIRROR_SET_KINDS,
  type MirrorProblem,
  sourceProblem,
} from '../mirror-sets/collect.ts';
import type { RegistryOverridesOptions } from '../options.ts';
import { formatImageOverrides, OVERRIDES_ENV, type OverrideMap } from '../overrides.ts';
import { collectOverrideMap } from '../planes.ts';
import { overridesDocument } from './report.ts';

// Selection of a management cluster's mirror sets by annotations on the HostedCluster. Source of the rule: ours. HyperShift
// passes every mirror to every hosted cluster, and a private mirror breaks the installation of those that cannot reach it.

/** `off`: follow no mirror set. */
export const SWITCH_ANNOTATION = 'pullwright.dev/registry-overrides';
/** Follow only these: sources (with all below them) or mirror sets as `Kind/name`, joined by commas. */
export const ALLOW_ANNOTATION = 'pullwright.dev/registry-overrides-allow';
/** Do not follow these; wins over the allow-list. */
export const DENY_ANNOTATION = 'pullwright.dev/registry-overrides-deny';

export type ImageSelection = Readonly<ReturnType<typeof readSelection>>;

/**
 * Reads the annotations. Reports invalid entries in `problems`, each a sentence that names the annotation; with any, the result
 * must not be used. Without `allow`, everything is allowed.
 */
export function readSelection(annotations: Readonly<Record<string, unknown>>) {
  const problems: string[] = [];
  const state = annotations[SWITCH_ANNOTATION] ?? 'on';
  if (state !== 'on' && state !== 'off')
    problems.push(`${SWITCH_ANNOTATION} is ${quoted(state)}: expected "on" or "off"`);
  const allow = readList(annotations, ALLOW_ANNOTATION, problems);
  const deny = readList(annotations, DENY_ANNOTATION, problems);
  return { off: state === 'off', allow, deny: deny ?? [], problems };
}

/** Whether the hosted cluster follows the entry for `source` of the mirror set `object` (`Kind/name`). */
export function isSelected(selection: ImageSelection, source: string, object: string): boolean {
  if (selection.off) return false;
  const named = (entry: string): boolean => entry === object || isInside(source, entry);
  if (selection.deny.some(named)) return false;
  return selection.allow === undefined || selection.allow.some(named);
}

function readList(annotations: Readonly<Record<string, unknown>>, name: string, problems: string[]) {
  const text = annotations[name];
  if (typeof text !== 'string') return undefined;
  const entries = text.split(',').map((entry) => entry.trim());
  return entries.filter((entry) => {
    const isSet = MIRROR_SET_KINDS.some(({ kind }) => entry.startsWith(`${kind}/`) && entry !== `${kind}/`);
    const isValid = isSet || sourceProblem(entry) === undefined;
    if (!isValid)
      problems.push(
        `${name} has the entry ${quoted(entry)}: expected a source such as "quay.io/team" or "ImageDigestMirrorSet/name"`,
      );
    return isValid;
  });
}

function quoted(value: unknown): string {
  return JSON.stringify(typeof value === 'string' ? value.slice(0, 100) : scalarText(value));
}

/** A cluster may have any of the kinds; a new kind or a new object is seen without a restart. */
export const SET_READS: readonly Watch[] = MIRROR_SET_KINDS.map(({ apiVersion, kind }) => ({
  role: 'management',
  apiVersion,
  kind,
  optional: true,
}));

export type MirrorSetObjects = Readonly<ReturnType<typeof mirrorSetsOf>>;

/** Reads the sets that the hosted cluster follows by `selection`. */
export function readMirrorSets(reader: Reader, options: RegistryOverridesOptions, selection: ImageSelection) {
  const lists = SET_READS.map((kind) => reader.list(kind));
  const known = lists.reduce<Known>((at, list) => at.below(list), READ).sets;
  const wish = JSON.stringify([options.tagMirrors, selection.off, selection.allow, selection.deny]);
  const sets = known.get(wish) ?? mirrorSetsOf(lists.flat(), options, selection);
  remember(known, wish, sets, 16);
  return sets;
}

/** Results by the identity of cached lists, which changes with their content. */
interface Known {
  readonly sets: Map<string, MirrorSetObjects>;
  readonly below: (list: readonly KubeObject[]) => Known;
}

const knownBelow = (): Known => ({ sets: new Map(), below: oncePer(knownBelow) });

/** Cache: all hosted clusters read the same objects, mostly with the same annotations, at each reconcile. */
const READ: Known = knownBelow();

function mirrorSetsOf(
  all: readonly KubeObject[],
  options: RegistryOverridesOptions,
  selection: ImageSelection,
) {
  const { rules, problems } = collectMirrors(all, ({ source, origin: { kind, name } }) =>
    isSelected(selection, source, `${kind}/${name}`),
  );
  const { text, hash } = overridesDocument(rules);
  return {
    rules,
    /** For `OPENSHIFT_IMG_OVERRIDES`: the mirrors of each source in the order of the nodes. */
    overrides: overridesOf(rules, options.tagMirrors),
    /** The value that HyperShift writes from the same cluster: every hosted cluster, no mirrors for tags. */
    upstreamText: formatImageOverrides(collectOverrideMap(all)),
    /** The full document as JSON. */
    document: text,
    hash,
    verdicts: [...problems.map(problemVerdict), ...kindVerdicts(all), ...policyVerdicts(rules)],
  };
}

/**
 * Readers of the variable do not distinguish tags from digests: mirrors for tags follow those for digests. Rules contain only
 * valid sources and mirrors, so no comma or "=" that would become other pairs.
 */
function overridesOf(rules: readonly MirrorRule[], tagMirrors: boolean): OverrideMap {
  const all = rules.map(({ prefix, mirrors }): [string, readonly string[]] => {
    const used = mirrors.filter(({ pullFrom }) => tagMirrors || pullFrom !== 'tag-only');
    return [prefix, [...new Set(used.map(({ location }) => location))]];
  });
  return new Map(all.filter(([, mirrors]) => mirrors.length > 0));
}

function problemVerdict({ severity, code, origin, message }: MirrorProblem): EntryStatus {
  return {
    subject: originText(origin),
    verdict: severity === 'error' ? 'Rejected' : 'Warning',
    reason: code,
    message,
  };
}

/** Warns of the deprecated ImageContentSourcePolicy, which is merged with its successor. */
function kindVerdicts(objects: readonly KubeObject[]): readonly EntryStatus[] {
  const policies = objects.filter((object) => object.kind === 'ImageContentSourcePolicy');
  if (policies.length === 0) return [];
  const both = objects.some((object) => object.kind === 'ImageDigestMirrorSet');
  const message = both
    ? 'both kinds exist, and the mirrors of a source are merged as on nodes: convert these with "oc adm migrate icsp"'
    : 'the kind is deprecated: convert these with "oc adm migrate icsp"';
  return [
    {
      subject: 'ImageContentSourcePolicy',
      verdict: 'Warning',
      reason: both ? 'BothKinds' : 'Deprecated',
      message: `${policies.length === 1 ? 'one object' : `${policies.length} objects`}: ${message}`,
    },
  ];
}

function policyVerdicts(rules: readonly MirrorRule[]): readonly EntryStatus[] {
  return rules
    .filter((rule) => rule.blocked)
    .map((rule) => ({
      subject: rule.prefix,
      verdict: 'Warning',
      reason: 'PolicyNotExpressible',
      message: `${OVERRIDES_ENV} does not support NeverContactSource: components that read it contact the source when every mirror fails`,
    }));
}
