/** Reports to the platform's owner and to the tenant, in a PullStatus beside each Secret, and as metrics. */
import { withHint } from '../../core/errors.ts';
import { type ConditionInput, type ConditionText, readinessOf } from '../../core/kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { type EntryStatus, type PullStatusInput, subjectsOf } from '../../core/kubernetes/pull-status.ts';
import { valueAt } from '../../core/record.ts';
import { counted } from '../../core/text.ts';
import { seenRef } from '../../engine/changes.ts';
import type { EventNote, Reader, ReconcileError, Ref, Result, Sample, Watch } from '../../engine/contract.ts';
import { reportPullStatus } from '../../engine/pull-status.ts';
import { CONFIRM_REMOVAL, type PendingRemoval, removalText } from '../removal-guard.ts';
import {
  behindVerdicts,
  inSyncCondition,
  MACHINE_CONFIG_WAY,
  type NodesPlan,
  nodesBehind,
  onNodes,
} from './nodes.ts';
import { type ManagedExternally, platformOwner, secretReport } from './ownership.ts';
import type { PullSecretPlan, SystemSecrets } from './plan.ts';

// For the platform's owner: a PullStatus about the copy of the platform's pull secret, with or without a tenant's secret, and
// events on the object to fix.

function platformStatus(input: PullSecretReport): StatusParts {
  const { plan, nodes } = input;
  return {
    conditions: platformConditions(input),
    verdicts: [
      ...plan.platformVerdicts,
      ...nodes.verdicts,
      ...(nodes.truth === undefined ? [] : behindVerdicts(nodes.truth)),
    ],
    summary: {
      rejected: rejectedOf(plan.platformVerdicts).length,
      ...(plan.held === undefined ? {} : { heldRemoval: plan.held.hash, heldSince: plan.held.since }),
    },
  };
}

type StatusParts = Pick<PullStatusInput, 'conditions' | 'verdicts' | 'summary'>;

/** Entries that are unusable. */
function rejectedOf(verdicts: readonly EntryStatus[]): readonly EntryStatus[] {
  return verdicts.filter(({ verdict }) => verdict === 'Rejected');
}

const NONE = {
  reason: 'NoPullSecret',
  message: `no pull secret found, so nothing is synced to nodes; to add one, create Secret ${NAMES.configNamespace}/${NAMES.platform} or ${NAMES.namespace}/${NAMES.additional}`,
};
const ALONE = {
  reason: 'NoPlatformSecret',
  message: 'no platform pull secret found; nodes get only the additional one',
};
const COPIED = { reason: 'Copied', message: 'nodes get the platform pull secret' };

function platformConditions(input: PullSecretReport): readonly ConditionInput[] {
  const { alone, global, held, platformVerdicts } = input.plan;
  const [problem] = input.problems;
  const base = readinessOf([
    ['stalled', problem?.retryPolicy === 'terminal' ? problemSaid(problem) : undefined],
    ['stalled', held && { reason: 'RemovalHeld', message: heldText(held) }],
    ['stalled', rejectedText(rejectedOf(platformVerdicts))],
    ['progressing', problem && problemSaid(problem)],
    ['ready', alone !== true ? COPIED : global.act === 'remove' ? NONE : ALONE],
  ]);
  if (held === undefined) return base;
  return [...base, { type: 'RemovalHeld', status: 'True', reason: held.reason, message: heldText(held) }];
}

/** Converts a problem to condition text. */
function problemSaid(problem: ReconcileError): ConditionText {
  return { reason: problem.code, message: withHint(problem) };
}

function heldText(held: PendingRemoval): string {
  const byItself = held.until === undefined ? '' : `, or until ${held.until}`;
  return `the platform's pull secret ${removalText(held)} on nodes until the annotation ${CONFIRM_REMOVAL}: "${held.hash}" on the HostedCluster, or on the Secret itself, confirms it${byItself}`;
}

/** Maximum number of reasons in a condition; the verdicts list all. */
const MAX_REASONS = 3;

function rejectedText(rejected: readonly EntryStatus[]): { reason: string; message: string } | undefined {
  if (rejected.length === 0) return undefined;
  return {
    reason: 'PlatformEntriesRejected',
    message: `cannot use ${rejected.length} of the platform's entries: ${reasonsOf(rejected)}; fix the Secret that spec.pullSecret of the HostedCluster names, or ${NAMES.configNamespace}/${NAMES.platform} of a stand-alone cluster`,
  };
}

