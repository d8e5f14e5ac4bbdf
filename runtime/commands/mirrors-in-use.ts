/** `mirrors --what-if FILE --in-use`: what a change does to every image of a cluster. */
import { parse as parseToml } from 'smol-toml';
import { ObjectStore } from '../controller/store.ts';
import {
  type InUse,
  type InUseChange,
  inUseChanges,
  type UsedImage,
} from '../registry-overrides/in-use-changes.ts';
import { fullImage } from '../registry-overrides/mirror-report.ts';
import { type Plane, type PlaneResolver, planeResolver } from '../registry-overrides/planes.ts';
import type { WhatIf } from '../registry-overrides/what-if.ts';
import { lookupForContainers } from '../rules/auth-lookup/containers.ts';
import { isShortName } from '../rules/auth-lookup/image-name.ts';
import { parseImageReference } from '../rules/auth-lookup/image-reference.ts';
import type { AuthSource } from '../rules/auth-lookup/kubelet.ts';
import type { KubeObject } from '../rules/kubernetes/object.ts';
import { shortNameCandidates } from '../rules/mirrors/short-name-aliases.ts';
import type { ClusterObjects } from '../rules/node-registries/clusters.ts';
import { counted } from '../rules/text/counted.ts';
import { type MirrorInput, ownPullSecret, pullSecretPlace, searchOf } from './mirror-input.ts';
import type { SourceKind } from './object-source.ts';
import { imageUsers, USING_KINDS } from './verify/in-use.ts';

const CATALOG_SOURCE = { apiVersion: 'operators.coreos.com/v1alpha1', kind: 'CatalogSource' } as const;
const NODE_POOL = { apiVersion: 'hypershift.openshift.io/v1beta1', kind: 'NodePool' } as const;

/** Kinds that name images, and the Secret that says for which places there is a credential. */
export const IN_USE_KINDS: readonly SourceKind[] = [
  ...USING_KINDS,
  CATALOG_SOURCE,
  NODE_POOL,
  { apiVersion: 'v1', kind: 'Secret', ...pullSecretPlace(undefined) },
];

/** @param given an auth file beside the cluster's own secret */
export function changesInUse(
  { cluster, found }: MirrorInput,
  supposed: WhatIf,
  given: readonly AuthSource[],
): InUse {
  const own = ownPullSecret(cluster.management ?? cluster.objects, cluster.hostedCluster);
  const sources = [...(own === undefined ? [] : [own]), ...given];
  // Where the operator refuses the change, nodes keep what they have: only what reads the objects by itself follows them.
  const follows = (plane: Plane): boolean =>
    supposed.disruption !== undefined || (plane !== 'node' && plane !== 'control-plane');
  const asked = usedImages(cluster, found).map((one) => ({ ...one, for: one.for.filter(follows) }));
  return inUseChanges(asked, {
    before: resolverOf(cluster),
    after: resolverOf(supposed.cluster),
    ...(sources.length === 0 ? {} : { hasCredential: (place) => hasCredential(sources, place) }),
  });
}

/** Resolves short names too: all places of all images that a node tries for one, in order. */
function resolverOf(cluster: ClusterObjects): PlaneResolver {
  const resolve = planeResolver({ cluster, parseToml });
  const own = searchOf(cluster.objects);
  const management = searchOf(cluster.management ?? []);
  return (image, planes) => {
    if (!isShortName(image)) return resolve(image, planes);
    return planes.flatMap((plane) => {
      const names = shortNameCandidates(image, new Map(), plane === 'control-plane' ? management : own);
      const answers = names.flatMap((name) => resolve(asPulled(name) ?? name, [plane]));
      const [first] = answers;
      if (first === undefined) return [];
      const candidates = answers.flatMap(({ resolution }) => resolution.candidates);
      return [{ ...first, resolution: { ...first.resolution, image, candidates } }];
    });
  };
}

/** As the runtime sees it; undefined for what is no reference, and is pulled from nowhere. */
function asPulled(image: string): string | undefined {
  const parsed = parseImageReference(image);
  return parsed.ok ? fullImage(parsed.reference) : undefined;
}

function hasCredential(sources: readonly AuthSource[], place: string): boolean {
  const parsed = parseImageReference(place);
  return parsed.ok && lookupForContainers(sources, parsed.reference.repository).found === 'credential';
}

