/** What one namespace gets: for every secret of every profile that serves it, a copy, the last good one, or a reason. */

import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import { keyText } from '../../engine/changes.ts';
import {
  KEY_ANNOTATION,
  OWNER_LABEL,
  type Reader,
  type ReconcileError,
  type Ref,
} from '../../engine/contract.ts';
import { CAUSES } from '../causes.ts';
import { compareProfiles, type ProfileSecret, type ProfileSource } from '../kinds/profile.ts';
import { ADOPT_ANNOTATION, PROFILE_ANNOTATION, SOURCES_ANNOTATION, secretRef, sourceName } from '../names.ts';
import { type InjectionOptions, RECONCILER_NAME } from '../options.ts';
import { type Composed, compose, SECRET_TYPE } from './compose.ts';
import { type Consent, consentTo } from './consent.ts';
import { expiryOf } from './missing-sources.ts';
import {
  type Distribution,
  type Distributor,
  isSidecarSet,
  namespaceLabels,
  serves,
  unreadableIn,
  unreadText,
} from './view.ts';

// What one profile makes of one Secret in one namespace, as if no other profile asked for the name.

/** Copies live only at run time: GitOps tools must neither miss nor prune them. */
const NOT_IN_GIT: Readonly<Record<string, string>> = {
  'argocd.argoproj.io/compare-options': 'IgnoreExtraneous',
  'argocd.argoproj.io/sync-options': 'Prune=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
};

/** Where a copy is looked at. */
export interface CopyContext {
  readonly world: Reader;
  readonly distribution: Distribution;
  readonly namespace: KubeObject;
  readonly options: InjectionOptions;
}

/** The copy is not what the profile asks for: CamelCase reason and text. */
export interface Trouble {
  readonly reason: string;
  readonly message: string;
}

/** `write`: as in `object`; `keep`: what stands there stays; `drop`: nothing of ours may stand there. */
export interface CopiesDecision {
  readonly action: 'write' | 'keep' | 'drop';
  readonly object?: SecretObject;
  readonly trouble?: Trouble;
}

/**
 * Decides.
 *
 * @param present the copy that the profile holds; undefined when there is none, or it is not its own
 */
export function decideCopies(
  context: CopyContext,
  one: Distributor,
  secret: ProfileSecret,
  present: SecretObject | undefined,
): CopiesDecision {
  const held = heldSources(present);
  const consents = consentsOf(context, one, secret, held);
  const expired = expiryOf(context.world, one, context.options).sources;
  // What was taken back may not stay, whatever else is wrong: suspended, broken or missing sources, a collision.
  const isTainted = held.some((name) => consents.get(name) === 'denied');
  if (one.suspended && !isTainted) return { action: 'keep' };
  const usable = secret.sources.filter(
    (source) => consents.get(sourceName(source)) === 'granted' && !expired.has(sourceName(source)),
  );
  const composed = compose(
    usable.map((source) => ({ source, object: sourceObject(context.world, source) })),
    secret.onCollision,
  );
  const trouble = troubleOf(context, secret, { composed, consents, expired, held });
  const isUnclear = held.some((name) => consents.get(name) === 'unknown' && !expired.has(name));
  const loses =
    isUnclear || composed.body === undefined || composed.bad.some(({ source }) => held.includes(source));
  if (present !== undefined && loses && !isTainted)
    return { action: composed.bad.length > 0 || isUnclear ? 'keep' : 'drop', ...trouble };
  if (composed.body === undefined) return { action: 'drop', ...trouble };
  return { action: 'write', object: copyObject(context, one, secret, composed), ...trouble };
}

/** Whether a source that the copy holds is no longer granted. For copies whose profile cannot be read. */
export function isRevoked(
  context: Omit<CopyContext, 'distribution'>,
  copy: SecretObject,
  profile: string,
): boolean {
  return heldSources(copy).some((name) => consentTo({ ...context, profile }, sourceOf(name)) === 'denied');
}

/** Of the sources that the profile names, and of those that the copy holds although it no longer does. */
function consentsOf(
  context: CopyContext,
  one: Distributor,
  secret: ProfileSecret,
  held: readonly string[],
): ReadonlyMap<string, Consent> {
  const request = { ...context, profile: one.name };
  return new Map(
    [...secret.sources, ...held.map(sourceOf)].map((source) => [
      sourceName(source),
      consentTo(request, source),
    ]),
  );
}

