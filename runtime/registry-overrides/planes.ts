/**
 * The rules by which an image is pulled: nodes, pods of the control plane, and components that look up images without a container
 * runtime read different objects, or the same ones differently.
 *
 * Source of the rule: the Machine Config Operator for nodes; HyperShift for the control plane operator and the ignition server
 * (`OPENSHIFT_IMG_OVERRIDES` of the management cluster's ImageDigestMirrorSets and ImageContentSourcePolicies, tried for tags
 * too); the image registry's `simpleLookupImageMirrorSets` for pull-through of image streams.
 */
import { PullwrightError } from '../core/errors.ts';
import { parseImageReference } from '../core/image-reference.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { parseRegistriesConf, type Registry } from '../core/mirrors/registries-conf.ts';
import {
  type Candidate,
  compileMirrors,
  type MirrorIndex,
  type MirrorRule,
  type Resolution,
  resolveMirrors,
  withoutTagAndDigest,
} from '../core/mirrors/resolve.ts';
import { defined } from '../core/record.ts';
import { someOf } from '../core/text.ts';
import { ignitionText } from '../kube/ignition.ts';
import { admit } from './machine-config/admission.ts';
import { type ClusterObjects, isInside } from './machine-config/input.ts';
import {
  type NodeRendering,
  type PolicyDocument,
  REGISTRIES_CONF,
  renderNodeFiles,
} from './machine-config/render.ts';
import {
  collectMirrors,
  type MirrorProblem,
  problem,
  type RegistriesFault,
  readMirrorEntries,
  type SetEntry,
  setEntries,
} from './mirror-sets/collect.ts';
import { type MirrorFix, mirrorFix } from './mirror-sets/fix.ts';
import { type OverrideMap, overrideRules, replaceRegistry } from './overrides.ts';

// The map that HyperShift builds from a management cluster's mirror sets for `OPENSHIFT_IMG_OVERRIDES`: ImageDigestMirrorSets in
// the order of the list, then ImageContentSourcePolicies by descending name, appended per source. Our own decisions use
// mirror-sets/collect.ts, which keeps order, policy and tags. Source of the rule: HyperShift `GetAllImageRegistryMirrors`. Reads
// both kinds at once, as it does since 2024-04.

/** Empty sources and mirrors are skipped, duplicates are kept. */
export function collectOverrideMap(objects: readonly KubeObject[]): OverrideMap {
  const idms = objects.filter((object) => object.kind === 'ImageDigestMirrorSet');
  const icsp = objects
    .filter((object) => object.kind === 'ImageContentSourcePolicy')
    .sort((a, b) => (a.metadata.name < b.metadata.name ? 1 : -1));
  const entries = [...idms, ...icsp]
    .flatMap((object) => setEntries([object]))
    .flatMap(({ source, mirrors }) => mirrors.map((mirror) => ({ source, mirror })))
    .filter(({ source, mirror }) => source !== '' && mirror !== '');
  const bySource = Map.groupBy(entries, ({ source }) => source);
  return new Map([...bySource].map(([source, own]) => [source, own.map(({ mirror }) => mirror)]));
}

/**
 * The same map as rules of a look-up without a container runtime: mirrors serve digests and tags, and the image itself is tried
 * last regardless of the policy. Ignores ImageTagMirrorSets, as HyperShift does.
 */
export function lookUpRules(objects: readonly KubeObject[]): readonly MirrorRule[] {
  return overrideRules(collectOverrideMap(objects));
}

/** Components that pull images. `control-plane`: pods of a hosted control plane, on nodes of the management cluster. */
export const PLANES = [
  'node',
  'control-plane',
  'control-plane-operator',
  'ignition-server',
  'image-stream',
] as const;
export type Plane = (typeof PLANES)[number];

