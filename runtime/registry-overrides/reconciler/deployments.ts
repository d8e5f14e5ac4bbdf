/**
 * One environment variable on the Deployments that look up images without a container runtime. Only that variable is applied;
 * where somebody else takes it away again, we stop rather than fight.
 */

import {
  isOwnershipUnknown,
  OWNERSHIP_UNKNOWN,
  type OwnershipMode,
  observedIn,
} from '../../core/kubernetes/hypershift.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../core/kubernetes/object.ts';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import {
  type Apply,
  HOSTED_CLUSTER_NAMESPACE,
  type Reader,
  type Ref,
  type Watch,
} from '../../engine/contract.ts';
import {
  askedSources,
  formatImageOverrides,
  OVERRIDES_ENV,
  type OverrideMap,
  parseOverridesFlag,
  sameOverrides,
} from '../overrides.ts';

// The value of `OPENSHIFT_IMG_OVERRIDES`, and what of it is left out where all of it would be too long.

/** A longer one makes the kernel refuse to start the container. In characters; with the name, 128 KiB. */
export const MAX_VALUE = 131_000;

export interface VariableValue {
  /** May still be longer than {@link MAX_VALUE}. */
  readonly text: string;
  /** One for each source that is left out. */
  readonly verdicts: readonly EntryStatus[];
}

/**
 * The value for `overrides`. `images`, asked for only where the whole is too long: every image that the control plane was told of
 * by name.
 */
export function variableValue(overrides: OverrideMap, images: () => readonly string[]): VariableValue {
  const whole = formatImageOverrides(overrides, 'given');
  if (whole.length <= MAX_VALUE) return { text: whole, verdicts: [] };
  const { asked, never } = askedSources(overrides, images());
  const message = `with all ${overrides.size} sources ${OVERRIDES_ENV} would have ${whole.length} characters, at most ${MAX_VALUE} are possible: this one is left out, because no component of a control plane looks up an image of it; nodes follow it as before`;
  return {
    text: formatImageOverrides(asked, 'given'),
    verdicts: never.map((source) => ({
      subject: source,
      verdict: 'Warning',
      reason: 'NeverAsked',
      message,
    })),
  };
}

const NODE_POOL = {
  role: 'management',
  apiVersion: 'hypershift.openshift.io/v1beta1',
  kind: 'NodePool',
} as const;

export const OWN_NODE_POOLS_READ: Watch = {
  ...NODE_POOL,
  namespace: HOSTED_CLUSTER_NAMESPACE,
  optional: true,
};

/** Images that a control plane is told of by name: releases of the cluster and its NodePools, and what annotations name. */
export function imagesOfControlPlane(reader: Reader, cluster: KubeObject): readonly string[] {
  const { namespace, name, annotations } = cluster.metadata;
  const pools = reader
    .list({ ...NODE_POOL, namespace: namespace ?? '' })
    .filter(({ spec }) => (spec as { clusterName?: unknown } | undefined)?.clusterName === name);
  const { release, controlPlaneRelease } = (cluster.spec ?? {}) as Record<string, { image?: unknown } | null>;
  const { version } = (cluster.status ?? {}) as {
    version?: { history?: readonly ({ image?: unknown } | null)[] } | null;
  };
  const named: unknown[] = [
    release?.image,
    controlPlaneRelease?.image,
    ...(version?.history ?? []).map((one) => one?.image),
    ...pools.map(
      ({ spec }) => (spec as { release?: { image?: unknown } | null } | undefined)?.release?.image,
    ),
    // Images, or pairs of them.
    ...Object.values(annotations ?? {}).flatMap((value) => String(value).split(/[=,\s]+/)),
  ];
  return named.filter((image): image is string => typeof image === 'string' && image !== '');
}

/** Deployments that get the variable; each has a container of its own name. */
export const TARGETS: readonly string[] = ['control-plane-operator', 'ignition-server'];

export const MANAGER = 'pullwright-registry-overrides';

/** What was seen the last time: told by the status, so that the decision stays a function of the world. */
export type Memory = Readonly<Record<string, string>>;

export interface DeploymentPlan {
  readonly apply: readonly Apply[];
  readonly verdicts: readonly EntryStatus[];
  /** For the next time. */
  readonly memory: Memory;
  /** Who writes a Deployment that we only watch. */
  readonly observed?: string;
  readonly contested: boolean;
}

/** A value that was taken away from us is set again after this time, once: an upgrade also rewrites Deployments. */
export const CONTEST_MS = 600_000;