function sourceOf(text: string): ProfileSource {
  const [namespace = '', name = ''] = text.split('/');
  return { namespace, name };
}

function sourceObject(reader: Reader, source: ProfileSource): SecretObject | undefined {
  return reader.get(secretRef(source.namespace, source.name)) as SecretObject | undefined;
}

interface Found {
  readonly composed: Composed;
  readonly consents: ReadonlyMap<string, Consent>;
  readonly expired: ReadonlySet<string>;
  readonly held: readonly string[];
}

function troubleOf(
  { world: reader, namespace, options }: CopyContext,
  secret: ProfileSecret,
  { composed, consents, expired, held }: Found,
): Pick<CopiesDecision, 'trouble'> {
  const unread = secret.sources.flatMap((source) => unreadText(reader, source, options) ?? []);
  if (unread[0] !== undefined) return { trouble: { reason: 'SourceUnread', message: unread[0] } };
  const [bad] = composed.bad;
  if (bad !== undefined) return { trouble: { reason: bad.reason, message: bad.message } };
  const named = secret.sources.map(sourceName);
  const missing = secret.sources.find(
    (source) =>
      (consents.get(sourceName(source)) !== 'granted' || expired.has(sourceName(source))) &&
      sourceObject(reader, source) === undefined,
  );
  if (missing !== undefined)
    return { trouble: { reason: 'SourceMissing', message: missingText(sourceName(missing)) } };
  const unclear = named.find((name) => consents.get(name) === 'unknown' && held.includes(name));
  if (unclear !== undefined) return { trouble: { reason: 'GrantUnclear', message: unclearText(unclear) } };
  const denied = named.find((name) => consents.get(name) !== 'granted');
  if (denied === undefined) return {};
  const message = `Secret "${denied}" is not granted to namespace "${namespace.metadata.name}": its owner writes a PullSecretGrant beside it`;
  return { trouble: { reason: 'NotGranted', message } };
}

function missingText(name: string): string {
  return `Secret "${name}" does not exist or is not of type ${SECRET_TYPE}; create it, or create it again in that type`;
}

function unclearText(name: string): string {
  return `Cannot tell whether Secret "${name}" is granted: its namespace is being deleted, or a PullSecretGrant there lost a field on the way (its condition says which); copies stay as they are and nothing new is given`;
}

/** The sources whose entries a copy holds. */
export function heldSources(present: SecretObject | undefined): readonly string[] {
  const text = present?.metadata.annotations?.[SOURCES_ANNOTATION];
  return typeof text === 'string' && text !== '' ? text.split(', ') : [];
}

function copyObject(
  { namespace }: CopyContext,
  one: Distributor,
  secret: ProfileSecret,
  composed: Composed,
): SecretObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: secret.name,
      namespace: namespace.metadata.name,
      ...(Object.keys(one.copies.labels).length === 0 ? {} : { labels: one.copies.labels }),
      annotations: {
        ...one.copies.annotations,
        ...NOT_IN_GIT,
        [PROFILE_ANNOTATION]: one.name,
        [SOURCES_ANNOTATION]: composed.good.join(', '),
      },
    },
    type: SECRET_TYPE,
    ...(composed.body === undefined ? {} : { data: { '.dockerconfigjson': composed.body } }),
  };
}

// Whose Secret of a name stands in a namespace when several profiles ask for it.
// Whoever holds the copy keeps the name until it lets go: it no longer asks for the name here, its source was taken back, or it
// names its successor. A free name goes to who could write it now: granted, present, not suspended. Who was there first comes
// first, so that nobody takes a name by an order of its own.

/** One profile that asks for the name. */
export interface Claim {
  readonly one: Distributor;
  readonly secret: ProfileSecret;
}

/** Who has the name. `unreadable`: a profile that holds the copy and cannot be read now. */
export type Holder =
  | { readonly is: 'claim'; readonly claim: Claim; readonly decision: CopiesDecision }
  | { readonly is: 'unreadable'; readonly profile: string }
  | { readonly is: 'nobody' };

