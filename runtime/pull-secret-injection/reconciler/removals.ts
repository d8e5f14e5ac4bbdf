/**
 * Copies that nobody took back and that would go all the same: the profile no longer selects the namespace, no longer names the
 * Secret, or names a source that is not granted. One or two go at once; many within a minute are held until the profile says that it is meant.
 */

import {
  type Condition,
  type ConditionInput,
  type ConditionText,
  timestamp,
} from '../../core/kubernetes/conditions.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import { counted } from '../../core/text.ts';
import type { Reader } from '../../engine/contract.ts';
import { pullStatusRef } from '../../engine/pull-status.ts';
import { MAX_SECRETS, PROFILE_API_VERSION, PROFILE_KIND } from '../kinds/profile.ts';
import { SOURCE_NAMESPACE_ANNOTATION } from '../kinds/sidecar-set.ts';
import type { InjectionOptions } from '../options.ts';
import { DISTRIBUTE_LABEL } from '../plan/plan.ts';
import { CONFIRM_ANNOTATION, removalHash, removesMany } from '../removal-breaker.ts';
import { consentTo } from './consent.ts';
import {
  type Copy,
  type CopyContext,
  copiesFor,
  heldSources,
  isRevoked,
  keptUnread,
  ownCopies,
  writerOf,
} from './copies.ts';
import { expiryOf } from './missing-sources.ts';
import {
  bringerName,
  type Distribution,
  distributionIn,
  isTerminating,
  kruiseInjects,
  namespaceLabels,
  SET_PREFIX,
  serves,
  sidecarSetObjects,
} from './view.ts';

// A removal that is held: since when, by what is said of who brings the copies, and how that is said.

/** What one profile or SidecarSet would lose. */
export interface Removal {
  /** Copies that there are, those that go included. */
  readonly all: number;
  /** `namespace/name` of those that go. */
  readonly gone: readonly string[];
}

/** A removal that waits for a confirmation. */
export interface HeldRemoval extends Removal {
  /** Too few by themselves: others of the same change went before. */
  readonly rest: boolean;
  readonly hash: string;
  readonly confirmed: boolean;
}

/** Type of the condition that is there while a removal waits for a confirmation. */
export const REMOVAL_HELD = 'RemovalHeld';

/** Since when a removal is held: the transition of the condition, which therefore stays until the last copy is gone. */
export function heldSince(reader: Reader, object: KubeObject, options: InjectionOptions): string | undefined {
  const { conditions } = (statusOf(reader, object, options) ?? {}) as { conditions?: readonly Condition[] };
  return conditions?.find(({ type, status }) => type === REMOVAL_HELD && status === 'True')
    ?.lastTransitionTime;
}

/** What the reconciler says of it: of a SidecarSet, whose status is Kruise's where Kruise injects, beside it. */
function statusOf(
  reader: Reader,
  object: KubeObject,
  { ownNamespace: namespace }: InjectionOptions,
): unknown {
  if (object.kind === PROFILE_KIND || !kruiseInjects(reader)) return object.status;
  return reader.get(pullStatusRef('hosted', { kind: object.kind, namespace, name: object.metadata.name }))
    ?.status;
}

/** Which copies stay for now, and how to say that they may go. */
export function heldCondition(
  { kind, metadata }: KubeObject,
  removal: HeldRemoval | undefined,
): readonly ConditionInput[] {
  if (removal === undefined) return [];
  const { gone, all, rest, hash, confirmed } = removal;
  const of = `${gone.length} of ${counted(all, 'copy', 'copies')}`;
  if (confirmed)
    return [{ type: REMOVAL_HELD, status: 'True', reason: 'Confirmed', message: `${of} may go` }];
  const some = gone
    .slice(0, 5)
    .map((copy) => `"${copy}"`)
    .join(', ');
  const more = gone.length > 5 ? ` and ${gone.length - 5} more` : '';
  const larger = rest ? ', the rest of a larger change' : '';
  const message = `removes ${of}${larger}: ${some}${more} ${gone.length === 1 ? 'stays' : 'stay'} until the annotation ${CONFIRM_ANNOTATION}: "${hash}" on ${kind} "${metadata.name}" confirms it`;
  return [{ type: REMOVAL_HELD, status: 'True', reason: 'Share', message }];
}

