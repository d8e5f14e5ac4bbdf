/** Whether each component of a release is at each of its mirrors, with the credentials of the cluster that will ask. */
import type { ProbeResult } from '../registry/probe.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import type { Plane, PlaneResolver } from './planes.ts';

/** One place where one component is looked for. */
export interface ReleasePlace {
  readonly component: string;
  /** As the release lists it. */
  readonly image: string;
  readonly reference: string;
  /** `source` only for images that no mirror is for. */
  readonly kind: 'mirror' | 'source';
  /** Who asks there. */
  readonly for: readonly Plane[];
}

export interface CheckedPlace extends ReleasePlace {
  readonly verdict: string;
  readonly message: string;
}

/** Nodes pull components, and the control plane looks them up. */
const ASKERS: readonly Plane[] = ['node', 'control-plane', 'control-plane-operator', 'ignition-server'];

/** Every mirror of every component (sources only where there is no mirror), each place of an image once. */
export function releasePlaces(
  components: ReadonlyMap<string, string>,
  resolve: PlaneResolver,
): readonly ReleasePlace[] {
  return [...components].flatMap(([component, image]) => {
    const places = new Map<string, { readonly kind: 'mirror' | 'source'; readonly for: Plane[] }>();
    for (const { plane, resolution } of resolve(image, ASKERS)) {
      const mirrors = resolution.candidates.filter(({ kind }) => kind === 'mirror');
      for (const { reference, kind } of mirrors.length > 0 ? mirrors : resolution.candidates) {
        const known = places.get(reference);
        if (known === undefined) places.set(reference, { kind, for: [plane] });
        else known.for.push(plane);
      }
    }
    return [...places].map(([reference, place]): ReleasePlace => ({ component, image, reference, ...place }));
  });
}

/** The places with what the registries said. */
export function checkedPlaces(
  places: readonly ReleasePlace[],
  answers: readonly ProbeResult[],
): readonly CheckedPlace[] {
  const byReference = new Map(answers.map((answer) => [answer.reference, answer]));
  return places.map((place) => {
    const { verdict = 'Unreachable', message = 'it was not asked' } = byReference.get(place.reference) ?? {};
    return { ...place, verdict, message };
  });
}

/** Places that do not have what is asked of them, or do not give it. */
export function gapsIn(places: readonly CheckedPlace[]): readonly CheckedPlace[] {
  return places.filter(({ verdict }) => verdict !== 'Valid');
}

/**
 * What oc-mirror has to mirror so that the gaps are closed; undefined where nothing is known to be missing. A place that refused to
 * answer, or did not, is no reason to mirror an image again.
 *
 * @example
 * ```ts
 * import { imageSetOf } from './release-check.ts';
 * import assert from 'node:assert/strict';
 *
 * const place = { component: 'cli', image: 'quay.io/ocp/cli@sha256:1', reference: 'm.example.com/cli@sha256:1', kind: 'mirror', for: [] } as const;
 * const set = imageSetOf([{ ...place, verdict: 'NotFound', message: 'manifest unknown' }]);
 * assert.deepEqual(set?.['mirror'], { additionalImages: [{ name: 'quay.io/ocp/cli@sha256:1' }] });
 * assert.equal(imageSetOf([{ ...place, verdict: 'Forbidden', message: 'denied' }]), undefined);
 * ```
 */
export function imageSetOf(gaps: readonly CheckedPlace[]): Readonly<Record<string, unknown>> | undefined {
  const missing = gaps.filter(({ verdict, kind }) => verdict === 'NotFound' && kind === 'mirror');
  const names = [...new Set(missing.map(({ image }) => image))].sort();
  if (names.length === 0) return undefined;
  return {
    apiVersion: 'mirror.openshift.io/v2alpha1',
    kind: 'ImageSetConfiguration',
    mirror: { additionalImages: names.map((name) => ({ name })) },
  };
}

/** Where the pull secret of a cluster is: named by its HostedCluster, else the platform's. */
export function pullSecretPlace(hosted: KubeObject | undefined): {
  readonly namespace: string;
  readonly name: string;
} {
  if (hosted === undefined) return { namespace: 'openshift-config', name: 'pull-secret' };
  const { pullSecret } = (hosted.spec ?? {}) as { pullSecret?: { name?: unknown } | null };
  const name = typeof pullSecret?.name === 'string' ? pullSecret.name : 'pull-secret';
  return { namespace: hosted.metadata.namespace ?? '', name };
}
