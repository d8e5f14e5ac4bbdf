/** What the reconciler says: conditions of the object, one verdict per entry and per pool, events, gauges. */
import type { NodeFile } from '../../charts/credential-provider/machine-config.ts';
import type { Apply, EventNote, Outcome, Ref, Sample, World } from '../controller/contract.ts';
import { type Condition, type ConditionInput, nextConditions, readiness } from '../rules/conditions.ts';
import type { MatchImageVerdict } from '../rules/credential-provider-merge.ts';
import type { KubeObject } from '../rules/kube-object.ts';
import {
  PULL_STATUS_API_VERSION,
  PULL_STATUS_KIND,
  pullStatus,
  pullStatusName,
  type Verdict,
} from '../rules/pull-status.ts';
import { conditionOf, validated } from './conditions.ts';
import type { Pool } from './pools.ts';

const NAME = 'credential-provider';
const GENERATED_BY = 'machineconfiguration.openshift.io/generated-by-controller-version';
const OWN_MANAGER = 'pullwright-credential-provider';

export interface PoolState {
  readonly pool: Pool;
  readonly verdicts: readonly MatchImageVerdict[];
  /** The kubelet would not start with the file: its words. */
  readonly refusal: string | undefined;
  readonly files: readonly NodeFile[];
  /** The MachineConfig or ConfigMap that is there. */
  readonly present: KubeObject | undefined;
}

export interface ReportInput {
  readonly world: World;
  readonly object: KubeObject;
  readonly states: readonly PoolState[];
  /** Who manages the object instead of us. */
  readonly elsewhere: string | undefined;
  /** Whether there is anything to render for. */
  readonly isServed: boolean;
  readonly apply: readonly Apply[];
  readonly keep: readonly Ref[];
}

/** Who manages the object instead of us: the Machine Config Operator, where its marks are seen. */
export function managerElsewhere(
  mode: 'auto' | 'own' | 'observe',
  object: KubeObject,
  rendered: readonly (KubeObject | undefined)[],
): string | undefined {
  if (mode === 'own') return undefined;
  const isMarked = rendered.some((one) => one?.metadata.annotations?.[GENERATED_BY] !== undefined);
  const other = object.metadata.managedFields?.find(
    ({ subresource, manager }) =>
      subresource === 'status' && manager !== undefined && manager !== OWN_MANAGER,
  )?.manager;
  if (mode === 'observe' || isMarked) return other ?? 'machine-config-controller';
  return other;
}

/** The whole outcome. Where somebody else manages the object, nothing of it is written, its status included. */
export function report(input: ReportInput): Outcome {
  const { world, object, states, elsewhere } = input;
  const own = [validated(verdictsOf(states)), renderedCondition(input)];
  const status = pullStatusOf(input, own);
  return {
    apply: [...input.apply, { role: 'management', object: status.object }],
    keep: input.keep,
    status: [
      ...(elsewhere === undefined ? [statusPatch(object, own, world.now)] : []),
      { ref: statusRef(input), status: status.status },
    ],
    events: elsewhere === undefined ? eventsOf(object, own) : [],
    metrics: states.map(({ pool }) => poolGauge(pool)),
  };
}

/** The same entries are judged for every pool; pools differ only where their templates do. */
function verdictsOf(states: readonly PoolState[]): readonly MatchImageVerdict[] {
  const worst = new Map<string, MatchImageVerdict>();
  for (const verdict of states.flatMap(({ verdicts }) => verdicts)) {
    const known = worst.get(verdict.pattern);
    if (known === undefined || known.verdict === 'Rendered') worst.set(verdict.pattern, verdict);
  }
  return [...worst.values()];
}

function renderedCondition({ states, isServed }: ReportInput): ConditionInput {
  if (!isServed) {
    return conditionOf({
      reason: 'NoMachineConfigPool',
      message:
        'The cluster has no built-in MachineConfigPool, so nothing is rendered: "installer" of the section brings a DaemonSet that installs the provider on its nodes; docs/credential-provider.md says how',
    });
  }
  const refused = states.filter(({ refusal }) => refusal !== undefined);
  if (refused.length > 0) {
    const [first] = refused;
    return conditionOf({
      reason: 'MachineConfigRenderingFailed',
      message: `The kubelet would refuse the file for pool ${named(refused)}: ${first?.refusal ?? ''}. What is rendered stays`,
    });
  }
  const old = states.filter(({ pool, files }) => files.length > 0 && pool.tooOld.length > 0);
  if (old.length === 0) return conditionOf({});
  const nodes = old.map(({ pool }) => `pool ${pool.name}: ${listed(pool.tooOld)}`).join('; ');
  return conditionOf({
    reason: 'UnsupportedVersion',
    message: `Not rendered, because kubelet and CRI-O 1.34 are needed on every node: ${nodes}. Upgrade these nodes; what is rendered stays`,
  });
}

function named(states: readonly PoolState[]): string {
  return states.map(({ pool }) => pool.name).join(', ');
}

function listed(items: readonly string[]): string {
  return items.length <= 5
    ? items.join(', ')
    : `${items.slice(0, 5).join(', ')} and ${items.length - 5} more`;
}