/** As `Ready` says it, while it waits. */
export function heldText(held: readonly ConditionInput[]): ConditionText | undefined {
  const waits = held.find(({ reason }) => reason !== 'Confirmed');
  return waits === undefined ? undefined : { reason: REMOVAL_HELD, message: waits.message };
}

const NOTHING: Removal = { all: 0, gone: [] };

/**
 * Copies in one namespace that would go although nobody took them back, and that wait for a confirmation.
 *
 * @param planned what becomes of the Secrets there
 */
export function heldIn(context: CopyContext, planned: readonly Copy[]): readonly SecretObject[] {
  return goingIn(context, planned).filter((copy) => {
    const bringer = bringerOf(context.world, copy);
    if (bringer === undefined) return false;
    const removal = heldRemoval(context.world, bringer, context.options);
    if (removal === undefined) goneLately(context, bringer).set(idOf(copy), context.world.now.getTime());
    return removal?.confirmed === false;
  });
}

/** The removal that is held for one profile or SidecarSet, or that was and is confirmed; undefined when nothing stands in the way of it. */
export function heldRemoval(
  reader: Reader,
  bringer: KubeObject,
  options: InjectionOptions,
): HeldRemoval | undefined {
  const removal = removalsIn(reader, options).get(bringerName(bringer)) ?? NOTHING;
  if (removal.gone.length === 0) return undefined;
  const { uid = '', annotations } = bringer.metadata;
  const before = heldSince(reader, bringer, options);
  const lately = goneLately({ world: reader, options }, bringer);
  for (const one of removal.gone) lately.delete(one);
  const many = removesMany(removal.gone.length + lately.size, removal.all + lately.size, options.removals);
  // What is left of a removal that was held waits with it.
  if (!many && before === undefined) return undefined;
  const since = before ?? timestamp(reader.now);
  const hash = removalHash({ uid, spec: declared(bringer), since });
  const confirmed = before === since && annotations?.[CONFIRM_ANNOTATION] === hash;
  const rest = !removesMany(removal.gone.length, removal.all, options.removals);
  return { ...removal, rest, hash, confirmed };
}

/** What decides about the copies: where a SidecarSet brings its Secrets from is in an annotation. */
function declared({ spec, metadata }: KubeObject): unknown {
  const from = metadata.annotations?.[SOURCE_NAMESPACE_ANNOTATION];
  return from === undefined ? spec : [spec, from];
}

/** One change comes as many where somebody changes the labels of many namespaces by one command: so long they count as one. */
const ONE_CHANGE_MS = 60_000;

const lately = new WeakMap<InjectionOptions, Map<string, Map<string, number>>>();

/** Copies that went a moment ago without a word, and when. */
function goneLately(
  { world: reader, options }: Pick<CopyContext, 'world' | 'options'>,
  bringer: KubeObject,
): Map<string, number> {
  const byBringer = lately.get(options) ?? new Map<string, Map<string, number>>();
  lately.set(options, byBringer);
  const now = reader.now.getTime();
  for (const [one, gone] of byBringer) {
    for (const [copy, at] of gone) if (Math.abs(now - at) >= ONE_CHANGE_MS) gone.delete(copy);
    if (gone.size === 0) byBringer.delete(one);
  }
  const id = JSON.stringify([reader.scope.name, bringerName(bringer), bringer.metadata.uid]);
  const gone = byBringer.get(id) ?? new Map<string, number>();
  byBringer.set(id, gone);
  return gone;
}

