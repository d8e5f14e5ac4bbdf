/**
 * The global pull secret controller: applies the copy of the platform's pull secret, the merge with the tenant's, the node
 * agent's objects and the labels of eligible nodes, and reports a verdict per entry to the tenant.
 *
 * Source of the rule: requirement 1. Objects that HyperShift's operator owns are not written.
 */
import { type PullSecret, pullSecretOf } from '../../core/docker-config/pull-secret.ts';
import { GLOBAL_PULL_SECRET as NAMES } from '../../core/kubernetes/hypershift.ts';
import { sameSecret } from '../../core/redacted.ts';
import { refOf, refText } from '../../engine/changes.ts';
import {
  type Apply,
  CONTROL_PLANE_NAMESPACE,
  type Reader,
  type ReconcileError,
  type Reconciler,
  type Ref,
  type Result,
  type Watch,
} from '../../engine/contract.ts';
import { type GlobalPullSecretOptions, parseOptions } from '../options.ts';
import { NODE_READS, planNodes, REPORT_READS, syncStatusOf } from './nodes.ts';
import {
  AGENT_KEPT,
  AGENT_READS,
  agentObjects,
  DAEMON_SET,
  foreignMerge,
  gitVerdicts,
  HELD_ANNOTATION,
  isGivenToUs,
  type ManagedExternally,
  managedElsewhere,
  missingAgent,
  platformOwner,
  platformSecret,
  REMOVAL_READS,
  removalContext,
  removals,
  secretRef,
  takeoverContext,
} from './ownership.ts';
import {
  ADDED_ENTRIES_ANNOTATION,
  observedNodes,
  observedVerdicts,
  type PullSecretPlan,
  planPullSecrets,
  pullSecretObject,
  type SystemSecrets,
} from './plan.ts';
import { type Findings, reportPullSecret, STATUS_READS } from './report.ts';

const NAME = 'global-pull-secret';

const READS: readonly Watch[] = [
  platformSecret(CONTROL_PLANE_NAMESPACE),
  ...[NAMES.additional, NAMES.original, NAMES.global].map(secretRef),
  ...NODE_READS,
  ...REPORT_READS,
  ...AGENT_READS,
  ...STATUS_READS,
  ...REMOVAL_READS,
];

/** The reconciler by its section of the configuration. One request key per cluster: each reconcile covers all objects. */
export function reconcilers(raw: Readonly<Record<string, unknown>>): readonly Reconciler[] {
  const options = parseOptions(raw);
  return [
    {
      name: NAME,
      watches: READS,
      requestsFor: (_changed, reader) => [{ scope: reader.scope.name, name: NAME }],
      reconcile: (reader) => reconcile(reader, options(reader.scope.name)),
    },
  ];
}

function reconcile(reader: Reader, options: GlobalPullSecretOptions): Result {
  const secrets = readSecrets(reader);
  const planned = planPullSecrets({
    ...secrets,
    platformNamespace: reader.scope.controlPlaneNamespace,
    removal: removalContext(reader, options.removals),
  });
  const daemonSet = reader.get(DAEMON_SET);
  const objects = [secrets.original?.secret, secrets.global?.secret, daemonSet];
  const observed = managedElsewhere(options.mode, objects, takeoverContext(reader));
  const plan = observedPlan(planned, secrets, observed, platformOwner(reader));
  const labelled = planNodes(reader, options);
  const left = [
    ...gitVerdicts(daemonSet, observed, options.delivery),
    ...(observed === undefined ? [] : observedNodes(daemonSet, secrets)),
  ];
  const truth =
    observed === undefined
      ? syncStatusOf(reader, options, daemonSet, labelled.decisions, sourceOfNodes(plan, secrets))
      : undefined;
  const nodes = { ...labelled, verdicts: [...labelled.verdicts, ...left], truth };
  const found = { reader, plan, nodes, secrets, daemonSet, observed };
  const writes = observed === undefined ? ownedWrites(found, options) : NO_WRITES;
  const errors = [...plan.problems, ...writes.errors];
  const reported = reportPullSecret({ ...found, problems: errors });
  return {
    ...writes,
    ...reported,
    apply: [...writes.apply, ...reported.apply],
    errors,
    ...(plan.held?.waitMs === undefined ? {} : { requeueAfterMs: plan.held.waitMs }),
  };
}

