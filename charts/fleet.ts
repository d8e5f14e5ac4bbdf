/** Validates a fleet (`fleet.yaml` or TypeScript) and reports all problems at once, each with its path. */

import { OWN_NAMESPACE } from '../runtime/core/kubernetes/objects.ts';
import { defined, isRecord, recordOf, scalarText } from '../runtime/core/record.ts';
import { trimEndOf } from '../runtime/core/text.ts';
import {
  check,
  type FieldPath,
  FleetError,
  type FleetProblem,
  type LocatedProblem,
  suggestion,
} from './fleet-problems.ts';
import {
  type ClusterTop,
  clusterSchema,
  type FleetInput,
  type FleetTop,
  fleetSchema,
  type GitOpsInput,
} from './fleet-schema.ts';
import { type FleetYaml, readFleetYaml } from './fleet-yaml.ts';
import { ADMIN_KUBECONFIG, OWN_KUBECONFIG } from './shared/reconciler.ts';
import type { ChartSystem, ClusterContext, HostedCluster } from './shared/system.ts';
import { SYSTEMS } from './systems.ts';

type Tops = readonly ClusterTop[];
type Problems = readonly FleetProblem[];
/** The sections of each cluster. */
type Sections = readonly (readonly Section[])[];

/** A problem at a field of a cluster. */
function of(index: number, path: FieldPath, text: string): FleetProblem {
  return { path: ['clusters', index, ...path], text };
}

// Problems of hosted clusters in combination with the management cluster that runs their reconciler.

/** HyperShift's own kubeconfig belongs to an administrator, not to an account that policies may name. */
function accountMistakes(tops: Tops, { defaults }: FleetTop, cluster: ClusterTop, index: number): Problems {
  const management = tops.find(({ name, kind }) => kind === 'management' && name === cluster.management);
  if (cluster.kind !== 'hosted' || management === undefined) return [];
  const secret = management.reconciler?.kubeconfigSecret ?? defaults?.reconciler?.kubeconfigSecret;
  if (cluster.hostedCluster?.serviceAccount === undefined || secret !== ADMIN_KUBECONFIG) return [];
  const text = `the reconciler of "${management.name}" uses Secret admin-kubeconfig, which is system:admin: set reconciler.kubeconfigSecret there to a Secret with the kubeconfig of this account`;
  return [of(index, ['hostedCluster', 'serviceAccount'], text)];
}

/** Warns when a reconciler has no kubeconfig for its hosted clusters: HyperShift creates only an administrator's. */
function hostedWarnings(tops: Tops, { defaults }: FleetTop): Problems {
  return tops.flatMap((cluster, index) => {
    const secret = cluster.reconciler?.kubeconfigSecret ?? defaults?.reconciler?.kubeconfigSecret;
    const serves = cluster.discovery === true || tops.some(({ management }) => management === cluster.name);
    if (cluster.kind !== 'management' || secret !== undefined || !serves) return [];
    const text = `without it the reconciler uses Secret ${OWN_KUBECONFIG} for hosted clusters, which HyperShift does not create: create it for hostedCluster.serviceAccount and set its name here, or set ${ADMIN_KUBECONFIG} to use system:admin`;
    return [of(index, ['reconciler', 'kubeconfigSecret'], text)];
  });
}

/** Reports hosted clusters with different values of options that one reconciler shares. */
function sharedMistakes(
  tops: Tops,
  sections: Sections,
  { kind, management }: ClusterTop,
  index: number,
): Problems {
  if (kind !== 'hosted') return [];
  return (sections[index] ?? []).flatMap(({ system, config }): Problems => {
    const wanted = system.shared?.(config);
    if (wanted === undefined) return [];
    const sameIn = (at: number): Section | undefined => sections[at]?.find((one) => one.system === system);
    const first = tops.findIndex(
      (other, at) => other.kind === 'hosted' && other.management === management && sameIn(at) !== undefined,
    );
    const before = sameIn(first);
    if (first >= index || before === undefined) return [];
    const other = system.shared?.(before.config) ?? {};
    return Object.keys({ ...wanted, ...other })
      .filter((key) => JSON.stringify(wanted[key]) !== JSON.stringify(other[key]))
      .map((key) =>
        of(
          index,
          ['systems', system.name, key],
          `clusters[${first}] has ${JSON.stringify(other[key])}, but the reconciler of "${management}" uses one value for both: expected the same, got ${JSON.stringify(wanted[key])}`,
        ),
      );
  });
}