interface PlaneAnswer {
  readonly plane: Plane;
  readonly resolution: Resolution;
  /** Whether the input had any mirror set or file of a node. */
  readonly given: boolean;
  /** The rules of nodes; absent for readers of the objects themselves. */
  readonly nodes?: Pick<NodeMirrors, 'state' | 'summary'>;
  readonly problems: readonly MirrorProblem[];
  readonly fix?: MirrorFix;
}

export interface PlaneInput {
  readonly cluster: ClusterObjects;
  /** The registries.conf of a node. */
  readonly conf?: ConfInForce | undefined;
  /** Targets of `--registry-overrides`. */
  readonly registryOverrides?: ReadonlyMap<string, string>;
}

/** Resolves `image` in each of `planes`. Omits planes that the cluster does not have. */
export type PlaneResolver = (image: string, planes: readonly Plane[]) => readonly PlaneAnswer[];

/** Reads the cluster once, for many images. */
export function planeResolver(input: PlaneInput): PlaneResolver {
  const { cluster, conf } = input;
  const hosted = cluster.hostedCluster !== undefined;
  const own = nodesOf(cluster.objects, conf);
  const management = hosted ? nodesOf(cluster.management ?? []) : undefined;
  const lookUps = releasePlaces(input);
  const stream = readMirrorEntries(admit(cluster.objects).objects).entries;
  const operators = (image: string) => (hosted ? byLookUp(image, lookUps) : undefined);
  const answers: Readonly<Record<Plane, (image: string) => Omit<PlaneAnswer, 'plane'> | undefined>> = {
    node: (image) => byNodes(own, image, hosted),
    'control-plane': (image) =>
      management && byNodes(management, replaceRegistry(image, lookUps.overrides), false),
    'control-plane-operator': operators,
    'ignition-server': operators,
    'image-stream': (image) => byStream(image, stream),
  };
  return (image, planes) =>
    planes.flatMap((plane) => {
      const answer = answers[plane](image);
      return answer === undefined ? [] : { plane, ...answer };
    });
}

/** Rules by which the control plane operator and the ignition server look images up. */
export type ReleasePlaces = ReturnType<typeof releasePlaces>;

export function releasePlaces({ cluster, registryOverrides = new Map() }: PlaneInput) {
  const rules = lookUpRules(admit(cluster.management ?? []).objects);
  return { mirrors: compileMirrors(rules, 'text'), overrides: registryOverrides };
}

function nodesOf(objects: readonly KubeObject[], conf?: ConfInForce) {
  const mirrors = nodeMirrors(objects, conf);
  const given = mirrors.state === 'kept' || mirrors.rendering.refused || mirrors.rendering.files.length > 0;
  return { given, mirrors, index: compileMirrors(mirrors.rules) };
}

function byNodes({ given, mirrors, index }: ReturnType<typeof nodesOf>, image: string, hosted: boolean) {
  const resolution = resolveOnNode(index, image, policyOf(mirrors));
  const { state, summary, problems } = mirrors;
  const fix = defined({ fix: mirrorFix(resolution, hosted) });
  return { resolution, given, nodes: { state, summary }, problems, ...fix };
}

/** Mirrors of the longest source, for tags too, and the image itself regardless of the policy. */
function byLookUp(image: string, { mirrors, overrides }: ReleasePlaces) {
  const resolution = resolveMirrors(mirrors, image);
  const candidates = resolution.candidates.map((candidate) => ({
    ...candidate,
    reference: replaceRegistry(candidate.reference, overrides),
  }));
  return {
    resolution: { ...resolution, candidates },
    given: mirrors.rules.length + overrides.size > 0,
    problems: [],
  };
}

/** Mirrors of every source that covers the repository, in the order of the objects; ignores tags, digests and policies. */
function byStream(image: string, entries: readonly SetEntry[]) {
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
    resolution: { image, byDigest: image.includes('@'), candidates, skipped: [] },
    given: entries.length > 0,
    problems: [],
  };
}

