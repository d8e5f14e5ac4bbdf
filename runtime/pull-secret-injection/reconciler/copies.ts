/** What one namespace gets: for every secret of every distributor that serves it, a copy, the last good one, or a reason. */
import { OWNER_LABEL, type Ref, type World } from '../../controller/contract.ts';
import type { ProfileSecret, SecretSource } from '../../rules/injection/profile.ts';
import { GRANT_ANNOTATION, type Grant, grants, readGrant } from '../../rules/injection/profile-grant.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import { RECONCILER_NAME } from '../name.ts';
import type { InjectionOptions } from '../options.ts';
import { type Composed, compose, SECRET_TYPE } from './compose.ts';
import { type Distribution, type Distributor, namespaceLabels, serves } from './view.ts';

export const SOURCES_ANNOTATION = 'pullwright.dev/sources';
export const PROFILE_ANNOTATION = 'pullwright.dev/profile';
/** On a foreign Secret of the same name: its owner lets us take it over. */
export const ADOPT_ANNOTATION = 'pullwright.dev/adopt';

/** Copies live only at run time: GitOps tools must neither miss nor prune them. */
const NOT_IN_GIT: Readonly<Record<string, string>> = {
  'argocd.argoproj.io/compare-options': 'IgnoreExtraneous',
  'argocd.argoproj.io/sync-options': 'Prune=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
};

/** What happens to one Secret in one namespace. */
export interface Copy {
  readonly name: string;
  readonly distributor: string;
  readonly ref: Ref;
  /**
   * `write`: as in `object`; `keep`: the last good copy stays; `drop`: none here, ours is removed; `foreign`: somebody
   * else's Secret is in the way.
   */
  readonly action: 'write' | 'keep' | 'drop' | 'foreign';
  readonly object?: SecretObject;
  readonly adopt?: boolean;
  /** The copy is not what the distributor asks for: CamelCase reason and text. */
  readonly trouble?: { readonly reason: string; readonly message: string };
}

/** A reference to a Secret of the hosted cluster. */
export function secretRef(namespace: string, name: string): Ref {
  return { role: 'hosted', apiVersion: 'v1', kind: 'Secret', namespace, name };
}

/** Everything for one namespace, each name once. */
export function copiesFor(
  world: World,
  distribution: Distribution,
  namespace: KubeObject,
  options: InjectionOptions,
): readonly Copy[] {
  const labels = namespaceLabels(namespace);
  return distribution.distributors
    .filter((one) => serves(one, labels))
    .flatMap((one) =>
      one.secrets.flatMap((secret) => copyOf({ world, distribution, namespace, options }, one, secret) ?? []),
    );
}

/** Where a copy is looked at. */
export interface CopyContext {
  readonly world: World;
  readonly distribution: Distribution;
  readonly namespace: KubeObject;
  readonly options: InjectionOptions;
}

/** One secret of one distributor in a namespace that it serves; undefined when there is nothing to bring. */
export function copyOf(context: CopyContext, one: Distributor, secret: ProfileSecret): Copy | undefined {
  const namespace = context.namespace.metadata.name;
  const isSource = secret.sources.some(
    (source) => source.namespace === namespace && source.name === secret.name,
  );
  if (secret.sources.length === 0 || isSource) return undefined;
  const ref = secretRef(namespace, secret.name);
  const base = { name: secret.name, distributor: one.name, ref };
  const winner = winnerOf(context, secret.name);
  if (winner !== undefined && winner !== one) return claimed(context, base, { winner, secret });
  const present = context.world.get(ref) as SecretObject | undefined;
  const claim = claimOf(present);
  if (claim === 'foreign') return { ...base, action: 'foreign', trouble: foreignTrouble(ref) };
  if (one.suspended) return { ...base, action: 'keep' };
  return {
    ...base,
    ...decide(context, one, secret, present),
    ...(claim === 'offered' ? { adopt: true } : {}),
  };
}

/** Whose the Secret is that stands there. */
function claimOf(present: SecretObject | undefined): 'none' | 'ours' | 'offered' | 'foreign' {
  if (present === undefined) return 'none';
  if (present.metadata.labels?.[OWNER_LABEL] === RECONCILER_NAME) return 'ours';
  return present.metadata.annotations?.[ADOPT_ANNOTATION] === 'true' ? 'offered' : 'foreign';
}

/** The distributor whose Secret of this name stands in the namespace. */
function winnerOf({ distribution, namespace }: CopyContext, name: string): Distributor | undefined {
  const claims = distribution.byName.get(name) ?? [];
  if (claims.length < 2) return claims[0];
  const labels = namespaceLabels(namespace);
  return claims.find((one) => serves(one, labels));
}