// Problems across the clusters of a fleet. Total: accepts clusters of any shape, because they are not yet validated.

/** Duplicate names and folders, and dangling references. */
function fleetMistakes(clusters: Tops, gitops: GitOpsInput | undefined): Problems {
  return [
    ...twice(clusters, 'name', ({ name }) => name),
    // Clusters with the same name also share a folder; only the name is reported.
    ...twice(clusters, 'path', ({ path, name }) => path ?? name).filter(
      ({ path: [, index] }) => clusters[Number(index)]?.path !== undefined,
    ),
    ...twice(clusters, 'hostedCluster', hostedClusterOf),
    ...twice(clusters, 'destination', (cluster) => gitops && destinationOf(cluster, gitops.tool)),
    ...nested(clusters),
    ...clusters.flatMap((cluster, index) => referenceMistakes(clusters, cluster, index)),
  ];
}

/** Identity of the HostedCluster, with its management cluster. */
function hostedClusterOf({ kind, management, name, hostedCluster }: ClusterTop): string | undefined {
  const { namespace = 'clusters', name: own = name } = recordOf(hostedCluster);
  return kind === 'hosted' ? `${scalarText(namespace)}/${scalarText(own)} of ${management}` : undefined;
}

/** Target of the GitOps tool: two clusters with the same target would overwrite each other. */
function destinationOf({ kind, delivery, destination }: ClusterTop, tool: GitOpsInput['tool']): unknown {
  // Git has no objects for this cluster.
  if (kind === 'hosted' && delivery === 'reconciler') return undefined;
  const { kubeConfigSecret, name, server } = recordOf(destination);
  if (tool === 'flux') return kubeConfigSecret ?? 'the cluster where Flux runs';
  const place = name ?? URL.parse(scalarText(server))?.href.replace(/\/$/, '') ?? server ?? 'in-cluster';
  // Argo CD's name and address of its own cluster.
  const isOwn = place === 'in-cluster' || place === 'https://kubernetes.default.svc';
  return isOwn ? 'the cluster where Argo CD runs' : place;
}

/** Reports each cluster that repeats the value of an earlier one. Non-string values are reported by the schema. */
function twice(clusters: Tops, field: keyof ClusterTop, valueOf: (cluster: ClusterTop) => unknown): Problems {
  const values = clusters.map((cluster, index) => [valueOf(cluster), index] as const);
  const firsts = new Map(values.toReversed());
  return values.flatMap(([value, index]) => {
    const first = firsts.get(value);
    if (typeof value !== 'string' || first === index) return [];
    const text = `${JSON.stringify(value)} is also the ${field} of clusters[${first}], expected another`;
    return [of(index, [field], text)];
  });
}

/** Reports a folder inside another cluster's folder: the GitOps tool would sync it as a part of that cluster. */
function nested(clusters: Tops): Problems {
  const paths: readonly unknown[] = clusters.map(({ path, name }) => path ?? name);
  const folders = paths.map((path) => `${typeof path === 'string' ? path : '/'}/`);
  return paths.flatMap((path, index) => {
    if (typeof path !== 'string') return [];
    if (path === '.' && clusters.length > 1)
      return [of(index, ['path'], 'only a fleet of one cluster may be written to ".", expected a folder')];
    const parent = folders.findIndex((folder) => path.startsWith(folder));
    if (parent === -1) return [];
    const text = `${JSON.stringify(path)} is inside the folder of clusters[${parent}], expected a sibling folder`;
    return [of(index, ['path'], text)];
  });
}

