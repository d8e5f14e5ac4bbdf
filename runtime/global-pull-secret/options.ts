/**
 * The section `systems.global-pull-secret` of a fleet: schema, types and defaults.
 *
 * `createConfigNamespace` is off by default: `kubectl delete -k` would also delete the platform's namespace.
 */

import { z } from 'zod';
import { parseGoDuration } from '../core/go/duration.ts';
import {
  countOrPercent,
  dnsName,
  durationField,
  imageReference,
  labelMap,
} from '../core/kubernetes/fields.ts';
import { labelSelectorSchema } from '../core/kubernetes/kind.ts';
import { type LabelRequirement, readSelector } from '../core/kubernetes/label-selector.ts';
import { readOptions } from '../core/kubernetes/read-spec.ts';
import { DEFAULT_IMAGE } from '../core/version.ts';
import { ELIGIBLE_PLATFORMS } from './eligibility.ts';
import type { RemovalOptions } from './removal-guard.ts';
import { secretSourceSchema } from './secret-source.ts';

const agent = z
  .strictObject({
    image: imageReference.exactOptional().describe('Default: the image of the cluster'),
    shape: z
      .enum(['pullwright', 'upstream'])
      .exactOptional()
      .describe('"upstream" is the DaemonSet of HyperShift, field by field; requires delivery "reconciler"'),
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
      .describe("Entries that others add to the kubelet's file"),
    restart: z
      .enum(['on-change', 'on-removal', 'never'])
      .exactOptional()
      .describe('When the kubelet is restarted'),
    restartWindow: z
      .union([z.literal('auto'), durationField])
      .exactOptional()
      .describe('Window over which restarts spread, such as "5m"; "auto" books turns and requires a token'),
    watch: z
      .boolean()
      .exactOptional()
      .describe('Each agent also watches the two Secrets; default true; requires a token'),
    report: z
      .boolean()
      .exactOptional()
      .describe('Each agent writes a PullStatus and Events about its node; default true; requires a token'),
    maxUnavailable: countOrPercent
      .exactOptional()
      .describe('Pods replaced at once when the DaemonSet changes'),
    priorityClassName: dnsName
      .exactOptional()
      .describe('Its priority class; default by the kind of the cluster'),
    resources: z
      .strictObject({
        requests: labelMap.exactOptional().describe('Resource requests'),
        limits: labelMap.exactOptional().describe('Resource limits'),
      })
      .exactOptional()
      .describe('CPU and memory of the agent'),
    tolerations: z
      .array(
        z.strictObject({
          key: z.string().exactOptional().describe('Key of a taint; none for all'),
          operator: z.enum(['Exists', 'Equal']).exactOptional().describe('Whether the value must match'),
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
      .array(labelMap.refine((one) => Object.keys(one).length > 0, 'expected at least one label'))
      .exactOptional()
      .describe('More nodes than the eligible ones: any of these label maps'),
    metrics: z
      .strictObject({
        tlsSecret: dnsName.describe('Secret in kube-system with tls.crt, tls.key and ca.crt'),
      })
      .exactOptional()
      .describe("Serve metrics with TLS on the node's address, and render a PodMonitor"),
    healthPort: z
      .int()
      .min(1)
      .max(65535)
      .exactOptional()
      .describe('Port of /healthz and /readyz on the node'),
    logLevel: z.enum(['debug', 'info', 'warn', 'error']).exactOptional().describe('Log level'),
    janitor: z.boolean().exactOptional().describe('Remove unused CRI-O auth files'),
  })
  .refine((one) => one.seLinuxType === undefined || one.security === 'restricted', {
    path: ['seLinuxType'],
    error: 'only with security "restricted": a privileged container has no SELinux confinement',
  });

/** `off` renders no policy. */
const enforce = z.enum(['warn', 'deny', 'off']);
export type Enforcement = z.infer<typeof enforce>;

const mode = z.enum(['auto', 'own', 'observe']);
const platforms = z.array(z.string().min(1)).min(1);

export const schema = z.strictObject({
  agent: agent.exactOptional().describe('The node agent'),
  source: secretSourceSchema.exactOptional().describe('Source of additional-pull-secret'),
  enforce: enforce.exactOptional().describe('Admission policy for additional-pull-secret'),
  mode: mode.exactOptional().describe("How to coexist with HyperShift's operator"),
  platforms: platforms.exactOptional().describe('Platforms whose Replace pools are eligible'),
  nodes: labelSelectorSchema('nodes')
    .exactOptional()
    .describe('Label selector of nodes that get the credentials in addition to eligible pools'),
  removals: z
    .strictObject({
      share: z.number().min(0).max(1).exactOptional().describe('Share of its entries; default 0.5'),
      delay: durationField.exactOptional().describe('A held removal proceeds after this long; default never'),
    })
    .exactOptional()
    .describe("What a change of the platform's pull secret may remove unconfirmed"),
  createConfigNamespace: z
    .boolean()
    .exactOptional()
    .describe('Render Namespace openshift-config if it is missing'),
});

/** The section as written in the fleet file. */
export type GlobalPullSecretInput = z.infer<typeof schema>;

// Options of the node agent and its objects, with defaults; shared by the fleet file and the reconciler.

/** The node agent: one pod per eligible node. */
export interface AgentOptions extends Omit<z.infer<typeof agent>, 'image'> {
  /** Image of the DaemonSet. */
  readonly image: string;
  /** imagePullSecrets of the pods, in `kube-system`. @default none */
  readonly imagePullSecrets?: readonly string[];
  /** Removal limits of agents for a Secret without the reconciler's mark; set from `removals` of the system. */
  readonly removals?: GlobalPullSecretInput['removals'] & {};
}

/** Input for `shape: upstream`, known only at run time. */
export interface UpstreamState {
  /** Label value: 8 hexadecimal digits. */
  readonly configHash: string;
  /** Whether the additional secret exists, so that the merged one is mounted. */
  readonly merged: boolean;
}

/** Server name in the certificate of the metrics endpoint. */
export const METRICS_NAME = 'global-pull-secret-syncer.kube-system.svc';
/** In a stand-alone cluster, foreign entries belong to the administrator of the nodes. */
export const STANDALONE_AGENT: Pick<AgentOptions, 'foreign'> = { foreign: 'keep' };
/** The class of HyperShift's DaemonSet. Plain Kubernetes lacks this class and would reject the pods. */
export const OPENSHIFT_PRIORITY_CLASS = 'openshift-user-critical';
export const HASH_LABEL = 'hypershift.openshift.io/globalps-config-hash';

/** Options that decide the agents' RBAC. */
export type AgentRights = Pick<AgentOptions, 'report' | 'restart' | 'restartWindow' | 'shape' | 'watch'>;

/** Whether agents report node state to the API server; HyperShift's own agent cannot. */
export function reports(options: Pick<AgentOptions, 'report' | 'shape'>): boolean {
  return options.report !== false && options.shape !== 'upstream';
}

/** Whether nodes book restart turns; never when the kubelet is not restarted, nor by HyperShift's own agent. */
export function booksTurns({ restart, restartWindow = 'auto', shape }: AgentRights): boolean {
  return restartWindow === 'auto' && restart !== 'never' && shape !== 'upstream';
}

// Options of the global pull secret reconciler, from the configuration of `reconcile`.

const runTimeSchema = z.strictObject({
  ...schema.pick({ nodes: true, removals: true }).shape,
  delivery: z.enum(['reconciler', 'gitops']).default('reconciler'),
  mode: mode.default('auto'),
  platforms: platforms.readonly().default(ELIGIBLE_PLATFORMS),
  enforce: enforce.default('warn'),
  agent: agent
    .safeExtend({ imagePullSecrets: z.array(dnsName).exactOptional() })
    // Upstream's DaemonSet starts control-plane-operator, which our images do not contain.
    .refine((one) => one.shape !== 'upstream' || one.image !== undefined, {
      path: ['image'],
      error: 'shape "upstream" requires a HyperShift image with control-plane-operator',
    })
    .default({}),
});

export interface GlobalPullSecretOptions
  extends Omit<z.infer<typeof runTimeSchema>, 'nodes' | 'removals' | 'agent'> {
  /** Nodes that get the credentials, in addition to eligible pools. @default all Linux nodes when stand-alone, else none */
  readonly nodes?: readonly LabelRequirement[];
  /** Limits for unconfirmed removals from the platform's pull secret. */
  readonly removals: RemovalOptions;
  /** The node agent; `image` defaults to the image of this executable. */
  readonly agent: AgentOptions;
}

/**
 * Validates the options and returns a function from scope to the options of that cluster.
 *
 * @throws UsageError that names every invalid field
 */
export function parseOptions(
  raw: Readonly<Record<string, unknown>>,
): (scope: string) => GlobalPullSecretOptions {
  const options = readOptions('global-pull-secret', raw, runTimeSchema);
  return (scope) => {
    const { agent: own, nodes, removals, ...rest } = options(scope);
    const selector = nodes === undefined ? undefined : readSelector(nodes);
    const { delay, ...share } = removals ?? {};
    const delayMs = delay === undefined ? {} : { delayMs: (parseGoDuration(delay) ?? 0) / 1e6 };
    return {
      ...rest,
      ...(selector?.ok === true ? { nodes: selector.requirements } : {}),
      removals: { ...share, ...delayMs },
      agent: {
        image: DEFAULT_IMAGE,
        // Hosted clusters are OpenShift, where HyperShift's own agent has this priority class.
        ...(scope === 'local' ? STANDALONE_AGENT : { priorityClassName: OPENSHIFT_PRIORITY_CLASS }),
        ...own,
        // Agents check unmarked Secrets against the same limits.
        ...(removals === undefined ? {} : { removals }),
      },
    };
  };
}
