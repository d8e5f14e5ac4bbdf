/**
 * The sources of a copy: consent of their owners, how long they are missing, and the merged document.
 *
 * Sources of type kubernetes.io/dockercfg are not read: OpenShift keeps two or three such Secrets per ServiceAccount, more than
 * all copies together.
 */

import { MAX_SECRET_BYTES, mergePullSecrets } from '../../core/docker-config/merge.ts';
import { type DockerConfigEntry, pullSecretOf, toBase64 } from '../../core/docker-config/pull-secret.ts';
import { timestamp } from '../../core/kubernetes/conditions.ts';
import type { KubeObject, SecretObject } from '../../core/kubernetes/object.ts';
import { oncePer, recordOf, recordsIn, textOf } from '../../core/record.ts';
import { reveal, sameSecret } from '../../core/redacted.ts';
import { withoutUserInfo } from '../../core/text.ts';
import { isLightened } from '../../engine/cache.ts';
import { GRANT, grantsTo, readPullSecretGrant } from '../kinds/grant.ts';
import type { ProfileSource } from '../kinds/profile.ts';
import {
  type Context,
  type Distributor,
  isTerminating,
  namespaceLabels,
  namespaceRef,
  profileRef,
  secretRef,
  sourceName,
  unreadText,
} from './view.ts';

// Consent: a PullSecretGrant in the namespace of the source allows a profile to deliver it to a target namespace.

/**
 * `unknown`: the namespace of the source is missing or terminating, or the API server dropped an applied field of a grant there.
 * The owner's intent is then unclear: existing copies stay, and no new ones are written.
 */
export type Consent = 'granted' | 'denied' | 'unknown';

/** Context for a consent check: the target namespace. */
export interface ConsentContext extends Context {
  readonly namespace: KubeObject;
}

/** Checks the consent to one source. */
export function consentTo(context: ConsentContext, profile: string, source: ProfileSource): Consent {
  const { reader, namespace, options } = context;
  const { bySource, unclear } = grantIndex(options.trustedLabelKeys)(
    reader.list({ role: 'hosted', ...GRANT }),
  );
  const request = {
    secret: source.name,
    profile,
    namespace: namespace.metadata.name,
    labels: namespaceLabels(namespace),
  };
  if (bySource.get(sourceName(source))?.some(({ grant }) => grantsTo(grant, request)) === true)
    return 'granted';
  const home = reader.get(namespaceRef(source.namespace));
  return home === undefined || isTerminating(home) || unclear.has(source.namespace) ? 'unknown' : 'denied';
}

/** The grants by source, for these trusted keys. Built once per change of a grant. */
const grantIndex = oncePer((trustedKeys: readonly string[]) =>
  oncePer((objects: readonly KubeObject[]) => {
    const grants = objects
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map((object) => readPullSecretGrant(object, trustedKeys));
    const granted = grants.flatMap((grant) =>
      grant.secrets.map((name) => ({ source: sourceName({ namespace: grant.namespace, name }), grant })),
    );
    return {
      bySource: Map.groupBy(granted, ({ source }) => source),
      /** Namespaces with a grant of which the API server dropped an applied field. */
      unclear: new Set(grants.filter(({ isWhole }) => !isWhole).map(({ namespace }) => namespace)),
    };
  }),
);

// Records when sources of a profile went missing. The times are kept in the profile's status across restarts, because
// `removeAfter` counts from the deletion.

/**
 * Returns the missing sources of a profile for `status.missingSources`: name, and time from the status of `object`, else the
 * current time.
 */
export function missingSources(context: Context, { secrets }: Distributor, object: KubeObject | undefined) {
  const { reader } = context;
  const remembered = recordsIn(recordOf(object?.status)['missingSources']);
  const before = new Map(remembered.map(({ source, since }) => [source, textOf(since)]));
  const missing = secrets
    .flatMap(({ sources }) => sources)
    .filter(({ namespace, name }) => reader.get(secretRef(namespace, name)) === undefined)
    .filter((source) => unreadText(context, source) === undefined);
  return [...new Set(missing.map(sourceName))].map((source) => ({
    source,
    since: before.get(source) ?? timestamp(reader.now),
  }));
}

/**
 * The sources of a profile whose entries expire from the copies now, and the delay until the next one expires. None if the
 * profile keeps its copies.
 */
export function expiryOf(context: Context, one: Distributor) {
  const { reader } = context;
  const { removeAfterMs } = one.copies;
  if (removeAfterMs === undefined) return { sources: new Set<string>(), nextMs: undefined };
  const left = missingSources(context, one, reader.get(profileRef(one.name))).map(({ source, since }) => ({
    source,
    ms: Date.parse(since) + removeAfterMs - reader.now.getTime(),
  }));
  const waits = left.filter(({ ms }) => ms > 0).map(({ ms }) => ms);
  return {
    sources: new Set(left.filter(({ ms }) => ms <= 0).map(({ source }) => source)),
    nextMs: waits.length === 0 ? undefined : Math.min(...waits),
  };
}

