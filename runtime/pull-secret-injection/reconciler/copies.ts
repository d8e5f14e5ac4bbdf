/** Desired copies in one namespace: for each Secret of each profile that serves it, a decision, and a reason on failure. */

import { withHint } from '../../core/errors.ts';
import type { ConditionText } from '../../core/kubernetes/conditions.ts';
import type { SecretObject } from '../../core/kubernetes/object.ts';
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
import { RECONCILER_NAME } from '../options.ts';
import {
  type Composed,
  type Consent,
  type ConsentContext,
  compose,
  consentTo,
  expiryOf,
  missingSource,
  SECRET_TYPE,
} from './sources.ts';
import {
  ADOPT_ANNOTATION,
  type Distribution,
  type Distributor,
  isSidecarSet,
  namespaceLabels,
  PROFILE_ANNOTATION,
  SOURCES_ANNOTATION,
  secretRef,
  serves,
  sourceName,
  unreadText,
} from './view.ts';

// Decides for one profile and one Secret in one namespace, ignoring other profiles.

/** Copies exist only in the cluster: GitOps tools must not report or prune them. */
const NOT_IN_GIT: Readonly<Record<string, string>> = {
  'argocd.argoproj.io/compare-options': 'IgnoreExtraneous',
  'argocd.argoproj.io/sync-options': 'Prune=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
};

/** Context for the decisions in one namespace. */
export interface CopyContext extends ConsentContext {
  readonly distribution: Distribution;
}

/** `write`: apply `object`; `keep`: retain the current copy; `drop`: delete our copy. */
interface CopyDecision {
  readonly action: 'write' | 'keep' | 'drop';
  readonly object?: SecretObject | undefined;
  /** Set if the copy differs from what the profile requests. */
  readonly trouble?: ConditionText | undefined;
}

/** A profile that requests a Secret name. */
interface Claim {
  readonly one: Distributor;
  readonly secret: ProfileSecret;
}

/**
 * Decides for one claim.
 *
 * @param present current copy of this profile; undefined if missing or owned by another profile
 */
function decide(context: CopyContext, claim: Claim, present: SecretObject | undefined): CopyDecision {
  const { reader } = context;
  const { one, secret } = claim;
  const held = heldSources(present);
  // Consent is needed for the sources in the spec, and for former sources whose entries the copy still holds.
  const consents = new Map(
    [...secret.sources, ...held.map(sourceOf)].map((source) => [
      sourceName(source),
      consentTo(context, one.name, source),
    ]),
  );
  const expired = expiryOf(context, one).sources;
  // Revoked copies are deleted even if the profile is suspended, a source is invalid or missing, or sources collide.
  const isTainted = held.some((name) => consents.get(name) === 'denied');
  if (one.suspended && !isTainted) return { action: 'keep' };
  const isUsable = (source: ProfileSource): boolean =>
    consents.get(sourceName(source)) === 'granted' && !expired.has(sourceName(source));
  const composed = compose(
    secret.sources.filter(isUsable).map((source) => ({ source, object: sourceObject(reader, source) })),
    secret.onCollision,
  );
  const unused = secret.sources.filter((source) => !isUsable(source));
  const trouble = troubleOf(context, secret, { composed, consents, unused, held });
  const isUnclear = held.some((name) => consents.get(name) === 'unknown' && !expired.has(name));
  const loses =
    isUnclear || composed.body === undefined || composed.bad.some(({ source }) => held.includes(source));
  if (present !== undefined && loses && !isTainted)
    return { action: composed.bad.length > 0 || isUnclear ? 'keep' : 'drop', trouble };
  if (composed.body === undefined) return { action: 'drop', trouble };
  return { action: 'write', object: copyObject(context, claim, composed), trouble };
}

/** Reports whether a source of the copy is no longer granted to the profile that wrote it. */
export function isRevoked(context: ConsentContext, copy: SecretObject): boolean {
  const profile = writerOf(copy) ?? '';
  return heldSources(copy).some((name) => consentTo(context, profile, sourceOf(name)) === 'denied');
}

function sourceOf(text: string): ProfileSource {
  const [namespace = '', name = ''] = text.split('/');
  return { namespace, name };
}

function sourceObject(reader: Reader, source: ProfileSource): SecretObject | undefined {
  return reader.get(secretRef(source.namespace, source.name)) as SecretObject | undefined;
}

