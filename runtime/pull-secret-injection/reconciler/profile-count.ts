/**
 * How many namespaces of a profile hold what it brings. What was found for a namespace is remembered with everything that it was
 * found from, so that counting thousands again after one of them changed costs as much as looking at them.
 */

import type { World } from '../../controller/contract.ts';
import type { PullSecretProfile } from '../../rules/injection/profile.ts';
import { whoseTrouble } from '../../rules/injection/profile-causes.ts';
import { GRANT_API_VERSION, GRANT_KIND } from '../../rules/injection/pull-secret-grant.ts';
import type { KubeObject, SecretObject } from '../../rules/kubernetes/object.ts';
import { sameSecret } from '../../rules/redacted.ts';
import type { InjectionOptions } from '../options.ts';
import { type Copy, copyOf } from './copies.ts';
import type { CopyContext, Trouble } from './decide.ts';
import { namespaceRef, secretRef } from './names.ts';
import { unreadableIn } from './unreadable.ts';
import { type Distribution, distributionIn, isTerminating, namespaceLabels, serves } from './view.ts';

export interface Count {
  readonly selected: number;
  readonly current: number;
  /** Not current, and only the owner of the namespace can do something about it. */
  readonly blocked: number;
  /** The first namespace that is behind. */
  readonly behind: string | undefined;
  /** The first trouble of each reason, and in how many namespaces it is. */
  readonly troubles: ReadonlyMap<string, { readonly message: string; readonly count: number }>;
  /** Selected namespaces for which nobody can tell whether a source is granted. */
  readonly unasked: number;
  /** Secrets that somebody else is to bring: in how many namespaces one is not seen, and the first of them. */
  readonly absent: { readonly namespaces: number; readonly first: string; readonly secret: string };
}

/** One namespace: whether the profile selects it, whether it holds everything, and what is wrong there. */
interface Standing {
  readonly selected: boolean;
  readonly current: boolean;
  readonly troubles: readonly Trouble[];
  /** The first Secret that somebody else is to bring and that is not seen. */
  readonly absent?: string;
}

interface Remembered {
  /** Consent, sources of the profile, then what stands in the namespace under the names of its secrets. */
  readonly seen: readonly unknown[];
  readonly standing: Standing;
}

const remembered = new WeakMap<
  Distribution,
  WeakMap<InjectionOptions, WeakMap<PullSecretProfile, WeakMap<KubeObject, Remembered>>>
>();

const UNSELECTED: Standing = { selected: false, current: false, troubles: [] };

/** Counts the namespaces of `profile`. */
export function countNamespaces(world: World, profile: PullSecretProfile, options: InjectionOptions): Count {
  const standings = standingsOf(world, profile, options);
  const selected = standings.filter(([, standing]) => standing.selected);
  const current = selected.filter(([, standing]) => standing.current).length;
  const blocked = selected.filter(([, standing]) => isBlocked(standing)).length;
  const behind = profile.distributes
    ? selected.find(([, standing]) => !standing.current && !isBlocked(standing))?.[0]
    : undefined;
  const troubles = new Map<string, { message: string; count: number }>();
  for (const { reason, message } of selected.flatMap(([, standing]) => standing.troubles)) {
    const before = troubles.get(reason);
    troubles.set(reason, { message: before?.message ?? message, count: (before?.count ?? 0) + 1 });
  }
  const lacking = selected.filter(([, { absent }]) => absent !== undefined);
  const [first = '', standing] = lacking[0] ?? [];
  const absent = { namespaces: lacking.length, first, secret: standing?.absent ?? '' };
  const unasked = selected.filter(([, { troubles: found }]) =>
    found.some((one) => one.unasked === true),
  ).length;
  return { selected: selected.length, current, blocked, behind, troubles, unasked, absent };
}

/** Nothing is wrong but what the owner of the namespace has to do. */
function isBlocked({ current, troubles }: Standing): boolean {
  return !current && troubles.length > 0 && troubles.every(({ reason }) => whoseTrouble(reason) === 'tenant');
}

