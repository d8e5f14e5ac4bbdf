/** What one profile makes of one Secret in one namespace, as if no other profile asked for the name. */
import type { World } from '../../controller/contract.ts';
import type { ProfileSecret, ProfileSource } from '../../rules/injection/profile.ts';
import { GRANT_ANNOTATION } from '../../rules/injection/profile-grant.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import type { InjectionOptions } from '../options.ts';
import { type Composed, compose, SECRET_TYPE } from './compose.ts';
import { type Consent, consentTo } from './consent.ts';
import { GRANTED_BY_ANNOTATION, type GrantRecord, grantRecordOf, grantRecordText } from './granted-by.ts';
import { expiryOf } from './missing-sources.ts';
import { PROFILE_ANNOTATION, SOURCES_ANNOTATION, secretRef, sourceName } from './names.ts';
import { unreadText } from './unread.ts';
import type { Distribution, Distributor } from './view.ts';

/** Copies live only at run time: GitOps tools must neither miss nor prune them. */
const NOT_IN_GIT: Readonly<Record<string, string>> = {
  'argocd.argoproj.io/compare-options': 'IgnoreExtraneous',
  'argocd.argoproj.io/sync-options': 'Prune=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
};

/** Where a copy is looked at. */
export interface CopyContext {
  readonly world: World;
  readonly distribution: Distribution;
  readonly namespace: KubeObject;
  readonly options: InjectionOptions;
}

/** The copy is not what the profile asks for: CamelCase reason and text. */
export interface Trouble {
  readonly reason: string;
  readonly message: string;
  /** Whether its owner grants the source cannot be told: the Secret that would say so is not there. */
  readonly unasked?: boolean;
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
  const consents = consentsOf(context, one, secret, present);
  const expired = expiryOf(context.world, one, context.options).sources;
  const held = heldSources(present);
  // What was taken back may not stay, whatever else is wrong: suspended, broken or missing sources, a collision.
  const isTainted = held.some((name) => consents.get(name)?.is === 'revoked');
  if (one.suspended && !isTainted) return { action: 'keep' };
  const usable = secret.sources.filter(
    (source) => consents.get(sourceName(source))?.is === 'granted' && !expired.has(sourceName(source)),
  );
  const composed = compose(
    usable.map((source) => ({ source, object: sourceObject(context.world, source) })),
    secret.onCollision,
  );
  const trouble = troubleOf(context, secret, { composed, consents, expired });
  const isLost = held.some((name) => consents.get(name)?.is === 'lost' && !expired.has(name));
  const loses =
    isLost || composed.body === undefined || composed.bad.some(({ source }) => held.includes(source));
  if (present !== undefined && loses && !isTainted)
    return { action: composed.bad.length > 0 || isLost ? 'keep' : 'drop', ...trouble };
  if (composed.body === undefined) return { action: 'drop', ...trouble };
  return { action: 'write', object: copyObject(context, one, secret, { composed, consents }), ...trouble };
}

/** Whether a source that the copy holds was taken back by its owner. For copies whose profile cannot be read. */
export function isRevoked(
  context: Omit<CopyContext, 'distribution'>,
  copy: SecretObject,
  profile: string,
): boolean {
  const record = grantRecordOf(copy);
  return heldSources(copy).some((name) => {
    const [namespace = '', secret = ''] = name.split('/');
    return (
      consentTo({ ...context, profile }, { namespace, name: secret }, record.get(name) ?? '').is === 'revoked'
    );
  });
}

/** Of the sources that the profile names, and of those that the copy holds although it no longer does. */
function consentsOf(
  context: CopyContext,
  one: Distributor,
  secret: ProfileSecret,
  present: SecretObject | undefined,
): ReadonlyMap<string, Consent> {
  const record = grantRecordOf(present);
  const held = heldSources(present);
  const request = { ...context, profile: one.name };
  const former = held.map((text): ProfileSource => {
    const [namespace = '', name = ''] = text.split('/');
    return { namespace, name };
  });
  return new Map(
    [...secret.sources, ...former].map((source): [string, Consent] => {
      const name = sourceName(source);
      return [name, consentTo(request, source, held.includes(name) ? (record.get(name) ?? '') : undefined)];
    }),
  );
}

