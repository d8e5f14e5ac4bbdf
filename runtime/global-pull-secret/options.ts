/**
 * The section `systems.global-pull-secret` of a fleet, as it is written and as it is checked.
 *
 * `createConfigNamespace` is off unless asked for: `kubectl delete -k` would take the namespace of the platform with it.
 */

import { z } from 'zod';
import { UsageError } from '../core/errors.ts';
import { parseGoDuration } from '../core/go/duration.ts';
import {
  countOrPercent,
  dnsName,
  durationField,
  imageReference,
  labelMap,
} from '../core/kubernetes/fields.ts';
import { type LabelRequirement, readSelector } from '../core/kubernetes/label-selector.ts';
import type { Resources, Toleration } from '../core/kubernetes/objects.ts';
import { isRecord } from '../core/record.ts';
import { DEFAULT_IMAGE } from '../core/version.ts';
import { ELIGIBLE_PLATFORMS } from './eligibility.ts';
import type { RemovalOptions } from './removal-guard.ts';
import { type SecretSource, secretSourceSchema } from './secret-source.ts';

/** `off` renders no policy. */
export type Enforcement = 'warn' | 'deny' | 'off';

/** A selector as Kubernetes has it: all of it must hold. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/** The section, as it is written. Every field may be left out. */
export interface GlobalPullSecretInput {
  /** The node agent. Its image is the fleet's unless said otherwise. */
  readonly agent?: Partial<Omit<AgentOptions, 'removals'>>;
  /** What makes `additional-pull-secret`. @default nothing: its owner does */
  readonly source?: SecretSource;
  /** What admission does with an `additional-pull-secret` of the wrong type or without its key. @default {'warn'} */
  readonly enforce?: Enforcement;
  /** Whether objects that HyperShift's own operator manages are written. @default {'auto'} */
  readonly mode?: 'auto' | 'own' | 'observe';
  /** Platforms whose Replace pools are eligible. @default {['AWS', 'Azure']} */
  readonly platforms?: readonly string[];
  /**
   * Label selector of nodes that get the credentials beside those of eligible pools, such as those of Karpenter by
   * `{matchExpressions: [{key: karpenter.sh/nodepool, operator: Exists}]}`. Never a node whose files the Machine Config Operator
   * writes. @default {all Linux nodes when stand-alone, else none}
   */
  readonly nodes?: LabelSelector;
  /** How much a change of the platform's pull secret may remove without a confirmation. */
  readonly removals?: {
    /** Share of its entries, from 0 to 1. @default {0.5} */
    readonly share?: number;
    /** A removal that is held goes on after this long. @default {'never'} */
    readonly delay?: string;
  };
  /** Render Namespace `openshift-config`, for clusters that are no OpenShift. @default {false} */
  readonly createConfigNamespace?: boolean;
}