function troubleOf(
  context: CopyContext,
  { sources }: ProfileSecret,
  found: {
    readonly composed: Composed;
    readonly consents: ReadonlyMap<string, Consent>;
    readonly unused: readonly ProfileSource[];
    readonly held: readonly string[];
  },
): ConditionText | undefined {
  const { composed, consents, unused, held } = found;
  const [unread] = sources.flatMap((source) => unreadText(context, source) ?? []);
  if (unread !== undefined) return { reason: 'SourceUnread', message: unread };
  const missing = unused.find((source) => sourceObject(context.reader, source) === undefined);
  const bad = composed.bad[0] ?? (missing === undefined ? undefined : missingSource(missing));
  if (bad !== undefined) return { reason: bad.reason, message: bad.message };
  const named = sources.map(sourceName).filter((name) => consents.get(name) !== 'granted');
  const unclear = named.find((name) => consents.get(name) === 'unknown' && held.includes(name));
  if (unclear !== undefined) {
    const message = `Cannot tell whether Secret "${unclear}" is granted: its namespace is being deleted, or a field of a PullSecretGrant there was dropped (see its condition); copies stay unchanged and no new ones are created`;
    return { reason: 'GrantUnclear', message };
  }
  if (named[0] === undefined) return undefined;
  const message = `Secret "${named[0]}" is not granted to namespace "${context.namespace.metadata.name}": its owner must create a PullSecretGrant in its namespace`;
  return { reason: 'NotGranted', message };
}

/** Sources whose entries the copy holds. */
export function heldSources(present: SecretObject | undefined): readonly string[] {
  const text = present?.metadata.annotations?.[SOURCES_ANNOTATION];
  return typeof text === 'string' && text !== '' ? text.split(', ') : [];
}

function copyObject({ namespace }: CopyContext, { one, secret }: Claim, { good, body }: Composed) {
  const { labels, annotations } = one.copies;
  return {
    apiVersion: 'v1',
    kind: 'Secret' as const,
    metadata: {
      name: secret.name,
      namespace: namespace.metadata.name,
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      annotations: {
        ...annotations,
        ...NOT_IN_GIT,
        [PROFILE_ANNOTATION]: one.name,
        [SOURCES_ANNOTATION]: good.join(', '),
      },
    },
    type: SECRET_TYPE,
    ...(body === undefined ? {} : { data: { '.dockerconfigjson': body } }),
  };
}

// Resolves the owner of a Secret name that several profiles request. The profile that wrote the copy owns the name until it stops
// requesting the name, must drop the copy, or its successor can write. A free name is assigned to the oldest profile that can
// write now: source granted and present, not suspended. So no profile takes a name by a lower `order`.

/** The profile that owns the name, and its decision. */
interface Holder {
  readonly profile: string;
  /** Undefined if the profile is currently invalid. */
  readonly decided?: Claim & { readonly decision: CopyDecision };
}

/** Name of the profile that wrote a copy. */
export function writerOf(copy: SecretObject | undefined): string | undefined {
  const name = copy?.metadata.annotations?.[PROFILE_ANNOTATION];
  return typeof name === 'string' ? name : undefined;
}

/** All profiles that request the name in the namespace. */
function claimsOf({ distribution, namespace, options }: CopyContext, name: string): readonly Claim[] {
  const labels = namespaceLabels(namespace);
  return (distribution.byName.get(name) ?? []).flatMap((one) => {
    const secret = one.secrets.find((candidate) => candidate.name === name);
    const isAsked = secret !== undefined && serves(one, labels, options);
    return isAsked && !isSource(namespace.metadata.name, secret) ? [{ one, secret }] : [];
  });
}

/** Reports whether the namespace holds the source itself, which needs no copy. */
function isSource(namespace: string, secret: ProfileSecret): boolean {
  return secret.sources.some((source) => source.namespace === namespace && source.name === secret.name);
}

/** Resolves the profile that owns the name. @param present our copy, if it exists */
function holderOf(context: CopyContext, name: string, present: SecretObject | undefined): Holder | undefined {
  const writer = writerOf(present);
  if (present !== undefined && isKeptUnread(context, present)) return { profile: writer ?? '' };
  const claims = claimsOf(context, name);
  const holder = present === undefined ? undefined : claims.find(({ one }) => one.name === writer);
  const others = claims.filter((claim) => claim !== holder);
  const decision = holder === undefined ? undefined : decide(context, holder, present);
  if (holder === undefined || decision === undefined || decision.action === 'drop')
    return firstWriting(context, others.toSorted(compareClaims));
  const successors = others.filter(({ one }) => one.name === holder.one.successor);
  return firstWriting(context, successors) ?? { profile: holder.one.name, decided: { ...holder, decision } };
}

