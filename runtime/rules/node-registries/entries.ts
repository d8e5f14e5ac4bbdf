/**
 * The `[[registry]]` tables that the operator makes of mirror sets, insecure and blocked scopes, in the order of the file.
 *
 * Source of the rule: openshift/runtime-utils `EditRegistriesConfig`. The runtime follows only the entry with the longest scope, so
 * switches and mirrors are handed down to the entries below; here each entry looks for what is above it, which takes time by the
 * length of its scope and not by the number of entries.
 */
import type { MirrorRule, RuleMirror, RuleOrigin } from '../mirrors/mirrors.ts';
import { mergeOrders } from '../mirrors/order.ts';
import type { PullFrom } from '../mirrors/registries-conf.ts';
import { imageOrigin, type RegistriesFault, wildcardFault } from './faults.ts';
import type { SetEntry } from './input.ts';
import { scopesAround } from './scopes.ts';

export interface EntriesInput {
  readonly digest: readonly SetEntry[];
  readonly tag: readonly SetEntry[];
  readonly insecure: readonly string[];
  readonly blocked: readonly string[];
}

export interface RegistryEntries {
  readonly rules: readonly MirrorRule[];
  /** A wildcard source over a scope without mirrors of its own, which the operator cannot write. */
  readonly faults: readonly RegistriesFault[];
}

interface Draft {
  readonly scope: string;
  readonly mirrors: RuleMirror[];
  readonly origins: RuleOrigin[];
  never: boolean;
}

/**
 * @example
 * ```ts
 * import { editEntries } from './entries.ts';
 * import assert from 'node:assert/strict';
 *
 * const entry = {
 *   source: 'quay.io', mirrors: ['mirror.example.com'], policy: 'AllowContactingSource',
 *   origin: { kind: 'ImageDigestMirrorSet', name: 'a', path: 'spec.imageDigestMirrors[0]' },
 * };
 * const { rules } = editEntries({ digest: [entry], tag: [], insecure: [], blocked: ['quay.io/bad'] });
 * assert.deepEqual(rules.map(({ prefix, blocked }) => [prefix, blocked]), [['quay.io', false], ['quay.io/bad', true]]);
 * assert.equal(rules[1]?.mirrors[0]?.location, 'mirror.example.com/bad');
 * ```
 */
export function editEntries(input: EntriesInput): RegistryEntries {
  const drafts = new Map<string, Draft>();
  const digest = bySource(input.digest);
  const tag = bySource(input.tag);
  addMirrors(drafts, digest, 'digest-only');
  addMirrors(drafts, tag, 'tag-only');
  const insecure = new Set(input.insecure);
  const blocked = new Set(input.blocked);
  for (const { mirrors } of drafts.values()) markInsecure(mirrors, insecure);
  const sources = rankOf([...digest, ...tag].map(([source]) => source));
  for (const scope of blocked) draftOf(drafts, scope, imageOrigin('blockedRegistries'));
  for (const scope of insecure) draftOf(drafts, scope, imageOrigin('insecureRegistries'));
  const faults = handDown(drafts, sources);
  return { rules: [...drafts.values()].map((draft) => ruleOf(draft, insecure, blocked)), faults };
}

type Group = readonly [source: string, entries: readonly SetEntry[]];

/** Entries with a mirror other than the source, by source in the order of its text; others do nothing, not even block. */
function bySource(entries: readonly SetEntry[]): readonly Group[] {
  const groups = new Map<string, SetEntry[]>();
  for (const entry of entries) {
    if (entry.mirrors.every((mirror) => mirror === entry.source)) continue;
    const group = groups.get(entry.source);
    if (group === undefined) groups.set(entry.source, [entry]);
    else group.push(entry);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}

function addMirrors(drafts: Map<string, Draft>, groups: readonly Group[], pullFrom: PullFrom): void {
  for (const [source, entries] of groups) {
    const draft = draftOf(drafts, source);
    draft.never ||= entries.some((entry) => entry.policy === 'NeverContactSource');
    draft.origins.push(...entries.map(({ origin }) => origin));
    const places = placesOf(entries);
    const lists = entries.map(({ mirrors }) => mirrors);
    for (const location of mergeOrders(source, lists).order) {
      const origin = places.get(location);
      draft.mirrors.push({ location, pullFrom, ...(origin === undefined ? {} : { origin }) });
    }
  }
}

/** Where each mirror is written first. */
function placesOf(entries: readonly SetEntry[]): ReadonlyMap<string, RuleOrigin> {
  const places = entries.flatMap(({ mirrors, origin }) =>
    mirrors.map((mirror, at): [string, RuleOrigin] => [
      mirror,
      { ...origin, path: `${origin.path}.mirrors[${at}]` },
    ]),
  );
  return new Map(places.reverse());
}

function draftOf(drafts: Map<string, Draft>, scope: string, origin?: RuleOrigin): Draft {
  const found = drafts.get(scope);
  if (found !== undefined) {
    if (origin !== undefined) found.origins.push(origin);
    return found;
  }
  const made: Draft = { scope, mirrors: [], origins: origin === undefined ? [] : [origin], never: false };
  drafts.set(scope, made);
  return made;
}

function markInsecure(mirrors: RuleMirror[], insecure: ReadonlySet<string>): void {
  if (insecure.size === 0) return;
  for (const [at, mirror] of mirrors.entries())
    if (scopesAround(mirror.location).some((scope) => insecure.has(scope)))
      mirrors[at] = { ...mirror, insecure: true };
}

function rankOf(sources: readonly string[]): ReadonlyMap<string, number> {
  const ranks = new Map<string, number>();
  for (const source of sources) if (!ranks.has(source)) ranks.set(source, ranks.size);
  return ranks;
}

/** Scopes without mirrors take those of the first source that they lie in: digest sources go before tag sources, wide before narrow. */
function handDown(
  drafts: ReadonlyMap<string, Draft>,
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

function ruleOf(draft: Draft, insecure: ReadonlySet<string>, blocked: ReadonlySet<string>): MirrorRule {
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