/** Two distributors that ask for the same are no collision. */
function claimed(
  { namespace }: CopyContext,
  base: Pick<Copy, 'name' | 'distributor' | 'ref'>,
  { winner, secret }: { readonly winner: Distributor; readonly secret: ProfileSecret },
): Copy | undefined {
  const other = winner.secrets.find(({ name }) => name === secret.name);
  if (JSON.stringify(other?.sources) === JSON.stringify(secret.sources)) return undefined;
  return {
    ...base,
    action: 'keep',
    trouble: {
      reason: 'Collision',
      message: `"${winner.name}" brings another Secret "${secret.name}" to "${namespace.metadata.name}" and comes first; give one of them another name`,
    },
  };
}

function foreignTrouble(ref: Ref): NonNullable<Copy['trouble']> {
  return {
    reason: 'ForeignObject',
    message: `Secret "${ref.namespace}/${ref.name}" was made by somebody else and is left alone; rename or delete it, or annotate it with ${ADOPT_ANNOTATION}=true to have it taken over`,
  };
}

type Decision = Pick<Copy, 'action' | 'object' | 'trouble'>;

function decide(
  context: CopyContext,
  one: Distributor,
  secret: ProfileSecret,
  present: SecretObject | undefined,
): Decision {
  const sources = secret.sources.map((source) => ({ source, object: sourceObject(context.world, source) }));
  const refused = sources.filter(({ object }) => object !== undefined && !granted(context, object));
  const composed = compose(
    sources.filter((source) => !refused.includes(source)),
    secret.onCollision,
  );
  const denied = refused.map(({ source }) => sourceName(source));
  const trouble = troubleOf(context, composed, denied);
  // A copy that holds what may no longer be here cannot stay, whatever else is wrong.
  const held = heldSources(present);
  const tainted = held.some((name) => denied.includes(name));
  const wouldLose = composed.bad.some(({ source }) => held.includes(source)) || composed.body === undefined;
  if (present !== undefined && wouldLose && !tainted) {
    return composed.bad.length === 0 ? { action: 'drop', ...trouble } : { action: 'keep', ...trouble };
  }
  if (composed.body === undefined) return { action: 'drop', ...trouble };
  return { action: 'write', object: copyObject(context, one, secret, composed), ...trouble };
}

function sourceObject(world: World, source: SecretSource): SecretObject | undefined {
  return world.get(secretRef(source.namespace, source.name)) as SecretObject | undefined;
}

const grantsOf = new WeakMap<KubeObject, { readonly keys: readonly string[]; readonly grant: Grant }>();

/** The grant of a source, read once per object. */
export function grantOf(object: KubeObject, trustedKeys: readonly string[]): Grant {
  const known = grantsOf.get(object);
  if (known !== undefined && known.keys === trustedKeys) return known.grant;
  const text = object.metadata.annotations?.[GRANT_ANNOTATION];
  const grant = readGrant(typeof text === 'string' ? text : '', trustedKeys);
  grantsOf.set(object, { keys: trustedKeys, grant });
  return grant;
}

function granted({ namespace, options }: CopyContext, object: KubeObject): boolean {
  const grant = grantOf(object, options.trustedLabelKeys);
  return grants(grant, namespace.metadata.name, namespace.metadata.labels ?? {});
}

function troubleOf(
  { namespace }: CopyContext,
  composed: Composed,
  denied: readonly string[],
): Pick<Copy, 'trouble'> {
  const [bad] = composed.bad;
  if (bad !== undefined) return { trouble: { reason: bad.reason, message: bad.message } };
  const [first] = denied;
  if (first === undefined) return {};
  const message = `Secret "${first}" does not grant itself to namespace "${namespace.metadata.name}"; its owner lists it in the annotation ${GRANT_ANNOTATION}`;
  return { trouble: { reason: 'NotGranted', message } };
}

function heldSources(present: SecretObject | undefined): readonly string[] {
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
      annotations: {
        ...NOT_IN_GIT,
        [PROFILE_ANNOTATION]: one.name,
        [SOURCES_ANNOTATION]: composed.good.join(', '),
      },
    },
    type: SECRET_TYPE,
    ...(composed.body === undefined ? {} : { data: { '.dockerconfigjson': composed.body } }),
  };
}

/** `platform/quay-robot` */
export function sourceName(source: SecretSource): string {
  return `${source.namespace}/${source.name}`;
}
