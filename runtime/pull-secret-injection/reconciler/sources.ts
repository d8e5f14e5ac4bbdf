/**
 * What the sources of a copy give: whether their owners consent, since when they are gone, and what comes out of their documents.
 *
 * Sources of type kubernetes.io/dockercfg are not read: OpenShift keeps two or three such Secrets for every service account,
 * more than all copies together.
 */

import { MAX_SECRET_BYTES, mergePullSecrets } from '../../core/docker-config/merge.ts';
import { type DockerConfigEntry, PullSecret, toBase64 } from '../../core/docker-config/pull-secret.ts';
import { timestamp } from '../../core/kubernetes/conditions.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import { isRecord, recordOf, textOf } from '../../core/record.ts';
import { type Redacted, redact, reveal, sameSecret } from '../../core/redacted.ts';
import { withoutUserInfo } from '../../core/text.ts';
import { isLightened } from '../../engine/cache.ts';
import type { Reader } from '../../engine/contract.ts';
import {
  GRANT_API_VERSION,
  GRANT_KIND,
  grantsTo,
  type PullSecretGrant,
  readPullSecretGrant,
} from '../kinds/grant.ts';
import { PROFILE_API_VERSION, PROFILE_KIND, type ProfileSource } from '../kinds/profile.ts';
import { namespaceRef, secretRef, sourceName } from '../names.ts';
import type { InjectionOptions } from '../options.ts';
import { type Distributor, isTerminating, namespaceLabels, unreadText } from './view.ts';

// Whether the owner of a source lets a profile deliver it to a namespace, by a PullSecretGrant beside it.

/**
 * `unknown`: the namespace of the source is being deleted or missing, or a grant there lost a field on the way, so the owner's
 * intent is not known. Existing copies stay then, and nothing new is given.
 */
export type Consent = 'granted' | 'denied' | 'unknown';

/** Where a copy is looked at. */
export interface ConsentContext {
  readonly reader: Reader;
  readonly namespace: KubeObject;
  readonly options: InjectionOptions;
}

/** Consent to one source. */
export function consentTo(
  { reader, namespace, options }: ConsentContext,
  profile: string,
  source: ProfileSource,
): Consent {
  const { bySource, unclear } = grantsIn(reader, options.trustedLabelKeys);
  const request = {
    secret: source.name,
    profile,
    namespace: namespace.metadata.name,
    labels: namespaceLabels(namespace),
  };
  if (bySource.get(sourceName(source))?.some((grant) => grantsTo(grant, request)) === true) return 'granted';
  const home = reader.get(namespaceRef(source.namespace));
  return home === undefined || isTerminating(home) || unclear.has(source.namespace) ? 'unknown' : 'denied';
}

interface Grants {
  readonly keys: readonly string[];
  /** By source, `namespace/name`. */
  readonly bySource: ReadonlyMap<string, readonly PullSecretGrant[]>;
  /** Namespaces with a grant that lost a field on the way. */
  readonly unclear: ReadonlySet<string>;
}

const indexes = new WeakMap<readonly KubeObject[], Grants>();

/** Indexed once until a grant changes. */
function grantsIn(reader: Reader, keys: readonly string[]): Grants {
  const objects = reader.list({ role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND });
  const known = indexes.get(objects);
  if (known?.keys === keys) return known;
  const bySource = new Map<string, PullSecretGrant[]>();
  const unclear = new Set<string>();
  for (const object of objects) {
    if (object.metadata.deletionTimestamp !== undefined) continue;
    const grant = readPullSecretGrant(object, keys);
    const { namespace } = grant;
    if (!grant.isWhole) unclear.add(namespace);
    for (const name of grant.secrets) {
      const id = sourceName({ namespace, name });
      bySource.set(id, [...(bySource.get(id) ?? []), grant]);
    }
  }
  const grants = { keys, bySource, unclear };
  indexes.set(objects, grants);
  return grants;
}

// Since when the sources of a profile are gone. Its status remembers it, because the removal of copies may be requested only some time
// after a deletion, over restarts too.

/** One source that is gone; an element of `status.missingSources`. */
export interface MissingSource {
  /** `namespace/name` */
  readonly source: string;
  /** RFC 3339. */
  readonly since: string;
}

