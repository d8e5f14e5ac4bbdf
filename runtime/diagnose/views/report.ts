/** The report of a fleet, out of what was found of each cluster. */

import type { RuleOrigin } from '../../core/mirrors/resolve.ts';
import { counted, countedOf } from '../../core/text.ts';
import type { ObjectStore } from '../../engine/store.ts';
import type { NodeMirrors } from '../../registry-overrides/machine-config/node-mirrors.ts';
import { brokenIn, type ExaminedPod, pullId } from '../checks/chain.ts';
import { groupedByCause, systemOf, VERDICTS } from '../checks/findings.ts';
import { judgeCluster, type StatusRow } from '../checks/status.ts';
import { reportKeys, reportMirrors, reportNamespaces } from '../model/cluster.ts';
import { nodeCoverage, runtimesOf } from '../model/nodes.ts';
import {
  byVerdict,
  type Finding,
  type FoundIn,
  REPORT_SYSTEMS,
  type Report,
  type ReportCluster,
  type ReportPull,
  type ReportSystem,
  type ReportSystemName,
  type ReportVerdict,
  type WithoutUsers,
  worstOf,
} from '../model/types.ts';

// The way of an image from a pod to a registry, out of what `doctor` and `explain` say.

/** One for each image. */
function reportPulls({ cluster, input, findings, pods, runs }: ExaminedPod): readonly ReportPull[] {
  const { pod: object, namespace } = input;
  return input.images.map(({ text: image, explanation, fault = 'cannot be read' }): ReportPull => {
    const base = { id: pullId(cluster, object, image), namespace, object, pods, image };
    if (explanation === undefined) return { ...base, verdict: 'broken', fault };
    const { secrets, kubelet, places, skipped, containerd, findings: own } = explanation;
    // The verdict of `explain` on the image counts too.
    const verdict = worstOf(
      [...findings, ...own].map(({ severity }) => VERDICTS[severity]),
      'ok',
    );
    return {
      ...base,
      // What is broken for the next pull keeps nothing from running that runs.
      verdict: runs && verdict === 'broken' ? 'attention' : verdict,
      explanation: withoutUsers({ secrets, kubelet, places, skipped, containerd, findings: own }),
    };
  });
}

function withoutUsers<T>(value: T): WithoutUsers<T> {
  const text = JSON.stringify(value, (name, one: unknown) => (name === 'username' ? undefined : one));
  return JSON.parse(text) as WithoutUsers<T>;
}

/** What was found of one cluster. */
export interface ClusterFacts {
  readonly name: string;
  readonly store: ObjectStore;
  readonly mirrors: NodeMirrors;
  /** Names the object and field of a mirror rule, for a person. */
  readonly place: (origin: RuleOrigin) => string;
  readonly pods: readonly ExaminedPod[];
  /** What `status` says. */
  readonly rows: readonly StatusRow[];
}

export interface ReportInput {
  readonly now: Date;
  /** The folder or context. */
  readonly source: string;
  readonly clusters: readonly ClusterFacts[];
  readonly unread: readonly string[];
}

/** Pulls that are in order and shown, for each cluster; what is not in order is always there. */
const MOST_PULLS = 100;

/** Makes the report. Total. */
export function makeReport({ now, source, clusters, unread }: ReportInput): Report {
  const made = clusters.map((facts) => clusterOf(facts, now));
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
): { readonly cluster: ReportCluster; readonly problems: readonly FoundIn[] } {
  const { name, store, rows, pods } = facts;
  const nodes = nodeCoverage(store);
  const keys = reportKeys(store, nodes, now);
  const mirrors = reportMirrors(facts.mirrors, facts.place);
  const pulls = pods.flatMap(reportPulls).toSorted((a, b) => byVerdict(a.verdict, b.verdict));
  const problems = [
    ...pods.flatMap(brokenIn),
    ...judgeCluster({ keys, mirrors, nodes, rows }).map((one) => ({ ...one, cluster: name })),
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
      runtimes: runtimesOf(store),
      keys: keys.keys,
      pulls: shown,
      pullsLeftOut: pulls.length - shown.length,
      namespaces: reportNamespaces(store, pulls),
      mirrors,
    },
    problems,
  };
}

interface Parts extends Pick<ReportCluster, 'keys' | 'mirrors' | 'nodes'> {
  readonly problems: readonly Finding[];
  readonly rows: readonly StatusRow[];
  readonly pulls: readonly ReportPull[];
}

function systemsOf(parts: Parts): readonly ReportSystem[] {
  return REPORT_SYSTEMS.flatMap((system): ReportSystem[] => {
    const own = parts.problems.filter((problem) => systemOf(problem) === system);
    const rows = parts.rows.filter((row) => row.system === system);
    const evidence = EVIDENCE[system](parts);
    if (own.length + rows.length === 0 && evidence === undefined) return [];
    const verdict = worstOf(
      [
        ...[...own, ...rows].map(({ severity }) => VERDICTS[severity]),
        ...(evidence === undefined ? [] : [evidence.verdict]),
      ],
      'unknown',
    );
    return [
      {
        system,
        verdict,
        summary: own.length > 0 ? counted(own.length, 'problem') : summaryOf(evidence, rows),
      },
    ];
  });
}

function summaryOf(evidence: Evidence | undefined, rows: readonly StatusRow[]): string {
  if (evidence !== undefined) return evidence.summary;
  const ready = rows.filter(({ state }) => state === 'Ready').length;
  return `${countedOf(ready, rows.length, ['object', 'objects'], ['reports that it is', 'report that they are'])} in order`;
}

interface Evidence {
  readonly verdict: ReportVerdict;
  readonly summary: string;
}

/** Further input to the state of a system, beside problems and reporters; undefined where it is not in use. */
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
