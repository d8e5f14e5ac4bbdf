/** What one namespace gets: for every secret of every profile that serves it, a copy, the last good one, or a reason. */
import { keyText } from '../../controller/changes.ts';
import {
  KEY_ANNOTATION,
  OWNER_LABEL,
  type Problem,
  type Ref,
  type World,
} from '../../controller/contract.ts';
import type { ProfileSecret } from '../../rules/injection/profile.ts';
import { CAUSES } from '../../rules/injection/profile-causes.ts';
import type { SecretObject } from '../../rules/kubernetes/object.ts';
import { RECONCILER_NAME } from '../name.ts';
import { type Claim, claimsOf, decideClaim, type Holder, holderOf, isSource, writerOf } from './claims.ts';
import { SECRET_TYPE } from './compose.ts';
import { type CopyContext, isRevoked, type Trouble } from './decide.ts';
import { ADOPT_ANNOTATION, secretRef } from './names.ts';
import { unreadableIn } from './unreadable.ts';
import { type Distributor, isSidecarSet, namespaceLabels, serves } from './view.ts';

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
export function ownCopies(world: World, namespace: string): readonly SecretObject[] {
  const key = keyText({ scope: world.scope.name, namespace, name: 'namespace' });
  return world
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
  { world }: CopyContext,
  ref: Ref,
  { standing, action }: { readonly standing: SecretObject | undefined; readonly action: Copy['action'] },
): { readonly trouble?: Trouble } {
  const isOpen = action === 'write' || (action === 'drop' && standing !== undefined);
  const refusal = isOpen ? world.refusal(ref) : undefined;
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

function refusedTrouble({ code, message, hint }: Problem): Trouble {
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