function referenceMistakes(clusters: Tops, { kind, management }: ClusterTop, index: number): Problems {
  if (kind !== 'hosted') return [];
  // The schema reports a missing or non-string name.
  const known = clusters
    .filter((one) => one.kind === 'management' && typeof one.name === 'string')
    .map((one) => one.name);
  if (management === undefined) {
    const which = known.length === 0 ? '; the fleet has none of kind "management"' : `: ${known.join(', ')}`;
    return [of(index, ['management'], `missing, expected the cluster that runs its control plane${which}`)];
  }
  if (typeof management !== 'string' || known.includes(management)) return [];
  const meant = known.length === 0 ? '' : `, ${suggestion(management, known)}`;
  const text = `the fleet has no cluster ${JSON.stringify(management)} of kind "management"${meant}`;
  return [of(index, ['management'], text)];
}

// Warnings about combinations of sections in one cluster.

/**
 * With the credential provider, pods may pull with any pull secret of their namespace. `verify` must be allowed to list them,
 * or every report is `Incomplete`.
 */
function pairWarnings(sections: Sections): Problems {
  return sections.flatMap((own, index) => {
    const verify = own.find(({ system }) => system.name === 'verify')?.config as
      | { readonly namespaceSecrets: boolean; readonly secretNames?: readonly string[] }
      | undefined;
    const provides = own.some(({ system }) => system.name === 'credential-provider');
    if (!provides || verify === undefined) return [];
    if (verify.namespaceSecrets || verify.secretNames !== undefined) return [];
    const text =
      'with the credential provider, pods pull with any pull secret of their namespace; without list access, the report is Incomplete: set namespaceSecrets: true, or list the Secrets in secretNames';
    return [of(index, ['systems', 'verify', 'namespaceSecrets'], text)];
  });
}

// Sections of a cluster: its own values over the defaults.
// Maps are merged; lists and scalars are replaced. `source` is a union, so it is never merged from both.

/** A validated section of a cluster. */
export interface Section {
  readonly system: ChartSystem;
  readonly config: unknown;
}

/** Location of the sections. */
interface SectionPlace {
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly cluster: ClusterTop;
  /** Index of the cluster in the fleet. */
  readonly index: number;
}

/** Returns the valid sections and appends problems to `found`. */
function readSections(place: SectionPlace, found: FleetProblem[]): readonly Section[] {
  const written = { ...place.defaults, ...recordOf(place.cluster.systems) };
  const known = SYSTEMS.map(({ name }) => name);
  // In SYSTEMS order, so that the output does not depend on the order in the file.
  const enabled = SYSTEMS.filter(({ name }) => name in written && written[name] !== false);
  const sections = enabled.flatMap((system) => readSection(system, place, found));
  for (const name of Object.keys(written).filter((one) => !known.includes(one)))
    found.push({ path: originOf([name], place), text: `unknown system, ${suggestion(name, known)}` });
  return sections;
}

function readSection(system: ChartSystem, place: SectionPlace, found: FleetProblem[]): readonly Section[] {
  const own = recordOf(place.cluster.systems);
  const kind = place.cluster.kind ?? 'standalone';
  if (!system.kinds.includes(kind)) {
    const text = `not supported for a ${kind} cluster, expected ${system.kinds.join(' or ')}`;
    // Defaults are skipped for clusters that do not support the system.
    if (system.name in own) found.push({ path: originOf([system.name], place), text });
    return [];
  }
  const below = place.defaults[system.name];
  const config = overlay(isRecord(below) ? below : {}, own[system.name] ?? {});
  const { value, problems } = check(system.config, config, [system.name]);
  found.push(...problems.map((problem) => ({ ...problem, path: originOf(problem.path, place) })));
  return problems.length > 0 ? [] : [{ system, config: value }];
}

