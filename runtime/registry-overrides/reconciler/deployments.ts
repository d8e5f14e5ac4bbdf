/**
 * One environment variable on the Deployments that look up images without a container runtime. Applies that variable only; stops
 * when another field manager removes it.
 */

import {
  isOwnershipUnknown,
  OWNERSHIP_UNKNOWN,
  type OwnershipMode,
  observedIn,
} from '../../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { recordsIn, textOf, valueAt } from '../../core/record.ts';
import type { Apply, FieldPatch, Reader, Ref } from '../../engine/contract.ts';
import { managersOf } from '../../kube/drift.ts';
import { OVERRIDES_ENV, parseOverridesFlag, sameOverrides } from '../overrides.ts';

/** Maximum characters: with a longer value (128 KiB with the name) the kernel does not start the container. */
export const MAX_VALUE = 131_000;

/** Deployments with the variable; each has a container with its own name. */
export const TARGETS: readonly string[] = ['control-plane-operator', 'ignition-server'];

const MANAGER = 'pullwright-registry-overrides';

/** State of the last reconcile, from the status, so that the decision depends on cluster state alone. */
export type Memory = Readonly<Record<string, string>>;

export interface DeploymentPlan {
  readonly apply: readonly Apply[];
  readonly verdicts: readonly EntryStatus[];
  /** State for the next reconcile. */
  readonly memory: Memory;
  /** The manager of a Deployment that we only observe. */
  readonly observed?: string;
  readonly contested: boolean;
}

/** A value that another writer removed is set again once after this time, because an upgrade also rewrites Deployments. */
const CONTEST_MS = 600_000;

interface OperatorDeploymentInput {
  readonly reader: Reader;
  readonly mode: OwnershipMode;
  /** Desired value. */
  readonly wanted: string;
  /** Value that HyperShift would write. */
  readonly upstream: string;
  readonly memory: Memory;
}

/** Plans the variable for both Deployments. */
export function planDeployments(input: OperatorDeploymentInput): DeploymentPlan {
  const plans = TARGETS.map((name) => planOne(input, name));
  const observed = plans.find((plan) => plan.observed !== undefined)?.observed;
  return {
    apply: plans.flatMap((plan) => plan.apply),
    verdicts: plans.flatMap((plan) => plan.verdicts),
    memory: Object.assign({}, ...plans.map((plan) => plan.memory)) as Memory,
    contested: plans.some((plan) => plan.contested),
    ...(observed === undefined ? {} : { observed }),
  };
}

export function deploymentRef(namespace: string, name: string): Ref {
  return { role: 'management', apiVersion: 'apps/v1', kind: 'Deployment', namespace, name };
}

const NOTHING: DeploymentPlan = { apply: [], verdicts: [], memory: {}, contested: false };

/** A plan with one verdict and the fields of `rest`. */
function saying(verdict: EntryStatus, rest: Partial<DeploymentPlan> = {}): DeploymentPlan {
  return { ...NOTHING, verdicts: [verdict], ...rest };
}

function planOne(input: OperatorDeploymentInput, name: string): DeploymentPlan {
  const { reader, mode } = input;
  const ref = deploymentRef(reader.scope.controlPlaneNamespace, name);
  const deployment = reader.get(ref);
  const { uid } = deployment?.metadata ?? {};
  if (deployment === undefined || uid === undefined) return NOTHING;
  const subject = `Deployment/${name}`;
  if (isOwnershipUnknown(mode, deployment))
    return saying({ subject, verdict: 'Pending', reason: 'OwnershipUnknown', message: OWNERSHIP_UNKNOWN });
  const container = named(valueAt(deployment.spec, 'template.spec.containers'), name);
  const operator = observedIn(mode, deployment);
  // An empty patch releases fields that we applied in mode own.
  if (operator !== undefined)
    return {
      ...observed(input.upstream, operator, subject, container),
      apply: isApplied(deployment, []) ? [{ part: { ...ref, uid }, fields: {} }] : [],
    };
  if (container === undefined) {
    const message = `it has no container "${name}", so ${OVERRIDES_ENV} cannot be set`;
    return saying({ subject, verdict: 'Rejected', reason: 'ContainerMissing', message });
  }
  return own(input, deployment, name, variableOf(container), uid);
}

function observed(upstream: string, operator: string, subject: string, container: Container | undefined) {
  // The operator sorts mirrors only since mid-2026, and adds the targets of its own flag to the value of its Deployments.
  const same = sameOverrides(variableOf(container) ?? '', upstream, { beside: flagTargets(container) });
  const message = same
    ? `${operator} keeps ${OVERRIDES_ENV} in sync with the mirror sets`
    : `${operator} manages ${OVERRIDES_ENV}, which differs from the mirror sets: restart ${operator}, or choose mode "own"`;
  return saying(
    { subject, verdict: same ? 'Accepted' : 'Warning', reason: same ? 'Observed' : 'Drifted', message },
    { observed: operator },
  );
}

