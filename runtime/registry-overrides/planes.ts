/**
 * Who pulls an image, and by which rules: nodes, the control plane's pods, and what looks images up without a container runtime
 * all read other objects, or the same ones differently.
 *
 * Source of the rule: the Machine Config Operator for nodes; HyperShift for the control plane operator and the ignition server
 * (`OPENSHIFT_IMG_OVERRIDES` of the management cluster's ImageDigestMirrorSets and ImageContentSourcePolicies, tried for tags too);
 * the image registry's `simpleLookupImageMirrorSets` for pull-through of image streams.
 */
import type { KubeObject } from '../core/kubernetes/object.ts';
import {
  type Candidate,
  compileMirrors,
  type MirrorRule,
  type Resolution,
  resolveMirrors,
  withoutTagAndDigest,
} from '../core/mirrors/resolve.ts';
import { admit } from './machine-config/admission.ts';
import { type ClusterObjects, isInside } from './machine-config/input.ts';
import {
  type ConfInForce,
  type NodeMirrors,
  nodeMirrors,
  policyOf,
  resolveOnNode,
} from './machine-config/node-mirrors.ts';
import {
  collectMirrors,
  type MirrorProblem,
  readMirrorEntries,
  type SetEntry,
  setEntries,
} from './mirror-sets/collect.ts';
import { type MirrorFix, mirrorFix } from './mirror-sets/fix.ts';
import { type OverrideMap, overrideRules, replaceRegistry } from './overrides.ts';
import type { ReleasePlaces } from './release-lookup.ts';

// The map that the existing system makes of a management cluster's mirror sets: ImageDigestMirrorSets in the order of the
// list, then ImageContentSourcePolicies by falling name, appended per source. It is what `OPENSHIFT_IMG_OVERRIDES` carries;
// our own decisions are made from mirrors/collect.ts, which keeps order, policy and tags.
// Source of the rule: HyperShift `GetAllImageRegistryMirrors`. Both kinds at once are read, as it does since 2024-04.

/** Empty sources and mirrors are skipped, duplicates are kept. */
export function collectOverrideMap(objects: readonly KubeObject[]): OverrideMap {
  const idms = objects.filter((object) => object.kind === 'ImageDigestMirrorSet');
  const icsp = objects
    .filter((object) => object.kind === 'ImageContentSourcePolicy')
    .sort((a, b) => (a.metadata.name < b.metadata.name ? 1 : -1));
  const map = new Map<string, string[]>();
  for (const object of [...idms, ...icsp])
    for (const { source, mirrors } of setEntries([object])) {
      const named = mirrors.filter((mirror) => mirror !== '');
      if (source !== '' && named.length > 0) map.set(source, [...(map.get(source) ?? []), ...named]);
    }
  return map;
}

/**
 * The same map as rules of a look-up without a container runtime: mirrors serve digests and tags alike, the image itself is tried
 * last whatever the policy says. ImageTagMirrorSets are ignored, as in HyperShift.
 */
export function lookUpRules(objects: readonly KubeObject[]): readonly MirrorRule[] {
  return overrideRules(collectOverrideMap(objects));
}

/** Who asks. `control-plane`: pods of a hosted control plane, on nodes of the management cluster. */
export const PLANES = [
  'node',
  'control-plane',
  'control-plane-operator',
  'ignition-server',
  'image-stream',
] as const;
export type Plane = (typeof PLANES)[number];

export interface PlaneAnswer {
  readonly plane: Plane;
  readonly resolution: Resolution;
  /** Whether any mirror set or node's file was there to go by. */
  readonly given: boolean;
  /** The rules of nodes; absent for readers of the objects themselves. */
  readonly nodes?: Pick<NodeMirrors, 'state' | 'summary'>;
  readonly problems: readonly MirrorProblem[];
  readonly fix?: MirrorFix;
}

export interface PlaneInput {
  readonly cluster: ClusterObjects;
  /** File of a node. */
  readonly conf?: ConfInForce | undefined;
  /** Targets of `--registry-overrides`. */
  readonly registryOverrides?: ReadonlyMap<string, string>;
}

/** Answers for `image` in each of `planes`. What does not exist in such a cluster is omitted. */
export type PlaneResolver = (image: string, planes: readonly Plane[]) => readonly PlaneAnswer[];

