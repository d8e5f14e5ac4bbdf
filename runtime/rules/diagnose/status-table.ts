/** The state of every part of the product in one cluster, as rows: what `status` prints. */
import type { Condition } from '../kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET } from '../kubernetes/global-pull-secret.ts';
import { describeObject, type KubeObject } from '../kubernetes/object.ts';
import { startsReporting } from '../kubernetes/pod-template.ts';
import type { Verdict } from '../kubernetes/pull-status.ts';
import { counted } from '../text/counted.ts';
import { textTable } from '../text/table.ts';

/** One line of the table. */
export interface StatusRow {
  readonly system: string;
  readonly object: string;
  readonly state: 'Ready' | 'Attention' | 'Progressing' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** Conditions that sum an object up, the first one that is there. */
const SUMMARIES: readonly string[] = ['Ready', 'Validated'];

/**
 * Judges an object that reports by conditions.
 *
 * @param system name of the system, for objects that do not say it themselves (a PullStatus does, as `reporter`)
 *
 * @example
 * ```ts
 * import { conditionRow } from './status-table.ts';
 * import assert from 'node:assert/strict';
 *
 * const status = { conditions: [{ type: 'Ready', status: 'False', reason: 'EntriesRejected', message: 'fix it' }, { type: 'Stalled', status: 'True' }] };
 * const row = conditionRow('demo', { apiVersion: 'x/v1', kind: 'X', metadata: { name: 'a' }, status });
 * assert.deepEqual([row.state, row.reason], ['Attention', 'EntriesRejected']);
 * ```
 */
export function conditionRow(system: string, object: KubeObject): StatusRow {
  const status = (object.status ?? {}) as {
    conditions?: readonly Condition[];
    reporter?: unknown;
    verdicts?: readonly Verdict[];
  };
  const conditions = status.conditions ?? [];
  const summary = SUMMARIES.map((type) => conditions.find((condition) => condition.type === type)).find(
    (found) => found !== undefined,
  );
  const base = {
    system: typeof status.reporter === 'string' ? status.reporter : system,
    object: describeObject({ kind: object.kind, ...object.metadata }),
  };
  if (summary === undefined)
    return { ...base, state: 'Unknown', reason: 'NotReported', message: 'nothing has reported on it yet' };
  const { reason, message } = texts(summary);
  if (summary.status === 'True')
    return { ...base, state: 'Ready', reason, message: withCounts(message, status.verdicts ?? []) };
  const progressing = conditions.some(
    (condition) => condition.type === 'Reconciling' && condition.status === 'True',
  );
  return {
    ...base,
    state: progressing ? 'Progressing' : 'Attention',
    reason,
    message: withCounts(message, status.verdicts ?? []),
  };
}

/** In a folder anything can stand here. */
function texts({ reason, message }: Condition): Pick<StatusRow, 'reason' | 'message'> {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return { reason: text(reason), message: text(message) };
}

function withCounts(message: string, verdicts: readonly Verdict[]): string {
  const count = (kind: Verdict['verdict']): number =>
    verdicts.filter((verdict) => verdict.verdict === kind).length;
  const parts = (['Accepted', 'Shadowed', 'Rejected'] as const).flatMap((kind) =>
    count(kind) === 0 ? [] : [`${count(kind)} ${kind.toLowerCase()}`],
  );
  return parts.length === 0 ? message : `${message} (${parts.join(', ')})`;
}

/**
 * Nodes that carry the label, against what agents report of them. A pod of the agent that is ready had the file in place when it
 * looked last: that it has the newest is said by `report`, the PullStatus of the platform's pull secret, alone.
 */
export function nodesRow(
  nodes: readonly KubeObject[],
  daemonSet: KubeObject | undefined,
  report?: KubeObject,
): StatusRow | undefined {
  const eligible = nodes.filter(
    (node) => node.metadata.labels?.[GLOBAL_PULL_SECRET.nodeLabel] === 'true',
  ).length;
  if (daemonSet === undefined && eligible === 0) return undefined;
  const base = {
    system: 'global-pull-secret',
    object: `DaemonSet/${GLOBAL_PULL_SECRET.namespace}/${GLOBAL_PULL_SECRET.syncer}`,
  };
  if (daemonSet === undefined)
    return {
      ...base,
      state: 'Attention',
      reason: 'DaemonSetMissing',
      message: `${counted(eligible, 'node is', 'nodes are')} eligible, and no agent runs`,
    };
  const message = `${eligible} of ${counted(nodes.length, 'node')} eligible`;
  return { ...base, ...checked(agentState(daemonSet, message), report, startsReporting(daemonSet)) };
}

type AgentState = Pick<StatusRow, 'state' | 'reason' | 'message'>;

/** Pods that are ready prove nothing where nodes report, and little where they do not. */
function checked(pods: AgentState, report: KubeObject | undefined, reporting: boolean): AgentState {
  if (pods.state !== 'Ready') return pods;
  const { conditions = [] } = (report?.status ?? {}) as { conditions?: readonly Condition[] };
  const found = conditions.find(({ type }) => type === 'NodesInSync');
  if (found === undefined && reporting)
    return {
      state: 'Progressing',
      reason: 'NodesNotCompared',
      message: `${pods.message}; there is no pull secret yet that nodes are compared with`,
    };
  if (found === undefined)
    return { ...pods, message: `${pods.message}; nodes do not report what they have (agent.report)` };
  const { message } = texts(found);
  return found.status === 'True'
    ? { ...pods, reason: 'NodesInSync', message }
    : { state: 'Progressing', reason: 'NodesBehind', message };
}

/**
 * What the DaemonSet's controller has counted. Before it has, and where it counts no node at all, nothing has been shown to be
 * in sync.
 */
function agentState({ status, metadata }: KubeObject, eligible: string): AgentState {
  // In a folder of rendered manifests.
  if (status === undefined)
    return { state: 'Unknown', reason: 'NotReported', message: 'nothing has reported on it yet' };
  const {
    numberReady = 0,
    desiredNumberScheduled = 0,
    observedGeneration = 0,
  } = status as Partial<Record<'numberReady' | 'desiredNumberScheduled' | 'observedGeneration', number>>;
  const message = `${numberReady} of ${counted(desiredNumberScheduled, 'agent')} ready, ${eligible}`;
  if (observedGeneration < (metadata.generation ?? 0))
    return {
      state: 'Progressing',
      reason: 'NodesNotCounted',
      message: `the change of the DaemonSet is not counted yet; ${eligible}`,
    };
  if (desiredNumberScheduled === 0) return { state: 'Attention', reason: 'NoNodes', message };
  return numberReady >= desiredNumberScheduled
    ? { state: 'Ready', reason: 'AgentsReady', message }
    : { state: 'Progressing', reason: 'AgentsNotReady', message };
}

/** Failed Jobs of the adapter want attention; running ones are under way. */
export function jobRow(job: KubeObject): StatusRow {
  const status = (job.status ?? {}) as { succeeded?: number; conditions?: readonly Condition[] };
  const failed = status.conditions?.find(
    (condition) => condition.type === 'Failed' && condition.status === 'True',
  );
  const base = { system: 'pull-secret-adapter', object: describeObject({ kind: 'Job', ...job.metadata }) };
  if (failed !== undefined) return { ...base, state: 'Attention', ...texts(failed) };
  if ((status.succeeded ?? 0) > 0)
    return { ...base, state: 'Ready', reason: 'Complete', message: 'the pull secret is stored' };
  return { ...base, state: 'Progressing', reason: 'Running', message: 'the Job has not ended' };
}

/** Replicas of a Deployment of ours: while none runs, every other row is as old as the last one that ran. */
export function deploymentRow(deployment: KubeObject): StatusRow {
  const base = {
    system: 'pullwright',
    object: describeObject({ kind: 'Deployment', ...deployment.metadata }),
  };
  const { replicas: wanted = 1 } = (deployment.spec ?? {}) as { replicas?: number };
  const status = deployment.status as { readyReplicas?: number } | undefined;
  // In a folder of rendered manifests.
  if (status === undefined)
    return { ...base, state: 'Unknown', reason: 'NotReported', message: 'nothing has reported on it yet' };
  const ready = status.readyReplicas ?? 0;
  const message = `${ready} of ${wanted} replicas ready`;
  if (ready >= wanted) return { ...base, state: 'Ready', reason: 'Available', message };
  if (ready > 0) return { ...base, state: 'Progressing', reason: 'ReplicasMissing', message };
  return {
    ...base,
    state: 'Attention',
    reason: 'NotRunning',
    message: `${message}: what is reported here may be out of date; kubectl describe pods -n ${deployment.metadata.namespace ?? 'default'} says why`,
  };
}

const ORDER: readonly StatusRow['state'][] = ['Attention', 'Progressing', 'Unknown', 'Ready'];

/** What wants attention first; else in the order in which it came. */
export function byUrgency(rows: readonly StatusRow[]): readonly StatusRow[] {
  return rows.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
}

/**
 * One row for the ready objects of each system that has more than `most` of them: a thousand good rows hide a bad one.
 *
 * @example
 * ```ts
 * import { foldReady, type StatusRow } from './status-table.ts';
 * import assert from 'node:assert/strict';
 *
 * const ready = (name: string): StatusRow => ({ system: 'demo', object: `X/${name}`, state: 'Ready', reason: 'Merged', message: '' });
 * assert.deepEqual(foldReady([ready('a'), ready('b'), ready('c')], 2).map(({ object }) => object), ['3 objects']);
 * assert.equal(foldReady([ready('a'), ready('b')], 2).length, 2);
 * ```
 */
export function foldReady(rows: readonly StatusRow[], most: number): readonly StatusRow[] {
  const counts = new Map<string, number>();
  for (const { state, system } of rows)
    if (state === 'Ready') counts.set(system, (counts.get(system) ?? 0) + 1);
  const many = [...counts].filter(([, count]) => count > most);
  const folded = new Set(many.map(([system]) => system));
  return [
    ...rows.filter(({ state, system }) => state !== 'Ready' || !folded.has(system)),
    ...many.map(
      ([system, count]): StatusRow => ({
        system,
        object: `${count} objects`,
        state: 'Ready',
        reason: 'InOrder',
        message: '--all lists them',
      }),
    ),
  ];
}

/**
 * The table as text, cut to `columns`.
 *
 * @param columns width of the terminal; undefined: nothing is cut
 */
export function renderStatus(rows: readonly StatusRow[], columns: number | undefined): string {
  if (rows.length === 0) return 'Nothing here is managed by Pullwright\n';
  const head = ['STATE', 'SYSTEM', 'OBJECT', 'REASON', 'MESSAGE'];
  const cells = [head, ...rows.map((row) => [row.state, row.system, row.object, row.reason, row.message])];
  return textTable(cells, columns);
}
