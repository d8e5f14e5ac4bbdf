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
import { readProbe } from '../../rules/rollout/image-probe.ts';
import { counted } from '../../rules/text/counted.ts';
import type { CanaryOptions } from './canary-options.ts';
import type { NodeTruth } from './node-truth.ts';
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
  /** After this a pool that waits is held; absent: none will be. */
  readonly lateInMs?: number;
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
    return {
      name,
      pool: (by === undefined ? undefined : object?.metadata.labels?.[by]) ?? '',
      up: object !== undefined && isReady(object),
      ...(behind.get(name) ?? proofOf(truth.facts(name), options.probe)),
    };
  });
  const { told, ...plan } = planCanary({
    of: digest,
    by,
    nodes,
    before: readCanary(plainText(inForce, NAMES.canaryKey)),
    released: released.some((value) => value.split(',').some((one) => one.trim() === hash)),
    probe: options.probe,
    now: world.now,
    withinMs: options.withinMs,
  });
  return { hash, text: writeCanary(told), ...plan };
}

/** A node that has it is done when registries give it the images that they are asked for. */
function proofOf(
  facts: Readonly<Record<string, unknown>>,
  images: readonly string[] = [],
): Pick<CanaryNode, 'content' | 'why'> {
  if (images.length === 0) return { content: 'in-place', why: '' };
  const probe = readProbe(facts, images);
  if (probe === undefined)
    return { content: 'under-way', why: 'it has it, and has not said yet what registries answer' };
  const content = { Passed: 'in-place', Failed: 'failed', Unanswered: 'under-way' } as const;
  return { content: content[probe.state], why: `it has it, and ${probe.says}` };
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
    verdict: one.held === undefined ? 'Pending' : 'Warning',
    reason: one.held === undefined ? 'CanaryFirst' : 'CanaryHeld',
    message: `wait for node ${one.node}: ${one.why}`,
  }));
}

/** What holds a change that the first node could not take; undefined where none did. */
export function canaryHeld(plan: CanaryPlan | undefined): ConditionText | undefined {
  const held = heldPools(plan);
  const [first] = held;
  if (plan === undefined || first === undefined) return undefined;
  const more = held.length > 1 ? `, and ${counted(held.length - 1, 'more pool')}` : '';
  return {
    reason: 'CanaryHeld',
    message: `the changed pull secret ${WHAT[first.held]} node ${first.node}, which gets it first (${first.why}); the other ${poolName(first)}${more} keep what they have. Fix the pull secret or the node, or let all of them have it with the annotation ${RELEASE_CANARY}: "${plan.hash}" on the HostedCluster, or on the platform's Secret`,
  };
}

const WHAT = { failed: 'failed on', late: 'has taken too long on' } as const;
const REASONS = { failed: 'FirstNodeFailed', late: 'FirstNodeLate' } as const;

type HeldPool = WaitingPool & { readonly held: 'failed' | 'late' };

function heldPools(plan: CanaryPlan | undefined): readonly HeldPool[] {
  return (plan?.waiting ?? []).filter((one): one is HeldPool => one.held !== undefined);
}

/** How many pools wait until somebody has looked. */
export function heldCount(plan: CanaryPlan | undefined): number {
  return heldPools(plan).length;
}

/** `CanaryHeld`, where it is so. */
export function canaryCondition(plan: CanaryPlan | undefined): readonly ConditionInput[] {
  const [first] = heldPools(plan);
  const said = canaryHeld(plan);
  return first === undefined || said === undefined
    ? []
    : [{ type: 'CanaryHeld', status: 'True', reason: REASONS[first.held], message: said.message }];
}

/** Said where a person can do something about it. */
export function canaryEvents(plan: CanaryPlan | undefined, regarding: Ref): readonly EventNote[] {
  const held = canaryHeld(plan);
  if (held === undefined) return [];
  const note = held.message.slice(0, 1024);
  return [{ regarding, type: 'Warning', reason: held.reason, action: 'Copy', note }];
}
