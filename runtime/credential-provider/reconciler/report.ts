/** Reports of the reconciler: conditions of the object, PullStatus, events, gauges. */
import { type ConditionInput, type ConditionText, readinessOf } from '../../core/kubernetes/conditions.ts';
import { NODE_POOL } from '../../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { defined } from '../../core/record.ts';
import { someOf } from '../../core/text.ts';
import { seenRef } from '../../engine/changes.ts';
import type {
  Apply,
  EventNote,
  Reader,
  ReconcileError,
  Ref,
  Result,
  Sample,
  StatusPatch,
} from '../../engine/contract.ts';
import { reportPullStatus, statusPatch } from '../../engine/pull-status.ts';
import type { MatchImagesInput } from '../kind.ts';
import { entryVerdict, type MatchImageVerdict } from '../merge.ts';
import type { NodeFile } from '../objects.ts';
import type { ReconcilerOptions } from '../options.ts';
import { howToRefer, type NodePool, type Rollout, type Target } from '../pools.ts';
import { contestedCondition, NO_POOL, sameFiles, statusWriter } from './managed.ts';

// The PullStatus of `CRIOCredentialProviderConfig/cluster`: one verdict per entry, per pool and per NodePool.

/** The PullStatus to apply, and its status. */
function pullReport(
  { reader, object, states, elsewhere, options }: NodesReportInput,
  own: readonly ConditionInput[],
  entries: readonly MatchImageVerdict[],
): ReturnType<typeof reportPullStatus> {
  const namespace = reader.scope.controlPlaneNamespace;
  const { apiVersion, kind, metadata } = object;
  return reportPullStatus(reader, 'management', {
    reporter: 'credential-provider',
    about: { apiVersion, kind, namespace, name: metadata.name },
    conditions: [
      ...summaryOf(states, own, options.installer === true),
      ...(elsewhere === undefined ? [] : [managedCondition(elsewhere, states)]),
      ...states
        .filter(({ hold }) => hold?.reason === 'Contested')
        .slice(0, 1)
        .map(({ pool, hold }) => contestedCondition(object, `pool ${pool.name}: ${hold?.message}`)),
    ],
    verdicts: [
      ...entries.map((entry) => entryVerdict(entry, 'the kubelet calls the provider for matching images')),
      ...states.map(poolVerdict),
      ...states.flatMap((state) => state.nodePools.map((pool) => nodePoolVerdict(pool, state))),
      ...states.flatMap(({ pool, warning: message }): readonly EntryStatus[] =>
        message === undefined
          ? []
          : [{ subject: `pool ${pool.name}`, verdict: 'Warning', reason: 'FlagsMayNotReach', message }],
      ),
    ],
  });
}

/** Message for a cluster without pools whose nodes have the installer. */
const BY_DAEMON_SET =
  'The cluster has no built-in MachineConfigPool, so nothing is rendered: DaemonSet/kube-system/credential-provider-installer installs the provider, and its pods report the state of each node';

function summaryOf(states: readonly PoolState[], own: readonly ConditionInput[], installer: boolean) {
  // A missing pool is not a failure where a DaemonSet installs the provider.
  const isInstalled = installer && own.some(({ reason }) => reason === NO_POOL);
  const failed = own.find(({ status, reason }) => status === 'False' && !(isInstalled && reason === NO_POOL));
  const needed = states.filter(({ files }) => files.length > 0);
  const unreferred = needed.flatMap(({ nodePools }) => nodePools.filter(({ refers }) => !refers));
  const waiting = needed.filter(({ pool }) => pool.rollout !== 'Done');
  const notConfigured = {
    reason: 'NodePoolsNotConfigured',
    message: `missing in spec.config of NodePool ${listed(unreferred.map(({ name }) => name))}: see the verdicts for what to set`,
  };
  const rollingOut = {
    reason: 'RollingOut',
    message: `not on every node yet: pool ${named(waiting)}`,
  };
  return readinessOf([
    ['stalled', failed],
    ['stalled', unreferred.length > 0 ? notConfigured : undefined],
    ['progressing', waiting.length > 0 ? rollingOut : undefined],
    ['ready', isInstalled ? { reason: 'InstalledByDaemonSet', message: BY_DAEMON_SET } : undefined],
    ['ready', { reason: 'RolledOut', message: 'every pool has the configuration' }],
  ]);
}