const agent = z
  .strictObject({
    image: imageReference().exactOptional().describe('Default: the image of the cluster'),
    shape: z
      .enum(['pullwright', 'upstream'])
      .exactOptional()
      .describe('"upstream" is the DaemonSet of HyperShift, field by field; needs delivery "reconciler"'),
    security: z
      .enum(['privileged', 'restricted'])
      .exactOptional()
      .describe('"restricted" keeps only the needed capabilities; untested on hosts with SELinux'),
    seLinuxType: z
      .string()
      .min(1)
      .max(253)
      .exactOptional()
      .describe('SELinux type, with security "restricted"'),
    foreign: z
      .enum(['drop', 'keep'])
      .exactOptional()
      .describe("Entries that others put into the kubelet's file"),
    restart: z
      .enum(['on-change', 'on-removal', 'never'])
      .exactOptional()
      .describe('When the kubelet is restarted'),
    restartWindow: z
      .union([z.literal('auto'), durationField()])
      .exactOptional()
      .describe('Window over which restarts spread, such as "5m"; "auto" books turns and needs a token'),
    watch: z
      .boolean()
      .exactOptional()
      .describe('Each agent watches the two Secrets beside their mounts; default true; needs a token'),
    report: z
      .boolean()
      .exactOptional()
      .describe('Each agent writes a PullStatus and Events about its node; default true; needs a token'),
    maxUnavailable: countOrPercent()
      .exactOptional()
      .describe('Pods replaced at once when the DaemonSet changes'),
    priorityClassName: dnsName()
      .exactOptional()
      .describe('Its priority class; default by the kind of the cluster'),
    resources: z
      .strictObject({
        requests: labelMap().exactOptional().describe('What it is sure to get'),
        limits: labelMap().exactOptional().describe('What it may use at most'),
      })
      .exactOptional()
      .describe('CPU and memory of the agent'),
    tolerations: z
      .array(
        z.strictObject({
          key: z.string().exactOptional().describe('Key of a taint; none for all'),
          operator: z.enum(['Exists', 'Equal']).exactOptional().describe('Whether the value counts'),
          value: z.string().exactOptional().describe('Value of the taint, for Equal'),
          effect: z
            .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
            .exactOptional()
            .describe('Effect of the taint; none for all'),
        }),
      )
      .exactOptional()
      .describe('Default: every taint'),
    alsoNodes: z
      .array(labelMap().refine((one) => Object.keys(one).length > 0, 'expected at least one label'))
      .exactOptional()
      .describe('Nodes beside the eligible ones: any of these label maps'),
    metrics: z
      .strictObject({
        tlsSecret: dnsName().describe('Secret in kube-system with tls.crt, tls.key and ca.crt'),
      })
      .exactOptional()
      .describe("Serve metrics with TLS on the node's address, and render a PodMonitor"),
    healthPort: z
      .int()
      .min(1)
      .max(65535)
      .exactOptional()
      .describe('Port of /healthz and /readyz on the node'),
    logLevel: z.enum(['debug', 'info', 'warn', 'error']).exactOptional().describe('What is logged'),
    janitor: z.boolean().exactOptional().describe('Remove CRI-O auth files that nothing uses any more'),
  })
  .refine((one) => one.seLinuxType === undefined || one.security === 'restricted', {
    path: ['seLinuxType'],
    error: 'only with security "restricted": a privileged container has no SELinux confinement',
  });

function labelSelector(): z.ZodType<LabelSelector, LabelSelector> {
  return z.strictObject({
    matchLabels: labelMap().exactOptional().describe('Labels that a node must have, all of them'),
    matchExpressions: z
      .array(
        z.strictObject({
          key: z.string().min(1).max(317).describe('Key of a label'),
          operator: z
            .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'])
            .describe('What must be the case with the label of this key'),
          values: z.array(z.string().max(63)).exactOptional().describe('Values, for In and NotIn'),
        }),
      )
      .exactOptional()
      .describe('Further demands on labels, which must all hold'),
  });
}

export const schema: z.ZodType<GlobalPullSecretInput, GlobalPullSecretInput> = z.strictObject({
  agent: agent.exactOptional().describe('The node agent'),
  source: secretSourceSchema.exactOptional().describe('What makes additional-pull-secret'),
  enforce: z
    .enum(['warn', 'deny', 'off'])
    .exactOptional()
    .describe('Admission policy for additional-pull-secret'),
  mode: z.enum(['auto', 'own', 'observe']).exactOptional().describe("Beside HyperShift's own operator"),
  platforms: z
    .array(z.string().min(1))
    .min(1)
    .exactOptional()
    .describe('Platforms whose Replace pools are eligible'),
  nodes: labelSelector()
    .exactOptional()
    .describe('Label selector of nodes that get the credentials beside those of eligible pools'),
  removals: z
    .strictObject({
      share: z.number().min(0).max(1).exactOptional().describe('Share of its entries; default 0.5'),
      delay: durationField()
        .exactOptional()
        .describe('A removal that is held goes on after this long; default never'),
    })
    .exactOptional()
    .describe("What a change of the platform's pull secret may remove without a confirmation"),
  createConfigNamespace: z
    .boolean()
    .exactOptional()
    .describe('Render Namespace openshift-config where it is missing'),
});

