/**
 * A fleet, as people write it (`fleet.yaml`, or TypeScript), checked: every mistake at once, each with its path.
 */

import { OWN_NAMESPACE } from '../runtime/core/kubernetes/objects.ts';
import { isRecord, scalarText } from '../runtime/core/record.ts';
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
import { readFleetYaml } from './fleet-yaml.ts';
import { ADMIN_KUBECONFIG, OWN_KUBECONFIG, type ReconcilerSettings } from './shared/reconciler.ts';
import type { ChartSystem, ClusterContext, HostedCluster } from './shared/system.ts';
import { SYSTEMS } from './systems.ts';

// Mistakes of hosted clusters that show only beside the management cluster whose reconciler looks after them.

/** What is looked at, by the clusters' order. */
export interface HostedFleet {
  readonly tops: readonly ClusterTop[];
  readonly sections: readonly (readonly Section[])[];
  readonly defaults: ReconcilerSettings | undefined;
}

/** Accounts that no kubeconfig leads to, and options of which one reconciler can follow only one. */
export function hostedMistakes(fleet: HostedFleet): readonly FleetProblem[] {
  return fleet.tops.flatMap((cluster, index) =>
    cluster.kind === 'hosted' ? [...accountMistakes(fleet, cluster, index), ...rivals(fleet, index)] : [],
  );
}

/** HyperShift's own kubeconfig is an administrator's: no account that policies may name. */
function accountMistakes(
  { tops, defaults }: HostedFleet,
  cluster: ClusterTop,
  index: number,
): readonly FleetProblem[] {
  const { serviceAccount } = cluster.hostedCluster ?? {};
  const management = tops.find(({ name, kind }) => kind === 'management' && name === cluster.management);
  const secret = management?.reconciler?.kubeconfigSecret ?? defaults?.kubeconfigSecret;
  if (serviceAccount === undefined || management === undefined) return [];
  if (secret !== ADMIN_KUBECONFIG) return [];
  return [
    {
      path: ['clusters', index, 'hostedCluster', 'serviceAccount'],
      text: `the reconciler of "${management.name}" comes with Secret admin-kubeconfig, which is system:admin: expected reconciler.kubeconfigSecret there, a Secret with the kubeconfig of this account`,
    },
  ];
}

/** A reconciler without configured access to hosted clusters: the only kubeconfig that HyperShift makes is an administrator's. */
export function hostedWarnings(fleet: HostedFleet): readonly FleetProblem[] {
  return fleet.tops.flatMap((cluster, index) => {
    const secret = cluster.reconciler?.kubeconfigSecret ?? fleet.defaults?.kubeconfigSecret;
    const serves =
      cluster.discovery === true || fleet.tops.some(({ management }) => management === cluster.name);
    if (cluster.kind !== 'management' || secret !== undefined || !serves) return [];
    return [
      {
        path: ['clusters', index, 'reconciler', 'kubeconfigSecret'],
        text: `without it the reconciler comes to hosted clusters with Secret ${OWN_KUBECONFIG}, which HyperShift does not make: make it of hostedCluster.serviceAccount and write its name here, or write ${ADMIN_KUBECONFIG} to have it come as system:admin`,
      },
    ];
  });
}

/** One reconciler has one set of some options for all hosted clusters. */
function rivals({ tops, sections }: HostedFleet, index: number): readonly FleetProblem[] {
  const { management } = tops[index] as ClusterTop;
  return (sections[index] ?? []).flatMap(({ system, config }): readonly FleetProblem[] => {
    const wanted = system.shared?.(config);
    if (wanted === undefined) return [];
    const first = tops.findIndex(
      (other, at) =>
        other.kind === 'hosted' &&
        other.management === management &&
        sections[at]?.some((one) => one.system === system) === true,
    );
    const before = sections[first]?.find((one) => one.system === system);
    if (first >= index || before === undefined) return [];
    const other = system.shared?.(before.config) ?? {};
    return Object.keys({ ...wanted, ...other })
      .filter((key) => JSON.stringify(wanted[key]) !== JSON.stringify(other[key]))
      .map((key) => ({
        path: ['clusters', index, 'systems', system.name, key],
        text: `clusters[${first}] has ${JSON.stringify(other[key])}, and the reconciler of "${management}" serves both with one value: expected the same, got ${JSON.stringify(wanted[key])}`,
      }));
  });
}

