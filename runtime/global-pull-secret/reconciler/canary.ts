/**
 * With `canary` in the fleet, one node of each pool gets a changed pull secret first: who that is, and which pools may follow, stands
 * beside the pull secret. What became of it there is what agents report. Pure.
 */
import type { EventNote, Ref, World } from '../../controller/contract.ts';
import type { Condition, ConditionInput, ConditionText } from '../../rules/kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import type { Verdict } from '../../rules/kubernetes/pull-status.ts';
import {
  type CanaryNode,
  planCanary,
  readCanary,
  type WaitingPool,
  writeCanary,
} from '../../rules/rollout/canary.ts';
import type { NodeTruth } from './node-truth.ts';
import type { CanaryOptions } from './options.ts';
import { plainText } from './platform.ts';

/** On the HostedCluster, or on the platform's Secret: the content that all nodes get whatever became of the first ones. */
export const RELEASE_CANARY = 'pullwright.dev/release-canary';

/** What nodes are told, and who waits. */
export interface CanaryPlan {
  /** Names the content in {@link RELEASE_CANARY}. */
  readonly hash: string;
  /** The document beside the pull secret. */
  readonly text: string;
  readonly waiting: readonly WaitingPool[];
}

export interface CanaryContext {
  readonly options: CanaryOptions | undefined;
  /** Undefined where agents do not report: then nobody can be first. */
  readonly truth: NodeTruth | undefined;
  /** The Secret that nodes have now. */
  readonly inForce: KubeObject | undefined;
  /** Values of {@link RELEASE_CANARY}. */
  readonly released: readonly string[];
}

/** Decides; undefined where no node waits for another. */
export function canaryOf(world: World, context: CanaryContext): CanaryPlan | undefined {
  const { options, truth, inForce, released } = context;
  if (options === undefined || truth?.digest === undefined) return undefined;
  const { digest } = truth;
  const hash = digest.slice(0, 12);
  const by = options.poolLabel;
  const objects = new Map(
    world.list({ role: 'hosted', apiVersion: 'v1', kind: 'Node' }).map((node) => [node.metadata.name, node]),
  );
  const behind = new Map(truth.behind.map((one) => [one.node, one]));
  const nodes = truth.names.map((name): CanaryNode => {
    const object = objects.get(name);
    const lack = behind.get(name);
    return {
      name,
      pool: (by === undefined ? undefined : object?.metadata.labels?.[by]) ?? '',
      up: object !== undefined && isReady(object),
      content: lack?.content ?? 'in-place',
      why: lack?.why ?? '',
    };
  });
  const { told, waiting } = planCanary({
    of: digest,
    by,
    nodes,
    before: readCanary(plainText(inForce, NAMES.canaryKey)),
    released: released.some((value) => value.split(',').some((one) => one.trim() === hash)),
  });
  return { hash, text: writeCanary(told), waiting };
}

function isReady({ status }: KubeObject): boolean {
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly Condition[] };
  return conditions.some((one) => one.type === 'Ready' && one.status === 'True');
}

function poolName({ pool }: WaitingPool): string {
  return pool === '' ? 'nodes' : `pool ${pool}`;
}

/** One for each pool that waits. */
export function canaryVerdicts({ waiting }: CanaryPlan): readonly Verdict[] {
  return waiting.map((one) => ({
    subject: poolName(one),
    verdict: one.held ? 'Warning' : 'Pending',
    reason: one.held ? 'CanaryHeld' : 'CanaryFirst',
    message: `wait for node ${one.node}: ${one.why}`,
  }));
}

/** What holds a change that the first node could not take; undefined where none did. */
export function canaryHeld(plan: CanaryPlan | undefined): ConditionText | undefined {
  const held = (plan?.waiting ?? []).filter((one) => one.held);
  const [first] = held;
  if (plan === undefined || first === undefined) return undefined;
  const more = held.length > 1 ? `, and ${held.length - 1} more pools` : '';
  return {
    reason: 'CanaryHeld',
    message: `the changed pull secret failed on node ${first.node}, which gets it first (${first.why}); the other ${poolName(first)}${more} keep what they have. Fix the pull secret or the node, or let all of them have it with the annotation ${RELEASE_CANARY}: "${plan.hash}" on the HostedCluster, or on the platform's Secret`,
  };
}

/** `CanaryHeld`, where it is so. */
export function canaryCondition(plan: CanaryPlan | undefined): readonly ConditionInput[] {
  const held = canaryHeld(plan);
  return held === undefined
    ? []
    : [{ type: 'CanaryHeld', status: 'True', reason: 'FirstNodeFailed', message: held.message }];
}

/** Said where a person can do something about it. */
export function canaryEvents(plan: CanaryPlan | undefined, regarding: Ref): readonly EventNote[] {
  const held = canaryHeld(plan);
  if (held === undefined) return [];
  const note = held.message.slice(0, 1024);
  return [{ regarding, type: 'Warning', reason: held.reason, action: 'Copy', note }];
}