/** The first reasons, and the count of the rest. */
function reasonsOf(rejected: readonly EntryStatus[]): string {
  const reasons = rejected
    .slice(0, MAX_REASONS)
    .map(({ subject, message }) => `"${subject}" ${message}`)
    .join('; ');
  const more = rejected.length - MAX_REASONS;
  return more > 0 ? `${reasons}; and ${more} more, see the verdicts` : reasons;
}

/** Maximum number of events about single entries; the PullStatus lists all. */
const MAX_EVENTS = 20;

function pullSecretEvent(regarding: Ref, action: 'Copy' | 'Merge', reason: string, note: string): EventNote {
  return { regarding, type: 'Warning', reason, action, note };
}

/** Events on `regarding`, the object to fix. */
function entryEvents(verdicts: readonly EntryStatus[], regarding: Ref): readonly EventNote[] {
  return verdicts
    .filter(({ verdict }) => verdict !== 'Accepted')
    .slice(0, MAX_EVENTS)
    .map(({ subject, message, reason }) =>
      pullSecretEvent(regarding, 'Merge', reason, `${subject}: ${message}`),
    );
}

/** Events about the platform's pull secret. */
function platformEvents({ problems, held, platformVerdicts }: PullSecretPlan, regarding: Ref) {
  return [
    ...problems.map((problem) => pullSecretEvent(regarding, 'Copy', problem.code, withHint(problem))),
    ...(held === undefined ? [] : [pullSecretEvent(regarding, 'Copy', 'RemovalHeld', heldText(held))]),
    ...entryEvents(platformVerdicts, regarding),
  ];
}

/** Reports a cluster without an eligible node: its credentials are not in use. */
function noEligibleNodes({ scope }: Reader, { decisions }: NodesPlan): readonly ReconcileError[] {
  if (decisions.some(({ eligible }) => eligible)) return [];
  const ofOperator = decisions.some(({ reason }) => reason === 'MachineConfigOperator');
  const all =
    decisions.length === 0 ? 'no nodes found' : `none of ${counted(decisions.length, 'node')} is eligible`;
  const pools = 'set platforms or nodes in the fleet, or create NodePools with upgradeType Replace';
  const way =
    scope.hostedCluster === undefined ? 'set nodes in the fleet to a selector of eligible nodes' : pools;
  return [
    {
      retryPolicy: 'waiting',
      code: 'NoEligibleNodes',
      message: `No node gets the pull secret: ${all}`,
      hint: ofOperator ? MACHINE_CONFIG_WAY : way,
    },
  ];
}

export const STATUS_READS: readonly Watch[] = [NAMES.additional, NAMES.original].map((name) => ({
  ...secretReport(name),
  optional: true,
}));

/** Observed state and plan of one cluster. */
export interface Findings {
  readonly reader: Reader;
  readonly plan: PullSecretPlan;
  readonly nodes: NodesPlan;
  readonly secrets: SystemSecrets;
  readonly daemonSet: KubeObject | undefined;
  /** Set when another component manages the objects. */
  readonly observed: ManagedExternally | undefined;
}

interface PullSecretReport extends Findings {
  /** Problems that keep the pull secrets from nodes. */
  readonly problems: readonly ReconcileError[];
}

type Reported = Required<Pick<Result, 'apply' | 'status' | 'events' | 'metrics'>>;

/** Builds the reporting part of the result. */
export function reportPullSecret(input: PullSecretReport): Reported {
  const { plan, nodes, problems, reader, observed } = input;
  const { additional } = input.secrets;
  const behind = nodes.truth === undefined ? [] : nodesBehind(nodes.truth);
  const trouble =
    observed === undefined ? [...problems, ...noEligibleNodes(reader, nodes), ...behind] : problems;
  const both: readonly ConditionInput[] = [
    ...(observed === undefined ? [] : [{ type: 'ManagedElsewhere', status: 'True' as const, ...observed }]),
    ...(nodes.truth === undefined ? [] : [inSyncCondition(nodes.truth)]),
  ];
  const statusOf = (name: string, { conditions, ...parts }: StatusParts) =>
    reportPullStatus(reader, 'hosted', {
      reporter: 'global-pull-secret',
      about: { apiVersion: 'v1', kind: 'Secret', namespace: NAMES.namespace, name },
      conditions: [...conditions, ...both],
      ...parts,
    });
  const said = { ...input, problems: trouble };
  const all = [
    statusOf(NAMES.original, platformStatus(said)),
    ...(additional === undefined ? [] : [statusOf(NAMES.additional, tenantStatus(said))]),
  ];
  return {
    apply: all.map(({ apply }) => apply),
    status: all.map(({ status }) => status),
    events: [
      ...platformEvents(plan, platformOwner(reader)),
      ...(additional === undefined ? [] : entryEvents(plan.verdicts, seenRef('hosted', additional.secret))),
    ],
    metrics: metricsOf(input),
  };
}