function sourceObject(world: World, source: ProfileSource): SecretObject | undefined {
  return world.get(secretRef(source.namespace, source.name)) as SecretObject | undefined;
}

interface Found {
  readonly composed: Composed;
  readonly consents: ReadonlyMap<string, Consent>;
  readonly expired: ReadonlySet<string>;
}

function troubleOf(
  { world, namespace, options }: CopyContext,
  secret: ProfileSecret,
  { composed, consents, expired }: Found,
): Pick<CopiesDecision, 'trouble'> {
  const unread = secret.sources.flatMap((source) => unreadText(world, source, options) ?? []);
  if (unread[0] !== undefined) return { trouble: { reason: 'SourceUnread', message: unread[0] } };
  const [bad] = composed.bad;
  if (bad !== undefined) return { trouble: { reason: bad.reason, message: bad.message } };
  const named = secret.sources.map(sourceName);
  const missing = secret.sources.find(
    (source) =>
      (consents.get(sourceName(source))?.is !== 'granted' || expired.has(sourceName(source))) &&
      sourceObject(world, source) === undefined,
  );
  if (missing !== undefined)
    return {
      trouble: {
        reason: 'SourceMissing',
        message: missingText(sourceName(missing)),
        unasked: consents.get(sourceName(missing))?.is !== 'granted',
      },
    };
  for (const name of named) {
    const consent = consents.get(name);
    if (consent?.is === 'lost')
      return { trouble: { reason: 'GrantLost', message: lostText(name, consent.how) } };
  }
  const denied = named.find((name) => consents.get(name)?.is !== 'granted');
  if (denied === undefined) return {};
  const message = `Secret "${denied}" does not grant itself to namespace "${namespace.metadata.name}"; its owner writes a PullSecretGrant beside it, or lists the namespace in its annotation ${GRANT_ANNOTATION}`;
  return { trouble: { reason: 'NotGranted', message } };
}

function missingText(name: string): string {
  return `Secret "${name}" does not exist or is not of type ${SECRET_TYPE}; create it, or create it again in that type`;
}

const AGAIN = `annotate it or write a PullSecretGrant beside it again, or set the annotation ${GRANT_ANNOTATION} to the empty text to take the copies away`;
/** What happened to the grant of a source, and what to do. */
const LOST: Readonly<
  Record<Extract<Consent, { is: 'lost' }>['how'], readonly [happened: string, remedy: string]>
> = {
  'with-secret': [`was created again without the annotation ${GRANT_ANNOTATION}`, AGAIN],
  'with-namespace': ['lost its PullSecretGrant with its namespace, which was deleted', AGAIN],
  'in-part': ['has a PullSecretGrant that lost a field on the way', 'its condition says what to correct'],
};

function lostText(name: string, how: keyof typeof LOST): string {
  const [happened, remedy] = LOST[how];
  return `Secret "${name}" ${happened}: copies stay as they are and nothing new is given; ${remedy}`;
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
  { composed, consents }: { readonly composed: Composed; readonly consents: ReadonlyMap<string, Consent> },
): SecretObject {
  const record: GrantRecord = new Map(
    composed.good.flatMap((name): [string, string][] => {
      const consent = consents.get(name);
      return consent?.is === 'granted' ? [[name, consent.by]] : [];
    }),
  );
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
        [GRANTED_BY_ANNOTATION]: grantRecordText(record),
      },
    },
    type: SECRET_TYPE,
    ...(composed.body === undefined ? {} : { data: { '.dockerconfigjson': composed.body } }),
  };
}
