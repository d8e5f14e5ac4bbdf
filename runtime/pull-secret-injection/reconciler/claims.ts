/**
 * Whose Secret of a name stands in a namespace when several profiles ask for it.
 *
 * Whoever holds the copy keeps the name until it lets go: it no longer asks for the name here, its source was taken back, or it
 * names its successor. A free name goes to who could write it now: granted, present, not suspended. Who was there first comes
 * first, so that nobody takes a name by an order of its own.
 */
import type { ProfileSecret } from '../../rules/injection/profile.ts';
import { compareProfiles } from '../../rules/injection/profile.ts';
import type { SecretObject } from '../../rules/kubernetes/object.ts';
import { type CopiesDecision, type CopyContext, decideCopies, isRevoked } from './decide.ts';
import { PROFILE_ANNOTATION } from './names.ts';
import { unreadableIn } from './unreadable.ts';
import { type Distributor, namespaceLabels, serves } from './view.ts';

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