function firstWriting(context: CopyContext, claims: readonly Claim[]): Holder | undefined {
  for (const claim of claims) {
    const decision = decide(context, claim, undefined);
    if (decision.action === 'write') return { profile: claim.one.name, decided: { ...claim, decision } };
  }
  return undefined;
}

/** Sorts the oldest profile first. Claims without a creation time (folders, SidecarSets) sort last, by order and name. */
function compareClaims({ one: a }: Claim, { one: b }: Claim): number {
  const [first, second] = [a.createdAt ?? '~', b.createdAt ?? '~'];
  if (first !== second) return first < second ? -1 : 1;
  return compareProfiles(a, b);
}

/** Decision for one Secret in one namespace. */
export interface Copy extends Pick<CopyDecision, 'trouble'> {
  readonly name: string;
  readonly distributor: string;
  readonly ref: Ref;
  /**
   * `write`: apply `object`; `keep`: retain the last good copy; `drop`: delete our copy, if any; `foreign`: a foreign Secret has
   * the name; `yield`: another profile owns the name, or a source has it.
   */
  readonly action: 'write' | 'keep' | 'drop' | 'foreign' | 'yield';
  /** The desired object; with `yield`, the object of an owner that requests the same content. */
  readonly object?: SecretObject | undefined;
  readonly adopt?: boolean;
}

/** All copies for one namespace. */
export function copiesFor(context: CopyContext): readonly Copy[] {
  const labels = namespaceLabels(context.namespace);
  return context.distribution.distributors
    .filter((one) => serves(one, labels, context.options))
    .flatMap((one) => one.secrets.flatMap((secret) => copyOf(context, one, secret) ?? []));
}

/** Reports whether the copy is kept because its profile is currently invalid. A copy with a revoked source is not kept. */
function isKeptUnread(context: CopyContext, copy: SecretObject): boolean {
  return context.distribution.unreadable.has(writerOf(copy) ?? '') && !isRevoked(context, copy);
}

/** References to the copies kept because their profile is currently invalid. */
export function keptUnread(context: CopyContext): readonly Ref[] {
  if (context.distribution.unreadable.size === 0) return [];
  const { name } = context.namespace.metadata;
  return ownCopies(context.reader, name)
    .filter((copy) => isKeptUnread(context, copy))
    .map(({ metadata }) => secretRef(name, metadata.name));
}

/** Copies that this reconciler wrote in the namespace. Ignores Secrets that a user duplicated from another namespace. */
export function ownCopies(reader: Reader, namespace: string): readonly SecretObject[] {
  const key = keyText({ scope: reader.scope.name, namespace, name: 'namespace' });
  const labels = { [OWNER_LABEL]: RECONCILER_NAME };
  return reader
    .list({ role: 'hosted', apiVersion: 'v1', kind: 'Secret', namespace, labels })
    .filter(({ metadata }) => metadata.annotations?.[KEY_ANNOTATION] === key) as readonly SecretObject[];
}

/** References, with UIDs, to copies with a revoked source. */
export function revokedIn(context: ConsentContext): readonly (Ref & { readonly uid: string })[] {
  const { name } = context.namespace.metadata;
  return ownCopies(context.reader, name).flatMap((copy) => {
    const { uid } = copy.metadata;
    return uid !== undefined && isRevoked(context, copy)
      ? [{ ...secretRef(name, copy.metadata.name), uid }]
      : [];
  });
}

/** Decides for one Secret of a profile that serves the namespace; undefined if there is nothing to deliver. */
export function copyOf(context: CopyContext, one: Distributor, secret: ProfileSecret): Copy | undefined {
  const ref = secretRef(context.namespace.metadata.name, secret.name);
  const { length } = secret.sources;
  const base = { name: secret.name, distributor: one.name, ref };
  if (length === 0) return undefined;
  if (isSource(ref.namespace ?? '', secret)) {
    if (length === 1) return undefined;
    // A source in this namespace has the name. Sources are never modified, so the others cannot be merged into it.
    const message = `Secret "${ref.namespace}/${ref.name}" is itself one of ${length} sources of that name: pods there get only its entries; rename the copy`;
    return { ...base, action: 'yield', trouble: { reason: 'SourceInPlace', message } };
  }
  const standing = context.reader.get(ref) as SecretObject | undefined;
  const present = standing?.metadata.labels?.[OWNER_LABEL] === RECONCILER_NAME ? standing : undefined;
  const foreign = present === undefined ? foreignObject(ref, standing) : undefined;
  if (foreign !== undefined) return { ...base, action: 'foreign', trouble: foreign };
  const holder = holderOf(context, secret.name, present);
  if (holder?.decided?.one !== one) return { ...base, ...yielded(context, { one, secret }, holder, present) };
  const { decision } = holder.decided;
  const trouble =
    terminating(ref, present) ?? refusal(context.reader, ref, standing, decision.action) ?? decision.trouble;
  return { ...base, ...decision, trouble, adopt: standing !== present };
}