/** The missing sources of a profile, each with the time that `object` remembers, or now. */
export function missingSources(
  reader: Reader,
  { secrets }: Pick<Distributor, 'secrets'>,
  object: KubeObject | undefined,
  options: InjectionOptions,
): readonly MissingSource[] {
  const { missingSources: remembered } = recordOf(object?.status);
  const before = new Map(
    (Array.isArray(remembered) ? remembered : [])
      .filter(isRecord)
      .map(({ source, since }) => [source, textOf(since)]),
  );
  const missing = secrets
    .flatMap(({ sources }) => sources)
    .filter(({ namespace, name }) => reader.get(secretRef(namespace, name)) === undefined)
    .filter((source) => unreadText(reader, source, options) === undefined);
  return [...new Set(missing.map(sourceName))].map((source) => ({
    source,
    since: before.get(source) ?? timestamp(reader.now),
  }));
}

/** What leaves the copies now because its source is gone for long enough, and when the next one does. */
export interface Expiry {
  readonly sources: ReadonlySet<string>;
  readonly nextMs: number | undefined;
}

/** For one profile; nothing ever leaves the copies of one that keeps them. */
export function expiryOf(reader: Reader, one: Distributor, options: InjectionOptions): Expiry {
  const { removeAfterMs } = one.copies;
  if (removeAfterMs === undefined) return { sources: new Set(), nextMs: undefined };
  const ref = { role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND } as const;
  const left = missingSources(reader, one, reader.get({ ...ref, name: one.name }), options).map(
    ({ source, since }) => ({ source, ms: Date.parse(since) + removeAfterMs - reader.now.getTime() }),
  );
  const waits = left.filter(({ ms }) => ms > 0).map(({ ms }) => ms);
  return {
    sources: new Set(left.filter(({ ms }) => ms <= 0).map(({ source }) => source)),
    nextMs: waits.length === 0 ? undefined : Math.min(...waits),
  };
}

// The body of a copy, from its sources. The gate of distribution: what a kubelet could not parse is never written, because
// one entry of one secret that it cannot read stops every pull of the pod.

export const SECRET_TYPE = 'kubernetes.io/dockerconfigjson';

/** A source and the Secret that was found for it. */
export interface SourceSecret {
  readonly source: ProfileSource;
  readonly object: SecretObject | undefined;
}

/** A source that gives nothing, and why. */
export interface BadSource {
  readonly source: string;
  readonly reason:
    | 'SourceMissing'
    | 'SourceUnread'
    | 'SourceInvalid'
    | 'SourceEmpty'
    | 'SourceCollision'
    | 'TooLarge';
  readonly message: string;
}

/** What comes out of the sources. */
export interface Composed {
  /** Base64; undefined when no source gives anything. */
  readonly body: Redacted<string> | undefined;
  /** Sources that are in the body, in order. */
  readonly good: readonly string[];
  readonly bad: readonly BadSource[];
}

interface GoodSource {
  readonly name: string;
  /** Base64, as in the source. */
  readonly body: Redacted<string>;
  readonly text: Redacted<string>;
  readonly entries: readonly DockerConfigEntry[];
}

const composed = new WeakMap<
  SecretObject,
  Map<string, { sources: readonly SourceSecret[]; result: Composed }>
>();

/** Composes, once per set of source objects: the same sources in 5,000 namespaces are merged once. */
export function compose(sources: readonly SourceSecret[], onCollision: 'FirstWins' | 'Fail'): Composed {
  const anchor = sources.find(({ object }) => object !== undefined)?.object;
  if (anchor === undefined) return composeNow(sources, onCollision);
  const id = `${onCollision} ${sources.map(({ source }) => sourceName(source)).join(' ')}`;
  const known = composed.get(anchor)?.get(id);
  if (known?.sources.every(({ object }, at) => object === sources[at]?.object) === true) return known.result;
  const result = composeNow(sources, onCollision);
  composed.set(anchor, (composed.get(anchor) ?? new Map()).set(id, { sources, result }));
  return result;
}

