/** What the tenant and the operator see: a PullStatus beside the additional secret, events, metrics. */
import type {
  Apply,
  EventNote,
  Outcome,
  Problem,
  Read,
  Ref,
  Sample,
  StatusPatch,
  World,
} from '../../controller/contract.ts';
import { type ConditionInput, readiness } from '../../rules/kubernetes/conditions.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../rules/kubernetes/global-pull-secret.ts';
import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatus,
  pullStatusName,
  type Verdict,
} from '../../rules/kubernetes/pull-status.ts';
import type { NodesPlan } from './nodes.ts';
import type { PullSecretPlan } from './plan.ts';
import type { SystemSecrets } from './reconciler.ts';

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

export const STATUS_READS: readonly Read[] = [
  {
    role: 'hosted',
    apiVersion: PULL_STATUS_API_VERSION,
    kind: PULL_STATUS_KIND,
    namespace: NAMES.namespace,
    name: STATUS.name,
    optional: true,
  },
];

export interface ReportInput {
  readonly world: World;
  readonly plan: PullSecretPlan;
  readonly nodes: NodesPlan;
  readonly secrets: SystemSecrets;
  /** The operator that manages the objects, when it is not us. */
  readonly observed: string | undefined;
  readonly problems: readonly Problem[];
}

type Reported = Required<Pick<Outcome, 'apply' | 'status' | 'events' | 'metrics'>>;

/** Builds the reporting part of the outcome. */
export function report(input: ReportInput): Reported {
  const { secrets, plan, nodes } = input;
  const speaksOf =
    secrets.additional !== undefined ||
    input.problems.length > 0 ||
    nodes.verdicts.length > 0 ||
    input.observed !== undefined;
  const status = speaksOf ? statusOf(input) : { apply: [], status: [] };
  return {
    ...status,
    events: secrets.additional === undefined ? [] : eventsOf(plan.verdicts, secrets.additional.metadata.uid),
    metrics: metricsOf(input),
  };
}

function statusOf(input: ReportInput): { apply: readonly Apply[]; status: readonly StatusPatch[] } {
  const { world, plan, nodes } = input;
  const built = pullStatus({
    reporter: 'global-pull-secret',
    about: { apiVersion: 'v1', kind: 'Secret', namespace: NAMES.namespace, name: NAMES.additional },
    conditions: conditionsOf(input),
    verdicts: [...plan.verdicts, ...nodes.verdicts],
    summary: countsOf(plan.verdicts),
    present: world.get(STATUS),
    now: world.now,
  });
  return {
    apply: [{ role: 'hosted', object: built.object }],
    status: [{ ref: STATUS, status: built.status }],
  };
}

function conditionsOf({ plan, problems, observed }: ReportInput): readonly ConditionInput[] {
  const rejected = plan.verdicts.filter((verdict) => verdict.verdict === 'Rejected');
  const shadowed = plan.verdicts.filter((verdict) => verdict.verdict === 'Shadowed');
  const problem = problems[0];
  const stalled =
    problem?.disposition === 'terminal'
      ? { reason: problem.code, message: textOf(problem) }
      : rejectedText(rejected, plan.verdicts.length);
  const progressing =
    problem !== undefined && problem.disposition !== 'terminal'
      ? { reason: problem.code, message: textOf(problem) }
      : undefined;
  const base = readiness({
    ready: { reason: 'Merged', message: mergedText(plan) },
    ...(stalled === undefined ? {} : { stalled }),
    ...(progressing === undefined ? {} : { progressing }),
  });
  const conflicts: readonly ConditionInput[] =
    shadowed.length === 0
      ? []
      : [
          {
            type: 'Conflicts',
            status: 'True',
            reason: 'RegistryShadowed',
            message: `the platform's credential is used for ${subjects(shadowed)}; use a longer path such as "quay.io/team"`,
          },
        ];
  const managed: readonly ConditionInput[] =
    observed === undefined
      ? []
      : [
          {
            type: 'ManagedElsewhere',
            status: 'True',
            reason: 'Observing',
            message: `${observed} manages these objects; nothing is written`,
          },
        ];
  return [...base, ...conflicts, ...managed];
}

/** Who looks at a condition has no log at hand: it must say what to do. */
function textOf({ message, hint }: Problem): string {
  return hint === undefined ? message : `${message}. ${hint}`;
}

/** Reasons that a condition names; the verdicts have all. */
const MAX_REASONS = 3;

function rejectedText(
  rejected: readonly Verdict[],
  of: number,
): { reason: string; message: string } | undefined {
  if (rejected.length === 0) return undefined;
  const reasons = rejected
    .slice(0, MAX_REASONS)
    .map(({ subject, message }) => `"${subject}" ${message}`)
    .join('; ');
  const more =
    rejected.length > MAX_REASONS ? `; and ${rejected.length - MAX_REASONS} more, see the verdicts` : '';
  const message = `cannot use ${rejected.length} of ${of} entries: ${reasons}${more}`;
  return { reason: 'EntriesRejected', message };
}

function mergedText(plan: PullSecretPlan): string {
  if (plan.global.act !== 'write') return 'nodes use the platform pull secret alone';
  return `${plan.additionalKeys.length} ${plan.additionalKeys.length === 1 ? 'entry' : 'entries'} added to the platform pull secret`;
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

function eventsOf(verdicts: readonly Verdict[], uid: string | undefined): readonly EventNote[] {
  const regarding = { ...ADDITIONAL, ...(uid === undefined ? {} : { uid }) };
  return verdicts
    .filter((verdict) => verdict.verdict !== 'Accepted')
    .map((verdict) => ({
      regarding,
      type: 'Warning' as const,
      reason: verdict.reason,
      action: 'Merge',
      note: `${verdict.subject}: ${verdict.message}`.slice(0, 1024),
    }));
}

function metricsOf({ world, plan, nodes }: ReportInput): readonly Sample[] {
  const labels = { scope: world.scope.name };
  const daemonSet = world.get({
    role: 'hosted',
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    namespace: NAMES.namespace,
    name: NAMES.syncer,
  });
  const ready = (daemonSet?.status as { numberReady?: number } | undefined)?.numberReady ?? 0;
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
      'pullwright_eligible_nodes',
      'Nodes that carry the eligibility label',
      nodes.decisions.filter((decision) => decision.eligible).length,
    ),
    gauge('pullwright_synced_nodes', 'Nodes whose agent has the wanted pull secret on disk', ready),
  ];
}