/** The name of the profile that wrote a copy. */
export function writerOf(copy: SecretObject | undefined): string | undefined {
  const name = copy?.metadata.annotations?.[PROFILE_ANNOTATION];
  return typeof name === 'string' ? name : undefined;
}

/** Everybody who asks for the name in the namespace. */
export function claimsOf({ distribution, namespace, options }: CopyContext, name: string): readonly Claim[] {
  const claims = distribution.byName.get(name) ?? [];
  const labels = namespaceLabels(namespace);
  return claims.flatMap((one) => {
    const secret = one.secrets.find((candidate) => candidate.name === name);
    return secret !== undefined && serves(one, labels, options) && !isSource(namespace.metadata.name, secret)
      ? [{ one, secret }]
      : [];
  });
}

/** The source itself stands there: it is no copy of itself. */
export function isSource(namespace: string, secret: ProfileSecret): boolean {
  return secret.sources.some((source) => source.namespace === namespace && source.name === secret.name);
}

/** What a claim comes to; a copy that somebody else holds is none of its business. */
export function decideClaim(
  where: CopyContext,
  { one, secret }: Claim,
  present: SecretObject | undefined,
): CopiesDecision {
  const isMine = writerOf(present) === one.name || (present !== undefined && writerOf(present) === undefined);
  return decideCopies(where, one, secret, isMine ? present : undefined);
}

/** Who has the name. `present` is our copy, if there is one. */
export function holderOf(
  where: CopyContext,
  claims: readonly Claim[],
  present: SecretObject | undefined,
): Holder {
  const writer = writerOf(present);
  if (
    present !== undefined &&
    writer !== undefined &&
    unreadableIn(where.world).has(writer) &&
    !isRevoked(where, present, writer)
  )
    return { is: 'unreadable', profile: writer };
  const holder = present === undefined ? undefined : claims.find(({ one }) => one.name === writer);
  const kept = holder === undefined ? undefined : holding(where, holder, present);
  const successor = kept === undefined ? undefined : successorOf(where, kept.claim, claims);
  return (
    successor ??
    kept ??
    firstOf(
      where,
      claims.filter((claim) => claim !== holder),
    )
  );
}

type Held = Extract<Holder, { is: 'claim' }>;

function holding(where: CopyContext, claim: Claim, present: SecretObject | undefined): Held | undefined {
  const decision = decideClaim(where, claim, present);
  return decision.action === 'drop' ? undefined : { is: 'claim', claim, decision };
}

function successorOf(where: CopyContext, { one }: Claim, claims: readonly Claim[]): Held | undefined {
  const claim = claims.find((other) => other.one.name === one.successor && other.one !== one);
  return claim === undefined ? undefined : writing(where, claim);
}

function writing(where: CopyContext, claim: Claim): Held | undefined {
  const decision = decideCopies(where, claim.one, claim.secret, undefined);
  return decision.action === 'write' ? { is: 'claim', claim, decision } : undefined;
}

function firstOf(where: CopyContext, claims: readonly Claim[]): Holder {
  for (const claim of claims.toSorted((a, b) => compareClaims(a.one, b.one))) {
    const held = writing(where, claim);
    if (held !== undefined) return held;
  }
  return { is: 'nobody' };
}

/** Older ones first. What has no time (a folder, a SidecarSet) goes by order and name, after what has one. */
function compareClaims(a: Distributor, b: Distributor): number {
  const [first, second] = [a.createdAt ?? '~', b.createdAt ?? '~'];
  if (first !== second) return first < second ? -1 : 1;
  return compareProfiles(a, b);
}

/** What happens to one Secret in one namespace. */
export interface Copy {
  readonly name: string;
  readonly distributor: string;
  readonly ref: Ref;
  /**
   * `write`: as in `object`; `keep`: the last good copy stays; `drop`: none here, ours is removed; `foreign`: somebody
   * else's Secret is in the way; `yield`: another profile has the name and decides.
   */
  readonly action: 'write' | 'keep' | 'drop' | 'foreign' | 'yield';
  /** What stands there, or will; with `yield`, that of the other profile, which asks for the same. */
  readonly object?: SecretObject;
  readonly adopt?: boolean;
  /** The copy is not what the profile asks for. */
  readonly trouble?: Trouble;
}

