/**
 * Which nodes have what they should have, by what their agents report of the file that the kubelet and CRI-O read. Nothing is
 * concluded from the absence of a report. Pure.
 */
import type { PullSecret } from '../../core/docker-config/pull-secret.ts';
import type { Condition, ConditionInput } from '../../core/kubernetes/conditions.ts';
import {
  GLOBAL_PULL_SECRET as NAMES,
  NODE_REPORT,
  NODE_REPORT_LABEL,
} from '../../core/kubernetes/hypershift.ts';
import { type KubeObject, startsReporting } from '../../core/kubernetes/object.ts';
import {
  type EntryStatus,
  nodeSubject,
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatusName,
} from '../../core/kubernetes/pull-status.ts';
import { counted, someOf } from '../../core/text.ts';
import type { Reader, ReconcileError, Watch } from '../../engine/contract.ts';
import type { NodeDecision } from '../eligibility.ts';
import { type GlobalPullSecretOptions, reports } from '../options.ts';

const REPORTS = {
  role: 'hosted',
  apiVersion: PULL_STATUS_API_VERSION,
  kind: PULL_STATUS_KIND,
  namespace: NAMES.namespace,
} as const;

export const REPORT_READS: readonly Watch[] = [
  { ...REPORTS, labelSelector: `${NODE_REPORT_LABEL}=${NODE_REPORT}`, optional: true },
];

/** A node that lacks what it should have. */
export interface NodeBehind {
  readonly node: string;
  /** CamelCase, stable. */
  readonly reason: string;
  /** A sentence without its end. */
  readonly why: string;
}

/** The known state of the participating nodes. */
export interface NodeTruth {
  readonly nodes: number;
  /** In the order of their names. */
  readonly behind: readonly NodeBehind[];
}

/** What decides which nodes must have which content. */
export interface TruthInput {
  readonly options: Pick<GlobalPullSecretOptions, 'delivery' | 'agent'>;
  readonly daemonSet: KubeObject | undefined;
  readonly decisions: readonly NodeDecision[];
  /** What nodes should get. */
  readonly source: PullSecret | undefined;
}

/** What agents report of the nodes that take part; undefined where none reports, or nothing is there to have. */
export function truthOf(reader: Reader, input: TruthInput): NodeTruth | undefined {
  const { options, daemonSet, decisions, source } = input;
  const names = decisions
    .filter(({ eligible }) => eligible)
    .map(({ node }) => node)
    .sort();
  if (source?.value === undefined || names.length === 0 || !agentsReport(options, daemonSet))
    return undefined;
  return nodeTruth(reader, names, source.digest);
}

/** Whether agents report: by our options, or by the arguments of a DaemonSet that a GitOps tool applies. */
function agentsReport(
  { delivery, agent }: Pick<GlobalPullSecretOptions, 'delivery' | 'agent'>,
  daemonSet: KubeObject | undefined,
): boolean {
  if (delivery === 'reconciler') return reports(agent);
  return daemonSet !== undefined && startsReporting(daemonSet);
}

function nodeTruth(reader: Reader, names: readonly string[], digest: string | undefined): NodeTruth {
  const reports = new Map(
    reader
      .list({ ...REPORTS, labels: { [NODE_REPORT_LABEL]: NODE_REPORT } })
      .map((report) => [report.metadata.name, report]),
  );
  const behind = names.flatMap((node): readonly NodeBehind[] => {
    const lack = lackOf(reports.get(pullStatusName('Node', node)), digest);
    return lack === undefined ? [] : [{ node, ...lack }];
  });
  return { nodes: names.length, behind };
}

/** What a node lacks by the report of its agent, held against the digest of what it should have; undefined when nothing. */
export function lackOf(
  report: KubeObject | undefined,
  digest: string | undefined,
): Omit<NodeBehind, 'node'> | undefined {
  const { conditions = [], summary = {} } = (report?.status ?? {}) as {
    readonly conditions?: readonly Partial<Condition>[];
    readonly summary?: Readonly<Record<string, unknown>>;
  };
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined)
    return {
      reason: 'NotReported',
      why: 'no agent has reported: its pod does not run there, or cannot reach the API server',
    };
  const { status, reason = 'NotReady', message = 'its agent is not ready' } = ready;
  const seen = summary['sourceDigest'] === digest && digest !== undefined;
  if (status !== 'True') return { reason, why: message };
  return seen ? undefined : olderContent(summary['resourceVersion']);
}

function olderContent(version: unknown): Omit<NodeBehind, 'node'> {
  const which = typeof version === 'string' ? ` (resourceVersion ${version})` : '';
  const why = `its agent has synced another state of the pull secret${which}`;
  return { reason: 'OlderContent', why };
}

/** Nodes that a text names. */
const NAMED = 3;
/** Nodes that get a verdict of their own. */
const MAX_NODE_VERDICTS = 20;

/** `297 of 300 nodes; a (Spread), b (Spread) and 1 more lack it`. */
function countText({ nodes, behind }: NodeTruth, nameOf: (node: NodeBehind) => string): string {
  const count = `${nodes - behind.length} of ${counted(nodes, 'node')}`;
  if (behind.length === 0) return count;
  return `${count}; ${someOf(behind.map(nameOf), NAMED)} ${behind.length === 1 ? 'lacks' : 'lack'} it`;
}

/** The verdicts on entries, with how many nodes use what is accepted. */
export function onNodes(verdicts: readonly EntryStatus[], truth: NodeTruth): readonly EntryStatus[] {
  const text = countText(truth, ({ node, reason }) => `${node} (${reason})`);
  return verdicts.map((verdict) =>
    verdict.verdict === 'Accepted' ? { ...verdict, message: `${verdict.message}; used on ${text}` } : verdict,
  );
}

/** One for each node that lacks it, and how many more there are. */
export function behindVerdicts({ behind }: NodeTruth): readonly EntryStatus[] {
  const more = behind.length - MAX_NODE_VERDICTS;
  return [
    ...behind.slice(0, MAX_NODE_VERDICTS).map(
      ({ node, reason, why }): EntryStatus => ({
        subject: nodeSubject(node),
        verdict: 'Pending',
        reason,
        message: why,
      }),
    ),
    ...(more > 0
      ? [
          {
            subject: `${more} more nodes`,
            verdict: 'Pending',
            reason: 'NodesBehind',
            message: 'lack it too',
          } as const,
        ]
      : []),
  ];
}

/** `NodesInSync`. */
export function inSyncCondition(truth: NodeTruth): ConditionInput {
  const behind = truth.behind.length > 0;
  return {
    type: 'NodesInSync',
    status: behind ? 'False' : 'True',
    reason: behind ? 'NodesBehind' : 'InSync',
    message: behind ? behindText(truth) : `used on ${countText(truth, () => '')}`,
  };
}

/** What is not on every node is not in use as it should be. */
export function nodesBehind(truth: NodeTruth): readonly ReconcileError[] {
  if (truth.behind.length === 0) return [];
  return [{ retryPolicy: 'waiting', code: 'NodesBehind', message: behindText(truth) }];
}

function behindText(truth: NodeTruth): string {
  return `used on ${countText(truth, ({ node, why }) => `${node} (${why})`)}`;
}