// Options of the node agent and of the objects around it, with their defaults: what the fleet file and the reconciler both use.

/** How the DaemonSet looks: ours, or the one of HyperShift's operator, field by field. */
export type DaemonSetShape = 'pullwright' | 'upstream';

/** The node agent: one pod per eligible node. */
export interface AgentOptions {
  /** Image of the DaemonSet. */
  readonly image: string;
  /** Secrets of `kube-system` that the pods pull it with. @default none */
  readonly imagePullSecrets?: readonly string[];
  /** `upstream` mounts the merged secret only when there is one and rolls the pods with every change. @default {'pullwright'} */
  readonly shape?: DaemonSetShape;
  /** `restricted` drops all but the needed capabilities; untested on hosts with SELinux. @default {'privileged'} */
  readonly security?: 'privileged' | 'restricted';
  /** SELinux type of the container, for `restricted` on hosts with SELinux. */
  readonly seLinuxType?: string;
  /** What happens to entries that others put into the kubelet's file. @default {'keep'}; in a hosted cluster, whose file is HyperShift's, {'drop'} */
  readonly foreign?: 'drop' | 'keep';
  /** What agents do about a Secret that the reconciler has not judged; set from `removals` of the system. */
  readonly removals?: { readonly share?: number; readonly delay?: string };
  /** When the kubelet is restarted. @default {'on-change'} */
  readonly restart?: 'on-change' | 'on-removal' | 'never';
  /**
   * Window over which the restarts of a fleet spread, such as `5m`; `auto`: nodes book turns, so that a tenth of them restarts at
   * once, one node without a wait and any number within about a minute; needs an API token in the pod. @default {'auto'}
   */
  readonly restartWindow?: string;
  /** Each agent watches the two Secrets beside their mounts, which lag by a minute; needs an API token in the pod. @default {true} */
  readonly watch?: boolean;
  /** Each agent writes a PullStatus and Events about its node; needs an API token in the pod. @default {true} */
  readonly report?: boolean;
  /** Pods replaced at once when the DaemonSet itself changes. @default {'10%'} */
  readonly maxUnavailable?: number | string;
  /** @default {'system-node-critical'}, which every cluster has; in a hosted cluster {'openshift-user-critical'} */
  readonly priorityClassName?: string;
  readonly resources?: Resources;
  /** Which nodes tolerate it. @default every taint */
  readonly tolerations?: readonly Toleration[];
  /** Nodes beside those with the eligibility label: any of these label maps. Replaces the nodeSelector by an affinity. */
  readonly alsoNodes?: readonly Readonly<Record<string, string>>[];
  /** Serves metrics on the node's address, port 9547, and renders a PodMonitor. @default {metrics on loopback only} */
  readonly metrics?: {
    /** Secret in `kube-system` with `tls.crt`, `tls.key` and `ca.crt` for {@link METRICS_NAME}, as cert-manager writes it. */
    readonly tlsSecret: string;
  };
  /** Port of the probes, on loopback of the node. @default {947} */
  readonly healthPort?: number;
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error';
  /** Removes CRI-O auth files that nothing uses any more. @default {false} */
  readonly janitor?: boolean;
}

/** Only for `shape: upstream`, and only known at run time. */
export interface UpstreamState {
  /** Label value: 8 hexadecimal digits. */
  readonly configHash: string;
  /** Whether an additional secret is there, so that the merged one is mounted. */
  readonly merged: boolean;
}

/** Name that the certificate of the metrics is for. */
export const METRICS_NAME = 'global-pull-secret-syncer.kube-system.svc';
/** In a stand-alone cluster, entries that are not ours belong to the administrator of the nodes. */
export const STANDALONE_AGENT: Pick<AgentOptions, 'foreign'> = { foreign: 'keep' };
/** The class that HyperShift's DaemonSet has; plain Kubernetes knows no such class, and would make no pod. */
export const OPENSHIFT_PRIORITY_CLASS = 'openshift-user-critical';
export const HASH_LABEL = 'hypershift.openshift.io/globalps-config-hash';

