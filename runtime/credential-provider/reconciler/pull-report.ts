/** The PullStatus of `CRIOCredentialProviderConfig/cluster`: one verdict per entry, per pool and per NodePool. */
import { reportPullStatus } from '../../controller/pull-status.ts';
import type { MatchImageVerdict } from '../../rules/credential-provider/merge.ts';
import {
  type ConditionInput,
  type ConditionText,
  type SummaryRow,
  summarize,
} from '../../rules/kubernetes/conditions.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import type { Rollout } from '../pools.ts';
import { NO_POOL } from './conditions.ts';
import { contestedCondition } from './contested.ts';
import { sameFiles } from './managed.ts';
import { howToRefer, type NodePool } from './node-pools.ts';
import type { NodesReportInput, PoolState } from './report-input.ts';

/** The object to apply, its status, and what that is the status of. */
export function pullReport(
  { world, object, states, elsewhere, installer }: NodesReportInput,
  own: readonly ConditionInput[],
  entries: readonly MatchImageVerdict[],
): ReturnType<typeof reportPullStatus> {
  const namespace = world.scope.controlPlaneNamespace;
  const { apiVersion, kind, metadata } = object;
  return reportPullStatus(world, 'management', {
    reporter: 'credential-provider',
    about: { apiVersion, kind, namespace, name: metadata.name },
    conditions: [
      ...summarize(SUMMARY, { states, own, installer }),
      ...(elsewhere === undefined ? [] : [managedCondition(elsewhere, states)]),
      ...contestedConditions(object, states),
    ],
    verdicts: [
      ...entries.map(entryVerdict),
      ...states.map(poolVerdict),
      ...states.flatMap((state) => state.nodePools.map((pool) => nodePoolVerdict(pool, state))),
      ...states.flatMap(warningVerdict),
    ],
  });
}

/** Nothing is rendered, because the cluster has no nodes of the Machine Config Operator. */
export const BY_DAEMON_SET =
  'The cluster has no built-in MachineConfigPool, so nothing is rendered: DaemonSet/kube-system/credential-provider-installer brings the provider to the nodes, and its pods say for each whether it is there';

interface RolloutFacts {
  readonly states: readonly PoolState[];
  readonly own: readonly ConditionInput[];
  readonly installer: boolean;
}

const SUMMARY: readonly SummaryRow<RolloutFacts>[] = [
  ['stalled', failed],
  ['stalled', unreferred],
  ['progressing', rollingOut],
  [
    'ready',
    (facts) =>
      isInstalled(facts)
        ? { reason: 'InstalledByDaemonSet', message: BY_DAEMON_SET }
        : { reason: 'RolledOut', message: 'every pool has the configuration' },
  ],
];

/** No pool is no failure where a DaemonSet brings the provider. */
function failed({ own, ...facts }: RolloutFacts): ConditionText | undefined {
  const passes = isInstalled({ own, ...facts });
  return own.find(({ status, reason }) => status === 'False' && !(passes && reason === NO_POOL));
}

function isInstalled({ own, installer }: RolloutFacts): boolean {
  return installer && own.some(({ reason }) => reason === NO_POOL);
}

function needed({ states }: RolloutFacts): readonly PoolState[] {
  return states.filter(({ files }) => files.length > 0);
}

function unreferred(facts: RolloutFacts): ConditionText | undefined {
  const pools = needed(facts).flatMap(({ nodePools }) => nodePools.filter(({ refers }) => !refers));
  if (pools.length === 0) return undefined;
  return {
    reason: 'NodePoolsNotConfigured',
    message: `not in spec.config of NodePool ${listed(pools.map(({ name }) => name))}: the verdicts say what to set`,
  };
}

function rollingOut(facts: RolloutFacts): ConditionText | undefined {
  const waiting = needed(facts).filter(({ pool }) => pool.rollout !== 'Done');
  if (waiting.length === 0) return undefined;
  return { reason: 'RollingOut', message: `not on every node yet: pool ${named(waiting)}` };
}