/** Returns why the foreign Secret is left unchanged; undefined if not found, or its owner allows adoption. */
function foreignObject(ref: Ref, standing: SecretObject | undefined): ConditionText | undefined {
  if (standing === undefined || standing.metadata.annotations?.[ADOPT_ANNOTATION] === 'true')
    return undefined;
  const message = `Secret "${ref.namespace}/${ref.name}" was not created by Pullwright and is left unchanged; rename or delete it, or annotate it with ${ADOPT_ANNOTATION}=true to adopt it`;
  return { reason: 'ForeignObject', message };
}

/**
 * Returns the API server's error for the last write or deletion of the copy. Undefined if neither is pending: the problem of the
 * decision is then reported instead.
 */
function refusal(reader: Reader, ref: Ref, standing: SecretObject | undefined, action: Copy['action']) {
  const isOpen = action === 'write' || (action === 'drop' && standing !== undefined);
  const refused = isOpen ? reader.refusal(ref) : undefined;
  if (refused === undefined) return undefined;
  if (refused.code !== 'ForeignObject') return refusedTrouble(refused);
  // Stale: the rejection was for a Secret of another type, which is not watched. The present Secret is watched.
  if (standing !== undefined) return undefined;
  const message = `Secret "${ref.namespace}/${ref.name}" was not created by Pullwright, is not of type ${SECRET_TYPE}, and is left unchanged; rename or delete it`;
  return { reason: 'ForeignObject', message };
}

function refusedTrouble(refusal: ReconcileError): ConditionText {
  const { code: reason } = refusal;
  const message = withHint(refusal);
  if (CAUSES.some(({ reasons }) => reasons.includes(reason))) return { reason, message };
  return { reason: 'WriteRefused', message: `Cannot write the copy: ${message}` };
}

/** Neither changes nor recreates a copy that is being deleted and waits for foreign finalizers. */
function terminating(ref: Ref, present: SecretObject | undefined): ConditionText | undefined {
  const { deletionTimestamp, finalizers = [] } = present?.metadata ?? {};
  if (deletionTimestamp === undefined) return undefined;
  const message = `Secret "${ref.namespace}/${ref.name}" is being deleted and waits for finalizers: ${finalizers.slice(0, 5).join(', ')}; remove them, then it is recreated`;
  return { reason: 'Terminating', message };
}

/** The decision for a claim that does not own the name: its own problem first, else the collision. */
function yielded(
  context: CopyContext,
  claim: Claim,
  holder: Holder | undefined,
  present: SecretObject | undefined,
): Pick<Copy, 'action' | 'object' | 'trouble'> {
  const { one, secret } = claim;
  // A copy that another profile wrote is not the last good copy of this one.
  const isMine = writerOf(present) === undefined || writerOf(present) === one.name;
  const { action, trouble } = decide(context, claim, isMine ? present : undefined);
  if (holder === undefined) return { action: isMine ? action : 'drop', trouble };
  if (trouble !== undefined) return { action: 'yield', trouble };
  const { decided, profile } = holder;
  if (decided !== undefined && asksForSame(decided.secret, secret))
    return { action: 'yield', object: decided.decision.object };
  if (one.suspended) return { action: 'yield' };
  // A SidecarSet neither has a successor nor is one.
  const isProfiles = ![one, { name: profile }].some(isSidecarSet);
  const hint = isProfiles ? `, or set in "${profile}" spec.successor: ${one.name}` : '';
  const message = `"${profile}" delivers a different Secret "${secret.name}" to "${context.namespace.metadata.name}" and keeps the name; rename yours${hint}`;
  return { action: 'yield', trouble: { reason: 'Collision', message } };
}

/** Two profiles that request the same content do not collide. */
function asksForSame(a: ProfileSecret, b: ProfileSecret): boolean {
  return a.onCollision === b.onCollision && JSON.stringify(a.sources) === JSON.stringify(b.sources);
}
