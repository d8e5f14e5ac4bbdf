/**
 * The section `systems.global-pull-secret` of a fleet, as it is written and as it is checked.
 *
 * `createConfigNamespace` is off unless asked for: `kubectl delete -k` would take the namespace of the platform with it.
 */
import { z } from 'zod';
import { countOrPercent, dnsName, durationField, imageReference, labelMap } from '../shared/fields.ts';
import { type SecretSource, secretSourceSchema } from '../shared/secret-source.ts';
import type { Enforcement } from './objects.ts';
import type { AgentOptions } from './options.ts';

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