/** Problems or warnings of a system in combination with the cluster. */
function sectionMistakes(
  kind: 'check' | 'warnings',
  sections: readonly Section[],
  context: ClusterContext,
  place: SectionPlace,
): Problems {
  return sections.flatMap(({ system, config }) =>
    (system[kind]?.(config, context) ?? []).flatMap(({ path, text, ownOnly = false }) => {
      const origin = originOf([system.name, ...path], place);
      return ownOnly && origin[0] === 'defaults' ? [] : [{ path: origin, text }];
    }),
  );
}

/** Path of a problem in the file: in the cluster or the defaults, whichever contains more of it. */
function originOf(path: FieldPath, place: SectionPlace): FieldPath {
  const written = depth(recordOf(place.cluster.systems), path);
  return depth(place.defaults, path) > written
    ? ['defaults', 'systems', ...path]
    : ['clusters', place.index, 'systems', ...path];
}

/** Number of leading path segments that exist. */
function depth(value: unknown, path: FieldPath): number {
  const [first, ...rest] = path;
  if (first === undefined || typeof value !== 'object' || value === null || !(first in value)) return 0;
  return 1 + depth((value as Readonly<Record<string, unknown>>)[first], rest);
}

function overlay(below: unknown, above: unknown): unknown {
  if (above === true) return below;
  if (!isRecord(below) || !isRecord(above)) return above;
  const entries = Object.entries(above).map(([key, value]): [string, unknown] => [
    key,
    key === 'source' || !(key in below) ? value : overlay(below[key], value),
  ]);
  return { ...below, ...Object.fromEntries(entries) };
}

/** A validated cluster. */
export interface FleetCluster {
  readonly context: ClusterContext;
  /** Folder below the output, or `.`. */
  readonly path: string;
  readonly input: ClusterTop;
  readonly sections: readonly Section[];
}

/** A validated fleet. */
export interface Fleet {
  readonly clusters: readonly FleetCluster[];
  /** Warnings, without duplicates. */
  readonly warnings: readonly LocatedProblem[];
  readonly gitops?: GitOpsInput;
  /** Base URL of the runbooks for alerts. */
  readonly runbooks?: string;
}

/** Types a fleet in TypeScript: `export default defineFleet({ ... })`. */
export function defineFleet(fleet: FleetInput): FleetInput {
  return fleet;
}

/**
 * Validates a fleet and applies defaults.
 *
 * @throws FleetError with all problems
 *
 * @example
 * ```ts
 * import { readFleet } from './fleet.ts';
 * import assert from 'node:assert/strict';
 *
 * const fleet = readFleet({
 *   image: 'registry.example.com/pullwright:0.1.0',
 *   clusters: [{ name: 'prod', systems: { 'global-pull-secret': { enforce: 'deny' } } }],
 * });
 * assert.equal(fleet.clusters[0]?.context.namespace, 'pullwright-system');
 * assert.throws(() => readFleet({ image: 'x', clusters: [{ nam: 'prod' }] }), /did you mean "name"/);
 * ```
 */
export function readFleet(input: unknown, source = 'fleet'): Fleet {
  return resolve(input, source, { problems: [], locate: (problem) => problem });
}

/** Parses and validates the text of a `fleet.yaml`; problems have line and column. @throws FleetError */
export function parseFleet(text: string, source = 'fleet.yaml'): Fleet {
  const yaml = readFleetYaml(text);
  if (yaml.value === undefined) throw new FleetError(source, yaml.problems);
  return resolve(yaml.value, source, yaml);
}