// Mistakes that show only when the clusters of a fleet are seen together. Total: a cluster may be anything but a map of the right form.

/** Names and folders that occur twice, and clusters with dangling references. */
export function fleetMistakes(
  clusters: readonly ClusterTop[],
  gitops: GitOpsInput | undefined,
): readonly FleetProblem[] {
  return [
    ...twice(clusters, 'name', ({ name }) => name),
    // Two clusters of one name have one folder as well; that is one mistake.
    ...twice(clusters, 'path', ({ path, name }) => path ?? name).filter(
      ({ path: [, index] }) => clusters[Number(index)]?.path !== undefined,
    ),
    ...twice(clusters, 'hostedCluster', hostedClusterOf),
    ...(gitops === undefined
      ? []
      : twice(clusters, 'destination', (cluster) => destinationOf(cluster, gitops.tool))),
    ...nested(clusters),
    ...clusters.flatMap((cluster, index) => referenceMistakes(clusters, cluster, index)),
  ];
}

/** The HostedCluster of a cluster, and where it runs. */
function hostedClusterOf({ kind, management, name, hostedCluster }: ClusterTop): string | undefined {
  const { namespace = 'clusters', name: own = name } = asMap(hostedCluster);
  return kind === 'hosted' ? `${scalarText(namespace)}/${scalarText(own)} of ${management}` : undefined;
}

/** Where the tool applies a cluster: two clusters with one destination would overwrite each other. */
function destinationOf({ kind, delivery, destination }: ClusterTop, tool: GitOpsInput['tool']): unknown {
  // Nothing of it is in git.
  if (kind === 'hosted' && delivery === 'reconciler') return undefined;
  const { kubeConfigSecret, name, server } = asMap(destination);
  if (tool === 'flux') return kubeConfigSecret ?? 'the cluster where Flux runs';
  const place = name ?? URL.parse(scalarText(server))?.href.replace(/\/$/, '') ?? server ?? 'in-cluster';
  // Argo CD's own name and address of its cluster.
  const isOwn = place === 'in-cluster' || place === 'https://kubernetes.default.svc';
  return isOwn ? 'the cluster where Argo CD runs' : place;
}

/** Each cluster with the value of one before it. A value that is no text is a mistake of its own. */
function twice(
  clusters: readonly ClusterTop[],
  field: 'name' | 'path' | 'hostedCluster' | 'destination',
  valueOf: (cluster: ClusterTop) => unknown,
): readonly FleetProblem[] {
  const first = new Map<unknown, number>();
  return clusters.flatMap((cluster, index) => {
    const value = valueOf(cluster);
    if (typeof value !== 'string') return [];
    const before = first.get(value);
    if (before === undefined) {
      first.set(value, index);
      return [];
    }
    return [
      {
        path: ['clusters', index, field],
        text: `${JSON.stringify(value)} is also the ${field} of clusters[${before}], expected another`,
      },
    ];
  });
}

/** Longer than folders are: each folder around it is looked up, and a path of thousands has thousands. */
const MOST_PATH = 1000;

/** A folder within another cluster's folder would be taken for a part of it. */
function nested(clusters: readonly ClusterTop[]): readonly FleetProblem[] {
  const folders = new Map<string, number>();
  for (const [index, cluster] of clusters.entries()) {
    const path = cluster.path ?? cluster.name;
    if (typeof path === 'string') folders.set(path, index);
  }
  return clusters.flatMap((cluster, index) => {
    const path = cluster.path ?? cluster.name;
    if (typeof path !== 'string') return [];
    if (path === '.' && clusters.length > 1)
      return [
        {
          path: ['clusters', index, 'path'],
          text: 'only a fleet of one cluster may be written to ".", expected a folder',
        },
      ];
    // A name that is too long is a mistake of its own.
    if (path.length > MOST_PATH && cluster.path === undefined) return [];
    if (path.length > MOST_PATH)
      return [
        {
          path: ['clusters', index, 'path'],
          text: `has ${path.length} characters, expected at most ${MOST_PATH}`,
        },
      ];
    const parent = parentsOf(path).find((one) => folders.has(one));
    return parent === undefined
      ? []
      : [
          {
            path: ['clusters', index, 'path'],
            text: `${JSON.stringify(path)} is inside the folder of clusters[${folders.get(parent)}], expected one beside it`,
          },
        ];
  });
}

function parentsOf(path: string): readonly string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

