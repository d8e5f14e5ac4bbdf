/** The section `systems.global-pull-secret` of a fleet, and the construct for charts of one's own. */
import type { Construct } from 'constructs';
import { z } from 'zod';
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { countOrPercent, dnsName, duration, imageReference, labelMap } from '../shared/fields.ts';
import { ObjectGroup } from '../shared/object-group.ts';
import { labels, namespaceReference } from '../shared/objects.ts';
import {
  type SecretSource,
  secretSourceObjects,
  secretSourceSchema,
  sourceFiles,
} from '../shared/secret-source.ts';
import type { ChartSystem } from '../shared/system.ts';
import { hostedAccess, managementAccess } from './access.ts';
import { GLOBAL_PULL_SECRET_ALERTS } from './alerts.ts';
import { type Enforcement, syncObjects } from './objects.ts';
import { type AgentOptions, OPENSHIFT_PRIORITY_CLASS } from './options.ts';

/** The section, as it is written. Every field may be left out. */
export interface GlobalPullSecretInput {
  /** The node agent. Its image is the fleet's unless said otherwise. */
  readonly agent?: Partial<AgentOptions>;
  /** What makes `additional-pull-secret`. @default nothing: its owner does */
  readonly source?: SecretSource;
  /** What admission does with an `additional-pull-secret` of the wrong type or without its key. @default {'warn'} */
  readonly enforce?: Enforcement;
  /** Whether objects that HyperShift's own operator manages are written. @default {'auto'} */
  readonly mode?: 'auto' | 'own' | 'observe';
  /** Platforms whose Replace pools are eligible. @default {['AWS', 'Azure']} */
  readonly platforms?: readonly string[];
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
    restartWindow: duration().exactOptional().describe('Window over which restarts spread, such as "5m"'),
    restartSlots: z
      .int()
      .min(1)
      .max(100)
      .exactOptional()
      .describe('Never more restarts than this at once; needs a token'),
    report: z
      .boolean()
      .exactOptional()
      .describe('Each agent writes a PullStatus and Events about its node; needs a token'),
    maxUnavailable: countOrPercent()
      .exactOptional()
      .describe('Pods replaced at once when the DaemonSet changes'),
    priorityClassName: dnsName().exactOptional(),
    resources: z
      .strictObject({ requests: labelMap().exactOptional(), limits: labelMap().exactOptional() })
      .exactOptional(),
    tolerations: z
      .array(
        z.strictObject({
          key: z.string().exactOptional(),
          operator: z.enum(['Exists', 'Equal']).exactOptional(),
          value: z.string().exactOptional(),
          effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).exactOptional(),
        }),
      )
      .exactOptional()
      .describe('Default: every taint'),
    alsoNodes: z
      .array(labelMap().refine((one) => Object.keys(one).length > 0, 'wanted at least one label'))
      .exactOptional()
      .describe('Nodes beside the eligible ones: any of these label maps'),
    healthPort: z.int().min(1).max(65535).exactOptional(),
    logLevel: z.enum(['debug', 'info', 'warn', 'error']).exactOptional(),
    janitor: z.boolean().exactOptional().describe('Remove CRI-O auth files that nothing uses any more'),
  })
  .refine((one) => one.seLinuxType === undefined || one.security === 'restricted', {
    path: ['seLinuxType'],
    error: 'only with security "restricted": a privileged container has no SELinux confinement',
  });

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
  removals: z
    .strictObject({
      share: z.number().min(0).max(1).exactOptional().describe('Share of its entries; default 0.5'),
      delay: duration()
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

const ADDITIONAL = { namespace: NAMES.namespace, name: NAMES.additional };

export const globalPullSecretSystem: ChartSystem<GlobalPullSecretInput, GlobalPullSecretInput> = {
  name: 'global-pull-secret',
  summary: "Merges the tenant's additional pull secret with the platform's and brings it to the nodes",
  config: schema,
  kinds: ['standalone', 'hosted', 'management'],
  check: (config, cluster) =>
    config.agent?.shape === 'upstream' && cluster.delivery === 'gitops'
      ? [
          {
            path: ['agent', 'shape'],
            text: 'the upstream shape holds a hash of the credentials, which git does not know: wanted delivery "reconciler"',
          },
        ]
      : [],
  objects(config, cluster) {
    if (cluster.kind === 'management') return [];
    return globalPullSecretObjects(cluster.kind === 'hosted' ? onOpenShift(config) : config, cluster);
  },
  files: (config) => (config.source === undefined ? [] : sourceFiles(ADDITIONAL, config.source)),
  reconciler(config, cluster) {
    return {
      name: 'global-pull-secret',
      options: reconcilerOptions(config, cluster),
      access: hostedAccess({
        delivery: cluster.delivery,
        agent: config.agent ?? {},
        platformNamespace: NAMES.configNamespace,
      }),
      alerts: GLOBAL_PULL_SECRET_ALERTS,
    };
  },
  managementReconciler(management, hosted, own) {
    if (hosted.length === 0 && !management.discovery) return undefined;
    const clusters = hosted.map(({ cluster, config }) => [
      `${cluster.hostedCluster.namespace}/${cluster.hostedCluster.name}`,
      reconcilerOptions(config, cluster),
    ]);
    return {
      name: 'global-pull-secret',
      options: {
        ...(management.discovery ? reconcilerOptions(own ?? {}, management) : {}),
        ...(clusters.length === 0 ? {} : { clusters: Object.fromEntries(clusters) }),
      },
      access: management.discovery
        ? managementAccess()
        : hosted.flatMap(({ cluster }) =>
            managementAccess({
              hostedClusterNamespace: cluster.hostedCluster.namespace,
              controlPlaneNamespace: cluster.controlPlaneNamespace,
            }),
          ),
      alerts: GLOBAL_PULL_SECRET_ALERTS,
    };
  },
};

/** Hosted clusters are OpenShift, where the agent has the class of HyperShift's own. */
function onOpenShift(config: GlobalPullSecretInput): GlobalPullSecretInput {
  return { ...config, agent: { priorityClassName: OPENSHIFT_PRIORITY_CLASS, ...config.agent } };
}

/** What of the section the reconciler needs to know, in the form that `reconcile --config` takes. */
function reconcilerOptions(
  config: GlobalPullSecretInput,
  cluster: { readonly delivery: string; readonly image: string },
): Readonly<Record<string, unknown>> {
  const agentOptions =
    cluster.delivery === 'reconciler' ? { agent: { image: cluster.image, ...config.agent } } : {};
  return {
    delivery: cluster.delivery,
    ...(config.mode === undefined ? {} : { mode: config.mode }),
    ...(config.platforms === undefined ? {} : { platforms: config.platforms }),
    ...(config.enforce === undefined ? {} : { enforce: config.enforce }),
    ...(config.removals === undefined ? {} : { removals: config.removals }),
    ...agentOptions,
  };
}

/** Properties of {@link GlobalPullSecret}. */
export interface GlobalPullSecretProps extends GlobalPullSecretInput {
  /** Image of the DaemonSet. */
  readonly image: string;
}

function globalPullSecretObjects(
  config: GlobalPullSecretInput,
  cluster: { readonly image: string; readonly delivery: string },
): readonly KubeObject[] {
  const created =
    config.createConfigNamespace === true
      ? [
          namespaceReference(
            NAMES.configNamespace,
            labels({ name: NAMES.configNamespace, component: 'namespace' }),
          ),
        ]
      : [];
  const source = config.source === undefined ? [] : secretSourceObjects(ADDITIONAL, config.source);
  const own =
    cluster.delivery === 'reconciler'
      ? []
      : syncObjects({
          agent: { ...config.agent, image: config.agent?.image ?? cluster.image },
          enforce: config.enforce ?? 'warn',
        });
  return [...created, ...own, ...source];
}

/**
 * Everything that stands in a cluster whose nodes get the global pull secret: ServiceAccount, Roles, RoleBindings, DaemonSet,
 * admission policy, and what makes `additional-pull-secret`. The reconciler is a construct of its own.
 *
 * @example
 * ```ts
 * import { GlobalPullSecret } from './chart.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * new GlobalPullSecret(chart, 'sync', { image: 'registry.example.com/pullwright:0.1.0', enforce: 'off' });
 * const kinds = Testing.synth(chart).map((object) => object.kind);
 * assert.deepEqual(kinds, ['ServiceAccount', 'Role', 'RoleBinding', 'Role', 'RoleBinding', 'DaemonSet']);
 * ```
 */
export class GlobalPullSecret extends ObjectGroup {
  constructor(scope: Construct, id: string, props: GlobalPullSecretProps) {
    super(scope, id, globalPullSecretObjects(props, { image: props.image, delivery: 'gitops' }));
  }
}