function standingsOf(
  world: World,
  profile: PullSecretProfile,
  options: InjectionOptions,
): readonly (readonly [namespace: string, Standing])[] {
  const distribution = distributionIn(world, options);
  const consent = [
    world.list({ role: 'hosted', apiVersion: GRANT_API_VERSION, kind: GRANT_KIND }),
    [...unreadableIn(world)].join(),
  ];
  const sources = profile.secrets.flatMap((secret) =>
    secret.sources.map(({ namespace, name }) => world.get(secretRef(namespace, name))),
  );
  // A grant that goes with its namespace is lost, one that goes alone is withdrawn.
  const homes = profile.secrets.flatMap((secret) =>
    secret.sources.map(({ namespace }) => homeOf(world, namespace)),
  );
  const memory = memoryOf(distribution, options, profile);
  return world.list({ role: 'hosted', apiVersion: 'v1', kind: 'Namespace' }).map((namespace) => {
    const { name } = namespace.metadata;
    const standing = profile.secrets.map((secret) => world.get(secretRef(name, secret.name)));
    const refused = profile.secrets.map((secret) => world.refusal(secretRef(name, secret.name))?.code);
    const seen = [...consent, ...sources, ...homes, ...standing, ...refused];
    const known = memory.get(namespace);
    if (known !== undefined && sameObjects(known.seen, seen)) return [name, known.standing];
    const found = look({ world, distribution, namespace, options }, profile);
    memory.set(namespace, { seen, standing: found });
    return [name, found];
  });
}

function homeOf(world: World, name: string): string {
  const namespace = world.get(namespaceRef(name));
  return namespace === undefined ? '' : `${namespace.metadata.uid} ${isTerminating(namespace)}`;
}

function memoryOf(
  distribution: Distribution,
  options: InjectionOptions,
  profile: PullSecretProfile,
): WeakMap<KubeObject, Remembered> {
  const byOptions = within(remembered, distribution, () => new WeakMap());
  return within(
    within(byOptions, options, () => new WeakMap()),
    profile,
    () => new WeakMap(),
  );
}

function within<K extends WeakKey, V>(map: WeakMap<K, V>, key: K, make: () => V): V {
  const known = map.get(key) ?? make();
  map.set(key, known);
  return known;
}

function sameObjects(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((object, at) => object === b[at]);
}

function look(context: CopyContext, profile: PullSecretProfile): Standing {
  const { world, namespace } = context;
  if (!serves(profile, namespaceLabels(namespace), context.options) || isTerminating(namespace))
    return UNSELECTED;
  const absent = absentOf(context, profile);
  if (!profile.distributes) return { selected: true, current: false, troubles: [], ...absent };
  const copies = profile.secrets.flatMap((secret) => copyOf(context, profile, secret) ?? []);
  return {
    selected: true,
    current: copies.every((copy) => isCurrent(world, copy)),
    troubles: copies.flatMap(({ trouble }) => trouble ?? []),
    ...absent,
  };
}

function absentOf(
  { world, namespace }: CopyContext,
  profile: PullSecretProfile,
): { readonly absent?: string } {
  if (!profile.injects) return {};
  const brought = profile.secrets.filter(({ sources }) => profile.distributes && sources.length > 0);
  const found = profile.secrets.find(
    (secret) =>
      !brought.includes(secret) && world.get(secretRef(namespace.metadata.name, secret.name)) === undefined,
  );
  return found === undefined ? {} : { absent: found.name };
}

function isCurrent(world: World, copy: Copy): boolean {
  if (copy.trouble !== undefined) return false;
  const present = world.get(copy.ref) as SecretObject | undefined;
  const [has, wants] = [present?.data?.['.dockerconfigjson'], copy.object?.data?.['.dockerconfigjson']];
  return has !== undefined && wants !== undefined && sameSecret(has, wants);
}