function statusPatch(
  object: KubeObject,
  conditions: readonly ConditionInput[],
  now: Date,
): { ref: Ref; status: Readonly<Record<string, unknown>> } {
  const present =
    (object.status as { readonly conditions?: readonly Condition[] } | undefined)?.conditions ?? [];
  const { generation } = object.metadata;
  const observed =
    generation === undefined
      ? conditions
      : conditions.map((one) => ({ ...one, observedGeneration: generation }));
  return { ref: refOf(object), status: { conditions: nextConditions(present, observed, now) } };
}

function refOf({ apiVersion, kind, metadata }: KubeObject): Ref {
  return {
    role: 'hosted',
    apiVersion,
    kind,
    name: metadata.name,
    ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
  };
}

function statusRef({ world, object }: ReportInput): Ref {
  return {
    role: 'management',
    apiVersion: PULL_STATUS_API_VERSION,
    kind: PULL_STATUS_KIND,
    namespace: world.scope.controlPlaneNamespace,
    name: pullStatusName(object.kind, object.metadata.name),
  };
}

function pullStatusOf(input: ReportInput, own: readonly ConditionInput[]): ReturnType<typeof pullStatus> {
  const { world, object, states, elsewhere } = input;
  const failed = own.find(({ status }) => status === 'False');
  const waiting = states.filter(({ pool, files }) => files.length > 0 && pool.rollout !== 'Done');
  return pullStatus({
    reporter: NAME,
    about: {
      apiVersion: object.apiVersion,
      kind: object.kind,
      namespace: world.scope.controlPlaneNamespace,
      name: object.metadata.name,
    },
    conditions: [
      ...readiness({
        ready: { reason: 'RolledOut', message: 'every pool has the configuration' },
        ...(failed === undefined ? {} : { stalled: { reason: failed.reason, message: failed.message } }),
        ...(waiting.length === 0
          ? {}
          : {
              progressing: { reason: 'RollingOut', message: `not on every node yet: pool ${named(waiting)}` },
            }),
      }),
      ...(elsewhere === undefined ? [] : [managedCondition(elsewhere, states)]),
    ],
    verdicts: [...verdictsOf(states).map(entryVerdict), ...states.map(poolVerdict)],
    present: world.get(statusRef(input)),
    now: world.now,
  });
}

function managedCondition(elsewhere: string, states: readonly PoolState[]): ConditionInput {
  const drifted = states.filter(
    ({ files, present }) =>
      present !== undefined &&
      pathsOf(present) !==
        files
          .map(({ path }) => path)
          .sort()
          .join(),
  );
  return {
    type: 'ManagedElsewhere',
    status: 'True',
    reason: drifted.length === 0 ? 'Observing' : 'Drifted',
    message: `${elsewhere} manages the object, so nothing is written${drifted.length === 0 ? '' : `; pool ${named(drifted)} has other files than we would render`}`,
  };
}

function pathsOf(present: KubeObject): string {
  const { config } = (present.spec ?? {}) as {
    readonly config?: { readonly storage?: { readonly files?: readonly { path?: string }[] } };
  };
  return (config?.storage?.files ?? [])
    .map(({ path }) => path ?? '')
    .sort()
    .join();
}

function entryVerdict({ pattern, verdict, message }: MatchImageVerdict): Verdict {
  return {
    subject: pattern,
    verdict: verdict === 'Rendered' ? 'Accepted' : 'Rejected',
    reason: verdict,
    message: verdict === 'Rendered' ? 'the kubelet asks the provider for images that match it' : message,
  };
}

function poolVerdict({ pool, files, refusal }: PoolState): Verdict {
  const subject = `pool ${pool.name}`;
  if (refusal !== undefined)
    return { subject, verdict: 'Rejected', reason: 'KubeletRefuses', message: refusal };
  if (pool.tooOld.length > 0 && files.length > 0)
    return {
      subject,
      verdict: 'Pending',
      reason: 'UnsupportedVersion',
      message: `too old: ${listed(pool.tooOld)}`,
    };
  if (files.length === 0)
    return {
      subject,
      verdict: 'Accepted',
      reason: 'NothingToRender',
      message: "the platform's own file stays",
    };
  if (pool.rollout === 'Done')
    return { subject, verdict: 'Accepted', reason: 'RolledOut', message: 'every node has it' };
  return { subject, verdict: 'Pending', reason: pool.rollout, message: 'see the MachineConfigPool' };
}

function eventsOf(object: KubeObject, conditions: readonly ConditionInput[]): readonly EventNote[] {
  return conditions
    .filter(({ status }) => status === 'False')
    .map(({ reason, message }) => ({
      regarding: refOf(object),
      type: 'Warning',
      reason,
      action: 'Render',
      note: message.slice(0, 1024),
    }));
}

function poolGauge(pool: Pool): Sample {
  return {
    name: 'pullwright_credential_provider_pool_rolled_out',
    help: 'Whether every node of the pool has the rendered configuration',
    value: pool.rollout === 'Done' ? 1 : 0,
    labels: { pool: pool.name },
  };
}