// The body of a copy, merged from its sources. A document that the kubelet could not parse is never written: one invalid entry in
// one Secret blocks every pull of the pod.

export const SECRET_TYPE = 'kubernetes.io/dockerconfigjson';

/** A source and its Secret; undefined if not found. */
export interface SourceSecret {
  readonly source: ProfileSource;
  readonly object: SecretObject | undefined;
}

/** A source without usable entries, and why. */
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

/**
 * The result of merging the sources: `body` in Base64, undefined if no source is usable; the `good` sources in it, in order; and
 * the others.
 */
export type Composed = Readonly<ReturnType<typeof composeNow>>;

type GoodSource = Exclude<ReturnType<typeof readSource>, BadSource>;

const composedFrom = oncePer(
  (_first: SecretObject) => new Map<string, { sources: readonly SourceSecret[]; result: Composed }>(),
);

/** Merges once per set of source objects: the same sources for 5,000 namespaces are merged once. */
export function compose(sources: readonly SourceSecret[], onCollision: 'FirstWins' | 'Fail'): Composed {
  const anchor = sources.find(({ object }) => object !== undefined)?.object;
  if (anchor === undefined) return composeNow(sources, onCollision);
  const id = `${onCollision} ${sources.map(({ source }) => sourceName(source)).join(' ')}`;
  const composed = composedFrom(anchor);
  const known = composed.get(id);
  if (known?.sources.every(({ object }, at) => object === sources[at]?.object) === true) return known.result;
  const result = composeNow(sources, onCollision);
  composed.set(id, { sources, result });
  return result;
}

function composeNow(sources: readonly SourceSecret[], onCollision: 'FirstWins' | 'Fail') {
  const read = sources.map(readSource);
  const good = read.filter((one) => 'body' in one);
  const bad = read.filter((one) => 'reason' in one);
  const names = good.map(({ name }) => name);
  const [first, ...others] = good;
  // One source is copied byte for byte, in its owner's format.
  if (first === undefined || others.length === 0) return { body: first?.body, good: names, bad };
  const { text, collision } = merge(first, others);
  if (collision !== undefined && onCollision === 'Fail')
    return { body: undefined, good: [], bad: [...bad, collision] };
  const { length } = Buffer.from(reveal(text), 'utf8');
  if (length <= MAX_SECRET_BYTES) return { body: toBase64(text), good: names, bad };
  const message = `the merge of ${names.join(', ')} has ${length} bytes, a Secret allows at most ${MAX_SECRET_BYTES}; use several secrets`;
  return { body: undefined, good: [], bad: [...bad, { source: first.name, reason: 'TooLarge', message }] };
}

/** Merges the sources: the first one with an entry for a registry wins. Also returns the first collision. */
function merge(first: GoodSource, others: readonly GoodSource[]) {
  let { text } = first;
  const before = [first];
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

/** Returns the collision of two entries; undefined for two spellings of the same credential. */
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
  const message = `"${taken?.name}" and "${source.name}" have different credentials for "${registry}"; remove one of them, or set onCollision to FirstWins`;
  return { source: source.name, reason: 'SourceCollision', message };
}

/** `body`: in Base64, as in the source. */
function readSource({ source, object }: SourceSecret) {
  const name = sourceName(source);
  const bad = (reason: BadSource['reason'], state: string): BadSource => ({
    source: name,
    reason,
    message: `Secret "${name}" ${state}`,
  });
  if (object === undefined || object.type !== SECRET_TYPE) return missingSource(source);
  const { value: body, text, entries, problem, kubeletFault } = pullSecretOf(object);
  if (body === undefined)
    return isLightened(object)
      ? bad('SourceUnread', 'could not be read; retried in a few seconds')
      : bad('SourceEmpty', 'has no data under ".dockerconfigjson"; add it');
  if (problem !== undefined) return bad('SourceInvalid', `${problem.message}; correct it`);
  const faulty = entries.find(({ fault, kubelet }) => fault !== undefined && kubelet === undefined);
  if (faulty?.fault !== undefined)
    return bad(
      'SourceInvalid',
      `has an entry "${withoutUserInfo(faulty.key.written)}" that ${faulty.fault.message}; correct or remove it`,
    );
  if (kubeletFault !== undefined)
    return bad('SourceInvalid', 'has a field that the kubelet cannot read; use only "auths"');
  if (entries.length === 0) return bad('SourceEmpty', 'has no entry; add one under "auths"');
  return { name, body, text, entries };
}

/** The problem of a source that is missing, or is not a pull secret. */
export function missingSource(source: ProfileSource): BadSource {
  const name = sourceName(source);
  const message = `Secret "${name}" does not exist or is not of type ${SECRET_TYPE}; create it, or recreate it with that type`;
  return { source: name, reason: 'SourceMissing', message };
}