/** Everything for one namespace. */
export function copiesFor(context: CopyContext): readonly Copy[] {
  const labels = namespaceLabels(context.namespace);
  return context.distribution.distributors
    .filter((one) => serves(one, labels, context.options))
    .flatMap((one) => one.secrets.flatMap((secret) => copyOf(context, one, secret) ?? []));
}

/** Copies of profiles that cannot be read now: they stay, unless their source was taken back. */
export function keptUnread(context: CopyContext): readonly Ref[] {
  const unread = unreadableIn(context.world);
  if (unread.size === 0) return [];
  const { name } = context.namespace.metadata;
  return ownCopies(context.world, name).flatMap((copy) => {
    const writer = writerOf(copy);
    const stays = writer !== undefined && unread.has(writer) && !isRevoked(context, copy, writer);
    return stays ? [secretRef(name, copy.metadata.name)] : [];
  });
}

/** What this reconciler wrote in the namespace. What was taken along from another one, marks included, is none of it. */
export function ownCopies(reader: Reader, namespace: string): readonly SecretObject[] {
  const key = keyText({ scope: reader.scope.name, namespace, name: 'namespace' });
  return reader
    .list({
      role: 'hosted',
      apiVersion: 'v1',
      kind: 'Secret',
      namespace,
      labels: { [OWNER_LABEL]: RECONCILER_NAME },
    })
    .filter(({ metadata }) => metadata.annotations?.[KEY_ANNOTATION] === key) as readonly SecretObject[];
}

/** Copies whose source was taken back by its owner, whatever else is true of them. */
export function revokedIn(
  context: Omit<CopyContext, 'distribution'>,
): readonly (Ref & { readonly uid: string })[] {
  const { name } = context.namespace.metadata;
  return ownCopies(context.world, name).flatMap((copy) => {
    const { uid } = copy.metadata;
    const isTaken = uid !== undefined && isRevoked(context, copy, writerOf(copy) ?? '');
    return isTaken ? [{ ...secretRef(name, copy.metadata.name), uid }] : [];
  });
}

/** One secret of one profile in a namespace that it serves; undefined when there is nothing to bring. */
export function copyOf(context: CopyContext, one: Distributor, secret: ProfileSecret): Copy | undefined {
  const namespace = context.namespace.metadata.name;
  if (secret.sources.length === 0) return undefined;
  if (isSource(namespace, secret)) return sourceInPlace(context, one, secret);
  const ref = secretRef(namespace, secret.name);
  const base = { name: secret.name, distributor: one.name, ref };
  const standing = context.world.get(ref) as SecretObject | undefined;
  const claim = claimOf(standing);
  if (claim === 'foreign') return { ...base, action: 'foreign', trouble: foreignTrouble(ref) };
  const adopt = claim === 'offered' ? { adopt: true } : {};
  const present = claim === 'ours' ? standing : undefined;
  const claims = claimsOf(context, secret.name);
  const holder = holderOf(context, claims, present);
  if (holder.is === 'claim' && holder.claim.one === one)
    return {
      ...base,
      ...holder.decision,
      ...adopt,
      ...refusalOf(context, ref, { standing, action: holder.decision.action }),
      ...terminatingOf(ref, present),
    };
  return { ...base, ...yielded(context, { one, secret }, holder, present) };
}

/**
 * What the API server said when the copy was to be written or removed, and is asked again now and then. Where neither is to be done any
 * more it says nothing: what holds the copy back now is told.
 */
function refusalOf(
  { world: reader }: CopyContext,
  ref: Ref,
  { standing, action }: { readonly standing: SecretObject | undefined; readonly action: Copy['action'] },
): { readonly trouble?: Trouble } {
  const isOpen = action === 'write' || (action === 'drop' && standing !== undefined);
  const refusal = isOpen ? reader.refusal(ref) : undefined;
  if (refusal === undefined) return {};
  if (refusal.code !== 'ForeignObject') return { trouble: refusedTrouble(refusal) };
  // Secrets of other types are not watched.
  if (standing !== undefined) return {};
  const message = `Secret "${ref.namespace}/${ref.name}" was made by somebody else, in another type than ${SECRET_TYPE}, and is left alone; rename or delete it`;
  return { trouble: { reason: 'ForeignObject', message } };
}