function managedCondition(elsewhere: string, states: readonly PoolState[]): ConditionInput {
  const drifted = states.filter(
    ({ present, wanted }) => present?.kind === 'MachineConfig' && !sameFiles(present, wanted),
  );
  return {
    type: 'ManagedElsewhere',
    status: 'True',
    reason: drifted.length === 0 ? 'Observing' : 'Drifted',
    message: `${elsewhere} manages the object, so nothing is written${drifted.length === 0 ? '' : `; pool ${named(drifted)} has files that differ from the rendered ones`}`,
  };
}

function named(states: readonly PoolState[]): string {
  return states.map(({ pool }) => pool.name).join(', ');
}

function listed(items: readonly string[]): string {
  return someOf(items, 5);
}

const ROLLOUT: Readonly<Record<Rollout, string>> = {
  Done: 'rolled out to every node',
  Progressing: 'see the MachineConfigPool',
  Degraded: 'see the conditions of the MachineConfigPool',
  Paused: 'the MachineConfigPool is paused (spec.paused), so its nodes stay as they are',
};

function poolVerdict({ pool, nodePools, files, hold, noPlace }: PoolState): EntryStatus {
  const subject = `pool ${pool.name}`;
  if (hold?.reason === 'UnsupportedVersion')
    return { subject, verdict: 'Pending', reason: hold.reason, message: `too old: ${listed(pool.tooOld)}` };
  if (hold !== undefined) return { subject, verdict: 'Rejected', ...hold };
  if (noPlace !== undefined)
    return { subject, verdict: 'Rejected', reason: 'NoPlaceForFlags', message: noPlace };
  const message = nodePools.length === 0 ? ROLLOUT[pool.rollout] : 'see the verdicts of the NodePools';
  return files.length === 0
    ? { subject, verdict: 'Accepted', reason: 'NothingToRender', message: "the platform's own file stays" }
    : rolloutVerdict(subject, pool.rollout, message);
}

/** `message`: shown until the rollout is done. */
function rolloutVerdict(subject: string, rollout: Rollout, message: string): EntryStatus {
  return rollout === 'Done'
    ? { subject, verdict: 'Accepted', reason: 'RolledOut', message: ROLLOUT.Done }
    : { subject, verdict: 'Pending', reason: rollout, message };
}

function nodePoolVerdict(pool: NodePool, { ref, files }: PoolState): EntryStatus {
  const subject = `NodePool ${pool.namespace}/${pool.name}`;
  if (files.length === 0)
    return { subject, verdict: 'Accepted', reason: 'NothingToRender', message: 'no entry to render' };
  if (!pool.refers) return { subject, verdict: 'Pending', ...howToRefer(pool, ref.name) };
  if (pool.tooOld.length > 0)
    return {
      subject,
      verdict: 'Pending',
      reason: 'UnsupportedVersion',
      message: `it refers to ConfigMap ${ref.name}, and its nodes are too old: ${listed(pool.tooOld)}`,
    };
  return rolloutVerdict(
    subject,
    pool.rollout,
    'see the conditions UpdatingConfig and ValidMachineConfig of the NodePool',
  );
}

/** The result. For an object that another program manages: no writes, not even its status, and no pruning. */
export function reportNodes(report: NodesReportInput): Result {
  const { reader, object, states, input, elsewhere, options } = report;
  const verdicts = [...verdictsOf(states), ...input.faults];
  const own = [
    validated(verdicts, states.length > 0 ? 0 : input.patterns.length),
    conditionOf('MachineConfigRendered', whyNotRendered(report)),
  ];
  const status = pullReport(report, own, verdicts);
  const metrics = states.flatMap(poolGauges);
  if (elsewhere !== undefined)
    return { apply: [status.apply], retain: 'all', status: [status.status], events: [], metrics };
  const unreferred = unreferredPools(states);
  const errors = [...refusals(object, input.faults), ...unreferred];
  const force = options.mode === 'own' ? { forceOwnership: true } : {};
  return {
    apply: [
      ...states
        .filter(({ hold }) => hold === undefined)
        .map(({ ref, wanted }): Apply => ({ role: ref.role, object: wanted, ...force })),
      status.apply,
    ],
    retain: states.filter(({ hold }) => hold !== undefined).map(({ ref }) => ref),
    // Two programs that write the same conditions would overwrite each other for ever.
    status: [
      ...(statusWriter(object) === undefined ? [ownStatus(object, own, reader.now)] : []),
      status.status,
    ],
    // Held pools have no Events of their own; owners of NodePools read those of the NodePools.
    events: [
      ...own
        .filter(({ status: value }) => value === 'False')
        .map(({ reason, message }) => warning(seenRef('hosted', object), reason, message)),
      ...unreferred.map(({ regarding, code, message }) => warning(regarding, code, message)),
    ],
    metrics,
    ...(errors.length === 0 ? {} : { errors }),
  };
}

