/** Reconciles one namespace: its copies, and a PullStatus if the namespace owner must act. */

import { createHash } from 'node:crypto';
import {
  type ConditionInput,
  type ConditionText,
  conditionIn,
  readiness,
  timestamp,
} from '../../core/kubernetes/conditions.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import { oncePer } from '../../core/record.ts';
import { counted } from '../../core/text.ts';
import type { Apply, Reader, Result } from '../../engine/contract.ts';
import { pullStatusRef, reportPullStatus } from '../../engine/pull-status.ts';
import { isTenants } from '../causes.ts';
import { MAX_SECRETS, PROFILE } from '../kinds/profile.ts';
import { SOURCE_NAMESPACE_ANNOTATION } from '../kinds/sidecar-set.ts';
import { type InjectionOptions, RECONCILER_NAME } from '../options.ts';
import { DISTRIBUTE_LABEL } from '../plan/plan.ts';
import {
  type Copy,
  type CopyContext,
  copiesFor,
  heldSources,
  isRevoked,
  keptUnread,
  ownCopies,
  revokedIn,
  writerOf,
} from './copies.ts';
import { consentTo, expiryOf } from './sources.ts';
import {
  bringerName,
  type Context,
  type Distribution,
  distributionIn,
  isTerminating,
  kruiseInjects,
  namespaceLabels,
  namespaceRef,
  namesText,
  profileRef,
  SET_PREFIX,
  secretRef,
  serves,
  sidecarSetObjects,
} from './view.ts';

/** Requeue interval while copies are held: the pending removal may shrink in the meantime. */
const HELD_AGAIN_MS = 30_000;
/** Requeue interval while a Secret of another type has the name: such Secrets are not watched. */
const TAKEN_AGAIN_MS = 60_000;

/** Reconciles one namespace. */
export function reconcileNamespace({ reader, options }: Context, name: string): Result {
  const namespace = reader.get(namespaceRef(name));
  if (namespace === undefined) return { retain: 'all' };
  // A terminating namespace accepts no new objects and deletes its content eventually; revoked copies are deleted at once.
  if (isTerminating(namespace)) return { retain: 'all', remove: revokedIn({ reader, namespace, options }) };
  const context = { reader, distribution: distributionIn(reader), namespace, options };
  const copies = copiesFor(context);
  // Problems that the namespace's owner cannot fix are reported once, by the profile.
  const troubled = copies.flatMap(({ trouble, ...copy }) =>
    trouble !== undefined && isTenants(trouble.reason) ? [{ ...copy, trouble }] : [],
  );
  const reported = reportOf(reader, name, troubled);
  const kept = copies.filter(({ action }) => action === 'keep' || action === 'foreign');
  const held = heldIn(context, copies).map(({ metadata }) => secretRef(name, metadata.name));
  const waits = waitsOf(context);
  if (held.length > 0) waits.push(HELD_AGAIN_MS);
  if (troubled.some(({ action }) => action === 'write')) waits.push(TAKEN_AGAIN_MS);
  return {
    ...reported,
    apply: [...copies.flatMap(applyOf), ...(reported.apply ?? [])],
    retain: [...kept.map((copy) => copy.ref), ...keptUnread(context), ...held],
    // Terminal, because a retry cannot succeed until the namespace owner acts.
    errors: troubled.map(({ trouble: { reason: code, message }, ref: regarding }) => ({
      retryPolicy: 'terminal',
      code,
      message,
      regarding,
    })),
    ...(waits.length === 0 ? {} : { requeueAfterMs: Math.min(...waits) }),
  };
}

/** Delays until the next source of each profile expires. */
function waitsOf(context: CopyContext): number[] {
  const labels = namespaceLabels(context.namespace);
  return context.distribution.distributors
    .filter((one) => one.copies.removeAfterMs !== undefined && serves(one, labels, context.options))
    .flatMap((one) => expiryOf(context, one).nextMs ?? []);
}

function applyOf({ action, object, adopt }: Copy): readonly Apply[] {
  if (action !== 'write' || object === undefined) return [];
  return [{ role: 'hosted', object, plain: true, ...(adopt === true ? { forceOwnership: true } : {}) }];
}

function reportOf(
  reader: Reader,
  name: string,
  troubled: readonly (Copy & { readonly trouble: ConditionText })[],
): Pick<Result, 'apply' | 'status' | 'events'> {
  const [first] = troubled;
  if (first === undefined) return {};
  const said = reportPullStatus(reader, 'hosted', {
    reporter: RECONCILER_NAME,
    about: { apiVersion: 'v1', kind: 'Namespace', namespace: name, name },
    conditions: readiness('stalled', first.trouble),
    verdicts: troubled.map(({ name: subject, action, distributor, trouble }) => ({
      subject,
      verdict: action === 'keep' ? 'Warning' : 'Rejected',
      reason: trouble.reason,
      message: `${trouble.message} (profile "${distributor}")`,
    })),
  });
  return {
    apply: [said.apply],
    status: [said.status],
    events: troubled.map(({ trouble }) => ({
      regarding: namespaceRef(name),
      type: 'Warning',
      reason: trouble.reason,
      action: 'Distribute',
      note: trouble.message,
    })),
  };
}