/** Whether agents tell the API server about their nodes; HyperShift's own cannot. */
export function reports(options: Pick<AgentOptions, 'report' | 'shape'>): boolean {
  return options.report !== false && options.shape !== 'upstream';
}

/** Whether nodes book their turns; not where nothing restarts. */
export function booksTurns({
  restart,
  restartWindow = 'auto',
}: Pick<AgentOptions, 'restart' | 'restartWindow'>): boolean {
  return restartWindow === 'auto' && restart !== 'never';
}

// The options of the node agent as they stand in the configuration of `reconcile`: each is checked before a DaemonSet has it.

type Wanted = readonly [test: (value: unknown) => boolean, wanted: string];

const oneOf = (...names: readonly string[]): Wanted => [
  (value) => names.includes(value as string),
  `one of ${names.join(', ')}`,
];
const whole = (from: number, to: number): Wanted => [
  (value) => Number.isInteger(value) && (value as number) >= from && (value as number) <= to,
  `a whole number from ${from} to ${to}`,
];
const TEXT: Wanted = [(value) => typeof value === 'string' && value !== '', 'a text'];
const FLAG: Wanted = [(value) => typeof value === 'boolean', 'true or false'];
const MAP: Wanted = [(value) => isRecord(value), 'a map'];
const NAMES: Wanted = [
  (value) => Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== ''),
  'a list of names',
];
const DURATION: Wanted = [
  (value) => typeof value === 'string' && (parseGoDuration(value) ?? -1) >= 0,
  'a duration, such as 5m',
];
const WINDOW: Wanted = [(value) => value === 'auto' || DURATION[0](value), 'auto, or a duration such as 5m'];
const COUNT: Wanted = [
  (value) =>
    (Number.isInteger(value) && (value as number) >= 1) ||
    (typeof value === 'string' && /^(100|[1-9]?\d)%$/.test(value)),
  'a number of at least 1, or a share such as "10%"',
];

/** Every element of a list, every value of a map; what is wanted is said of the whole. */
const every = (test: (value: unknown) => boolean, value: readonly unknown[]): boolean => value.every(test);
const isText = (value: unknown): boolean => typeof value === 'string';
const isMap = (value: unknown): value is Readonly<Record<string, unknown>> => MAP[0](value);
const onlyFields = (value: unknown, fields: Readonly<Record<string, (one: unknown) => boolean>>): boolean =>
  isMap(value) &&
  Object.entries(value).every(([name, one]) => Object.hasOwn(fields, name) && fields[name]?.(one) === true);
const isTextMap = (value: unknown): boolean => isMap(value) && every(isText, Object.values(value));

const RESOURCES: Wanted = [
  (value) => onlyFields(value, { requests: isTextMap, limits: isTextMap }),
  'requests and limits, each a map such as {memory: 64Mi}',
];
const TOLERATIONS: Wanted = [
  (value) =>
    Array.isArray(value) &&
    every(
      (one) =>
        onlyFields(one, {
          key: isText,
          operator: (operator) => ['Exists', 'Equal'].includes(operator as string),
          value: isText,
          effect: (effect) => ['NoSchedule', 'PreferNoSchedule', 'NoExecute'].includes(effect as string),
        }),
      value,
    ),
  'a list of tolerations, each with key, operator (Exists or Equal), value and effect as Kubernetes has them',
];
const LABEL_MAPS: Wanted = [
  (value) =>
    Array.isArray(value) && every((one) => isTextMap(one) && Object.keys(one as object).length > 0, value),
  'a list of maps of labels, none of them empty',
];
const METRICS: Wanted = [
  (value) => onlyFields(value, { tlsSecret: TEXT[0] }) && 'tlsSecret' in (value as object),
  'a map with tlsSecret, the name of a Secret',
];