export interface OperatorDeploymentInput {
  readonly world: Reader;
  readonly mode: OwnershipMode;
  /** Value that we want. */
  readonly wanted: string;
  /** Value that HyperShift would write. */
  readonly upstream: string;
  readonly memory: Memory;
  /** Whether the mirror sets say what they said when the value was written. */
  readonly unchanged: boolean;
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

export function deploymentRef(reader: Reader, name: string): Ref {
  const namespace = reader.scope.controlPlaneNamespace;
  return { role: 'management', apiVersion: 'apps/v1', kind: 'Deployment', namespace, name };
}

const NOTHING: DeploymentPlan = { apply: [], verdicts: [], memory: {}, contested: false };

function planOne(input: OperatorDeploymentInput, name: string): DeploymentPlan {
  const ref = deploymentRef(input.world, name);
  const deployment = input.world.get(ref);
  if (deployment?.metadata.uid === undefined) return NOTHING;
  const part = { ...ref, uid: deployment.metadata.uid };
  const present = variableOf(deployment, name);
  const subject = `Deployment/${name}`;
  if (isOwnershipUnknown(input.mode, deployment)) return unknown(subject);
  const operator = observedIn(input.mode, deployment);
  if (operator !== undefined) return observe({ input, deployment, part, present, subject, name, operator });
  if (present === NO_CONTAINER) {
    const message = `it has no container "${name}", so ${OVERRIDES_ENV} cannot be set`;
    return { ...NOTHING, verdicts: [{ subject, verdict: 'Rejected', reason: 'ContainerMissing', message }] };
  }
  if (input.wanted.length > MAX_VALUE) return tooLong(input, { deployment, part, present, subject, name });
  const kept = keptText(input, deployment, present, name);
  const set: Apply = {
    part,
    fields: fieldsFor(name, kept ?? input.wanted),
    forceOwnership: input.mode === 'own',
  };
  const applied = valueIsOurs(deployment, name);
  return own(input, { set, present, kept, subject, name, uid: part.uid, applied });
}

function unknown(subject: string): DeploymentPlan {
  const verdict = {
    subject,
    verdict: 'Pending',
    reason: 'OwnershipUnknown',
    message: OWNERSHIP_UNKNOWN,
  } as const;
  return { ...NOTHING, verdicts: [verdict] };
}

/**
 * What is there, where another text would only restart pods: it means the same, or it is what an older version of us wrote, which
 * sorted mirrors, and the mirror sets have not changed since.
 */
function keptText(
  { wanted, unchanged }: OperatorDeploymentInput,
  deployment: KubeObject,
  present: string | undefined,
  name: string,
): string | undefined {
  if (present === undefined) return undefined;
  if (sameOverrides(present, wanted, { ordered: true })) return present;
  const mayBeOurs = deployment.metadata.managedFields === undefined || valueIsOurs(deployment, name);
  return mayBeOurs && unchanged && sameOverrides(present, wanted) ? present : undefined;
}

/** What we set before stays. */
function tooLong(
  { wanted, memory }: OperatorDeploymentInput,
  seen: Pick<Observed, 'deployment' | 'part' | 'present' | 'subject'> & { readonly name: string },
): DeploymentPlan {
  const { deployment, part, present, subject, name } = seen;
  const stays = isApplied(deployment) && present !== undefined;
  const message = `${OVERRIDES_ENV} would have ${wanted.length} characters, at most ${MAX_VALUE} are possible: choose mirror sets with pullwright.dev/registry-overrides-allow on the HostedCluster`;
  const confirmed = `confirmed.${name}`;
  return {
    ...NOTHING,
    apply: stays ? [{ part, fields: fieldsFor(name, present) }] : [],
    verdicts: [{ subject, verdict: 'Rejected', reason: 'ValueTooLong', message }],
    memory: memory[confirmed] === undefined ? {} : { [confirmed]: memory[confirmed] },
  };
}

interface Seen {
  readonly set: Apply;
  readonly present: string | undefined;
  /** What stays. */
  readonly kept: string | undefined;
  readonly subject: string;
  readonly name: string;
  readonly uid: string;
  /** Whether the variable's value is ours. */
  readonly applied: boolean;
}

/**
 * Fields of ours that were seen on this very Deployment and are no longer there were taken away by somebody else. A value that
 * merely is an old one of ours is not.
 */
function own({ world: reader, wanted, memory }: OperatorDeploymentInput, seen: Seen): DeploymentPlan {
  const { set, subject, name, uid, applied } = seen;
  const confirmed: Memory = { [`confirmed.${name}`]: uid };
  const inPlace = applied || seen.kept !== undefined;
  if (inPlace || memory[`confirmed.${name}`] !== uid) {
    const verdict = inPlace ? 'Accepted' : 'Pending';
    const message = `${OVERRIDES_ENV} is ${inPlace ? howKept(seen.kept, wanted) : 'being set'}`;
    return {
      ...NOTHING,
      apply: [set],
      verdicts: [{ subject, verdict, reason: 'Applied', message }],
      memory: applied ? confirmed : {},
    };
  }
  const since = Date.parse(memory[`contested.${name}`] ?? '');
  const tryAgain = since + CONTEST_MS <= reader.now.getTime();
  const contested =
    Number.isNaN(since) || tryAgain ? reader.now.toISOString() : new Date(since).toISOString();
  return {
    apply: tryAgain ? [set] : [],
    verdicts: [
      {
        subject,
        verdict: 'Warning',
        reason: 'Contested',
        message: `another writer takes ${OVERRIDES_ENV} away again: it is set again in ten minutes; choose mode "observe", or stop the other writer`,
      },
    ],
    memory: { ...confirmed, [`contested.${name}`]: contested },
    contested: true,
  };
}

function howKept(kept: string | undefined, wanted: string): string {
  const isOlder = kept !== undefined && !sameOverrides(kept, wanted, { ordered: true });
  return isOlder
    ? 'kept, with mirrors in the order of an earlier version until the mirror sets change'
    : 'kept';
}

/** Whether the variable has the value that we gave it last, by the fields that the API server knows as ours. */
function valueIsOurs(deployment: KubeObject, container: string): boolean {
  const key = (name: string): string => `k:${JSON.stringify({ name })}`;
  const path = ['spec', 'template', 'spec', 'containers'].map((field) => `f:${field}`);
  const whole = [...path, key(container), 'f:env', key(OVERRIDES_ENV), 'f:value'];
  return ourEntries(deployment).some(({ fieldsV1 }) => {
    let node: unknown = fieldsV1;
    for (const step of whole) node = (node as Readonly<Record<string, unknown>> | undefined)?.[step];
    return node !== undefined;
  });
}

function isApplied(deployment: KubeObject): boolean {
  return ourEntries(deployment).length > 0;
}

function ourEntries(deployment: KubeObject): readonly ManagedFieldsEntry[] {
  const entries = deployment.metadata.managedFields ?? [];
  return entries.filter((entry) => entry.manager === MANAGER && entry.operation === 'Apply');
}

interface Observed {
  readonly input: OperatorDeploymentInput;
  readonly deployment: KubeObject;
  readonly part: Ref & { readonly uid: string };
  readonly present: string | undefined;
  readonly subject: string;
  readonly name: string;
  readonly operator: string;
}

function observe({ input, deployment, part, present, subject, name, operator }: Observed): DeploymentPlan {
  // The operator has sorted mirrors only since mid-2026, and gives what it starts the targets of its own flag too.
  const beside = flagTargets(deployment, name);
  const same = sameOverrides(present ?? '', input.upstream, { beside });
  const message = same
    ? `${operator} keeps ${OVERRIDES_ENV} as the mirror sets say`
    : `${operator} keeps ${OVERRIDES_ENV}, and it is not what the mirror sets say: restart ${operator}, or choose mode "own"`;
  return {
    ...NOTHING,
    // An empty part gives up what we applied before we only watched.
    apply: isApplied(deployment) ? [{ part, fields: {} }] : [],
    verdicts: [
      { subject, verdict: same ? 'Accepted' : 'Warning', reason: same ? 'Observed' : 'Drifted', message },
    ],
    observed: operator,
  };
}

const FLAG = '--registry-overrides';

/** Targets of the container's own flag, as one argument or two. */
function flagTargets(deployment: KubeObject, container: string): ReadonlyMap<string, string> {
  const { command, args } = (containerOf(deployment, container) ?? {}) as {
    readonly command?: unknown;
    readonly args?: unknown;
  };
  const words = [command, args].flatMap((list): readonly unknown[] => (Array.isArray(list) ? list : []));
  const at = words.findIndex(
    (word) => word === FLAG || (typeof word === 'string' && word.startsWith(`${FLAG}=`)),
  );
  const word = words[at] === FLAG ? words[at + 1] : words[at];
  const value = typeof word === 'string' ? word.replace(`${FLAG}=`, '') : '';
  return parseOverridesFlag(value) ?? new Map();
}

const NO_CONTAINER = '\u0000';

/** The variable's value; undefined when it is not set, {@link NO_CONTAINER} without such a container. */
function variableOf(deployment: KubeObject, container: string): string | undefined {
  const found = containerOf(deployment, container) as { readonly env?: unknown } | undefined;
  if (found === undefined) return NO_CONTAINER;
  const variable = named(found.env, OVERRIDES_ENV) as { readonly value?: unknown } | undefined;
  if (variable === undefined) return undefined;
  return typeof variable.value === 'string' ? variable.value : '';
}

function containerOf(deployment: KubeObject, container: string): unknown {
  const spec = deployment.spec as { template?: { spec?: { containers?: unknown } } } | undefined;
  return named(spec?.template?.spec?.containers, container);
}

function named(list: unknown, name: string): unknown {
  if (!Array.isArray(list)) return undefined;
  return (list as readonly ({ readonly name?: unknown } | null)[]).find((one) => one?.name === name);
}

function fieldsFor(container: string, value: string): { readonly spec: unknown } {
  const env = [{ name: OVERRIDES_ENV, value }];
  return { spec: { template: { spec: { containers: [{ name: container, env }] } } } };
}