// Holds bulk removals that no revocation causes: the profile stops selecting the namespace, stops listing the Secret, or lists a
// source that is not granted. A few copies are removed at once. Many within a minute are held until an annotation on the profile
// confirms the removal.

/** On a profile or SidecarSet: hash of the confirmed removal. */
const CONFIRM_ANNOTATION = 'pullwright.dev/confirm-removal';

/** Condition type while a removal is held or confirmed. */
export const REMOVAL_HELD = 'RemovalHeld';

/** Start of the hold: lastTransitionTime of the condition, which therefore stays until the last copy is removed. */
function heldSince({ reader, options }: Context, object: KubeObject): string | undefined {
  const { kind, metadata } = object;
  // If Kruise injects, Kruise owns the status of a SidecarSet, and the PullStatus has the condition.
  const about = { kind, namespace: options.ownNamespace, name: metadata.name };
  const isBeside = kind !== PROFILE.kind && kruiseInjects(reader);
  const held = conditionIn(isBeside ? reader.get(pullStatusRef('hosted', about)) : object, REMOVAL_HELD);
  return held?.status === 'True' ? held.lastTransitionTime : undefined;
}

/** The condition that lists the held copies, and how to confirm their removal. */
export function heldCondition(
  { kind, metadata }: KubeObject,
  removal: ReturnType<typeof heldRemoval>,
): readonly ConditionInput[] {
  if (removal === undefined) return [];
  const { gone, all, rest, hash, confirmed } = removal;
  const of = `${gone.length} of ${counted(all, 'copy', 'copies')}`;
  if (confirmed)
    return [{ type: REMOVAL_HELD, status: 'True', reason: 'Confirmed', message: `${of} may be removed` }];
  const larger = rest ? ', the rest of a larger change' : '';
  const message = `removes ${of}${larger}: ${namesText(gone)} ${gone.length === 1 ? 'stays' : 'stay'} until the annotation ${CONFIRM_ANNOTATION}: "${hash}" on ${kind} "${metadata.name}" confirms it`;
  return [{ type: REMOVAL_HELD, status: 'True', reason: 'Share', message }];
}

/** Reason and message for `Ready` while the removal waits for a confirmation. */
export function heldText(held: readonly ConditionInput[]): ConditionText | undefined {
  const waits = held.find(({ reason }) => reason !== 'Confirmed');
  return waits === undefined ? undefined : { reason: REMOVAL_HELD, message: waits.message };
}

/**
 * Returns the copies in the namespace whose removal waits for a confirmation.
 *
 * @param planned decisions for the Secrets of the namespace
 */
function heldIn(context: CopyContext, planned: readonly Copy[]): readonly SecretObject[] {
  const { reader } = context;
  return goingIn(context, planned).filter((copy) => {
    const bringer = bringerOf(reader, copy);
    if (bringer === undefined) return false;
    const removal = heldRemoval(context, bringer);
    if (removal === undefined) goneLately(context, bringer).set(idOf(copy), reader.now.getTime());
    return removal?.confirmed === false;
  });
}

/** The held or confirmed removal of one profile or SidecarSet; undefined if nothing is held. */
export function heldRemoval(context: Context, bringer: KubeObject) {
  const { reader, options } = context;
  const removal = removalsIn(context).get(bringerName(bringer));
  if (removal === undefined || removal.gone.length === 0) return undefined;
  const before = heldSince(context, bringer);
  const lately = goneLately(context, bringer);
  for (const one of removal.gone) lately.delete(one);
  // A change is held when it exceeds both limits. Copies that were removed in the last minute count too.
  const isMany = (more: number): boolean => {
    const [gone, all] = [removal.gone.length + more, removal.all + more];
    return gone > options.removals.copies && gone > options.removals.share * all;
  };
  // Remaining copies of a held removal stay held, even within the limits.
  if (!isMany(lately.size) && before === undefined) return undefined;
  const since = before ?? timestamp(reader.now);
  const { uid = '', annotations } = bringer.metadata;
  // The fields that decide about copies: the spec, and for a SidecarSet the annotation with the source namespace.
  const from = annotations?.[SOURCE_NAMESPACE_ANNOTATION];
  const declared = from === undefined ? (bringer.spec ?? null) : [bringer.spec, from];
  // The hash is stable while copies are removed; it includes the start, so a confirmation is valid for one removal only.
  const identity = JSON.stringify([uid, declared, since]);
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 12);
  const confirmed = before === since && annotations?.[CONFIRM_ANNOTATION] === hash;
  /** True if the remaining copies alone are within the limits: others of the same change were removed before. */
  const rest = !isMany(0);
  return { ...removal, rest, hash, confirmed };
}