// The rules of a cluster's nodes: what the operator renders from its objects, or the file that they keep when it refuses them.
//
// Source of the rule: the Machine Config Operator (render.ts). The file in force is read from the MachineConfigs
// `99-<pool>-generated-registries`, or is given as the file of a node.

/** A `registries.conf` on nodes. */
export interface ConfInForce {
  /** Its source, for messages. */
  readonly from: string;
  readonly rules: readonly Registry[];
}

export interface NodeMirrors {
  readonly rendering: NodeRendering;
  /**
   * `rendered`: nodes follow the objects. `kept`: they follow a known file. `unknown`: the API server or the operator rejects
   * objects, or the runtime rejects the file, and the file that nodes keep is unknown; `rules` then are those of the valid
   * objects.
   */
  readonly state: 'rendered' | 'kept' | 'unknown';
  readonly rules: readonly MirrorRule[];
  /** One sentence: the rules of the nodes, and why. */
  readonly summary: string;
  readonly problems: readonly MirrorProblem[];
}

/** `policy.json` of the nodes; undefined where the operator renders none. */
export function policyOf({ rendering }: NodeMirrors): PolicyDocument | undefined {
  return rendering.refused ? undefined : rendering.policy;
}

/**
 * Resolves as nodes do: their policy applies to the requested name, not to the pull source.
 *
 * Source of the rule: containers/image `PolicyContext.requirementsForImageRef` with `DockerReferenceIdentity` and
 * `DockerReferenceNamespaces`; CRI-O passes the reference of the pull, not that of a mirror.
 */
export function resolveOnNode(
  index: MirrorIndex,
  image: string,
  policy: PolicyDocument | undefined,
): Resolution {
  const resolution = resolveMirrors(index, image);
  if (policy === undefined) return resolution;
  const scopes = policy.transports['docker'] ?? {};
  const scope = scopesOf(resolution.image).find((one) => Object.hasOwn(scopes, one));
  const [requirement] = (scope === undefined ? undefined : scopes[scope]) ?? policy.default;
  if (requirement?.type !== 'reject') return resolution;
  const says = scope === undefined ? 'do not allow it' : `block "${scope}"`;
  const message = `rejected by the policy of the nodes: registrySources of Image/cluster ${says}; they apply to the requested name, not to the mirror`;
  const rejected = resolution.candidates
    .toReversed()
    .map((one) => ({ ...one, reason: 'PolicyRejected' as const, message }));
  return { ...resolution, candidates: [], skipped: [...rejected, ...resolution.skipped] };
}

/** Scopes of a policy that cover an image, most specific first. */
function scopesOf(image: string): readonly string[] {
  const parts = withoutTagAndDigest(image).split('/');
  const [host = ''] = (parts[0] ?? '').split(':', 1);
  const labels = host.split('.');
  return [
    image,
    ...parts.map((_part, at) => parts.slice(0, parts.length - at).join('/')),
    ...labels.slice(1).map((_label, at) => `*.${labels.slice(at + 1).join('.')}`),
  ];
}

export const MACHINE_CONFIG = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
} as const;
const GENERATED = /^99-(.+)-generated-registries$/;

/** @param given file of a node, which precedes MachineConfigs */
export function nodeMirrors(objects: readonly KubeObject[], given?: ConfInForce): NodeMirrors {
  const admitted = admit(objects);
  const rendering = renderNodeFiles(admitted.objects);
  const { found, problems } = confsIn(objects);
  const inForce = given ?? found[0];
  const all = [...admitted.problems, ...faultProblems(rendering), ...problems];
  if (admitted.refused.length === 0 && !rendering.refused && rendering.loadError === undefined) {
    const drift = driftOf(rendering.loaded, inForce);
    if (given !== undefined) return { ...keptBy(given), rendering, problems: [...all, ...drift] };
    const summary = 'nodes use what the Machine Config Operator renders from these objects';
    return { rendering, state: 'rendered', rules: rendering.loaded, summary, problems: [...all, ...drift] };
  }
  const why = whyKept(admitted.refused, rendering);
  if (inForce !== undefined) return { ...keptBy(inForce, why), rendering, problems: all };
  const isLoaded = !rendering.refused && rendering.loadError === undefined;
  const summary = isLoaded
    ? `${why}: the rules shown come from the other objects`
    : `${why}: nodes keep their current file, which is unknown here; the rules shown are what these objects would render`;
  const rules = isLoaded ? rendering.loaded : collectMirrors(admitted.objects).rules;
  return { rendering, state: 'unknown', rules, summary, problems: all };
}