function referenceMistakes(
  clusters: readonly ClusterTop[],
  cluster: ClusterTop,
  index: number,
): readonly FleetProblem[] {
  const at = (field: string, text: string): FleetProblem => ({ path: ['clusters', index, field], text });
  const notManaging =
    cluster.kind === 'management'
      ? []
      : [
          ...(cluster.discovery === true ? [at('discovery', 'only for kind "management"')] : []),
          ...(cluster.reconciler?.shards === undefined
            ? []
            : [
                {
                  path: ['clusters', index, 'reconciler', 'shards'],
                  text: 'only for kind "management": a shard is a part of its hosted clusters',
                },
              ]),
        ];
  if (cluster.kind !== 'hosted') {
    const wrong = (['management', 'hostedCluster'] as const).filter((field) => cluster[field] !== undefined);
    return [...wrong.map((field) => at(field, 'only for kind "hosted"')), ...notManaging];
  }
  if (notManaging.length > 0) return notManaging;
  // A name that is missing or no text is a mistake of its own.
  const managements = clusters
    .filter((one) => one.kind === 'management' && typeof one.name === 'string')
    .map((one) => one.name);
  if (cluster.management === undefined)
    return [
      at(
        'management',
        `missing, expected the cluster that runs its control plane${managements.length === 0 ? '; the fleet has none of kind "management"' : `: ${managements.join(', ')}`}`,
      ),
    ];
  if (typeof cluster.management !== 'string' || managements.includes(cluster.management)) return [];
  return [
    at(
      'management',
      `the fleet has no cluster ${JSON.stringify(cluster.management)} of kind "management"${managements.length === 0 ? '' : `, ${suggestion(cluster.management, managements)}`}`,
    ),
  ];
}

// What two sections of one cluster surprise each other with.

/**
 * Beside the credential provider every pull secret of a namespace may be what a pod pulls with: `verify` has to list them, or its report is
 * `Incomplete` each time.
 */
export function pairWarnings(sections: readonly (readonly Section[])[]): readonly FleetProblem[] {
  return sections.flatMap((own, index) => {
    const verify = own.find(({ system }) => system.name === 'verify')?.config as
      | { readonly namespaceSecrets?: boolean; readonly secretNames?: readonly string[] }
      | undefined;
    const provides = own.some(({ system }) => system.name === 'credential-provider');
    if (!provides || verify === undefined) return [];
    if (verify.namespaceSecrets === true || verify.secretNames !== undefined) return [];
    return [
      {
        path: ['clusters', index, 'systems', 'verify', 'namespaceSecrets'],
        text: 'with the credential provider pods pull with any pull secret of their namespace, and who may not list those reports Incomplete: write namespaceSecrets: true, or name the Secrets that count in secretNames',
      },
    ];
  });
}

// Sections of a cluster: what it says itself, over what the defaults say.
// Maps are merged, lists and single values replaced; `source` is one thing or another, so that it is never mixed from both.

/** A section of a cluster that was checked. */
export interface Section {
  readonly system: ChartSystem;
  readonly config: unknown;
}

/** Where sections stand. */
export interface SectionPlace {
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly cluster: ClusterTop;
  /** Of the cluster in the fleet. */
  readonly index: number;
}

/** Sections without mistakes; mistakes go to `found`. */
export function readSections(place: SectionPlace, found: FleetProblem[]): readonly Section[] {
  const own = asMap(place.cluster.systems);
  const written = [...Object.keys(place.defaults), ...Object.keys(own)];
  // In the order of the table: the same systems give the same text, in whichever order they are written.
  const known = SYSTEMS.map(({ name }) => name).filter((name) => written.includes(name));
  return [...new Set([...known, ...written])].flatMap((name) => {
    const value = name in own ? own[name] : place.defaults[name];
    const system = SYSTEMS.find((one) => one.name === name);
    if (system === undefined) found.push({ path: originOf([name], place), text: unknownSystem(name) });
    return system === undefined || value === false ? [] : readSection(system, place, found);
  });
}

function readSection(system: ChartSystem, place: SectionPlace, found: FleetProblem[]): readonly Section[] {
  const own = asMap(place.cluster.systems);
  const kind = place.cluster.kind ?? 'standalone';
  if (!system.kinds.includes(kind)) {
    const text = `not for a ${kind} cluster, expected ${system.kinds.join(' or ')}`;
    // Defaults apply to the clusters that support them.
    if (system.name in own) found.push({ path: originOf([system.name], place), text });
    return [];
  }
  const below = place.defaults[system.name];
  const config = overlay(isRecord(below) ? below : {}, own[system.name] ?? {});
  const { value, problems } = check(system.config, config, [system.name]);
  found.push(...problems.map((problem) => ({ ...problem, path: originOf(problem.path, place) })));
  return problems.length > 0 ? [] : [{ system, config: value }];
}

