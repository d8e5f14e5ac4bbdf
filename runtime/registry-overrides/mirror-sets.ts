/** The management cluster's mirror sets as one hosted cluster follows them: rules, texts, and what their authors should know. */
import type { Read, World } from '../controller/contract.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Verdict } from '../rules/kubernetes/pull-status.ts';
import { collectMirrors, MIRROR_SET_KINDS, type MirrorProblem } from '../rules/mirrors/collect.ts';
import type { MirrorRule } from '../rules/mirrors/mirrors.ts';
import { collectOverrideMap } from '../rules/registry-overrides/override-map.ts';
import {
  formatImageOverrides,
  OVERRIDES_ENV,
  type OverrideMap,
} from '../rules/registry-overrides/registry-overrides.ts';
import { overridesDocument } from './document.ts';
import type { RegistryOverridesOptions } from './options.ts';
import { type ImageSelection, selectEntries } from './selection.ts';

/** A cluster may have any of the kinds; a new kind or a new object is seen without a restart. */
export const SET_READS: readonly Read[] = MIRROR_SET_KINDS.map(({ apiVersion, kind }) => ({
  role: 'management',
  apiVersion,
  kind,
  optional: true,
}));

export interface MirrorSetObjects {
  readonly rules: readonly MirrorRule[];
  /** For `OPENSHIFT_IMG_OVERRIDES`: the mirrors of each source in the order in which nodes ask them. */
  readonly overrides: OverrideMap;
  /** The value that HyperShift writes from the same cluster: every hosted cluster, no mirrors for tags. */
  readonly upstreamText: string;
  /** The full document as JSON, and its hash. */
  readonly document: string;
  readonly hash: string;
  readonly verdicts: readonly Verdict[];
}

/** Reads the sets that `world` shows, after `selection` has taken out what the hosted cluster does not follow. */
export function readMirrorSets(
  world: World,
  options: RegistryOverridesOptions,
  selection: ImageSelection,
): MirrorSetObjects {
  const all = MIRROR_SET_KINDS.flatMap(({ apiVersion, kind }) =>
    world.list({ role: 'management', apiVersion, kind }),
  );
  const wish = JSON.stringify([options.tagMirrors, selection.off, selection.allow, selection.deny]);
  return remembered(all, wish, () => mirrorSetsOf(all, options, selection));
}

/** The same objects with the same wishes are asked for by every hosted cluster, and again after each of its own changes. */
const memory: {
  readonly objects: readonly KubeObject[];
  readonly wish: string;
  readonly sets: MirrorSetObjects;
}[] = [];
const REMEMBERED = 16;

function remembered(
  objects: readonly KubeObject[],
  wish: string,
  make: () => MirrorSetObjects,
): MirrorSetObjects {
  const known = memory.find(
    (entry) =>
      entry.wish === wish &&
      entry.objects.length === objects.length &&
      entry.objects.every((object, at) => object === objects[at]),
  );
  if (known !== undefined) return known.sets;
  const sets = make();
  memory.unshift({ objects, wish, sets });
  memory.length = Math.min(memory.length, REMEMBERED);
  return sets;
}

function mirrorSetsOf(
  all: readonly KubeObject[],
  options: RegistryOverridesOptions,
  selection: ImageSelection,
): MirrorSetObjects {
  const objects = selectEntries(all, selection);
  const { rules, problems } = collectMirrors(objects);
  const { text, hash } = overridesDocument(rules);
  return {
    rules,
    overrides: overridesOf(rules, options.tagMirrors),
    upstreamText: formatImageOverrides(collectOverrideMap(all, { icsp: true, idms: true })),
    document: text,
    hash,
    verdicts: [...problems.map(problemVerdict), ...kindVerdicts(objects), ...policyVerdicts(rules)],
  };
}

/**
 * Readers of the variable do not tell tags from digests: a mirror for tags is one more place to look, after those for digests. What
 * cannot be a source or a mirror is in no rule: a comma or a "=" would become other pairs.
 */
function overridesOf(rules: readonly MirrorRule[], tagMirrors: boolean): OverrideMap {
  const all = rules.map(({ prefix, mirrors }): [string, readonly string[]] => {
    const used = mirrors.filter(({ pullFrom }) => tagMirrors || pullFrom !== 'tag-only');
    return [prefix, [...new Set(used.map(({ location }) => location))]];
  });
  return new Map(all.filter(([, mirrors]) => mirrors.length > 0));
}

function problemVerdict({ severity, code, origin, message }: MirrorProblem): Verdict {
  const subject = `${origin.kind}/${origin.name} ${origin.path}`;
  return { subject, verdict: severity === 'error' ? 'Rejected' : 'Warning', reason: code, message };
}

/** ImageContentSourcePolicy is deprecated; together with its successor both count. */
function kindVerdicts(objects: readonly KubeObject[]): readonly Verdict[] {
  const policies = objects.filter((object) => object.kind === 'ImageContentSourcePolicy');
  if (policies.length === 0) return [];
  const both = objects.some((object) => object.kind === 'ImageDigestMirrorSet');
  const message = both
    ? 'both kinds are here, and the mirrors of a source are merged as nodes merge them: convert these with "oc adm migrate icsp"'
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

function policyVerdicts(rules: readonly MirrorRule[]): readonly Verdict[] {
  return rules
    .filter((rule) => rule.blocked)
    .map((rule) => ({
      subject: rule.prefix,
      verdict: 'Warning',
      reason: 'PolicyNotExpressible',
      message: `${OVERRIDES_ENV} cannot say NeverContactSource: components that read it ask the source when every mirror fails`,
    }));
}