function resolve(input: unknown, source: string, from: Omit<FleetYaml, 'value'>): Fleet {
  const found: FleetProblem[] = [];
  const warnings: FleetProblem[] = [];
  const top = check(fleetSchema, input, []);
  found.push(...top.problems);
  const raw = top.value ?? usable(input);
  const tops = raw.clusters.map((value, index) => {
    const { value: cluster, problems } = check(clusterSchema, value, ['clusters', index]);
    found.push(...problems);
    return cluster ?? (recordOf(value) as unknown as ClusterTop);
  });
  found.push(...fleetMistakes(tops, raw.gitops));
  const places = tops.map((cluster, index) => ({
    defaults: recordOf(raw.defaults?.systems),
    cluster,
    index,
  }));
  const sections = places.map((place) => readSections(place, found));
  warnings.push(...hostedWarnings(tops, raw), ...pairWarnings(sections));
  const clusters = places.map((place) => {
    const { cluster, index } = place;
    const own = sections[index] ?? [];
    found.push(
      ...accountMistakes(tops, raw, cluster, index),
      ...sharedMistakes(tops, sections, cluster, index),
    );
    const context = contextOf(raw, tops, cluster);
    found.push(...sectionMistakes('check', own, context, place));
    warnings.push(...sectionMistakes('warnings', own, context, place));
    return { context, path: cluster.path ?? cluster.name, input: merged(raw, cluster), sections: own };
  });
  const problems = [...from.problems, ...unique(found.map((problem) => from.locate(problem)))];
  if (problems.length > 0) throw new FleetError(source, problems);
  return {
    clusters,
    warnings: unique(warnings.map((problem) => from.locate(problem))),
    ...defined({ gitops: raw.gitops, runbooks: raw.runbooks && trimEndOf(raw.runbooks, '/') }),
  };
}

/** Reduces an invalid fleet to the parts that can still be validated. */
function usable(input: unknown): FleetTop {
  const map = recordOf(input);
  const defaults = recordOf(map['defaults']);
  return {
    image: scalarText(map['image']),
    defaults: { systems: recordOf(defaults['systems']) },
    clusters: Array.isArray(map['clusters']) ? map['clusters'] : [],
  };
}

function merged(fleet: FleetTop, cluster: ClusterTop): ClusterTop {
  const { reconciler, monitoring, dashboards } = fleet.defaults ?? {};
  const settings = { ...reconciler, ...cluster.reconciler };
  return { ...defined({ monitoring, dashboards }), ...cluster, reconciler: settings };
}

function contextOf(fleet: FleetTop, tops: Tops, cluster: ClusterTop): ClusterContext {
  const { kind = 'standalone', discovery = false, hostedCluster } = cluster;
  const network = { ...fleet.defaults?.network, ...cluster.network };
  // Total: the value may have any type.
  const shards: unknown = cluster.reconciler?.shards ?? fleet.defaults?.reconciler?.shards;
  const isManagement = kind === 'management';
  return {
    ...commonOf(fleet, cluster),
    kind,
    discovery,
    ...(isManagement && Array.isArray(shards) ? { shards: [...new Set(shards)] } : {}),
    ...(Object.keys(network).length === 0 ? {} : { network }),
    ...defined({ account: hostedCluster?.serviceAccount }),
    hosted: tops
      .filter((one) => isManagement && one.kind === 'hosted' && one.management === cluster.name)
      .map((one) => hostedOf(fleet, one)),
  };
}

function hostedOf(fleet: FleetTop, cluster: ClusterTop): HostedCluster {
  const { namespace = 'clusters', name = cluster.name, controlPlaneNamespace } = cluster.hostedCluster ?? {};
  return {
    ...commonOf(fleet, cluster),
    hostedCluster: { namespace, name },
    controlPlaneNamespace: controlPlaneNamespace ?? `${namespace}-${name}`,
  };
}

/** Common fields: the cluster's value, else the fleet's. */
function commonOf(fleet: FleetTop, cluster: ClusterTop) {
  return {
    name: cluster.name,
    delivery: cluster.delivery ?? (cluster.kind === 'management' ? 'reconciler' : 'gitops'),
    namespace: cluster.namespace ?? fleet.namespace ?? OWN_NAMESPACE,
    image: cluster.image ?? fleet.image,
    ...defined({ imagePullSecrets: cluster.imagePullSecrets ?? fleet.imagePullSecrets }),
  };
}

/** Removes duplicates: a problem in the defaults occurs once per cluster. */
function unique(problems: readonly LocatedProblem[]): readonly LocatedProblem[] {
  const seen = new Map(
    problems.map((problem) => [`${JSON.stringify(problem.path)} ${problem.text}`, problem]),
  );
  return [...seen.values()].sort(
    (a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
  );
}
