/** What a change of mirror sets does to the images that are in use: another order, no place left, a mirror without a credential. */
import type { Plane, PlaneResolver } from './planes.ts';

/** An image that somebody uses. */
export interface UsedImage {
  readonly image: string;
  /** `Deployment/web/shop` */
  readonly usedBy: string;
  /** Who asks for it. */
  readonly for: readonly Plane[];
}

export interface InUseChange {
  readonly image: string;
  readonly usedBy: readonly string[];
  readonly for: readonly Plane[];
  /** Places, in the order in which they are asked. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** No place is left that may be asked. */
  readonly lost: boolean;
  /** New mirrors for which the cluster's pull secret has no entry; empty where no secret is known. */
  readonly withoutCredential: readonly string[];
}

export interface InUse {
  readonly images: number;
  readonly changed: readonly InUseChange[];
}

export interface ChangeInput {
  readonly before: PlaneResolver;
  readonly after: PlaneResolver;
  /** Whether there is a credential for a place; undefined where no pull secret is known. */
  readonly hasCredential?: ((reference: string) => boolean) | undefined;
}

/**
 * Compares the places of each image, for each that asks for it.
 *
 * @example
 * ```ts
 * import { inUseChanges } from './in-use-changes.ts';
 * import { planeResolver } from './planes.ts';
 * import assert from 'node:assert/strict';
 *
 * const resolver = (mirrors: readonly string[]) => planeResolver({
 *   cluster: { name: 'local', objects: [{
 *     apiVersion: 'config.openshift.io/v1', kind: 'ImageTagMirrorSet', metadata: { name: 'a' },
 *     spec: { imageTagMirrors: [{ source: 'quay.io/a', mirrors }] },
 *   }] },
 *   parseToml: () => ({}),
 * });
 * const used = [{ image: 'quay.io/a/x:1', usedBy: 'Pod/web/x', for: ['node'] as const }];
 * const { changed } = inUseChanges(used, { before: resolver(['m.io/a']), after: resolver(['n.io/a', 'm.io/a']) });
 * assert.deepEqual(changed[0]?.after, ['n.io/a/x:1', 'm.io/a/x:1', 'quay.io/a/x:1']);
 * ```
 */
export function inUseChanges(used: readonly UsedImage[], input: ChangeInput): InUse {
  const byImage = new Map<string, UsedImage[]>();
  for (const one of used) byImage.set(one.image, [...(byImage.get(one.image) ?? []), one]);
  return {
    images: byImage.size,
    changed: [...byImage].flatMap(([image, users]) => changesOf(image, users, input)),
  };
}

function changesOf(image: string, users: readonly UsedImage[], input: ChangeInput): readonly InUseChange[] {
  const planes = [...new Set(users.flatMap((user) => user.for))];
  const old = placesBy(input.before, image, planes);
  const next = placesBy(input.after, image, planes);
  const groups = new Map<string, InUseChange & { readonly for: Plane[] }>();
  for (const plane of planes) {
    const before = old.get(plane);
    const after = next.get(plane);
    if (before === undefined || after === undefined) continue;
    const key = JSON.stringify([before, after]);
    if (JSON.stringify(before) === JSON.stringify(after)) continue;
    const known = groups.get(key);
    if (known !== undefined) known.for.push(plane);
    else groups.set(key, { image, usedBy: [], for: [plane], before, after, ...judged(before, after, input) });
  }
  return [...groups.values()].map((change) => ({
    ...change,
    usedBy: users
      .filter((user) => user.for.some((plane) => change.for.includes(plane)))
      .map((user) => user.usedBy),
  }));
}

function judged(
  before: readonly string[],
  after: readonly string[],
  { hasCredential }: ChangeInput,
): Pick<InUseChange, 'lost' | 'withoutCredential'> {
  const gained = after.filter((place) => !before.includes(place));
  return {
    lost: before.length > 0 && after.length === 0,
    withoutCredential: hasCredential === undefined ? [] : gained.filter((place) => !hasCredential(place)),
  };
}

function placesBy(
  resolve: PlaneResolver,
  image: string,
  planes: readonly Plane[],
): ReadonlyMap<Plane, readonly string[]> {
  return new Map(
    resolve(image, planes).map(({ plane, resolution }) => [
      plane,
      resolution.candidates.map(({ reference }) => reference),
    ]),
  );
}
