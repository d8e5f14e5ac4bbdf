/** Judges mirror sets and image configurations as the API server, the operator and the runtime read them: cluster by cluster. */
import type { Manifest } from '../../controller/manifests.ts';
import { hostedPath } from '../../registry-overrides/mirror-report.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { MIRROR_SET_KINDS, type MirrorProblem } from '../../rules/mirrors/collect.ts';
import { lintMirrors } from '../../rules/mirrors/lint.ts';
import { type ClusterObjects, clustersIn } from '../../rules/node-registries/clusters.ts';
import { CLUSTER_VERSION, IMAGE_CONFIG, isOf } from '../../rules/node-registries/input.ts';

/** Kinds that decide where nodes pull from. */
export const NODE_MIRROR_KINDS: readonly string[] = [
  ...MIRROR_SET_KINDS.map(({ kind }) => kind),
  IMAGE_CONFIG.kind,
  CLUSTER_VERSION.kind,
  'HostedCluster',
];

/** A problem without the name and the place of its object. */
export interface MirrorFinding {
  readonly manifest: Manifest;
  readonly severity: MirrorProblem['severity'];
  readonly code: string;
  readonly path: string;
  readonly message: string;
}

/** Whether an object is judged here: other groups have kinds of the same names. */
export function isNodeMirrorKind(object: KubeObject): boolean {
  const kinds = [...MIRROR_SET_KINDS, IMAGE_CONFIG, CLUSTER_VERSION, HOSTED_CLUSTER];
  return kinds.some((kind) => isOf(object, kind));
}

const HOSTED_CLUSTER = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'HostedCluster' } as const;

/** Everything that is wrong or surprising, each once, although what several clusters share is judged with each of them. */
export function judgeMirrorSets(manifests: readonly Manifest[]): readonly MirrorFinding[] {
  const sets = manifests.filter(({ object }) => isNodeMirrorKind(object));
  const byObject = new Map(sets.map((manifest) => [manifest.object, manifest]));
  const told = new Map<Manifest, Set<string>>();
  return (sets.length === 0 ? [] : clustersIn(sets))
    .flatMap((cluster) => findingsIn(cluster, byObject))
    .filter(({ manifest, code, path, message }) => {
      const seen = told.get(manifest) ?? new Set();
      told.set(manifest, seen);
      const id = [code, path, message].join(' ');
      return !seen.has(id) && seen.add(id);
    });
}

function findingsIn(
  cluster: ClusterObjects,
  byObject: ReadonlyMap<KubeObject, Manifest>,
): readonly MirrorFinding[] {
  const hosted = cluster.hostedCluster;
  const byName = new Map(
    cluster.objects.map((object) => [`${object.kind}/${object.metadata.name}`, hosted ?? object]),
  );
  return lintMirrors(cluster.objects).flatMap(({ severity, code, origin, message }): MirrorFinding[] => {
    const object = byName.get(`${origin.kind}/${origin.name}`);
    const manifest = object === undefined ? undefined : byObject.get(object);
    if (manifest === undefined) return [];
    const own = `${origin.kind}/${origin.name} ${origin.path} `;
    const text = message.startsWith(own) ? message.slice(own.length) : message;
    const path = hosted === undefined ? origin.path : hostedPath(origin.path);
    return [{ manifest, severity, code, path, message: text }];
  });
}