function whyKept(refused: readonly string[], rendering: NodeRendering): string {
  const reasons = [
    ...(refused.length === 0 ? [] : [`the API server rejects ${someOf(refused, 3)}, so it has no effect`]),
    ...(rendering.refused ? [refusalOf(rendering.faults)] : []),
    ...(rendering.refused || rendering.loadError === undefined
      ? []
      : [`CRI-O does not load what is rendered (${rendering.loadError})`]),
  ];
  return reasons.join('; ');
}

function keptBy(conf: ConfInForce, why?: string): Pick<NodeMirrors, 'state' | 'rules' | 'summary'> {
  const summary = why === undefined ? `nodes use ${conf.from}` : `${why}: nodes keep ${conf.from}`;
  return { state: 'kept', rules: conf.rules, summary };
}

function refusalOf(faults: readonly RegistriesFault[]): string {
  const names = [...new Set(faults.map(({ origin }) => `${origin.kind}/${origin.name}`))];
  return `the Machine Config Operator rejects all mirror sets because of ${someOf(names, 3)}`;
}

/** Rejections by the operator or the runtime, as problems of the objects. */
export function faultProblems(rendering: NodeRendering): readonly MirrorProblem[] {
  if (rendering.refused)
    return rendering.faults.map(({ code, origin, message }) =>
      problem(
        code,
        origin,
        `${message}; until then the Machine Config Operator rejects every mirror set of the cluster, and nodes keep their current file`,
      ),
    );
  const origin = { kind: 'Image', name: 'cluster', path: 'spec.registrySources' };
  const { lists, loadError, searchError } = rendering;
  const said: readonly (readonly [string, 'error' | 'warning', string | undefined])[] = [
    ['NotLoadable', 'error', loadError && `CRI-O does not load the rendered file: ${loadError}`],
    [
      'SearchNotLoadable',
      'error',
      searchError && `CRI-O does not load the search registries: ${searchError}`,
    ],
    ['NotBlocked', 'warning', lists.skipped && `is ignored: ${lists.skipped}`],
    ['AllowsReleaseOnly', 'error', allowsReleaseOnly(rendering)],
  ];
  return said.flatMap(([code, severity, text]) =>
    text === undefined ? [] : [problem(code, origin, text, severity)],
  );
}

/** Message when blocking exactly the repository of the release inverts the policy. */
function allowsReleaseOnly({ lists, policy }: Exclude<NodeRendering, { refused: true }>): string | undefined {
  if (policy?.default[0]?.type !== 'reject' || lists.registries.length === 0) return undefined;
  const [only] = lists.allowed;
  return `blocks the repository of the release, so the policy of nodes allows only "${only}" and rejects all other images: block its registry or another path, not that repository`;
}

/** Files of the generated MachineConfigs, worker first, whose files custom pools have too. */
function confsIn(objects: readonly KubeObject[]) {
  const problems: MirrorProblem[] = [];
  const found = objects
    .filter(({ kind, metadata }) => kind === MACHINE_CONFIG.kind && GENERATED.test(metadata.name))
    .sort((a, b) => Number(isWorker(b)) - Number(isWorker(a)))
    .flatMap((object): ConfInForce[] => {
      const from = `MachineConfig/${object.metadata.name}`;
      const text = ignitionText(object, REGISTRIES_CONF);
      if (text === undefined) return [];
      try {
        return [{ from, rules: parseRegistriesConf(text) }];
      } catch (error) {
        if (!(error instanceof PullwrightError)) throw error;
        const origin = { kind: object.kind, name: object.metadata.name, path: REGISTRIES_CONF };
        const message = `${from} ${REGISTRIES_CONF} cannot be loaded by the runtime: ${error.message}`;
        problems.push({ severity: 'error', code: 'NotLoadable', origin, message });
        return [];
      }
    });
  return { found, problems };
}

