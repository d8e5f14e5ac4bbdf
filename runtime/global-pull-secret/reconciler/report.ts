/** What is told: to the platform's owner in `platform-report.ts`, to the tenant in a PullStatus beside its secret; metrics. */
import type {
  Apply,
  Outcome,
  Problem,
  Read,
  Ref,
  Sample,
  StatusPatch,
  World,
} from '../../controller/contract.ts';
import {
  type ConditionInput,
  type ConditionText,
  type SummaryRow,
  summarize,
} from '../../rules/kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatus,
  pullStatusName,
  type Verdict,
} from '../../rules/kubernetes/pull-status.ts';
import { counted } from '../../rules/text/counted.ts';
import type { Elsewhere } from './managed-elsewhere.ts';
import { inSyncCondition, nodesBehind, onNodes } from './node-truth.ts';
import type { NodesPlan } from './nodes.ts';
import type { PullSecretPlan } from './plan.ts';
import {
  entryEvents,
  noEligibleNodes,
  PLATFORM_STATUS,
  platformEvents,
  platformStatus,
  problemSaid,
  reasonsOf,
  rejectedOf,
} from './platform-report.ts';
import { platformOwner } from './removal-context.ts';
import type { SystemSecrets } from './system-secrets.ts';

const STATUS: Ref = {
  role: 'hosted',
  apiVersion: PULL_STATUS_API_VERSION,
  kind: PULL_STATUS_KIND,
  namespace: NAMES.namespace,
  name: pullStatusName('Secret', NAMES.additional),
};
const ADDITIONAL: Ref = {
  role: 'hosted',
  apiVersion: 'v1',
  kind: 'Secret',
  namespace: NAMES.namespace,
  name: NAMES.additional,
};

export const STATUS_READS: readonly Read[] = [STATUS, PLATFORM_STATUS].map((ref) => ({
  ...ref,
  optional: true,
}));

export interface PullSecretReportInput {
  readonly world: World;
  readonly plan: PullSecretPlan;
  readonly nodes: NodesPlan;
  readonly secrets: SystemSecrets;
  /** Who manages the objects, when it is not us. */
  readonly observed: Elsewhere | undefined;
  readonly problems: readonly Problem[];
}

type Reported = Required<Pick<Outcome, 'apply' | 'status' | 'events' | 'metrics'>>;

/** Builds the reporting part of the outcome. */
export function reportPullSecret(input: PullSecretReportInput): Reported {
  const { secrets, plan, nodes, problems, world } = input;
  const behind = nodes.truth === undefined ? [] : nodesBehind(nodes.truth);
  const trouble =
    input.observed === undefined ? [...problems, ...noEligibleNodes(world, nodes), ...behind] : problems;
  const { additional } = secrets;
  const managed = [
    ...managedBy(input.observed),
    ...(nodes.truth === undefined ? [] : [inSyncCondition(nodes.truth)]),
  ];
  const present = world.get(PLATFORM_STATUS);
  const platform = platformStatus({ plan, nodes, problems: trouble, managed, present, now: world.now });
  const tenant =
    additional === undefined
      ? []
      : [{ ref: STATUS, ...tenantStatus({ ...input, problems: trouble }, managed) }];
  const all = [{ ref: PLATFORM_STATUS, ...platform }, ...tenant];
  const { uid } = additional?.metadata ?? {};
  const tenantEvents =
    additional === undefined
      ? []
      : entryEvents(plan.verdicts, { ...ADDITIONAL, ...(uid === undefined ? {} : { uid }) });
  return {
    apply: all.map(({ object }): Apply => ({ role: 'hosted', object })),
    status: all.map(({ ref, status }): StatusPatch => ({ ref, status })),
    events: [...platformEvents(plan, platformOwner(world)), ...tenantEvents],
    metrics: metricsOf(input),
  };
}

function managedBy(elsewhere: Elsewhere | undefined): readonly ConditionInput[] {
  return elsewhere === undefined ? [] : [{ type: 'ManagedElsewhere', status: 'True', ...elsewhere }];
}

function tenantStatus(
  input: PullSecretReportInput,
  managed: readonly ConditionInput[],
): ReturnType<typeof pullStatus> {
  const { world, plan, nodes } = input;
  return pullStatus({
    reporter: 'global-pull-secret',
    about: { apiVersion: 'v1', kind: 'Secret', namespace: NAMES.namespace, name: NAMES.additional },
    conditions: [...tenantConditions(input), ...managed],
    verdicts: nodes.truth === undefined ? plan.verdicts : onNodes(plan.verdicts, nodes.truth),
    summary: countsOf(plan.verdicts),
    present: world.get(STATUS),
    now: world.now,
  });
}