function own(
  input: OperatorDeploymentInput,
  deployment: KubeObject,
  name: string,
  present: string | undefined,
  uid: string,
): DeploymentPlan {
  const { reader, mode, wanted, memory } = input;
  const subject = `Deployment/${name}`;
  const set = (value: string): FieldPatch => ({
    part: { ...deploymentRef(reader.scope.controlPlaneNamespace, name), uid },
    fields: {
      spec: { template: { spec: { containers: [{ name, env: [{ name: OVERRIDES_ENV, value }] }] } } },
    },
  });
  const confirmed = `confirmed.${name}`;
  if (wanted.length > MAX_VALUE) {
    const message = `${OVERRIDES_ENV} would have ${wanted.length} characters, must have at most ${MAX_VALUE}: select mirror sets with pullwright.dev/registry-overrides-allow on the HostedCluster`;
    // The value that we set before stays.
    const stays = isApplied(deployment, []) && present !== undefined;
    return saying(
      { subject, verdict: 'Rejected', reason: 'ValueTooLong', message },
      {
        apply: stays ? [set(present)] : [],
        memory: memory[confirmed] === undefined ? {} : { [confirmed]: memory[confirmed] },
      },
    );
  }
  // Another text with the same meaning would only restart pods.
  const keeps = present !== undefined && sameOverrides(present, wanted, { ordered: true });
  const apply = [{ ...set(keeps ? present : wanted), forceOwnership: mode === 'own' }];
  const applied = isApplied(deployment, valuePath(name));
  const inPlace = applied || keeps;
  if (inPlace || memory[confirmed] !== uid) {
    const message = `${OVERRIDES_ENV} is ${inPlace ? 'kept' : 'being set'}`;
    return saying(
      { subject, verdict: inPlace ? 'Accepted' : 'Pending', reason: 'Applied', message },
      { apply, memory: applied ? { [confirmed]: uid } : {} },
    );
  }
  return contested(input, name, uid, apply);
}

/**
 * Our field was seen on this Deployment and is missing now, so another field manager removed it. A stale value
 * of ours is not missing.
 */
function contested(
  { reader, memory }: OperatorDeploymentInput,
  name: string,
  uid: string,
  apply: readonly Apply[],
): DeploymentPlan {
  const since = Date.parse(memory[`contested.${name}`] ?? '');
  const tryAgain = since + CONTEST_MS <= reader.now.getTime();
  const from = Number.isNaN(since) || tryAgain ? reader.now : new Date(since);
  const message = `another writer removes ${OVERRIDES_ENV} repeatedly: it is set again in ten minutes; choose mode "observe", or stop the other writer`;
  return saying(
    { subject: `Deployment/${name}`, verdict: 'Warning', reason: 'Contested', message },
    {
      apply: tryAgain ? apply : [],
      memory: { [`confirmed.${name}`]: uid, [`contested.${name}`]: from.toISOString() },
      contested: true,
    },
  );
}

/** Path of the variable's value in managedFields. */
function valuePath(container: string): readonly string[] {
  const key = (name: string): string => `k:${JSON.stringify({ name })}`;
  return ['spec', 'template', 'spec', 'containers', key(container), 'env', key(OVERRIDES_ENV), 'value'];
}

/** Whether we apply the field at `path`, or any field for an empty path. */
function isApplied(deployment: KubeObject, path: readonly string[]): boolean {
  return managersOf(deployment, path).some(
    ({ manager, operation }) => manager === MANAGER && operation === 'Apply',
  );
}

const FLAG = '--registry-overrides';

/** Targets of the container's own flag, as one argument or two. */
function flagTargets({ command, args }: Container = {}): ReadonlyMap<string, string> {
  const words = [command, args].flatMap((list): readonly unknown[] => (Array.isArray(list) ? list : []));
  const at = words.findIndex((word) => word === FLAG || textOf(word).startsWith(`${FLAG}=`));
  const word = words[at] === FLAG ? words[at + 1] : words[at];
  return parseOverridesFlag(textOf(word).replace(`${FLAG}=`, '')) ?? new Map();
}

type Container = Readonly<Record<string, unknown>>;

function variableOf({ env }: Container = {}): string | undefined {
  const variable = named(env, OVERRIDES_ENV);
  return variable === undefined ? undefined : textOf(variable['value']);
}

function named(list: unknown, name: string): Container | undefined {
  return recordsIn(list).find((one) => one['name'] === name);
}