function isWorker({ metadata }: KubeObject): boolean {
  return metadata.name === '99-worker-generated-registries';
}

/** The first difference between the file in force and the rendered objects. */
function driftOf(wanted: readonly MirrorRule[], inForce: ConfInForce | undefined): readonly MirrorProblem[] {
  if (inForce === undefined) return [];
  const present = new Map(inForce.rules.map((rule) => [rule.prefix, meaningOf(rule)]));
  const other = wanted.find((rule) => present.get(rule.prefix) !== meaningOf(rule));
  const sources = new Set(wanted.map(({ prefix }) => prefix));
  const more = inForce.rules.find(({ prefix }) => !sources.has(prefix));
  const about =
    other === undefined
      ? more && `has an entry "${more.prefix}" that no object declares`
      : `${present.has(other.prefix) ? 'has a different entry' : 'has no entry'} for "${other.prefix}" than the objects`;
  if (about === undefined) return [];
  const [kind = '', name = ''] = inForce.from.split('/', 2);
  const message = `${inForce.from} ${about}: it is older than the objects, or was changed manually`;
  return [
    { severity: 'warning', code: 'NotRolledOut', origin: { kind, name, path: REGISTRIES_CONF }, message },
  ];
}

function meaningOf({ location, blocked, insecure, mirrors }: Registry): string {
  const places = mirrors.map((mirror) => [mirror.location, mirror.pullFrom, mirror.insecure === true]);
  return JSON.stringify([location, blocked, insecure, places]);
}

// Image references of HyperShift's operators, which have no container runtime: a release image is looked up at each mirror in
// turn, its components are renamed to the first one. `--registry-overrides` rewrites both.

/** A failed pull source and its error. */
export interface PlaceFailure {
  readonly reference: string;
  readonly message: string;
}

export interface FoundRelease<T> {
  readonly release: T;
  /** The reference that was read. */
  readonly from: string;
  readonly failures: readonly PlaceFailure[];
}

/**
 * Reads the release `image` with `read`, which gets a full reference and rejects when that is not readable.
 *
 * @throws PullwrightError `ReleaseUnreadable` when no pull source has it, with the error of each
 */
export async function lookUpRelease<T>(
  image: string,
  { mirrors, overrides }: ReleasePlaces,
  read: (reference: string) => Promise<T>,
): Promise<FoundRelease<T>> {
  const failures: PlaceFailure[] = [];
  for (const candidate of resolveMirrors(mirrors, image).candidates) {
    const from = replaceRegistry(candidate.reference, overrides);
    try {
      return { release: await read(from), from, failures };
    } catch (error) {
      failures.push({ reference: from, message: error instanceof Error ? error.message : 'unknown failure' });
    }
  }
  const places = failures.map(({ reference, message }) => `${reference}: ${message}`);
  const tried = places.length === 0 ? 'every pull source is blocked' : places.join('; ');
  throw new PullwrightError(`Cannot read release "${image}": ${tried}`, { code: 'ReleaseUnreadable' });
}

/**
 * The reference of `image`, a component of a release, without a container runtime: its first mirror, rewritten by
 * `--registry-overrides`. Unchanged without a rule, or when every mirror is blocked.
 */
export function translateImage(image: string, { mirrors, overrides }: ReleasePlaces): string {
  if (!parseImageReference(image).ok) return image;
  const { rule, candidates } = resolveMirrors(mirrors, image);
  const first = rule === undefined ? image : (candidates[0]?.reference ?? image);
  return replaceRegistry(first, overrides);
}