/** The worst verdict of each entry over all pools, whose templates may differ. */
function verdictsOf(states: readonly PoolState[]): readonly MatchImageVerdict[] {
  const worst = new Map<string, MatchImageVerdict>();
  for (const verdict of states.flatMap(({ verdicts }) => verdicts)) {
    const known = worst.get(verdict.pattern);
    if (known === undefined || known.verdict === 'Rendered') worst.set(verdict.pattern, verdict);
  }
  return [...worst.values()];
}

function whyNotRendered({ states, options }: NodesReportInput): ConditionText | undefined {
  if (states.length === 0)
    return {
      reason: NO_POOL,
      message:
        options.installer === true
          ? BY_DAEMON_SET
          : 'The cluster has no built-in MachineConfigPool, so nothing is rendered: "installer" of the section installs the provider with a DaemonSet; see docs/credential-provider.md',
    };
  const held = states.flatMap(({ pool, hold }) => (hold === undefined ? [] : [{ pool, hold }]));
  const failed = held.filter(({ hold }) => hold.reason !== 'UnsupportedVersion');
  if (failed.length > 0) {
    const said = failed.map(({ pool, hold }) => `pool ${pool.name}: ${hold.message}`).join('; ');
    return {
      reason: 'MachineConfigRenderingFailed',
      message: `Not rendered: ${said}. Rendered objects stay`,
    };
  }
  const placeless = states.flatMap(({ pool, noPlace }) =>
    noPlace === undefined ? [] : [`pool ${pool.name}: ${noPlace}`],
  );
  if (placeless.length > 0)
    return { reason: 'NoPlaceForFlags', message: `Not rendered: ${placeless.join('; ')}` };
  if (held.length === 0) return undefined;
  const nodes = held.map(({ pool }) => `pool ${pool.name}: ${listed(pool.tooOld)}`).join('; ');
  return {
    reason: 'UnsupportedVersion',
    message: `Not rendered: kubelet and CRI-O 1.34 are required on every node: ${nodes}. Upgrade these nodes; rendered objects stay`,
  };
}

function ownStatus(object: KubeObject, conditions: readonly ConditionInput[], now: Date): StatusPatch {
  const { generation: observedGeneration } = object.metadata;
  const observed = conditions.map((one) => ({ ...one, ...defined({ observedGeneration }) }));
  return statusPatch(seenRef('hosted', object), object, observed, now);
}

/** Errors for entries that the definition rejects, which only a folder can hold. */
function refusals(object: KubeObject, faults: readonly MatchImageVerdict[]): readonly ReconcileError[] {
  if (faults.length === 0) return [];
  const said = faults.slice(0, 5).map(({ pattern, message }) => `${pattern}: ${message}`);
  const more = faults.length > 5 ? `; and ${faults.length - 5} more` : '';
  return [
    {
      retryPolicy: 'terminal',
      code: 'RefusedByDefinition',
      message: `Cannot apply "${object.kind}/${object.metadata.name}": its CustomResourceDefinition rejects ${said.join('; ')}${more}`,
      hint: 'Correct or remove these entries; the others are rendered',
      regarding: seenRef('hosted', object),
    },
  ];
}

