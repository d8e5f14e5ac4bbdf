/** Checks of a whole cluster: pull secrets of its nodes, mirror sets, nodes, and objects that report conditions. */

import { textTable } from '../../cli/terminal.ts';
import { GLOBAL_PULL_SECRET } from '../../core/kubernetes/hypershift.ts';
import { describeObject, type KubeObject, kubectl, startsReporting } from '../../core/kubernetes/object.ts';
import { verdictsOf } from '../../core/kubernetes/pull-status.ts';
import { recordOf } from '../../core/record.ts';
import { counted } from '../../core/text.ts';
import type { ReportKey, ReportKeys, ReportMirrors } from '../model/cluster.ts';
import { DAEMON_SET, type ReportNodes, rolledOut } from '../model/nodes.ts';
import { conditionOf, readinessOf } from '../model/objects.ts';
import { type Finding, REPORT_SYSTEMS } from '../model/types.ts';
import type { Check, Told } from './findings.ts';

/** Facts about a cluster. */
export interface ClusterModel {
  readonly keys: ReportKeys;
  readonly mirrors: ReportMirrors;
  readonly nodes: ReportNodes;
  /** Objects that report conditions. */
  readonly rows: readonly StatusRow[];
}

const WARNING = { severity: 'warning' } as const;

/** Checks of a cluster, for its report. */
export const CLUSTER_CHECKS: readonly Check<ClusterModel>[] = [
  {
    id: 'pull-secret/unusable',
    run: ({ keys }) =>
      keys.faults.map(({ source, message }) => ({
        subject: source,
        message: `${source} ${message}`,
        advice: 'Correct the Secret; its last good entries stay in use until then',
      })),
  },
  { id: 'entry', run: ({ keys }) => keys.keys.flatMap(leftOut) },
  {
    id: 'credential',
    run: ({ keys }) =>
      keys.keys.flatMap((key) =>
        key.ends === undefined || key.state === 'shadowed' || key.state === 'rejected'
          ? []
          : endingTold(key, key.ends),
      ),
  },
  { id: 'mirrors/state', run: ({ mirrors }) => mirrorsTold(mirrors) },
  {
    id: 'node',
    // Nodes that report themselves out of sync.
    run: ({ nodes: { list } }) =>
      list
        .filter(({ state }) => state === 'out-of-sync')
        .map(({ name, why = '' }) => ({
          subject: `Node/${name}`,
          message: why,
          advice: `Check the agent on the node: ${kubectl(['-n', 'kube-system', 'get', 'pods', '--field-selector', `spec.nodeName=${name}`], [name]) ?? ''}`,
        })),
  },
  {
    id: 'status',
    // The `node` check already covers what nodes report.
    run: ({ rows }) =>
      rows
        .filter(
          (row) => row.severity === 'warning' && !row.subject.startsWith('PullStatus/kube-system/node-'),
        )
        .map(({ state: _state, reporter: _reporter, ...told }) => ({
          ...told,
          advice: lookAtIt(told.subject),
        })),
  },
];

function leftOut({ key, source, state, why = '', winner }: ReportKey): readonly Told[] {
  if (state === 'used') return [];
  const told = { ...WARNING, check: `entry/${state}`, subject: source, message: `"${key}" ${why}` };
  if (state !== 'shadowed')
    return [{ ...told, advice: `Correct the entry in ${source}; every other entry is in use` }];
  const other = winner === undefined ? 'change its key' : `name a path below "${winner.key}"`;
  return [{ ...told, advice: `Remove it from ${source}, or ${other}` }];
}

/** Finding for a credential that has expired or expires soon. */
export function endingTold(
  { key, source, expiresAt = '' }: Pick<ReportKey, 'key' | 'source'> & { readonly expiresAt?: string },
  ends: 'expired' | 'expiring',
): Told {
  const isOver = ends === 'expired';
  return {
    check: `credential/${ends}`,
    severity: isOver ? 'error' : 'warning',
    subject: source,
    message: `"${key}" ${isOver ? 'has expired' : 'expires'} at ${expiresAt}`,
    advice: renewing(source),
  };
}

/** Advice to renew an expired or rejected credential. */
export function renewing(source: string): string {
  return `Renew the credential in ${source}`;
}