function managedCondition(elsewhere: string, states: readonly PoolState[]): ConditionInput {
  const drifted = states.filter(
    ({ present, wanted }) => present?.kind === 'MachineConfig' && !sameFiles(present, wanted),
  );
  return {
    type: 'ManagedElsewhere',
    status: 'True',
    reason: drifted.length === 0 ? 'Observing' : 'Drifted',
    message: `${elsewhere} manages the object, so nothing is written${drifted.length === 0 ? '' : `; pool ${named(drifted)} has other files than we would render`}`,
  };
}

function contestedConditions(object: KubeObject, states: readonly PoolState[]): readonly ConditionInput[] {
  const [first] = states.flatMap(({ pool, hold }) =>
    hold?.reason === 'Contested' ? [`pool ${pool.name}: ${hold.message}`] : [],
  );
  return first === undefined ? [] : [contestedCondition(object, first)];
}

/** Names of pools. */
export function named(states: readonly PoolState[]): string {
  return states.map(({ pool }) => pool.name).join(', ');
}

/** The first five, and how many more. */
export function listed(items: readonly string[]): string {
  return items.length <= 5
    ? items.join(', ')
    : `${items.slice(0, 5).join(', ')} and ${items.length - 5} more`;
}

function entryVerdict({ pattern, verdict, message }: MatchImageVerdict): Verdict {
  return {
    subject: pattern,
    verdict: verdict === 'Rendered' ? 'Accepted' : 'Rejected',
    reason: verdict,
    message: verdict === 'Rendered' ? 'the kubelet asks the provider for images that match it' : message,
  };
}

const ROLLOUT: Readonly<Record<Rollout, string>> = {
  Done: 'every node has it',
  Progressing: 'see the MachineConfigPool',
  Degraded: 'see the conditions of the MachineConfigPool',
  Paused: 'the MachineConfigPool is paused (spec.paused), so its nodes stay as they are',
};

function poolVerdict({ pool, nodePools, files, hold, noPlace }: PoolState): Verdict {
  const subject = `pool ${pool.name}`;
  if (hold?.reason === 'UnsupportedVersion')
    return { subject, verdict: 'Pending', reason: hold.reason, message: `too old: ${listed(pool.tooOld)}` };
  if (hold !== undefined) return { subject, verdict: 'Rejected', reason: hold.reason, message: hold.message };
  if (noPlace !== undefined)
    return { subject, verdict: 'Rejected', reason: 'NoPlaceForFlags', message: noPlace };
  if (files.length === 0)
    return {
      subject,
      verdict: 'Accepted',
      reason: 'NothingToRender',
      message: "the platform's own file stays",
    };
  const isDone = pool.rollout === 'Done';
  return {
    subject,
    verdict: isDone ? 'Accepted' : 'Pending',
    reason: isDone ? 'RolledOut' : pool.rollout,
    message: nodePools.length === 0 || isDone ? ROLLOUT[pool.rollout] : 'see the verdicts of the NodePools',
  };
}

function nodePoolVerdict(pool: NodePool, { configName, files }: PoolState): Verdict {
  const subject = `NodePool ${pool.namespace}/${pool.name}`;
  if (files.length === 0)
    return { subject, verdict: 'Accepted', reason: 'NothingToRender', message: 'no entry is left to bring' };
  if (!pool.refers) return { subject, verdict: 'Pending', ...howToRefer(pool, configName) };
  if (pool.tooOld.length > 0)
    return {
      subject,
      verdict: 'Pending',
      reason: 'UnsupportedVersion',
      message: `it refers to ConfigMap ${configName}, and its nodes are too old: ${listed(pool.tooOld)}`,
    };
  const isDone = pool.rollout === 'Done';
  return {
    subject,
    verdict: isDone ? 'Accepted' : 'Pending',
    reason: isDone ? 'RolledOut' : pool.rollout,
    message: isDone
      ? 'every node has it'
      : 'see the conditions UpdatingConfig and ValidMachineConfig of the NodePool',
  };
}

function warningVerdict({ pool, warning }: PoolState): readonly Verdict[] {
  return warning === undefined
    ? []
    : [{ subject: `pool ${pool.name}`, verdict: 'Warning', reason: 'FlagsMayNotReach', message: warning }];
}
