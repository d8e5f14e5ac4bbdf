/**
 * What a change of the files does to nodes: nothing, a reload of CRI-O, a drain, or a drain and a reboot.
 *
 * Source of the rule: the Machine Config Daemon's `isSafeContainerRegistryConfChanges` and the default node disruption policies.
 */
import type { MirrorRule, RuleMirror } from '../../core/mirrors/resolve.ts';
import {
  headText,
  type NodeFiles,
  POLICY_JSON,
  REGISTRIES_CONF,
  registriesText,
  SEARCH_DROP_IN,
} from './render.ts';

export interface Disruption {
  /** Paths, sorted. */
  readonly changedFiles: readonly string[];
  /** `Special` reloads CRI-O and drains only where the change is not safe. */
  readonly actions: readonly ('Reboot' | 'Reload crio.service' | 'Special')[];
  readonly drain: boolean;
  readonly reboot: boolean;
  /** What in `registries.conf` makes the drain necessary, as a sentence; undefined where nothing does. */
  readonly because?: string;
}

/**
 * Compares what nodes have with what they get. Files that a rendering does not hold have the content of the operator's template.
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
  if (search)
    return {
      changedFiles,
      actions: ['Reboot'],
      drain: true,
      reboot: true,
      because: 'the registries for short names change',
    };
  const because = conf ? unsafeChange(before.rules, after.rules) : undefined;
  return {
    changedFiles,
    actions: [...(policy ? ['Reload crio.service' as const] : []), ...(conf ? ['Special' as const] : [])],
    drain: because !== undefined,
    reboot: false,
    ...(because === undefined ? {} : { because }),
  };
}

function confText(rendering: NodeFiles): string {
  return rendering.files.includes(REGISTRIES_CONF) ? registriesText(rendering.rules) : '';
}

function searchText(rendering: NodeFiles): string {
  return rendering.files.includes(SEARCH_DROP_IN) ? headText(rendering.search) : '';
}

/** The first change that pods must leave the node for; undefined where all are safe. */
function unsafeChange(before: readonly MirrorRule[], after: readonly MirrorRule[]): string | undefined {
  const old = new Map(before.map((rule) => [rule.prefix, rule]));
  const kept = new Set(after.map((rule) => rule.prefix));
  const gone = before.find((rule) => !kept.has(rule.prefix));
  if (gone !== undefined) return `the entry "${gone.prefix}" goes away`;
  for (const rule of after) {
    const own = old.get(rule.prefix);
    const reason = own === undefined ? unsafeEntry(rule) : unsafeEdit(own, rule);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function unsafeEntry(rule: MirrorRule): string | undefined {
  if (rule.mirrors.length === 0) return `the entry "${rule.prefix}" comes without mirrors`;
  const tag = rule.mirrors.find(({ pullFrom }) => pullFrom !== 'digest-only');
  return tag && `the entry "${rule.prefix}" comes with the mirror "${tag.location}", which serves tags`;
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
  if (gone !== undefined) return `"${after.prefix}" loses the mirror "${gone.location}"`;
  const changed = after.mirrors.find(
    ({ location, pullFrom }) => pullFrom !== 'digest-only' && pullFrom !== had.get(location)?.pullFrom,
  );
  if (changed === undefined) return undefined;
  return `"${after.prefix}" gets the mirror "${changed.location}" for tags`;
}

/** The daemon finds a location that serves digests and tags by its first entry only. */
function firstByLocation(mirrors: readonly RuleMirror[]): ReadonlyMap<string, RuleMirror> {
  return new Map(mirrors.map((mirror) => [mirror.location, mirror] as const).reverse());
}
