/** Profiles and SidecarSets that cannot be read now: what they brought stays until they can. */
import type { World } from '../../controller/contract.ts';
import { PROFILE_API_VERSION, PROFILE_KIND } from '../../rules/injection/profile.ts';
import { SIDECAR_SET_API_VERSIONS } from '../../rules/injection/sidecar-set.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { bringerName, profileOf, sidecarSetObjects, sidecarSetOf } from './view.ts';

interface Unreadable {
  readonly sets: readonly (readonly KubeObject[])[];
  readonly names: ReadonlySet<string>;
}

/** By the list of profiles: asked for with each copy. */
const unreadable = new WeakMap<readonly KubeObject[], Unreadable>();

/** Their names, as copies call them. */
export function unreadableIn(world: World): ReadonlySet<string> {
  const profiles = world.list({ role: 'hosted', apiVersion: PROFILE_API_VERSION, kind: PROFILE_KIND });
  const sets = SIDECAR_SET_API_VERSIONS.map((apiVersion) =>
    world.list({ role: 'hosted', apiVersion, kind: 'SidecarSet' }),
  );
  const known = unreadable.get(profiles);
  if (known?.sets.every((list, at) => list === sets[at]) === true) return known.names;
  const names = new Set([
    ...profiles.filter((object) => !profileOf(object).ok).map(bringerName),
    ...sidecarSetObjects(world)
      .filter((object) => sidecarSetOf(object).set.namespaceSelector?.ok === false)
      .map(bringerName),
  ]);
  unreadable.set(profiles, { sets, names });
  return names;
}