function idOf({ metadata }: SecretObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

interface Known {
  readonly distribution: Distribution;
  readonly at: number;
  readonly removals: ReadonlyMap<string, Removal>;
}

const known = new WeakMap<InjectionOptions, Map<string, Known>>();
/** Namespaces that change one after the other are not all counted again for each. */
const COUNT_AGAIN_MS = 250;

/** By profile. Asked for each copy that would go: counted again when profiles change, and every moment. */
function removalsIn(reader: Reader, options: InjectionOptions): ReadonlyMap<string, Removal> {
  const distribution = distributionIn(reader);
  const at = reader.now.getTime();
  const byScope = known.get(options) ?? new Map<string, Known>();
  known.set(options, byScope);
  const before = byScope.get(reader.scope.name);
  const passed = before === undefined ? 0 : Math.abs(at - before.at);
  // Over a folder no time passes.
  if (before?.distribution === distribution && passed > 0 && passed < COUNT_AGAIN_MS) return before.removals;
  const removals = count({ world: reader, distribution, options });
  byScope.set(reader.scope.name, { distribution, at, removals });
  return removals;
}

function count(context: Omit<CopyContext, 'namespace'>): ReadonlyMap<string, Removal> {
  const namespaces = context.world.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' });
  const found = new Map<string, { all: number; gone: string[] }>();
  for (const namespace of namespaces) {
    const here = { ...context, namespace };
    const copies = copiesIn(here);
    if (copies.length === 0) continue;
    const going = new Set(
      copies.every((copy) => staysForSure(here, copy)) ? [] : goingIn(here, copiesFor(here)),
    );
    for (const copy of copies) {
      const writer = writerOf(copy) ?? '';
      const removal = found.get(writer) ?? { all: 0, gone: [] };
      found.set(writer, removal);
      removal.all += 1;
      if (going.has(copy)) removal.gone.push(idOf(copy));
    }
  }
  return found;
}

/**
 * Our copies in the namespace: those that their profile names, and of others as many as it can have named before. A tenant who marks
 * Secrets of its own as copies is not to make a removal look large.
 */
function copiesIn({ world: reader, distribution, namespace }: CopyContext): readonly SecretObject[] {
  const former = new Map<string, number>();
  return ownCopies(reader, namespace.metadata.name).filter((copy) => {
    const writer = writerOf(copy) ?? '';
    if (distribution.byName.get(copy.metadata.name)?.some(({ name }) => name === writer) === true)
      return true;
    const count = (former.get(writer) ?? 0) + 1;
    former.set(writer, count);
    return count <= MAX_SECRETS;
  });
}

/** The usual case, without composing anything: the profile serves the namespace, names the Secret, and has a source for it. */
function staysForSure(context: CopyContext, copy: SecretObject): boolean {
  const writer = writerOf(copy);
  const one = context.distribution.byName.get(copy.metadata.name)?.find(({ name }) => name === writer);
  if (one === undefined || !serves(one, namespaceLabels(context.namespace), context.options)) return false;
  const secret = one.secrets.find(({ name }) => name === copy.metadata.name);
  return (
    secret?.sources.some((source) => consentTo({ ...context, profile: one.name }, source) === 'granted') ===
    true
  );
}

/** Those that go, unless somebody means it: whose profile is deleted, whose source was taken back, whose namespace wants none. */
function goingIn(context: CopyContext, planned: readonly Copy[]): readonly SecretObject[] {
  const { namespace } = context;
  if (isTerminating(namespace) || namespaceLabels(namespace)[DISTRIBUTE_LABEL] === 'false') return [];
  const copies = copiesIn(context);
  if (copies.length === 0) return [];
  const staying = new Set([
    ...planned
      .filter(({ action }) => action === 'write' || action === 'keep' || action === 'foreign')
      .map(({ name }) => name),
    ...keptUnread(context).map(({ name }) => name),
  ]);
  return copies.filter(
    (copy) =>
      !staying.has(copy.metadata.name) &&
      bringerOf(context.world, copy) !== undefined &&
      !isRevoked(context, copy, writerOf(copy) ?? '') &&
      !isExpired(context, copy),
  );
}

/** The profile asked for its removal when the source is gone, and waited. */
function isExpired({ world: reader, distribution, options }: CopyContext, copy: SecretObject): boolean {
  const one = distribution.distributors.find(({ name }) => name === writerOf(copy));
  if (one === undefined) return false;
  const { sources } = expiryOf(reader, one, options);
  return heldSources(copy).every((name) => sources.has(name));
}

/** The profile or SidecarSet that wrote a copy, unless it is deleted. */
function bringerOf(reader: Reader, copy: SecretObject): KubeObject | undefined {
  const name = writerOf(copy);
  if (name === undefined) return undefined;
  const ref = { role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND, name } as const;
  const found = name.startsWith(SET_PREFIX)
    ? sidecarSetObjects(reader).find((set) => bringerName(set) === name)
    : reader.get(ref);
  return found?.metadata.deletionTimestamp === undefined ? found : undefined;
}
