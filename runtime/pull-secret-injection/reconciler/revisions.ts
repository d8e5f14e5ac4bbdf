/** The revisions that Kruise keeps of SidecarSets. */
import type { World } from '../../controller/contract.ts';
import { readRevision, type SidecarSet, type SidecarSetRevision } from '../../rules/injection/sidecar-set.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { InjectionOptions } from '../options.ts';

/** Only those of Kruise itself: anybody may label a ControllerRevision in a namespace of its own. */
export function revisionObjects(world: World, { kruiseNamespace }: InjectionOptions): readonly KubeObject[] {
  const kind = { role: 'hosted', apiVersion: 'apps/v1', kind: 'ControllerRevision' } as const;
  return world.list({ ...kind, namespace: kruiseNamespace });
}

/** The revisions that a pinned set may mean; none are looked for where nothing is pinned. */
export function revisionsOf(
  world: World,
  { pin }: SidecarSet,
  options: InjectionOptions,
): readonly SidecarSetRevision[] {
  return pin === undefined ? [] : readRevisions(revisionObjects(world, options));
}

const readLists = new WeakMap<readonly KubeObject[], readonly SidecarSetRevision[]>();

/** Reads them, once for each list. */
export function readRevisions(objects: readonly KubeObject[]): readonly SidecarSetRevision[] {
  const known = readLists.get(objects) ?? objects.flatMap((object) => readRevision(object) ?? []);
  readLists.set(objects, known);
  return known;
}