/**
 * The tenant answers for the entries of its own secret. Where the platform's cannot be used, or something else keeps the merge
 * from nodes, it waits: that is nothing that it could fix.
 */
const SUMMARY: readonly SummaryRow<PullSecretReportInput>[] = [
  ['stalled', entriesRejected],
  ['progressing', ({ problems: [problem] }) => (problem === undefined ? undefined : problemSaid(problem))],
  ['progressing', notTaken],
  ['ready', ({ plan }) => ({ reason: 'Merged', message: mergedText(plan) })],
];

function tenantConditions(input: PullSecretReportInput): readonly ConditionInput[] {
  const shadowed = input.plan.verdicts.filter((verdict) => verdict.verdict === 'Shadowed');
  const base = summarize(SUMMARY, input);
  if (shadowed.length === 0) return base;
  const message = `the platform's credential is used for ${subjects(shadowed)}; use a longer path such as "quay.io/team"`;
  return [...base, { type: 'Conflicts', status: 'True', reason: 'RegistryShadowed', message }];
}

function entriesRejected({ plan: { verdicts } }: PullSecretReportInput): ConditionText | undefined {
  const rejected = rejectedOf(verdicts);
  if (rejected.length === 0) return undefined;
  return {
    reason: 'EntriesRejected',
    message: `cannot use ${rejected.length} of ${counted(verdicts.length, 'entry', 'entries')}: ${reasonsOf(rejected)}`,
  };
}

function notTaken({ plan: { verdicts } }: PullSecretReportInput): ConditionText | undefined {
  const pending = verdicts.filter(({ verdict }) => verdict === 'Pending');
  const [first] = pending;
  return first === undefined ? undefined : { reason: first.reason, message: reasonsOf(pending) };
}

function mergedText({ global, addedCount, alone }: PullSecretPlan): string {
  if (global.act !== 'write') return 'nodes use the platform pull secret alone';
  const entries = counted(addedCount, 'entry', 'entries');
  return alone === true ? `nodes use ${entries}` : `${entries} added to the platform pull secret`;
}

function subjects(verdicts: readonly Verdict[]): string {
  const names = verdicts
    .slice(0, 10)
    .map((verdict) => `"${verdict.subject}"`)
    .join(', ');
  return verdicts.length > 10 ? `${names} and ${verdicts.length - 10} more` : names;
}

function countsOf(verdicts: readonly Verdict[]): Readonly<Record<string, number>> {
  const count = (wanted: Verdict['verdict']): number =>
    verdicts.filter((verdict) => verdict.verdict === wanted).length;
  return { accepted: count('Accepted'), shadowed: count('Shadowed'), rejected: count('Rejected') };
}

function metricsOf({ world, plan, nodes }: PullSecretReportInput): readonly Sample[] {
  const labels = { scope: world.scope.name };
  const daemonSet = world.get({
    role: 'hosted',
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    namespace: NAMES.namespace,
    name: NAMES.syncer,
  });
  const { truth } = nodes;
  const ready =
    truth === undefined
      ? ((daemonSet?.status as { numberReady?: number } | undefined)?.numberReady ?? 0)
      : truth.nodes - truth.behind.length;
  const gauge = (name: Sample['name'], help: string, value: number): Sample => ({
    name,
    help,
    value,
    labels,
  });
  return [
    gauge(
      'pullwright_merge_conflicts',
      'Entries of the additional pull secret that the platform pull secret shadows',
      countsOf(plan.verdicts)['shadowed'] ?? 0,
    ),
    gauge(
      'pullwright_rejected_entries',
      'Entries of the additional pull secret that cannot be used',
      countsOf(plan.verdicts)['rejected'] ?? 0,
    ),
    gauge(
      'pullwright_platform_faults',
      'What is wrong with the platform pull secret: entries that cannot be used, a removal that is held, or the whole',
      rejectedOf(plan.platformVerdicts).length + plan.problems.length + (plan.held === undefined ? 0 : 1),
    ),
    gauge(
      'pullwright_eligible_nodes',
      'Nodes that carry the eligibility label',
      nodes.decisions.filter((decision) => decision.eligible).length,
    ),
    gauge('pullwright_synced_nodes', 'Nodes whose agent has the wanted pull secret on disk', ready),
  ];
}
