/**
 * Since when the sources of a profile are gone. Its status remembers it, because the removal of copies may be asked for only some time
 * after a deletion, over restarts too.
 */

import { timestamp } from '../../core/kubernetes/conditions.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { Reader } from '../../engine/contract.ts';
import { PROFILE_API_VERSION, PROFILE_KIND } from '../kinds/profile.ts';
import { secretRef, sourceName } from '../names.ts';
import type { InjectionOptions } from '../options.ts';
import { type Distributor, unreadText } from './view.ts';

/** One source that is gone; an element of `status.missingSources`. */
export interface MissingSource {
  /** `namespace/name` */
  readonly source: string;
  /** RFC 3339. */
  readonly since: string;
}

/** The sources of a profile that are not there now, each with the time that `object` remembers, or now. */
export function missingSources(
  reader: Reader,
  one: Pick<Distributor, 'secrets'>,
  object: KubeObject | undefined,
  options: InjectionOptions,
): readonly MissingSource[] {
  const before = new Map(rememberedIn(object).map(({ source, since }) => [source, since]));
  const names = new Set(
    one.secrets.flatMap(({ sources }) =>
      sources
        .filter(({ namespace, name }) => reader.get(secretRef(namespace, name)) === undefined)
        .filter((source) => unreadText(reader, source, options) === undefined)
        .map(sourceName),
    ),
  );
  return [...names].map((source) => ({ source, since: before.get(source) ?? timestamp(reader.now) }));
}

/** What leaves the copies now because its source is gone for long enough, and when the next one does. */
export interface Expiry {
  readonly sources: ReadonlySet<string>;
  readonly nextMs: number | undefined;
}

const NONE: Expiry = { sources: new Set(), nextMs: undefined };

/** For one profile; nothing ever leaves the copies of one that keeps them. */
export function expiryOf(reader: Reader, one: Distributor, options: InjectionOptions): Expiry {
  const { removeAfterMs } = one.copies;
  if (removeAfterMs === undefined) return NONE;
  const ref = {
    role: 'hosted',
    apiVersion: PROFILE_API_VERSION,
    kind: PROFILE_KIND,
    name: one.name,
  } as const;
  const left = missingSources(reader, one, reader.get(ref), options).map(({ source, since }) => ({
    source,
    ms: Date.parse(since) + removeAfterMs - reader.now.getTime(),
  }));
  const waits = left.filter(({ ms }) => ms > 0).map(({ ms }) => ms);
  return {
    sources: new Set(left.filter(({ ms }) => ms <= 0).map(({ source }) => source)),
    nextMs: waits.length === 0 ? undefined : Math.min(...waits),
  };
}

function rememberedIn(object: KubeObject | undefined): readonly MissingSource[] {
  const { missingSources: found = [] } = (object?.status ?? {}) as { missingSources?: readonly unknown[] };
  if (!Array.isArray(found)) return [];
  return (found as readonly Partial<MissingSource>[]).flatMap(({ source, since }) =>
    typeof source === 'string' && typeof since === 'string' && !Number.isNaN(Date.parse(since))
      ? [{ source, since }]
      : [],
  );
}