/** Reads the cluster once, for many images. */
export function planeResolver(input: PlaneInput): PlaneResolver {
  const { cluster, registryOverrides = new Map() } = input;
  const hosted = cluster.hostedCluster !== undefined;
  const own = nodesOf(cluster.objects, input, true);
  const management = hosted ? nodesOf(cluster.management ?? [], input, false) : undefined;
  const lookUps = releasePlaces(input);
  const stream = readMirrorEntries(admit(cluster.objects).objects).entries;
  const answers: Readonly<Record<Plane, (image: string) => PlaneAnswer | undefined>> = {
    node: (image) => byNodes('node', own, image, hosted),
    'control-plane': (image) =>
      management && byNodes('control-plane', management, replaceRegistry(image, registryOverrides), false),
    'control-plane-operator': (image) =>
      hosted ? byLookUp('control-plane-operator', image, lookUps) : undefined,
    'ignition-server': (image) => (hosted ? byLookUp('ignition-server', image, lookUps) : undefined),
    'image-stream': (image) => byStream(image, stream),
  };
  return (image, planes) => planes.flatMap((plane) => answers[plane](image) ?? []);
}

/** What the control plane operator and the ignition server follow. */
export function releasePlaces({ cluster, registryOverrides = new Map() }: PlaneInput): ReleasePlaces {
  const rules = lookUpRules(admit(cluster.management ?? []).objects);
  return { mirrors: compileMirrors(rules, 'text'), overrides: registryOverrides };
}

interface Nodes {
  readonly given: boolean;
  readonly mirrors: NodeMirrors;
  readonly index: ReturnType<typeof compileMirrors>;
}

function nodesOf(objects: readonly KubeObject[], { conf }: PlaneInput, own: boolean): Nodes {
  const mirrors = nodeMirrors(objects, own ? conf : undefined);
  const given = mirrors.state === 'kept' || mirrors.rendering.refused || mirrors.rendering.files.length > 0;
  return { given, mirrors, index: compileMirrors(mirrors.rules) };
}

function byNodes(
  plane: Plane,
  { given, mirrors, index }: Nodes,
  image: string,
  hosted: boolean,
): PlaneAnswer {
  const resolution = resolveOnNode(index, image, policyOf(mirrors));
  const fix = mirrorFix(resolution, hosted);
  const { state, summary, problems } = mirrors;
  return {
    plane,
    resolution,
    given,
    nodes: { state, summary },
    problems,
    ...(fix === undefined ? {} : { fix }),
  };
}

/** Mirrors of the longest source, for tags too, and the image itself whatever the policy says. */
function byLookUp(plane: Plane, image: string, { mirrors, overrides }: ReleasePlaces): PlaneAnswer {
  const resolution = resolveMirrors(mirrors, image);
  const candidates = resolution.candidates.map((candidate) => ({
    ...candidate,
    reference: replaceRegistry(candidate.reference, overrides),
  }));
  return {
    plane,
    resolution: { ...resolution, candidates },
    given: mirrors.rules.length + overrides.size > 0,
    problems: [],
  };
}

/** Every source that covers the repository counts, in the order of the objects; tags, digests and policies are not looked at. */
function byStream(image: string, entries: readonly SetEntry[]): PlaneAnswer {
  const repository = withoutTagAndDigest(image);
  const found = new Map<string, Candidate>();
  for (const { source, mirrors, origin } of entries) {
    if (source.startsWith('*') || !isInside(repository, source)) continue;
    for (const location of mirrors) {
      const reference = location + image.slice(source.length);
      if (!found.has(reference)) found.set(reference, { reference, kind: 'mirror', location, origin });
    }
  }
  const candidates = [...found.values(), { reference: image, kind: 'source' as const, location: image }];
  return {
    plane: 'image-stream',
    resolution: { image, byDigest: image.includes('@'), candidates, skipped: [] },
    given: entries.length > 0,
    problems: [],
  };
}

/** Problems short of a rejection: what {@link collectMirrors} reports on entries without effect or in conflict. */
export function entryWarnings(objects: readonly KubeObject[]): readonly MirrorProblem[] {
  return collectMirrors(objects).problems.filter(({ severity }) => severity === 'warning');
}