/** A command that labels many namespaces causes many events. Removals within this time count as one change. */
const ONE_CHANGE_MS = 60_000;
/** Minimum interval of recounts, so that a burst of namespace changes does not cause one each. */
const COUNT_AGAIN_MS = 250;

/** Cached removals of one cluster. */
interface Memory {
  counted?: {
    readonly distribution: Distribution;
    readonly at: number;
    readonly removals: ReturnType<typeof count>;
  };
  /** By profile or SidecarSet: copies that were removed recently without a confirmation, and when. */
  readonly lately: Map<string, Map<string, number>>;
}

const memoryOf = oncePer((_options: InjectionOptions) =>
  oncePer((_scope: Reader['scope']): Memory => ({ lately: new Map() })),
);

function goneLately({ reader, options }: Context, bringer: KubeObject): Map<string, number> {
  const { lately } = memoryOf(options)(reader.scope);
  const now = reader.now.getTime();
  for (const [one, gone] of lately) {
    for (const [copy, at] of gone) if (Math.abs(now - at) >= ONE_CHANGE_MS) gone.delete(copy);
    if (gone.size === 0) lately.delete(one);
  }
  const id = `${bringerName(bringer)} ${bringer.metadata.uid}`;
  const gone = lately.get(id) ?? new Map<string, number>();
  lately.set(id, gone);
  return gone;
}

function idOf({ metadata }: SecretObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** Pending removals by profile. Every removed copy needs them, so they are cached briefly, and until profiles change. */
function removalsIn({ reader, options }: Context) {
  const memory = memoryOf(options)(reader.scope);
  const distribution = distributionIn(reader);
  const at = reader.now.getTime();
  const { counted: before } = memory;
  const passed = before === undefined ? 0 : Math.abs(at - before.at);
  // In a folder the clock does not advance, so there is no caching.
  if (before?.distribution === distribution && passed > 0 && passed < COUNT_AGAIN_MS) return before.removals;
  const removals = count({ reader, distribution, options });
  memory.counted = { distribution, at, removals };
  return removals;
}

/** By profile or SidecarSet: the number of its copies, and those of them to be removed, as `namespace/name`. */
function count(context: Omit<CopyContext, 'namespace'>) {
  const namespaces = context.reader.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' });
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
 * Our copies in the namespace: those that their profile lists, and at most {@link MAX_SECRETS} others per profile. The limit
 * prevents a tenant from inflating a removal by marking its own Secrets as copies.
 */
function copiesIn({ reader, distribution, namespace }: CopyContext): readonly SecretObject[] {
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

/** Fast path without a merge: the profile serves the namespace, lists the Secret, and has a granted source for it. */
function staysForSure(context: CopyContext, copy: SecretObject): boolean {
  const writer = writerOf(copy);
  const one = context.distribution.byName.get(copy.metadata.name)?.find(({ name }) => name === writer);
  if (one === undefined || !serves(one, namespaceLabels(context.namespace), context.options)) return false;
  const secret = one.secrets.find(({ name }) => name === copy.metadata.name);
  return secret?.sources.some((source) => consentTo(context, one.name, source) === 'granted') === true;
}

/** Copies to be removed, except for explicit causes: deleted profile, revoked or expired source, opt-out of the namespace. */
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
      bringerOf(context.reader, copy) !== undefined &&
      !isRevoked(context, copy) &&
      !isExpired(context, copy),
  );
}

/** Reports whether `onSourceDeleted: Remove` applies: all sources are deleted and the delay has passed. */
function isExpired(context: CopyContext, copy: SecretObject): boolean {
  const one = context.distribution.distributors.find(({ name }) => name === writerOf(copy));
  if (one === undefined) return false;
  const { sources } = expiryOf(context, one);
  return heldSources(copy).every((name) => sources.has(name));
}

/** The profile or SidecarSet that wrote a copy; undefined if it is deleted. */
function bringerOf(reader: Reader, copy: SecretObject): KubeObject | undefined {
  const name = writerOf(copy);
  if (name === undefined) return undefined;
  const found = name.startsWith(SET_PREFIX)
    ? sidecarSetObjects(reader).find((set) => bringerName(set) === name)
    : reader.get(profileRef(name));
  return found?.metadata.deletionTimestamp === undefined ? found : undefined;
}