/** Mistakes that a system sees only together with the cluster, or what it finds surprising. */
export function sectionMistakes(
  sections: readonly Section[],
  context: ClusterContext,
  place: SectionPlace,
  kind: 'check' | 'warnings' = 'check',
): readonly FleetProblem[] {
  return sections.flatMap(({ system, config }) =>
    (system[kind]?.(config, context) ?? []).flatMap(({ path, text, ownOnly = false }) => {
      const origin = originOf([system.name, ...path], place);
      return ownOnly && origin[0] === 'defaults' ? [] : [{ path: origin, text }];
    }),
  );
}

function unknownSystem(name: string): string {
  const known = SYSTEMS.map((one) => one.name);
  return `unknown system, ${suggestion(name, known)}`;
}

/** Where a mistake is written: in the cluster or the defaults, whichever holds more of its path. */
function originOf(path: FieldPath, place: SectionPlace): FieldPath {
  const written = depth(asMap(place.cluster.systems), path);
  return depth(place.defaults, path) > written
    ? ['defaults', 'systems', ...path]
    : ['clusters', place.index, 'systems', ...path];
}

/** How many parts of the path are there. */
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

/** A map, or an empty one. */
export function asMap(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** A cluster that was checked. */
export interface FleetCluster {
  readonly context: ClusterContext;
  /** Folder below the output, or `.`. */
  readonly path: string;
  readonly input: ClusterTop;
  readonly sections: readonly Section[];
}

/** A fleet that was checked. */
export interface Fleet {
  readonly clusters: readonly FleetCluster[];
  /** What is no mistake and will surprise, each once. */
  readonly warnings: readonly LocatedProblem[];
  readonly gitops?: GitOpsInput;
  /** Where the runbooks are that alerts point at. */
  readonly runbooks?: string;
}

/** Types a fleet in TypeScript: `export default defineFleet({ ... })`. */
export function defineFleet(fleet: FleetInput): FleetInput {
  return fleet;
}

/**
 * Checks a fleet and fills in what it leaves out.
 *
 * @throws FleetError with every mistake
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

/** Checks the text of a `fleet.yaml`; problems carry line and column. @throws FleetError */
export function parseFleet(text: string, source = 'fleet.yaml'): Fleet {
  const yaml = readFleetYaml(text);
  if (yaml.value === undefined) throw new FleetError(source, yaml.problems);
  return resolve(yaml.value, source, yaml);
}

interface Source {
  readonly problems: readonly LocatedProblem[];
  locate(problem: FleetProblem): LocatedProblem;
}

function resolve(input: unknown, source: string, from: Source): Fleet {
  const found: FleetProblem[] = [];
  const warnings: FleetProblem[] = [];
  const top = check(fleetSchema, input, []);
  found.push(...top.problems);
  const raw = top.value ?? usable(input);
  const tops = raw.clusters.map((value, index) => {
    const { value: cluster, problems } = check(clusterSchema, value, ['clusters', index]);
    found.push(...problems);
    return cluster ?? (asMap(value) as unknown as ClusterTop);
  });
  found.push(...fleetMistakes(tops, raw.gitops));
  const sections = tops.map((cluster, index) =>
    readSections({ defaults: asMap(raw.defaults?.systems), cluster, index }, found),
  );
  const hosted = { tops, sections, defaults: raw.defaults?.reconciler };
  found.push(...hostedMistakes(hosted));
  warnings.push(...hostedWarnings(hosted), ...pairWarnings(sections));
  const clusters = tops.map((cluster, index) => {
    const context = contextOf(raw, tops, sections, index);
    const place = { defaults: asMap(raw.defaults?.systems), cluster, index };
    found.push(...sectionMistakes(sections[index] ?? [], context, place));
    warnings.push(...sectionMistakes(sections[index] ?? [], context, place, 'warnings'));
    return {
      context,
      path: cluster.path ?? cluster.name,
      input: merged(raw, cluster),
      sections: sections[index] ?? [],
    };
  });
  const problems = [...from.problems, ...unique(found.map((problem) => from.locate(problem)))];
  if (problems.length > 0) throw new FleetError(source, problems);
  return {
    clusters,
    warnings: unique(warnings.map((problem) => from.locate(problem))),
    ...(raw.gitops === undefined ? {} : { gitops: raw.gitops }),
    ...(raw.runbooks === undefined ? {} : { runbooks: trimEndOf(raw.runbooks, '/') }),
  };
}

/** The parts of a wrong fleet that can still be looked at. */
function usable(input: unknown): FleetTop {
  const map = asMap(input);
  const defaults = asMap(map['defaults']);
  return {
    image: scalarText(map['image']),
    defaults: { systems: asMap(defaults['systems']) },
    clusters: Array.isArray(map['clusters']) ? map['clusters'] : [],
  };
}

function merged(fleet: FleetTop, cluster: ClusterTop): ClusterTop {
  const { reconciler, monitoring, dashboards } = fleet.defaults ?? {};
  return {
    ...(monitoring === undefined ? {} : { monitoring }),
    ...(dashboards === undefined ? {} : { dashboards }),
    ...cluster,
    reconciler: { ...reconciler, ...cluster.reconciler },
  };
}

function networkOf(fleet: FleetTop, cluster: ClusterTop): Pick<ClusterContext, 'network'> {
  const said = { ...fleet.defaults?.network, ...cluster.network };
  return Object.keys(said).length === 0 ? {} : { network: said };
}

function contextOf(
  fleet: FleetTop,
  tops: readonly ClusterTop[],
  sections: readonly (readonly Section[])[],
  index: number,
): ClusterContext {
  const cluster = tops[index] as ClusterTop;
  const kind = cluster.kind ?? 'standalone';
  return {
    name: cluster.name,
    kind,
    delivery: cluster.delivery ?? (kind === 'management' ? 'reconciler' : 'gitops'),
    namespace: cluster.namespace ?? fleet.namespace ?? OWN_NAMESPACE,
    image: cluster.image ?? fleet.image,
    ...pullSecretsOf(fleet, cluster),
    discovery: cluster.discovery ?? false,
    ...shardsOf(fleet, cluster),
    ...networkOf(fleet, cluster),
    ...(cluster.hostedCluster?.serviceAccount === undefined
      ? {}
      : { account: cluster.hostedCluster.serviceAccount }),
    hosted:
      kind === 'management'
        ? tops.flatMap((other, at) =>
            other.kind === 'hosted' && other.management === cluster.name
              ? [hostedOf(fleet, other, sections[at] ?? [])]
              : [],
          )
        : [],
  };
}

/** Total: a value may be anything. */
function shardsOf(fleet: FleetTop, { kind, reconciler }: ClusterTop): Pick<ClusterContext, 'shards'> {
  const shards: unknown = reconciler?.shards ?? fleet.defaults?.reconciler?.shards;
  return kind === 'management' && Array.isArray(shards) ? { shards: [...new Set(shards)] } : {};
}

function hostedOf(fleet: FleetTop, cluster: ClusterTop, sections: readonly Section[]): HostedCluster {
  const namespace = cluster.hostedCluster?.namespace ?? 'clusters';
  const name = cluster.hostedCluster?.name ?? cluster.name;
  return {
    name: cluster.name,
    hostedCluster: { namespace, name },
    controlPlaneNamespace: cluster.hostedCluster?.controlPlaneNamespace ?? `${namespace}-${name}`,
    delivery: cluster.delivery ?? 'gitops',
    image: cluster.image ?? fleet.image,
    ...pullSecretsOf(fleet, cluster),
    namespace: cluster.namespace ?? fleet.namespace ?? OWN_NAMESPACE,
    systems: sections.map((section) => section.system.name),
  };
}

function pullSecretsOf(fleet: FleetTop, cluster: ClusterTop): Pick<ClusterContext, 'imagePullSecrets'> {
  const imagePullSecrets = cluster.imagePullSecrets ?? fleet.imagePullSecrets;
  return imagePullSecrets === undefined ? {} : { imagePullSecrets };
}

/** A mistake in the defaults shows in every cluster; it is said once. */
function unique(problems: readonly LocatedProblem[]): readonly LocatedProblem[] {
  const seen = new Map(
    problems.map((problem) => [`${JSON.stringify(problem.path)} ${problem.text}`, problem]),
  );
  return [...seen.values()].sort(
    (a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
  );
}
