/**
 * What the platform's owner sees: a PullStatus about the copy of the platform's pull secret, and events where it can be fixed.
 * It is there whether or not a tenant added anything.
 */
import type { EventNote, Problem, Ref, World } from '../../controller/contract.ts';
import {
  CONFIRM_REMOVAL,
  type HeldEntryRemoval,
  removalText,
} from '../../rules/docker-config/removal-guard.ts';
import {
  type ConditionInput,
  type ConditionText,
  type SummaryRow,
  summarize,
} from '../../rules/kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatus,
  pullStatusName,
  type Verdict,
} from '../../rules/kubernetes/pull-status.ts';
import { counted } from '../../rules/text/counted.ts';
import { behindVerdicts } from './node-truth.ts';
import { MACHINE_CONFIG_WAY, type NodesPlan } from './nodes.ts';
import type { PullSecretPlan } from './plan.ts';

/** About `original-pull-secret`. */
export const PLATFORM_STATUS: Ref = {
  role: 'hosted',
  apiVersion: PULL_STATUS_API_VERSION,
  kind: PULL_STATUS_KIND,
  namespace: NAMES.namespace,
  name: pullStatusName('Secret', NAMES.original),
};

export interface PlatformReportInput {
  readonly plan: PullSecretPlan;
  readonly nodes: NodesPlan;
  /** All that keeps the platform's pull secret from nodes. */
  readonly problems: readonly Problem[];
  /** Conditions that say who manages the objects. */
  readonly managed: readonly ConditionInput[];
  readonly present: KubeObject | undefined;
  readonly now: Date;
}

/** The PullStatus and its status. */
export function platformStatus(input: PlatformReportInput): ReturnType<typeof pullStatus> {
  const { plan, nodes, present, now } = input;
  return pullStatus({
    reporter: 'global-pull-secret',
    about: { apiVersion: 'v1', kind: 'Secret', namespace: NAMES.namespace, name: NAMES.original },
    conditions: conditionsOf(input),
    verdicts: [
      ...plan.platformVerdicts,
      ...nodes.verdicts,
      ...(nodes.truth === undefined ? [] : behindVerdicts(nodes.truth)),
    ],
    summary: {
      rejected: rejectedOf(plan.platformVerdicts).length,
      ...(plan.held === undefined ? {} : { heldRemoval: plan.held.hash, heldSince: plan.held.since }),
    },
    present,
    now,
  });
}

/** Entries that cannot be used. */
export function rejectedOf(verdicts: readonly Verdict[]): readonly Verdict[] {
  return verdicts.filter(({ verdict }) => verdict === 'Rejected');
}

const SUMMARY: readonly SummaryRow<PlatformReportInput>[] = [
  [
    'stalled',
    ({ problems: [problem] }) => (problem?.disposition === 'terminal' ? problemSaid(problem) : undefined),
  ],
  ['stalled', ({ plan: { held } }) => heldSaid(held)],
  ['stalled', ({ plan }) => rejectedText(rejectedOf(plan.platformVerdicts))],
  ['progressing', ({ problems: [problem] }) => (problem === undefined ? undefined : problemSaid(problem))],
  [
    'ready',
    ({ plan: { alone, global } }) => (alone !== true ? COPIED : global.act === 'remove' ? NONE : ALONE),
  ],
];

const NONE = {
  reason: 'NoPullSecret',
  message: `the cluster has no pull secret, so nothing is brought to nodes; to bring one, create Secret ${NAMES.configNamespace}/${NAMES.platform} or ${NAMES.namespace}/${NAMES.additional}`,
};
const ALONE = {
  reason: 'NoPlatformSecret',
  message: 'the cluster has no pull secret of its own; nodes get the additional one alone',
};
const COPIED = { reason: 'Copied', message: 'nodes get the platform pull secret' };

function heldSaid(held: HeldEntryRemoval | undefined): ConditionText | undefined {
  return held === undefined ? undefined : { reason: 'RemovalHeld', message: heldText(held) };
}