/** Errors on NodePools, because their owners do not watch the hosted cluster. */
function unreferredPools(states: readonly PoolState[]) {
  return states.flatMap(({ nodePools, ref, files }) =>
    nodePools
      .filter(({ refers }) => files.length > 0 && !refers)
      .map((pool) => {
        const { reason, message } = howToRefer(pool, ref.name);
        const { namespace, name } = pool;
        return {
          retryPolicy: 'waiting' as const,
          afterMs: 600_000,
          code: reason === 'NotReferenced' ? 'NodePoolNotConfigured' : reason,
          message,
          regarding: { role: 'management' as const, ...NODE_POOL, namespace, name },
        };
      }),
  );
}

function warning(regarding: Ref, reason: string, message: string): EventNote {
  return { regarding, type: 'Warning', reason, action: 'Render', note: message };
}

/** One gauge per pool, or per NodePool of a hosted cluster; none without desired files. */
function poolGauges({ pool, nodePools, files }: PoolState): readonly Sample[] {
  if (files.length === 0) return [];
  const rows =
    nodePools.length === 0
      ? [{ name: pool.name, isDone: pool.rollout === 'Done' }]
      : nodePools.map(({ namespace, name, refers, rollout }) => ({
          name: `${namespace}/${name}`,
          isDone: refers && rollout === 'Done',
        }));
  return rows.map(({ name, isDone }) => ({
    name: 'pullwright_credential_provider_pool_rolled_out',
    help: 'Whether every node of the pool has the rendered configuration',
    value: isDone ? 1 : 0,
    labels: { pool: name },
  }));
}

// Input of the reports.

/** A target and its state. */
export interface PoolState extends Target {
  readonly verdicts: readonly MatchImageVerdict[];
  readonly hold: NodeHold | undefined;
  /** Why nothing can be rendered: the pool's kubelet reads no variable with flags. What was rendered is removed. */
  readonly noPlace: string | undefined;
  /** Why the rendered file may not reach its kubelets. */
  readonly warning: string | undefined;
  readonly files: readonly NodeFile[];
  /** The desired object. */
  readonly wanted: KubeObject;
}

interface NodesReportInput {
  readonly reader: Reader;
  readonly object: KubeObject;
  /** Empty without pools. */
  readonly states: readonly PoolState[];
  readonly input: MatchImagesInput;
  /** The program that manages the object instead of us. */
  readonly elsewhere: string | undefined;
  readonly options: ReconcilerOptions;
}

/** Why a pool is not rendered; rendered objects stay. */
export interface NodeHold {
  readonly reason: 'PlatformUnclear' | 'KubeletRefuses' | 'UnsupportedVersion' | 'Contested';
  readonly message: string;
}

// Conditions of a CRIOCredentialProviderConfig, with the reasons and texts of the Machine Config Operator.

type ConditionType = 'Validated' | 'MachineConfigRendered';

const SUCCESS: Readonly<Record<ConditionType, string>> = {
  Validated: 'Succeeded',
  MachineConfigRendered: 'MachineConfigRenderingSucceeded',
};

/** A condition; True without `wrong`. */
export function conditionOf(type: ConditionType, wrong?: ConditionText): ConditionInput {
  return wrong === undefined
    ? { type, status: 'True', reason: SUCCESS[type], message: 'Success' }
    : { type, status: 'False', ...wrong };
}

/**
 * `Validated`, with the ignored entries: ConfigurationPartiallyApplied, or ValidationFailed when no image can match any entry.
 *
 * @param unserved number of valid entries in a cluster without pools
 */
export function validated(verdicts: readonly MatchImageVerdict[], unserved = 0): ConditionInput {
  const {
    Conflict: conflicts = [],
    Unusable: unusable = [],
    Rendered: rendered = [],
  } = Object.groupBy(verdicts, ({ verdict }) => verdict);
  const said = unusable.map(({ pattern, message }) => `Invalid "${pattern}": ${message}.`);
  if (conflicts.length > 0) {
    const patterns = conflicts.map(({ pattern }) => pattern).sort();
    said.unshift(
      `CRIOCredentialProviderConfig has one or multiple entries that overlap with the original credential provider config. Skip rendering entries: [${patterns.join(' ')}].`,
    );
  }
  if (said.length === 0) return conditionOf('Validated');
  const isNothingLeft = unusable.length > 0 && rendered.length + unserved === 0;
  return conditionOf('Validated', {
    reason: isNothingLeft ? 'ValidationFailed' : 'ConfigurationPartiallyApplied',
    message: said.join(' '),
  });
}
