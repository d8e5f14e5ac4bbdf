/**
 * A fleet, as people write it (`fleet.yaml`, or TypeScript), checked: every mistake at once, each with its place.
 */

import { scalarText } from '../runtime/rules/record.ts';
import { trimEndOf } from '../runtime/rules/text/trim.ts';
import { hostedMistakes, hostedWarnings } from './fleet-hosted.ts';
import { fleetMistakes } from './fleet-mistakes.ts';
import { pairWarnings } from './fleet-pairs.ts';
import { check, FleetError, type FleetProblem, type LocatedProblem } from './fleet-problems.ts';
import {
  type ClusterTop,
  clusterSchema,
  type FleetInput,
  type FleetTop,
  fleetSchema,
  type GitOpsInput,
} from './fleet-schema.ts';
import { asMap, readSections, type Section, sectionMistakes } from './fleet-sections.ts';
import { readFleetYaml } from './fleet-yaml.ts';
import { OWN_NAMESPACE } from './shared/objects.ts';
import type { ClusterContext, HostedCluster } from './shared/system.ts';

export type { FleetInput } from './fleet-schema.ts';

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
  found.push(...fleetMistakes(tops));
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