/** A copy that somebody deleted and that a finalizer of somebody else holds back is neither changed nor made again. */
function terminatingOf(ref: Ref, present: SecretObject | undefined): { readonly trouble?: Trouble } {
  const { deletionTimestamp, finalizers = [] } = present?.metadata ?? {};
  if (deletionTimestamp === undefined) return {};
  const message = `Secret "${ref.namespace}/${ref.name}" was deleted and waits for its finalizers: ${finalizers.slice(0, 5).join(', ')}; take them off, then it is made again`;
  return { trouble: { reason: 'Terminating', message } };
}

/** The source stands there itself and is never changed: what other sources give cannot be merged into it. */
function sourceInPlace(context: CopyContext, one: Distributor, secret: ProfileSecret): Copy | undefined {
  if (secret.sources.length === 1) return undefined;
  const { name: namespace } = context.namespace.metadata;
  const message = `Secret "${namespace}/${secret.name}" is itself one of ${secret.sources.length} sources of that name: pods there get its entries alone; give the copy another name`;
  const ref = secretRef(namespace, secret.name);
  return {
    name: secret.name,
    distributor: one.name,
    ref,
    action: 'yield',
    trouble: { reason: 'SourceInPlace', message },
  };
}

/** Whose the Secret is that stands there. */
function claimOf(present: SecretObject | undefined): 'none' | 'ours' | 'offered' | 'foreign' {
  if (present === undefined) return 'none';
  if (present.metadata.labels?.[OWNER_LABEL] === RECONCILER_NAME) return 'ours';
  return present.metadata.annotations?.[ADOPT_ANNOTATION] === 'true' ? 'offered' : 'foreign';
}

/** What becomes of a claim that has not got the name. Its own trouble comes first: who has none learns who is in the way. */
function yielded(
  context: CopyContext,
  claim: Claim,
  holder: Holder,
  present: SecretObject | undefined,
): Pick<Copy, 'action' | 'object' | 'trouble'> {
  const own = decideClaim(context, claim, present);
  // A copy that somebody left behind is nobody's last good one.
  const isMine = writerOf(present) === undefined || writerOf(present) === claim.one.name;
  if (holder.is === 'nobody') return { action: isMine ? own.action : 'drop', ...troubleIn(own) };
  if (own.trouble !== undefined) return { action: 'yield', trouble: own.trouble };
  if (holder.is === 'claim' && asksForSame(holder.claim.secret, claim.secret))
    return {
      action: 'yield',
      ...(holder.decision.object === undefined ? {} : { object: holder.decision.object }),
    };
  if (claim.one.suspended) return { action: 'yield' };
  const name = holder.is === 'claim' ? holder.claim.one.name : holder.profile;
  return { action: 'yield', trouble: collision(context, claim, name) };
}

function troubleIn({ trouble }: { readonly trouble?: Trouble }): { readonly trouble?: Trouble } {
  return trouble === undefined ? {} : { trouble };
}

/** Two profiles that ask for the same are no collision. */
function asksForSame(a: ProfileSecret, b: ProfileSecret): boolean {
  return a.onCollision === b.onCollision && JSON.stringify(a.sources) === JSON.stringify(b.sources);
}

function collision({ namespace }: CopyContext, { one, secret }: Claim, holder: string): Trouble {
  // A SidecarSet neither has a successor nor is one.
  const isProfiles = ![one, { name: holder }].some(isSidecarSet);
  const hint = isProfiles ? `, or have "${holder}" name its successor: spec.successor: ${one.name}` : '';
  return {
    reason: 'Collision',
    message: `"${holder}" brings another Secret "${secret.name}" to "${namespace.metadata.name}" and keeps the name; give yours another name${hint}`,
  };
}

function refusedTrouble({ code, message, hint }: ReconcileError): Trouble {
  const said = hint === undefined ? message : `${message}. ${hint}`;
  if (CAUSES.some(({ reasons }) => reasons.includes(code))) return { reason: code, message: said };
  return { reason: 'WriteRefused', message: `Cannot write the copy: ${said}` };
}

function foreignTrouble(ref: Ref): Trouble {
  return {
    reason: 'ForeignObject',
    message: `Secret "${ref.namespace}/${ref.name}" was made by somebody else and is left alone; rename or delete it, or annotate it with ${ADOPT_ANNOTATION}=true to have it taken over`,
  };
}