const FIELDS: {
  readonly [F in keyof Required<Omit<AgentOptions, 'removals'>>]: Wanted;
} = {
  image: TEXT,
  imagePullSecrets: NAMES,
  shape: oneOf('pullwright', 'upstream'),
  security: oneOf('privileged', 'restricted'),
  seLinuxType: TEXT,
  foreign: oneOf('drop', 'keep'),
  restart: oneOf('on-change', 'on-removal', 'never'),
  restartWindow: WINDOW,
  watch: FLAG,
  report: FLAG,
  maxUnavailable: COUNT,
  priorityClassName: TEXT,
  resources: RESOURCES,
  tolerations: TOLERATIONS,
  alsoNodes: LABEL_MAPS,
  metrics: METRICS,
  healthPort: whole(1, 65_535),
  logLevel: oneOf('debug', 'info', 'warn', 'error'),
  janitor: FLAG,
};

/** Takes the options that are as wanted; what is wrong with the others goes to `problems`. */
export function readAgentOptions(raw: unknown, problems: string[]): Partial<AgentOptions> {
  if (!MAP[0](raw)) {
    problems.push('agent: must be a map of options');
    return {};
  }
  const fields = raw as Readonly<Record<string, unknown>>;
  for (const [name, value] of Object.entries(fields)) {
    const wanted = Object.hasOwn(FIELDS, name) ? FIELDS[name as keyof typeof FIELDS] : undefined;
    if (wanted === undefined)
      problems.push(`agent.${name}: no such option, expected one of ${Object.keys(FIELDS).join(', ')}`);
    else if (!wanted[0](value)) problems.push(`agent.${name}: must be ${wanted[1]}`);
  }
  // Upstream's DaemonSet starts control-plane-operator, which no image of ours holds.
  if (fields['shape'] === 'upstream' && fields['image'] === undefined)
    problems.push(
      'agent.image: shape "upstream" needs the image of HyperShift that holds control-plane-operator',
    );
  return fields;
}

// Options of the global pull secret reconciler, read from the configuration of `reconcile`.

export interface GlobalPullSecretOptions {
  /** `reconciler`: apply DaemonSet and RBAC; `gitops`: they are in git, report when they are missing. @default {'reconciler'} */
  readonly delivery: 'reconciler' | 'gitops';
  /** `auto` observes where HyperShift's operator is seen to manage the objects, else owns. @default {'auto'} */
  readonly mode: 'auto' | 'own' | 'observe';
  /** Platforms whose Replace pools are eligible. @default {['AWS', 'Azure']} */
  readonly platforms: readonly string[];
  /** Nodes that get the credentials beside those of eligible pools. @default all Linux nodes when stand-alone, else none */
  readonly nodes?: readonly LabelRequirement[];
  /** What admission does with an additional secret of the wrong form. @default {'warn'} */
  readonly enforce: Enforcement;
  /** How much a change of the platform's pull secret may remove without a confirmation. */
  readonly removals?: RemovalOptions;
  /** The node agent; `image` is the executable's image. */
  readonly agent: AgentOptions;
  /** Hosted clusters that differ, by `<namespace>/<name>` of their HostedCluster. @default none differs */
  readonly clusters?: ReadonlyMap<string, GlobalPullSecretOptions>;
}

/** The options for one cluster. Hosted clusters are OpenShift, where the agent has the priority class of HyperShift's own. */
export function optionsFor(options: GlobalPullSecretOptions, scope: string): GlobalPullSecretOptions {
  const own = options.clusters?.get(scope) ?? options;
  return scope === 'local'
    ? { ...own, agent: { ...STANDALONE_AGENT, ...own.agent } }
    : { ...own, agent: { priorityClassName: OPENSHIFT_PRIORITY_CLASS, ...own.agent } };
}

/**
 * Checks a map of options.
 *
 * @throws UsageError that names every wrong field
 */