/** Images of pods and templates, releases and catalogs, with who asks for each. */
function usedImages(cluster: ClusterObjects, found: MirrorInput['found']): readonly UsedImage[] {
  const hosted = cluster.hostedCluster;
  if (hosted === undefined)
    return [...podImages(cluster.objects, ['node']), ...namedImages(cluster.objects, ['node'])];
  const { namespace = '', name } = hosted.metadata;
  const guest = found.flatMap(({ object, file = '' }) =>
    file.includes(`hosted/${namespace}/${name}/`) ? [object] : [],
  );
  const beside = (cluster.management ?? []).filter(
    ({ metadata }) => metadata.namespace === `${namespace}-${name}`,
  );
  const pools = (cluster.management ?? []).filter(
    ({ kind, metadata, spec }) =>
      kind === NODE_POOL.kind &&
      metadata.namespace === namespace &&
      (spec as { clusterName?: unknown } | undefined)?.clusterName === name,
  );
  const release: readonly Plane[] = ['node', 'control-plane-operator', 'ignition-server'];
  return [
    ...podImages(guest, ['node']),
    ...namedImages(guest, ['node']),
    ...podImages(beside, ['control-plane']),
    ...namedImages([hosted, ...pools], release),
  ];
}

function podImages(objects: readonly KubeObject[], planes: readonly Plane[]): readonly UsedImage[] {
  const store = new ObjectStore();
  for (const object of objects) store.set(object);
  return imageUsers(store).flatMap(({ images, usedBy }) =>
    images.flatMap((image) => used(image, usedBy, planes)),
  );
}

/** Images that objects name outside of pods. */
function namedImages(objects: readonly KubeObject[], planes: readonly Plane[]): readonly UsedImage[] {
  return objects.flatMap(({ kind, metadata, spec, status }) => {
    const { image, release } = (spec ?? {}) as { image?: unknown; release?: { image?: unknown } | null };
    const { desired } = (status ?? {}) as { desired?: { image?: unknown } | null };
    const named = {
      ClusterVersion: desired?.image,
      HostedCluster: release?.image,
      NodePool: release?.image,
      CatalogSource: image,
    }[kind];
    const place = metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
    return typeof named === 'string' ? used(named, `${kind}/${place}`, planes) : [];
  });
}

/** A short name stays as it is written: what it stands for may change with the cluster's search registries. */
function used(image: string, usedBy: string, planes: readonly Plane[]): readonly UsedImage[] {
  const pulled = asPulled(image);
  return pulled === undefined ? [] : [{ image: isShortName(image) ? image : pulled, usedBy, for: planes }];
}

/** The answer for people: what is worst comes first. */
export function inUseText({ images, changed }: InUse): string {
  const lost = changed.filter((change) => change.lost);
  const without = changed.filter(({ withoutCredential }) => withoutCredential.length > 0);
  const rest = changed.filter((change) => !change.lost && change.withoutCredential.length === 0);
  const head = `in use ${counted(images, 'image')}: ${counted(changed.length, 'changes', 'change')}, ${counted(lost.length, 'loses its', 'lose their')} last place, ${counted(without.length, 'gains', 'gain')} a mirror without a credential`;
  const lines = [
    ...lost.map((change) => lineOf('lost', change)),
    ...without.filter((change) => !change.lost).map((change) => lineOf('credential', change)),
    ...rest.map((change) => lineOf('places', change)),
  ];
  return `${[head, ...lines].join('\n')}\n`;
}

function lineOf(
  what: string,
  { image, usedBy, for: planes, before, after, withoutCredential }: InUseChange,
): string {
  const [first = '', ...more] = usedBy;
  const users = more.length === 0 ? first : `${first} and ${more.length} more`;
  return [
    `${what.padEnd(10)}  ${image}  (${users}, for ${planes.join(', ')})`,
    `            before: ${before.join(', ') || 'nothing'}`,
    `            after:  ${after.join(', ') || 'nothing'}`,
    ...(withoutCredential.length === 0 ? [] : [`            no credential: ${withoutCredential.join(', ')}`]),
  ].join('\n');
}

/** Whether somebody would wait for an image. */
export function isHarmless({ changed }: InUse): boolean {
  return changed.every(({ lost, withoutCredential }) => !lost && withoutCredential.length === 0);
}