/** Adjusts the plan for a foreign merge: verdicts on its actual content, and an error when `mode: own` cannot take it over. */
function observedPlan(
  plan: PullSecretPlan,
  secrets: SystemSecrets,
  observed: ManagedExternally | undefined,
  regarding: Ref,
): PullSecretPlan {
  if (observed === undefined) return plan;
  // Removals are held only by the writer of the objects.
  const { held: _held, ...rest } = plan;
  if (observed.reason === 'OwnershipUnknown') return rest;
  const verdicts = observedVerdicts(secrets, plan.verdicts);
  const addedCount = verdicts.filter(({ verdict }) => verdict === 'Accepted').length;
  if (observed.reason === 'Observing') return { ...rest, verdicts, addedCount };
  const { reason: code, message } = observed;
  const refused: ReconcileError = {
    retryPolicy: 'terminal',
    code,
    message: `Cannot own: ${message}`,
    regarding,
  };
  return { ...rest, verdicts, addedCount, problems: [...plan.problems, refused] };
}

function readSecrets(reader: Reader): SystemSecrets {
  const read = (ref: Ref): PullSecret | undefined => {
    const secret = reader.get(ref);
    return secret && pullSecretOf(secret);
  };
  return {
    platform: read(platformSecret(reader.scope.controlPlaneNamespace)),
    additional: read(secretRef(NAMES.additional)),
    original: read(secretRef(NAMES.original)),
    global: read(secretRef(NAMES.global)),
  };
}

/** Desired content of nodes. Returns an existing Secret when it is kept or already equal. */
function sourceOfNodes(plan: PullSecretPlan, secrets: SystemSecrets): PullSecret | undefined {
  const decided = plan.global.act === 'remove' ? plan.original : plan.global;
  if (decided.act !== 'write') return secrets.global ?? secrets.original;
  const same = [secrets.global, secrets.original, secrets.platform].find(
    (known) => known?.value !== undefined && sameSecret(known.value, decided.value),
  );
  if (same !== undefined) return same;
  return pullSecretOf(pullSecretObject({ name: NAMES.global, written: decided }));
}

type Writes = Required<Pick<Result, 'apply' | 'retain' | 'remove' | 'errors'>>;

const NO_WRITES: Writes = { apply: [], retain: 'all', remove: [], errors: [] };

function ownedWrites(
  { reader, plan, nodes, secrets, daemonSet }: Findings,
  options: GlobalPullSecretOptions,
): Writes {
  const { original, global } = plan;
  // The desired content is still unknown: sync nothing and keep existing objects.
  const usable = original.act === 'write' || global.act !== 'keep';
  const written = [global, original].find((decision) => decision.act === 'write');
  const agent = agentObjects(reader, options, {
    merged: global.act === 'write',
    usable,
    value: written?.value,
  });
  const takes = options.mode === 'own';
  const remove = removals(global.act === 'remove' ? secrets.global?.secret : undefined, daemonSet, takes);
  const removed = new Set(remove.map(refText));
  return {
    apply: [
      ...agent.filter(({ object }) => !removed.has(refText(refOf('hosted', object)))),
      ...secretWrites(plan, secrets, takes),
      ...nodes.apply,
    ],
    retain: usable ? [...AGENT_KEPT, ...(global.act === 'keep' ? [secretRef(NAMES.global)] : [])] : 'all',
    remove,
    errors: [
      ...missingAgent(reader, options),
      ...(global.act === 'remove' && !takes ? foreignMerge(secrets.global?.secret) : []),
    ],
  };
}

function secretWrites(plan: PullSecretPlan, secrets: SystemSecrets, takes: boolean): readonly Apply[] {
  const writes: Apply[] = [];
  const { held } = plan;
  const unjudged = held?.reason === 'CopyDeleted';
  if (plan.original.act === 'write') {
    // The type of a Secret is immutable: an original that HyperShift created stays Opaque.
    const type = secrets.original?.secret.type;
    const object = pullSecretObject({
      name: NAMES.original,
      written: plan.original,
      unjudged,
      ...(type === undefined ? {} : { type }),
      ...(held === undefined ? {} : { annotations: { [HELD_ANNOTATION]: `${held.hash} ${held.since}` } }),
    });
    writes.push({ role: 'hosted', object, forceOwnership: true });
  }
  if (plan.global.act === 'write') {
    const annotations = { [ADDED_ENTRIES_ANNOTATION]: plan.added };
    writes.push({
      role: 'hosted',
      object: pullSecretObject({ name: NAMES.global, written: plan.global, unjudged, annotations }),
      forceOwnership: takes || (secrets.global !== undefined && isGivenToUs(secrets.global.secret)),
    });
  }
  return writes;
}
