/** Whether the owner of a source lets a profile deliver it to a namespace, by a PullSecretGrant beside it. */

import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { Reader } from '../../engine/contract.ts';
import {
  GRANT_API_VERSION,
  GRANT_KIND,
  grantsTo,
  type PullSecretGrant,
  readPullSecretGrant,
} from '../kinds/grant.ts';
import type { ProfileSource } from '../kinds/profile.ts';
import { namespaceRef, sourceName } from '../names.ts';
import type { InjectionOptions } from '../options.ts';
import { isTerminating, namespaceLabels } from './view.ts';

/** Which profile asks, and for which namespace. */
export interface ConsentRequest {
  readonly world: Reader;
  readonly options: InjectionOptions;
  readonly namespace: KubeObject;
  readonly profile: string;
}

/**
 * `unknown`: the namespace of the source is being deleted or missing, or a grant there lost a field on the way, so the owner's
 * intent is not known. Existing copies stay then, and nothing new is given.
 */
export type Consent = 'granted' | 'denied' | 'unknown';

/** Consent to one source. */
export function consentTo(
  { world: reader, options, namespace, profile }: ConsentRequest,
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
  /** By source, `namespace/name`. */
  readonly bySource: ReadonlyMap<string, readonly PullSecretGrant[]>;
  /** Namespaces with a grant that lost a field on the way. */
  readonly unclear: ReadonlySet<string>;
}

const indexes = new WeakMap<
  readonly KubeObject[],
  { readonly keys: readonly string[]; readonly grants: Grants }
>();

/** Indexed once until a grant changes. */
function grantsIn(reader: Reader, trustedKeys: readonly string[]): Grants {
  const objects = reader.list({ role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND });
  const known = indexes.get(objects);
  if (known !== undefined && known.keys === trustedKeys) return known.grants;
  const bySource = new Map<string, PullSecretGrant[]>();
  const unclear = new Set<string>();
  for (const object of objects) {
    if (object.metadata.deletionTimestamp !== undefined) continue;
    const grant = readPullSecretGrant(object, trustedKeys);
    if (!grant.isWhole) unclear.add(grant.namespace);
    for (const secret of grant.secrets) {
      const id = sourceName({ namespace: grant.namespace, name: secret });
      bySource.set(id, [...(bySource.get(id) ?? []), grant]);
    }
  }
  const grants = { bySource, unclear };
  indexes.set(objects, { keys: trustedKeys, grants });
  return grants;
}
