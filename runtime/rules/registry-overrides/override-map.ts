/**
 * The map that the existing system makes of a management cluster's mirror sets: ImageDigestMirrorSets in the order of the
 * list, then ImageContentSourcePolicies by falling name, appended per source. It is what `OPENSHIFT_IMG_OVERRIDES` carries;
 * our own decisions are made from mirrors/collect.ts, which keeps order, policy and tags.
 *
 * Source of the rule: HyperShift `GetAllImageRegistryMirrors`. Both kinds at once are read, as it does since 2024-04.
 */
import type { KubeObject } from '../kubernetes/object.ts';
import type { MirrorRule } from '../mirrors/mirrors.ts';
import type { OverrideMap } from './registry-overrides.ts';

/** Which of the two kinds the cluster has. */
export interface MirrorSetKinds {
  readonly icsp: boolean;
  readonly idms: boolean;
}

/**
 * Gives undefined when the cluster has neither kind. Empty sources and mirrors are skipped, duplicates are kept.
 *
 * @example
 * ```ts
 * import { collectOverrideMap } from './override-map.ts';
 * import assert from 'node:assert/strict';
 *
 * const policy = (name: string) => ({
 *   apiVersion: 'operator.openshift.io/v1alpha1', kind: 'ImageContentSourcePolicy', metadata: { name },
 *   spec: { repositoryDigestMirrors: [{ source: 'quay.io', mirrors: [`${name}.example.com`] }] },
 * });
 * const map = collectOverrideMap([policy('a'), policy('b')], { icsp: true, idms: false });
 * assert.deepEqual(map?.get('quay.io'), ['b.example.com', 'a.example.com']);
 * ```
 */
export function collectOverrideMap(
  objects: readonly KubeObject[],
  has: MirrorSetKinds,
): OverrideMap | undefined {
  if (!has.icsp && !has.idms) return undefined;
  const map = new Map<string, string[]>();
  const idms = objects.filter((object) => object.kind === 'ImageDigestMirrorSet');
  const icsp = objects
    .filter((object) => object.kind === 'ImageContentSourcePolicy')
    .sort((a, b) => (a.metadata.name < b.metadata.name ? 1 : -1));
  if (has.idms) for (const object of idms) addEntries(map, object, 'imageDigestMirrors');
  if (has.icsp) for (const object of icsp) addEntries(map, object, 'repositoryDigestMirrors');
  return map;
}

/**
 * The same map as rules of a look-up without a container runtime: mirrors serve digests and tags alike, the image itself is asked
 * last whatever the policy says. ImageTagMirrorSets do not count, as in HyperShift.
 *
 * @example
 * ```ts
 * import { compileMirrors, resolveMirrors } from '../mirrors/mirrors.ts';
 * import { lookUpRules } from './override-map.ts';
 * import assert from 'node:assert/strict';
 *
 * const rules = lookUpRules([{
 *   apiVersion: 'config.openshift.io/v1', kind: 'ImageDigestMirrorSet', metadata: { name: 'release' },
 *   spec: { imageDigestMirrors: [{ source: 'quay.io/ocp', mirrors: ['mirror.example.com/ocp'] }] },
 * }]);
 * const { candidates } = resolveMirrors(compileMirrors(rules), 'quay.io/ocp/release:4.20');
 * assert.deepEqual(candidates.map(({ reference }) => reference), [
 *   'mirror.example.com/ocp/release:4.20', 'quay.io/ocp/release:4.20',
 * ]);
 * ```
 */
export function lookUpRules(objects: readonly KubeObject[]): readonly MirrorRule[] {
  const map = collectOverrideMap(objects, { icsp: true, idms: true }) ?? [];
  return [...map].map(([source, mirrors]) => ({
    prefix: source,
    location: source.startsWith('*.') ? '' : source,
    blocked: false,
    insecure: false,
    mirrors: [...new Set(mirrors)].map((location) => ({ location, pullFrom: 'all' })),
  }));
}

function addEntries(map: Map<string, string[]>, object: KubeObject, list: string): void {
  const entries = (object.spec as Readonly<Record<string, unknown>> | null | undefined)?.[list];
  if (!Array.isArray(entries)) return;
  for (const entry of entries as readonly ({ source?: unknown; mirrors?: unknown } | null)[]) {
    const source = entry?.source;
    const mirrors = (Array.isArray(entry?.mirrors) ? entry.mirrors : []).filter(
      (mirror): mirror is string => typeof mirror === 'string' && mirror !== '',
    );
    if (typeof source !== 'string' || source === '' || mirrors.length === 0) continue;
    map.set(source, [...(map.get(source) ?? []), ...mirrors]);
  }
}
