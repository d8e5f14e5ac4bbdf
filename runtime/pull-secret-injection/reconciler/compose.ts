/**
 * The body of a copy, from its sources. The gate of distribution: what a kubelet could not parse is never written, because
 * one entry of one secret that it cannot read stops every pull of the pod.
 *
 * Sources of type kubernetes.io/dockercfg are not read: OpenShift keeps two or three such Secrets for every service account,
 * more than all copies together.
 */

import { MAX_SECRET_BYTES, mergePullSecrets } from '../../core/docker-config/merge.ts';
import {
  type DockerConfigEntry,
  parseDockerConfig,
  secretDataText,
} from '../../core/docker-config/pull-secret.ts';
import type { SecretObject } from '../../core/kubernetes/object.ts';
import { type Redacted, redact, reveal, sameSecret } from '../../core/redacted.ts';
import { withoutUserInfo } from '../../core/text.ts';
import { isLightened } from '../../engine/on-demand-values.ts';
import type { ProfileSource } from '../kinds/profile.ts';

export const SECRET_TYPE = 'kubernetes.io/dockerconfigjson';
const DATA_KEY = '.dockerconfigjson';
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
  /** Registries that more than one source names with different credentials, and which source was taken. */
  readonly collisions: readonly Collision[];
}

/** A registry that two sources name. */
export interface Collision {
  readonly registry: string;
  readonly taken: string;
  readonly shadowed: string;
}

interface GoodSource {
  readonly name: string;
  /** Base64, as it stands in the source. */
  readonly body: Redacted<string>;
  readonly text: Redacted<string>;
  readonly entries: readonly DockerConfigEntry[];
}

const composed = new WeakMap<
  SecretObject,
  Map<string, { sources: readonly SourceSecret[]; result: Composed }>
>();

/** Composes, once per set of source objects: the same sources in 5,000 namespaces are parsed once. */
export function compose(sources: readonly SourceSecret[], onCollision: 'FirstWins' | 'Fail'): Composed {
  const anchor = sources.find(({ object }) => object !== undefined)?.object;
  if (anchor === undefined) return composeNow(sources, onCollision);
  const id = `${onCollision} ${sources.map(({ source }) => nameOf(source)).join(' ')}`;
  const known = composed.get(anchor)?.get(id);
  if (known?.sources.every(({ object }, at) => object === sources[at]?.object) === true) return known.result;
  const result = composeNow(sources, onCollision);
  const table = composed.get(anchor) ?? new Map();
  composed.set(anchor, table.set(id, { sources, result }));
  return result;
}

function composeNow(sources: readonly SourceSecret[], onCollision: 'FirstWins' | 'Fail'): Composed {
  const judged = sources.map(judge);
  const good = judged.filter((one) => 'body' in one);
  const bad = judged.filter((one) => 'reason' in one);
  const [first] = good;
  // One source is copied byte for byte: its owner decides what it looks like.
  if (first === undefined || good.length === 1) {
    return { body: first?.body, good: good.map(({ name }) => name), bad, collisions: [] };
  }
  return merge(good, bad, onCollision);
}

interface Merged {
  readonly text: Redacted<string>;
  readonly collisions: readonly Collision[];
}

function merge(
  good: readonly GoodSource[],
  bad: readonly BadSource[],
  onCollision: 'FirstWins' | 'Fail',
): Composed {
  const { text, collisions } = mergeTexts(good);
  const names = good.map(({ name }) => name);
  const refuse = (source: string, reason: BadSource['reason'], message: string): Composed => ({
    body: undefined,
    good: [],
    bad: [...bad, { source, reason, message }],
    collisions,
  });
  const [collision] = collisions;
  if (collision !== undefined && onCollision === 'Fail') {
    const { taken, shadowed, registry } = collision;
    const message = `"${taken}" and "${shadowed}" name "${registry}" with different credentials; remove one of them, or set onCollision to FirstWins`;
    return refuse(shadowed, 'SourceCollision', message);
  }
  const bytes = Buffer.from(reveal(text), 'utf8');
  if (bytes.length > MAX_SECRET_BYTES) {
    const message = `the merge of ${names.join(', ')} has ${bytes.length} bytes, a Secret holds at most ${MAX_SECRET_BYTES}; use several secrets`;
    return refuse(names[0] ?? '', 'TooLarge', message);
  }
  return { body: redact(bytes.toString('base64')), good: names, bad, collisions };
}

/** The first source that names a registry wins, as the platform does over the tenant. */
function mergeTexts([first, ...others]: readonly GoodSource[]): Merged {
  let text = first?.text ?? redact('{"auths":{}}');
  const before = first === undefined ? [] : [first];
  const collisions: Collision[] = [];
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
  return { text, collisions };
}

/** Two spellings of the same credential are no collision. */
function collisionOf(
  conflict: { readonly registry: string; readonly original: string },
  source: GoodSource,
  before: readonly GoodSource[],
): Collision | undefined {
  const mine = entryOf(source, conflict.registry);
  const taken = before.find((one) => entryOf(one, conflict.original) !== undefined);
  const other = taken === undefined ? undefined : entryOf(taken, conflict.original);
  if (mine?.kubelet === undefined || other?.kubelet === undefined || taken === undefined) return undefined;
  const same =
    mine.kubelet.username === other.kubelet.username &&
    sameSecret(mine.kubelet.password, other.kubelet.password);
  return same ? undefined : { registry: conflict.registry, taken: taken.name, shadowed: source.name };
}

function entryOf(source: GoodSource, key: string): DockerConfigEntry | undefined {
  return source.entries.find((entry) => entry.key.written === key);
}

function judge({ source, object }: SourceSecret): GoodSource | BadSource {
  const name = nameOf(source);
  const bad = (reason: BadSource['reason'], state: string): BadSource => ({
    source: name,
    reason,
    message: `Secret "${name}" ${state}`,
  });
  if (object === undefined || object.type !== SECRET_TYPE)
    return bad(
      'SourceMissing',
      `does not exist or is not of type ${SECRET_TYPE}; create it, or create it again in that type`,
    );
  const body = object.data?.[DATA_KEY];
  if (body === undefined)
    return isLightened(object)
      ? bad('SourceUnread', 'could not be read; it is asked for again in a few seconds')
      : bad('SourceEmpty', `has no data under "${DATA_KEY}"; fill it in`);
  const text = secretDataText(body);
  const parsed = parseDockerConfig(text);
  if (!parsed.ok) return bad('SourceInvalid', `${parsed.problem.message}; correct it`);
  const faulty = parsed.config.entries.find(
    (entry) => entry.fault !== undefined && entry.kubelet === undefined,
  );
  if (faulty?.fault !== undefined)
    return bad(
      'SourceInvalid',
      `has an entry "${withoutUserInfo(faulty.key.written)}" that ${faulty.fault.message}; correct or remove it`,
    );
  if (parsed.config.kubeletFault !== undefined)
    return bad('SourceInvalid', 'has a field that no kubelet can read; write only "auths"');
  if (parsed.config.entries.length === 0)
    return bad('SourceEmpty', 'names no registry; add an entry under "auths"');
  return { name, body, text, entries: parsed.config.entries };
}

function nameOf(source: ProfileSource): string {
  return `${source.namespace}/${source.name}`;
}
