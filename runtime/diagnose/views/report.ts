/** The report of a fleet, out of what was found of each cluster. */

import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { RuleOrigin } from '../../core/mirrors/resolve.ts';
import { counted, countedOf } from '../../core/text.ts';
import type { NodeMirrors } from '../../registry-overrides/machine-config/node-mirrors.ts';
import {
  type ExaminedPod,
  type FoundProblem,
  groupedByCause,
  keyProblems,
  mirrorProblems,
  nodeProblems,
  podProblems,
  reportPulls,
  type StatusRow,
  statusProblems,
  systemOf,
  type ToYaml,
} from '../checks/status.ts';
import { type CopyOf, reportKeys, reportMirrors, reportNamespaces } from '../model/cluster.ts';
import { nodeCoverage, runtimesOf } from '../model/nodes.ts';
import {
  byVerdict,
  REPORT_SYSTEMS,
  type Report,
  type ReportCluster,
  type ReportPull,
  type ReportSystem,
  type ReportSystemName,
  type ReportVerdict,
  worstOf,
} from '../model/types.ts';

/** What was found of one cluster. */
export interface ClusterFacts {
  readonly name: string;
  readonly objects: readonly KubeObject[];
  readonly mirrors: NodeMirrors;
  /** Names the object and field of a mirror rule, for a person. */
  readonly place: (origin: RuleOrigin) => string;
  readonly pods: readonly ExaminedPod[];
  /** What `status` says. */
  readonly rows: readonly StatusRow[];
  readonly copyOf: CopyOf;
}

export interface ReportInput {
  readonly now: Date;
  /** The folder or context. */
  readonly source: string;
  readonly clusters: readonly ClusterFacts[];
  readonly unread: readonly string[];
  readonly toYaml: ToYaml;
}

/** Pulls that are in order and shown, for each cluster; what is not in order is always there. */
const MOST_PULLS = 100;

/** Makes the report. Total. */
export function makeReport({ now, source, clusters, unread, toYaml }: ReportInput): Report {
  const made = clusters.map((facts) => clusterOf(facts, now, toYaml));
  return {
    version: 1,
    madeAt: `${now.toISOString().slice(0, 19)}Z`,
    source,
    clusters: made
      .map(({ cluster }) => cluster)
      .toSorted((a, b) => byVerdict(a.verdict, b.verdict) || (a.name < b.name ? -1 : 1)),
    problems: groupedByCause(made.flatMap(({ problems }) => problems)),
    unread,
  };
}

function clusterOf(
  facts: ClusterFacts,
  now: Date,
  toYaml: ToYaml,
): { readonly cluster: ReportCluster; readonly problems: readonly FoundProblem[] } {
  const { name, objects, rows, pods } = facts;
  const nodes = nodeCoverage(objects);
  const keys = reportKeys(objects, nodes, now);
  const mirrors = reportMirrors(facts.mirrors, facts.place);
  const pulls = pods.flatMap(reportPulls).toSorted((a, b) => byVerdict(a.verdict, b.verdict));
  const problems = [
    ...pods.flatMap((pod) => podProblems(pod, toYaml)),
    ...keyProblems(name, keys),
    ...mirrorProblems(name, mirrors),
    ...nodeProblems(name, nodes),
    ...statusProblems(name, rows),
  ];
  const systems = systemsOf({ problems, rows, pulls, keys: keys.keys, mirrors, nodes });
  const shown = pulls.filter(({ verdict }, at) => verdict !== 'ok' || at < MOST_PULLS);
  return {
    cluster: {
      name,
      verdict: worstOf(
        systems.map(({ verdict }) => verdict),
        'unknown',
      ),
      systems,
      nodes,
      runtimes: runtimesOf(objects),
      keys: keys.keys,
      pulls: shown,
      pullsLeftOut: pulls.length - shown.length,
      namespaces: reportNamespaces(objects, pulls, facts.copyOf),
      mirrors,
    },
    problems,
  };
}

interface Parts extends Pick<ReportCluster, 'keys' | 'mirrors' | 'nodes'> {
  readonly problems: readonly FoundProblem[];
  readonly rows: readonly StatusRow[];
  readonly pulls: readonly ReportPull[];
}

function systemsOf(parts: Parts): readonly ReportSystem[] {
  return REPORT_SYSTEMS.flatMap((system): ReportSystem[] => {
    const own = parts.problems.filter((problem) => problem.system === system);
    const rows = parts.rows.filter((row) => systemOf(row.system) === system);
    const evidence = EVIDENCE[system](parts);
    if (own.length + rows.length === 0 && evidence === undefined) return [];
    const verdict = worstOf(
      [
        ...own.map((problem) => problem.verdict),
        ...rows.map(verdictOfRow),
        ...(evidence === undefined ? [] : [evidence.verdict]),
      ],
      'unknown',
    );
    return [
      { system, verdict, summary: own.length > 0 ? problemsText(own.length) : summaryOf(evidence, rows) },
    ];
  });
}

function problemsText(count: number): string {
  return counted(count, 'problem');
}

function summaryOf(evidence: Evidence | undefined, rows: readonly StatusRow[]): string {
  if (evidence !== undefined) return evidence.summary;
  const ready = rows.filter(({ state }) => state === 'Ready').length;
  return `${countedOf(ready, rows.length, ['object', 'objects'], ['reports that it is', 'report that they are'])} in order`;
}

function verdictOfRow({ state }: StatusRow): ReportVerdict {
  return state === 'Ready' ? 'ok' : state === 'Attention' ? 'attention' : 'unknown';
}

interface Evidence {
  readonly verdict: ReportVerdict;
  readonly summary: string;
}

/** What a system is judged by beside its problems and what reports; undefined where it is not in use. */
const EVIDENCE: Readonly<Record<ReportSystemName, (parts: Parts) => Evidence | undefined>> = {
  pulls: ({ pulls }) =>
    pulls.length === 0
      ? undefined
      : {
          verdict: worstOf(
            pulls.map(({ verdict }) => verdict),
            'unknown',
          ),
          summary: `${counted(pulls.length, 'image')} examined`,
        },
  'global-pull-secret': ({ keys, nodes }) => {
    if (keys.every(({ source }) => source.endsWith('/pull-secret')) && nodes.eligible === 0) return undefined;
    const { eligible, inSync } = nodes;
    return {
      verdict: eligible > 0 && inSync === eligible ? 'ok' : 'unknown',
      summary:
        eligible === 0
          ? 'no node is eligible yet'
          : `${inSync} of ${eligible} eligible nodes are known to be in sync`,
    };
  },
  'pull-secret-injection': () => undefined,
  'registry-overrides': ({ mirrors }) =>
    mirrors.rules.length + mirrors.refusals.length === 0
      ? undefined
      : { verdict: mirrors.state === 'rendered' ? 'ok' : 'attention', summary: mirrors.summary },
  'credential-provider': () => undefined,
  'pull-secret-adapter': () => undefined,
};