export function parseOptions(raw: Readonly<Record<string, unknown>>): GlobalPullSecretOptions {
  const problems: string[] = [];
  const choice = <T extends string>(field: string, allowed: readonly T[], fallback: T): T => {
    const value = raw[field] ?? fallback;
    if (allowed.includes(value as T)) return value as T;
    problems.push(`${field}: must be one of ${allowed.join(', ')}`);
    return fallback;
  };
  for (const field of Object.keys(raw)) {
    if (
      !['delivery', 'mode', 'platforms', 'nodes', 'enforce', 'removals', 'agent', 'clusters'].includes(field)
    )
      problems.push(
        `${field}: no such option, expected delivery, mode, platforms, nodes, enforce, removals, agent or clusters`,
      );
  }
  const platforms = raw['platforms'] ?? ELIGIBLE_PLATFORMS;
  if (!Array.isArray(platforms) || platforms.some((one) => typeof one !== 'string'))
    problems.push('platforms: must be a list of names');
  const agent = readAgentOptions(raw['agent'] ?? {}, problems);
  const options: GlobalPullSecretOptions = {
    delivery: choice('delivery', ['reconciler', 'gitops'], 'reconciler'),
    mode: choice('mode', ['auto', 'own', 'observe'], 'auto'),
    platforms: platforms as readonly string[],
    enforce: choice('enforce', ['warn', 'deny', 'off'], 'warn'),
    ...nodes(raw, problems),
    ...removals(raw, problems),
    agent: {
      image: DEFAULT_IMAGE,
      ...agent,
      ...removalsOfAgent(raw),
    },
  };
  if (problems.length > 0)
    throw new UsageError(`Cannot use the options of global-pull-secret: ${problems.join('; ')}`);
  const clusters = parseClusters(raw);
  return clusters === undefined ? options : { ...options, clusters };
}

/** `nodes` is a label selector, as Kubernetes has it. */
function nodes(
  raw: Readonly<Record<string, unknown>>,
  problems: string[],
): Pick<GlobalPullSecretOptions, 'nodes'> {
  if (raw['nodes'] === undefined) return {};
  const read = readSelector(raw['nodes']);
  if (read.ok) return { nodes: read.requirements };
  problems.push(`nodes: ${read.problem}`);
  return {};
}

/** `removals: {share: 0.5, delay: 24h}`; both may be left out. */
function removals(
  raw: Readonly<Record<string, unknown>>,
  problems: string[],
): { readonly removals?: RemovalOptions } {
  const value = raw['removals'];
  if (value === undefined) return {};
  if (!isRecord(value)) {
    problems.push('removals: must be a map of share and delay');
    return {};
  }
  const { share, delay, ...rest } = value;
  for (const unknown of Object.keys(rest))
    problems.push(`removals.${unknown}: no such option, expected share or delay`);
  return { removals: { ...shareOf(share, problems), ...delayOf(delay, problems) } };
}

/** The agents judge by the same numbers what the reconciler has not written. */
function removalsOfAgent({
  removals: given,
}: Readonly<Record<string, unknown>>): Pick<AgentOptions, 'removals'> {
  return given === undefined ? {} : { removals: given as NonNullable<AgentOptions['removals']> };
}

function shareOf(share: unknown, problems: string[]): Pick<RemovalOptions, 'share'> {
  if (typeof share === 'number' && share >= 0 && share <= 1) return { share };
  if (share !== undefined) problems.push('removals.share: must be a number from 0 to 1');
  return {};
}

function delayOf(delay: unknown, problems: string[]): Pick<RemovalOptions, 'delayMs'> {
  const nanoseconds = typeof delay === 'string' ? parseGoDuration(delay) : undefined;
  if (nanoseconds !== undefined && nanoseconds >= 0) return { delayMs: nanoseconds / 1e6 };
  if (delay !== undefined) problems.push('removals.delay: must be a duration, such as 24h');
  return {};
}

/** Each cluster has the options of all, with its own over them. */
function parseClusters(
  raw: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, GlobalPullSecretOptions> | undefined {
  const { clusters, ...common } = raw;
  if (clusters === undefined) return undefined;
  if (!isRecord(clusters))
    throw new UsageError(
      'Cannot use the options of global-pull-secret: clusters: expected a map by namespace/name',
    );
  return new Map(
    Object.entries(clusters as Readonly<Record<string, object>>).map(([scope, own]) => [
      scope,
      parseOptions({ ...common, ...own }),
    ]),
  );
}