function conditionsOf(input: PlatformReportInput): readonly ConditionInput[] {
  const { held } = input.plan;
  return [
    ...summarize(SUMMARY, input),
    ...(held === undefined
      ? []
      : [{ type: 'RemovalHeld', status: 'True', reason: held.reason, message: heldText(held) } as const]),
    ...input.managed,
  ];
}

/** A problem as a condition says it. */
export function problemSaid(problem: Problem): ConditionText {
  return { reason: problem.code, message: problemText(problem) };
}

/** Who looks at a condition has no log at hand: it must say what to do. */
export function problemText({ message, hint }: Problem): string {
  return hint === undefined ? message : `${message}. ${hint}`;
}

function heldText(held: HeldEntryRemoval): string {
  const byItself = held.until === undefined ? '' : `, or until ${held.until}`;
  return `the platform's pull secret ${removalText(held)} on nodes until the annotation ${CONFIRM_REMOVAL}: "${held.hash}" on the HostedCluster, or on the Secret itself, confirms it${byItself}`;
}

/** Reasons that a condition names; the verdicts have all. */
const MAX_REASONS = 3;

function rejectedText(rejected: readonly Verdict[]): { reason: string; message: string } | undefined {
  if (rejected.length === 0) return undefined;
  return {
    reason: 'PlatformEntriesRejected',
    message: `cannot use ${rejected.length} of the platform's entries: ${reasonsOf(rejected)}; fix spec.pullSecret of the HostedCluster, or the Secret it names`,
  };
}

/** The first reasons, and how many more there are. */
export function reasonsOf(rejected: readonly Verdict[]): string {
  const reasons = rejected
    .slice(0, MAX_REASONS)
    .map(({ subject, message }) => `"${subject}" ${message}`)
    .join('; ');
  const more = rejected.length - MAX_REASONS;
  return more > 0 ? `${reasons}; and ${more} more, see the verdicts` : reasons;
}

/** At most this many events tell of single entries; the PullStatus has all of them. */
const MAX_EVENTS = 20;

/** Events on `regarding`, which is where a person can fix it. */
export function entryEvents(verdicts: readonly Verdict[], regarding: Ref): readonly EventNote[] {
  return verdicts
    .filter(({ verdict }) => verdict !== 'Accepted')
    .slice(0, MAX_EVENTS)
    .map(({ subject, message, reason }) => ({
      regarding,
      type: 'Warning' as const,
      reason,
      action: 'Merge',
      note: `${subject}: ${message}`.slice(0, 1024),
    }));
}

/** Events about the platform's pull secret. */
export function platformEvents(plan: PullSecretPlan, regarding: Ref): readonly EventNote[] {
  const held: readonly EventNote[] =
    plan.held === undefined
      ? []
      : [
          {
            regarding,
            type: 'Warning',
            reason: 'RemovalHeld',
            action: 'Copy',
            note: heldText(plan.held).slice(0, 1024),
          },
        ];
  const whole = plan.problems.map((problem) => ({
    regarding,
    type: 'Warning' as const,
    reason: problem.code,
    action: 'Copy',
    note: problemText(problem).slice(0, 1024),
  }));
  return [...whole, ...held, ...entryEvents(plan.platformVerdicts, regarding)];
}

/** Credentials that reach no node are not in use, however well they merge. */
export function noEligibleNodes({ scope }: World, { decisions }: NodesPlan): readonly Problem[] {
  if (decisions.some(({ eligible }) => eligible)) return [];
  const ofOperator = decisions.some(({ reason }) => reason === 'MachineConfigOperator');
  const all =
    decisions.length === 0 ? 'there is no node' : `none of ${counted(decisions.length, 'node')} takes part`;
  const pools = 'set platforms or nodes in the fleet, or make NodePools of upgradeType Replace';
  const way =
    scope.hostedCluster === undefined ? 'set nodes in the fleet to a selector of those that should' : pools;
  return [
    {
      disposition: 'waiting',
      code: 'NoEligibleNodes',
      message: `No node gets the pull secret: ${all}`,
      hint: ofOperator ? MACHINE_CONFIG_WAY : way,
    },
  ];
}