function composeNow(sources: readonly SourceSecret[], onCollision: 'FirstWins' | 'Fail'): Composed {
  const read = sources.map(readSource);
  const good = read.filter((one) => 'body' in one);
  const bad = read.filter((one) => 'reason' in one);
  const names = good.map(({ name }) => name);
  const [first] = good;
  // One source is copied byte for byte: its owner decides what it looks like.
  if (first === undefined || good.length === 1) return { body: first?.body, good: names, bad };
  const { text, collision } = merge(good);
  if (collision !== undefined && onCollision === 'Fail')
    return { body: undefined, good: [], bad: [...bad, collision] };
  const { length } = Buffer.from(reveal(text), 'utf8');
  if (length <= MAX_SECRET_BYTES) return { body: toBase64(text), good: names, bad };
  const message = `the merge of ${names.join(', ')} has ${length} bytes, a Secret holds at most ${MAX_SECRET_BYTES}; use several secrets`;
  return { body: undefined, good: [], bad: [...bad, { source: first.name, reason: 'TooLarge', message }] };
}

/** The first source that names a registry wins, as the platform does over the tenant; and the first that names one again. */
function merge([first, ...others]: readonly GoodSource[]): {
  readonly text: Redacted<string>;
  readonly collision: BadSource | undefined;
} {
  let text = first?.text ?? redact('{"auths":{}}');
  const before = first === undefined ? [] : [first];
  const collisions: BadSource[] = [];
  for (const source of others) {
    const merged = mergePullSecrets({
      original: text,
      additional: source.text,
      maxBytes: Number.POSITIVE_INFINITY,
    });
    if (!merged.ok) continue;
    text = merged.text;
    collisions.push(...merged.conflicts.flatMap((conflict) => collisionOf(conflict, source, before) ?? []));
    before.push(source);
  }
  return { text, collision: collisions[0] };
}

/** Two spellings of the same credential are not a collision. */
function collisionOf(
  { registry, original }: { readonly registry: string; readonly original: string },
  source: GoodSource,
  before: readonly GoodSource[],
): BadSource | undefined {
  const credentialOf = ({ entries }: GoodSource, key: string): DockerConfigEntry['kubelet'] =>
    entries.find((entry) => entry.key.written === key)?.kubelet;
  const taken = before.find(({ entries }) => entries.some(({ key }) => key.written === original));
  const mine = credentialOf(source, registry);
  const other = taken === undefined ? undefined : credentialOf(taken, original);
  if (mine === undefined || other === undefined) return undefined;
  if (mine.username === other.username && sameSecret(mine.password, other.password)) return undefined;
  const message = `"${taken?.name}" and "${source.name}" name "${registry}" with different credentials; remove one of them, or set onCollision to FirstWins`;
  return { source: source.name, reason: 'SourceCollision', message };
}

function readSource({ source, object }: SourceSecret): GoodSource | BadSource {
  const name = sourceName(source);
  const bad = (reason: BadSource['reason'], state: string): BadSource => ({
    source: name,
    reason,
    message: `Secret "${name}" ${state}`,
  });
  if (object === undefined || object.type !== SECRET_TYPE) return missingSource(source);
  const { value: body, text, entries, problem, kubeletFault } = PullSecret.of(object);
  if (body === undefined)
    return isLightened(object)
      ? bad('SourceUnread', 'could not be read; it is read again in a few seconds')
      : bad('SourceEmpty', 'has no data under ".dockerconfigjson"; fill it in');
  if (problem !== undefined) return bad('SourceInvalid', `${problem.message}; correct it`);
  const faulty = entries.find(({ fault, kubelet }) => fault !== undefined && kubelet === undefined);
  if (faulty?.fault !== undefined)
    return bad(
      'SourceInvalid',
      `has an entry "${withoutUserInfo(faulty.key.written)}" that ${faulty.fault.message}; correct or remove it`,
    );
  if (kubeletFault !== undefined)
    return bad('SourceInvalid', 'has a field that no kubelet can read; write only "auths"');
  if (entries.length === 0) return bad('SourceEmpty', 'names no registry; add an entry under "auths"');
  return { name, body, text, entries };
}

/** A source that is missing, or is not a pull secret. */
export function missingSource(source: ProfileSource): BadSource {
  const name = sourceName(source);
  const message = `Secret "${name}" does not exist or is not of type ${SECRET_TYPE}; create it, or create it again in that type`;
  return { source: name, reason: 'SourceMissing', message };
}