/** Reports why the operator rejects mirror sets, and which parts have no effect. */
function mirrorsTold({ state, summary, refusals }: ReportMirrors): readonly Told[] {
  const said = refusals.map(
    ({ severity, code, object, message }): Told => ({
      check: `mirrors/${code}`,
      severity,
      subject: object,
      message,
      advice:
        severity === 'error'
          ? `Correct ${object}: until then no mirror set takes effect. "pullwright mirrors" shows the result before it is applied`
          : `Correct ${object}, or leave it if the rest is intended; "pullwright mirrors" shows the result`,
    }),
  );
  if (state === 'rendered' || said.some(({ severity }) => severity === 'error')) return said;
  return [
    ...said,
    {
      ...WARNING,
      subject: 'MachineConfig/99-worker-generated-registries',
      message: summary,
      advice:
        'Check why the operator does not continue: kubectl get machineconfigpools, kubectl get clusteroperator machine-config -o yaml',
    },
  ];
}

/** Advice to read the full status of an object such as `PullStatus/shop/pull-secret`. */
function lookAtIt(object: string): string {
  const [kind = '', ...names] = object.split('/');
  const [name = '', ...namespace] = names.toReversed();
  const words = ['get', kind.toLowerCase(), name, ...namespace.flatMap((one) => ['-n', one]), '-o', 'yaml'];
  return `See its status: ${kubectl(words, names) ?? 'kubectl get'}`;
}

// Rows of `pullwright status`: the state of every component in one cluster.

const STATES = { Attention: 'warning', Progressing: 'unknown', Unknown: 'unknown', Ready: 'ok' } as const;

/** A finding about an object that reports conditions; `check` is the reason of the condition. */
export interface StatusRow extends Finding {
  readonly state: keyof typeof STATES;
  /** Set if several clusters are shown. */
  readonly cluster?: string;
  /** The component that reports it. */
  readonly reporter: string;
}

function rowOf(
  reporter: string,
  object: Parameters<typeof describeObject>[0],
  state: StatusRow['state'],
  reason: string,
  message: string,
): StatusRow {
  const subject = describeObject(object);
  const system = REPORT_SYSTEMS.find((one) => reporter === one || reporter.startsWith(`${one}-`)) ?? 'pulls';
  return { subject, system, reporter, check: reason, severity: STATES[state], message, state };
}

const NOT_REPORTED = ['Unknown', 'NotReported', 'not reported yet'] as const;

/**
 * Summarizes an object by its `Ready` or `Validated` condition.
 *
 * @param system reporter of objects without `status.reporter`, which a PullStatus has
 */
export function conditionRow(system: string, object: KubeObject): StatusRow {
  const { reporter } = recordOf(object.status);
  const summary = conditionOf(object, 'Ready') ?? conditionOf(object, 'Validated');
  const by = typeof reporter === 'string' ? reporter : system;
  if (summary === undefined) return rowOf(by, object, ...NOT_REPORTED);
  const { status, reason, message } = summary;
  const counts = ['Accepted', 'Shadowed', 'Rejected'].flatMap((kind) => {
    const { length } = verdictsOf(object).filter(({ verdict }) => verdict === kind);
    return length === 0 ? [] : `${length} ${kind.toLowerCase()}`;
  });
  const text = counts.length === 0 ? message : `${message} (${counts.join(', ')})`;
  const waits = conditionOf(object, 'Reconciling')?.status === 'True' ? 'Progressing' : 'Attention';
  return rowOf(by, object, status === 'True' ? 'Ready' : waits, reason, text);
}

/**
 * Compares labelled nodes with what agents report. A ready agent pod had the file in place at its last check. Only `report`, the
 * PullStatus of the platform's pull secret, shows whether the file is current. Undefined without agents and labelled nodes.
 */
export function nodesRow(
  nodes: readonly KubeObject[],
  daemonSet: KubeObject | undefined,
  report?: KubeObject,
): StatusRow | undefined {
  const eligible = nodes.filter(
    (node) => node.metadata.labels?.[GLOBAL_PULL_SECRET.nodeLabel] === 'true',
  ).length;
  if (daemonSet !== undefined)
    return agentsRow(daemonSet, `${eligible} of ${counted(nodes.length, 'node')} eligible`, report);
  if (eligible === 0) return undefined;
  const missing = `${counted(eligible, 'node is', 'nodes are')} eligible, but no agent runs`;
  return rowOf('global-pull-secret', DAEMON_SET, 'Attention', 'DaemonSetMissing', missing);
}

/**
 * Summarizes the agents' DaemonSet. It is not Ready until its controller has counted at least one node. Where nodes report,
 * their report decides, not the readiness of pods.
 */