function tenantStatus(input: PullSecretReport): StatusParts {
  const { plan, nodes } = input;
  return {
    conditions: tenantConditions(input),
    verdicts: nodes.truth === undefined ? plan.verdicts : onNodes(plan.verdicts, nodes.truth),
    summary: countsOf(plan.verdicts),
  };
}

/**
 * The tenant is responsible only for entries of its own secret. When the platform's secret is unusable or another problem
 * blocks the sync, the condition is progressing, because the tenant cannot fix it.
 */
function tenantConditions({ plan, problems: [problem] }: PullSecretReport): readonly ConditionInput[] {
  const shadowed = plan.verdicts.filter((verdict) => verdict.verdict === 'Shadowed');
  const base = readinessOf([
    ['stalled', entriesRejected(plan)],
    ['progressing', problem && problemSaid(problem)],
    ['progressing', notTaken(plan)],
    ['ready', { reason: 'Merged', message: mergedText(plan) }],
  ]);
  if (shadowed.length === 0) return base;
  const message = `the platform's credential is used for ${subjectsOf(shadowed)}; use a longer path such as "quay.io/team"`;
  return [...base, { type: 'Conflicts', status: 'True', reason: 'RegistryShadowed', message }];
}

function entriesRejected({ verdicts }: PullSecretPlan): ConditionText | undefined {
  const rejected = rejectedOf(verdicts);
  if (rejected.length === 0) return undefined;
  return {
    reason: 'EntriesRejected',
    message: `cannot use ${rejected.length} of ${counted(verdicts.length, 'entry', 'entries')}: ${reasonsOf(rejected)}`,
  };
}

function notTaken({ verdicts }: PullSecretPlan): ConditionText | undefined {
  const pending = verdicts.filter(({ verdict }) => verdict === 'Pending');
  const [first] = pending;
  return first === undefined ? undefined : { reason: first.reason, message: reasonsOf(pending) };
}

function mergedText({ global, addedCount, alone }: PullSecretPlan): string {
  if (global.act !== 'write') return 'nodes use only the platform pull secret';
  const entries = counted(addedCount, 'entry', 'entries');
  return alone === true ? `nodes use ${entries}` : `${entries} added to the platform pull secret`;
}

function countsOf(verdicts: readonly EntryStatus[]): Readonly<Record<string, number>> {
  const count = (wanted: EntryStatus['verdict']): number =>
    verdicts.filter((verdict) => verdict.verdict === wanted).length;
  return { accepted: count('Accepted'), shadowed: count('Shadowed'), rejected: count('Rejected') };
}

function metricsOf({ reader, plan, nodes, daemonSet }: PullSecretReport): readonly Sample[] {
  const labels = { scope: reader.scope.name };
  const { truth } = nodes;
  const ready =
    truth === undefined
      ? Number(valueAt(daemonSet?.status, 'numberReady') ?? 0)
      : truth.nodes - truth.behind.length;
  const counts = countsOf(plan.verdicts);
  const faults =
    rejectedOf(plan.platformVerdicts).length + plan.problems.length + (plan.held === undefined ? 0 : 1);
  const eligible = nodes.decisions.filter((decision) => decision.eligible).length;
  const samples: readonly (readonly [Sample['name'], help: string, value: number])[] = [
    [
      'pullwright_merge_conflicts',
      'Entries of the additional pull secret that the platform pull secret shadows',
      counts['shadowed'] ?? 0,
    ],
    [
      'pullwright_rejected_entries',
      'Entries of the additional pull secret that cannot be used',
      counts['rejected'] ?? 0,
    ],
    [
      'pullwright_platform_faults',
      'Faults of the platform pull secret: unusable entries, a held removal, or the whole Secret',
      faults,
    ],
    ['pullwright_eligible_nodes', 'Nodes with the eligibility label', eligible],
    ['pullwright_synced_nodes', 'Nodes whose agent has the desired pull secret on disk', ready],
  ];
  return samples.map(([name, help, value]) => ({ name, help, value, labels }));
}
