/** Which namespaces ask for what is offered on request. A profile of that sort selects, of the namespaces that it would select, these. */
import type { World } from '../../controller/contract.ts';
import type { PullSecretProfile } from '../../rules/injection/profile.ts';
import {
  CLAIM_API_VERSION,
  CLAIM_KIND,
  readPullSecretClaim,
} from '../../rules/injection/pull-secret-claim.ts';
import { NAMESPACE_NAME_LABEL } from '../../rules/kubernetes/label-selector.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';

/** The claims of the cluster: the same list until one of them changes. */
export function claimObjects(world: World, namespace?: string): readonly KubeObject[] {
  return world.list({
    role: 'hosted',
    apiVersion: CLAIM_API_VERSION,
    kind: CLAIM_KIND,
    ...(namespace === undefined ? {} : { namespace }),
  });
}

const indexes = new WeakMap<readonly KubeObject[], ReadonlyMap<string, readonly string[]>>();

/** Namespaces that ask, by profile, sorted. */
function requestsIn(claims: readonly KubeObject[]): ReadonlyMap<string, readonly string[]> {
  const known = indexes.get(claims);
  if (known !== undefined) return known;
  const found = new Map<string, Set<string>>();
  for (const object of claims) {
    const { profile, namespace } = readPullSecretClaim(object);
    if (profile === '' || object.metadata.deletionTimestamp !== undefined) continue;
    found.set(profile, (found.get(profile) ?? new Set()).add(namespace));
  }
  const index = new Map([...found].map(([profile, names]) => [profile, [...names].sort()] as const));
  indexes.set(claims, index);
  return index;
}

const narrowed = new WeakMap<
  PullSecretProfile,
  { readonly names: string; readonly profile: PullSecretProfile }
>();

/** The profile as it counts: one on request is for those who ask. The same object as long as the same ones do. */
export function requested(profile: PullSecretProfile, claims: readonly KubeObject[]): PullSecretProfile {
  if (!profile.onRequest) return profile;
  const values = requestsIn(claims).get(profile.name) ?? [];
  const names = values.join(' ');
  const known = narrowed.get(profile);
  if (known?.names === names) return known.profile;
  const asks = { key: NAMESPACE_NAME_LABEL, operator: 'In', values } as const;
  const made = { ...profile, namespaceSelector: [...profile.namespaceSelector, asks] };
  narrowed.set(profile, { names, profile: made });
  return made;
}