function agentsRow(agents: KubeObject, eligible: string, report: KubeObject | undefined): StatusRow {
  const by = 'global-pull-secret';
  // Rendered manifests have no status.
  if (agents.status === undefined) return rowOf(by, agents, ...NOT_REPORTED);
  const { ready, desired } = readinessOf(agents);
  const message = `${ready} of ${counted(desired, 'agent')} ready, ${eligible}`;
  const rollout = rolledOut(agents);
  const uncounted = `the DaemonSet controller has not observed the change yet; ${eligible}`;
  if (rollout === 'uncounted') return rowOf(by, agents, 'Progressing', 'NodesNotCounted', uncounted);
  if (rollout === 'none') return rowOf(by, agents, 'Attention', 'NoNodes', message);
  if (rollout === 'progressing') return rowOf(by, agents, 'Progressing', 'AgentsNotReady', message);
  const found = report && conditionOf(report, 'NodesInSync');
  if (found?.status === 'True') return rowOf(by, agents, 'Ready', 'NodesInSync', found.message);
  if (found !== undefined) return rowOf(by, agents, 'Progressing', 'NodesBehind', found.message);
  const silent = `${message}; nodes do not report their content (agent.report)`;
  if (!startsReporting(agents)) return rowOf(by, agents, 'Ready', 'AgentsReady', silent);
  const yet = `${message}; no pull secret exists yet to compare nodes with`;
  return rowOf(by, agents, 'Progressing', 'NodesNotCompared', yet);
}

/** Failed Jobs of the adapter need attention; running ones are in progress. */
export function jobRow(job: KubeObject): StatusRow {
  const { succeeded = 0 } = (job.status ?? {}) as { succeeded?: number };
  const failed = conditionOf(job, 'Failed');
  const by = 'pull-secret-adapter';
  if (failed?.status === 'True') return rowOf(by, job, 'Attention', failed.reason, failed.message);
  if (succeeded > 0) return rowOf(by, job, 'Ready', 'Complete', 'the pull secret is stored');
  return rowOf(by, job, 'Progressing', 'Running', 'the Job has not finished');
}

/** Replicas of a Pullwright Deployment: while none runs, all other rows may be stale. */
export function deploymentRow(deployment: KubeObject): StatusRow {
  const { metadata, status } = deployment;
  const { namespace = 'default' } = metadata;
  const { ready, desired } = readinessOf(deployment);
  const message = `${ready} of ${desired} replicas ready`;
  const by = 'pullwright';
  // Rendered manifests have no status.
  if (status === undefined) return rowOf(by, deployment, ...NOT_REPORTED);
  if (ready >= desired) return rowOf(by, deployment, 'Ready', 'Available', message);
  if (ready > 0) return rowOf(by, deployment, 'Progressing', 'ReplicasMissing', message);
  const look = kubectl(['describe', 'pods', '-n', namespace], [namespace]) ?? 'kubectl describe pods';
  const why = `${message}: this status may be out of date; ${look} shows why`;
  return rowOf(by, deployment, 'Attention', 'NotRunning', why);
}

const ORDER = Object.keys(STATES);

/** Sorts the most severe first, and otherwise keeps the order. */
export function byUrgency(rows: readonly StatusRow[]): readonly StatusRow[] {
  return rows.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
}

const IN_ORDER = ['InOrder', '--all lists them'] as const;

/** Folds more than `most` ready objects of one reporter and cluster into one row, so that they do not hide failing ones. */
export function foldReady(rows: readonly StatusRow[], most: number): readonly StatusRow[] {
  const ready = Map.groupBy(
    rows.filter(({ state }) => state === 'Ready'),
    ({ cluster = '', reporter }) => `${cluster} ${reporter}`,
  );
  const many = [...ready.values()].filter(({ length }) => length > most);
  const folded = new Set(many.flat());
  const [check, message] = IN_ORDER;
  return [
    ...rows.filter((row) => !folded.has(row)),
    ...many.map(([first, ...rest]) => ({
      ...(first as StatusRow),
      subject: `${rest.length + 1} objects`,
      check,
      message,
    })),
  ];
}

/**
 * Renders the rows as a text table, truncated to `columns`.
 *
 * @param columns width of the terminal; undefined: no truncation
 * @param namespace the only namespace shown, if set
 */
export function renderStatus(
  rows: readonly StatusRow[],
  columns: number | undefined,
  headers = true,
  namespace?: string,
): string {
  if (rows.length === 0)
    return namespace === undefined
      ? 'Nothing here is managed by Pullwright\n'
      : `No objects of Pullwright in namespace ${JSON.stringify(namespace)}\n`;
  const cells = rows.map(({ cluster = '', state, reporter, subject, check, message }) => {
    return [cluster, state, reporter, subject, check, message];
  });
  const table = [...(headers ? [HEADERS] : []), ...cells];
  const several = rows.some(({ cluster }) => cluster !== undefined);
  return textTable(several ? table : table.map((line) => line.slice(1)), columns);
}

const HEADERS = ['CLUSTER', 'STATE', 'SYSTEM', 'OBJECT', 'REASON', 'MESSAGE'];
