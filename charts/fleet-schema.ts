/** What a fleet may say: the interfaces for TypeScript, the schemas for everything. */

import type { Chart } from 'cdk8s';
import { z } from 'zod';
import {
  dnsLabel,
  dnsName,
  durationField,
  folderField,
  imageReference,
  networkField,
} from '../runtime/core/kubernetes/fields.ts';
import type { NetworkSettings } from '../runtime/core/kubernetes/objects.ts';
import type { ReconcilerSettings } from './shared/reconciler.ts';
import type { ClusterContext, ClusterKind, Delivery } from './shared/system.ts';
import { SYSTEMS, type SystemInputs } from './systems.ts';

/** A fleet: the clusters, what runs in them, and how the rendered tree reaches them. */
export interface FleetInput {
  /** @default {'pullwright.dev/v1alpha1'} */
  readonly apiVersion?: 'pullwright.dev/v1alpha1';
  /** @default {'Fleet'} */
  readonly kind?: 'Fleet';
  /** Image of every pod, with tag or digest. A cluster may name its own (a mirror). */
  readonly image: string;
  /**
   * Secrets of type `kubernetes.io/dockerconfigjson` that our own pods pull the image with: in every namespace that a pod of ours
   * runs in. A cluster may name its own. @default none
   */
  readonly imagePullSecrets?: readonly string[];
  /** Namespace of our own pods. @default {'pullwright-system'} */
  readonly namespace?: string;
  /** Renders what makes Argo CD or Flux sync the tree. @default none */
  readonly gitops?: GitOpsInput;
  /** Folder of the runbooks that alerts point at, for a copy of one's own. @default {'https://pullwright.dev/runbooks'} */
  readonly runbooks?: string;
  /** What every cluster has unless it says otherwise: maps are merged, lists and single values replaced. */
  readonly defaults?: FleetDefaults;
  readonly clusters: readonly ClusterInput[];
}

export interface FleetDefaults {
  readonly reconciler?: ReconcilerSettings;
  /** @default {false} */
  readonly monitoring?: boolean;
  readonly dashboards?: boolean;
  readonly network?: NetworkSettings;
  readonly systems?: SystemInputs;
}

export interface ClusterInput {
  /** Unique within the fleet. */
  readonly name: string;
  /** @default {'standalone'} */
  readonly kind?: ClusterKind;
  /** Folder below the output; `.` for the output itself, when it is the only cluster. @default the name */
  readonly path?: string;
  /**
   * Who applies the objects in the cluster. For `management`: in the hosted clusters that discovery finds.
   * @default {'gitops'}, for `management` {'reconciler'}
   */
  readonly delivery?: Delivery;
  readonly image?: string;
  /** @default those of the fleet */
  readonly imagePullSecrets?: readonly string[];
  readonly namespace?: string;
  /** For `hosted`: the cluster of the fleet that runs its control plane. */
  readonly management?: string;
  /** For `hosted`: its HostedCluster there. */
  readonly hostedCluster?: HostedClusterInput;
  /** For `management`: also serve hosted clusters that the fleet does not name. @default {false} */
  readonly discovery?: boolean;
  readonly reconciler?: ReconcilerSettings;
  /** Renders PrometheusRule and ServiceMonitor, in an overlay. @default {false} */
  readonly monitoring?: boolean;
  /** Renders dashboards for Grafana as ConfigMaps. @default {false} */
  readonly dashboards?: boolean;
  /** From where our pods may be reached, and what they may reach. */
  readonly network?: NetworkSettings;
  /** For Argo CD: where the cluster is. */
  readonly destination?: DestinationInput;
  readonly systems?: SystemInputs;
  /** TypeScript only: add constructs of your own to the cluster's chart, or patch its objects. */
  readonly extend?: (chart: Chart, cluster: ClusterContext) => void;
}

export interface HostedClusterInput {
  /** @default {'clusters'} */
  readonly namespace?: string;
  /** @default the cluster's name */
  readonly name?: string;
  /** @default {'<namespace>-<name>'} */
  readonly controlPlaneNamespace?: string;
  /**
   * ServiceAccount of the hosted cluster as which the management cluster's reconciler works there, by its `kubeconfigSecret`: policies
   * name it. @default none: the reconciler is system:admin, and no policy can distinguish it from people
   */
  readonly serviceAccount?: { readonly namespace: string; readonly name: string };
}

export interface DestinationInput {
  /** API server, as Argo CD knows it. @default {'https://kubernetes.default.svc'} */
  readonly server?: string;
  /** Name of the cluster in Argo CD; instead of `server`. */
  readonly name?: string;
  /** For Flux: Secret in the namespace of the Kustomization that holds the cluster's kubeconfig. */
  readonly kubeConfigSecret?: string;
}

export interface GitOpsInput {
  readonly tool: 'argo-cd' | 'flux';
  /** Repository that holds the rendered tree. */
  readonly repository: string;
  /** Branch, tag or commit. @default {'main'} */
  readonly revision?: string;
  /** Folder of the rendered tree in the repository. @default {'.'} */
  readonly path?: string;
  /** Namespace of the tool. @default {'argocd'} for Argo CD, {'flux-system'} for Flux */
  readonly namespace?: string;
  /** Argo CD project. @default {'default'} */
  readonly project?: string;
  /** Argo CD: order objects by annotation. @default {true} */
  readonly syncWaves?: boolean;
  /** Flux: an existing GitRepository. @default one named `pullwright` is rendered */
  readonly source?: string;
  /** Flux: how often to look. @default {'10m'} */
  readonly interval?: string;
  /** Flux: Secret with the SOPS key. @default {'sops-age'} */
  readonly sopsKeySecret?: string;
}

const MONITORING = 'Renders PrometheusRule and ServiceMonitor, in an overlay';
const SHARD = 'expected lower-case letters, digits and "-", at most 40';
const DASHBOARDS = 'Renders dashboards for Grafana, one a system, as ConfigMaps';

const reconciler: z.ZodType<ReconcilerSettings, ReconcilerSettings> = z
  .strictObject({
    replicas: z.int().min(1).max(5).exactOptional().describe('Default: 2'),
    shards: z
      .array(z.string().regex(/^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/, SHARD))
      .exactOptional()
      .describe(
        'Values of the label pullwright.dev/shard of HostedClusters that have a reconciler of their own',
      ),
    egressPorts: z.array(z.int().min(1).max(65535)).min(1).exactOptional().describe('Default: 443 and 6443'),
    logFormat: z.enum(['json', 'logfmt']).exactOptional().describe('Form of the log lines'),
    logLevel: z.enum(['debug', 'info', 'warn', 'error']).exactOptional().describe('What is logged'),
    memoryLimit: z
      .string()
      .regex(/^\d+(Ki|Mi|Gi)$/, 'expected a size such as "512Mi"')
      .exactOptional()
      .describe('Memory that a replica may use'),
    kubeconfigSecret: dnsName().exactOptional().describe('Of hosted clusters; default pullwright-kubeconfig'),
    allowAddresses: z
      .array(networkField())
      .exactOptional()
      .describe('Networks that may be contacted even under untrusted host names'),
  })
  .describe('Pods of the reconciler');

const network: z.ZodType<NetworkSettings, NetworkSettings> = z
  .strictObject({
    monitoringNamespaces: z
      .array(dnsLabel())
      .min(1)
      .exactOptional()
      .describe('Namespaces whose pods may read metrics'),
    apiServer: z
      .array(networkField())
      .min(1)
      .exactOptional()
      .describe('Networks of the API server, as pods see them: the only peers of the webhook'),
    egress: z
      .array(networkField())
      .min(1)
      .exactOptional()
      .describe('Networks that the other pods may reach by their ports'),
  })
  .describe('From where our pods may be reached, and what they may reach');

const gitops: z.ZodType<GitOpsInput, GitOpsInput> = z.strictObject({
  tool: z.enum(['argo-cd', 'flux']).describe('What syncs the tree'),
  repository: z
    .string()
    .regex(
      /^(?:https:\/\/|ssh:\/\/|git@)(?:[^\s@]+@)?[^\s@]+$/,
      'expected a URL that begins with https://, ssh:// or git@',
    )
    .refine((url) => !/^https:\/\/[^/:]*:[^/@]*@/.test(url), 'a password may not stand in a fleet')
    .describe('Repository that holds the rendered tree'),
  revision: z.string().min(1).exactOptional().describe('Branch, tag or commit; default main'),
  path: folderField().exactOptional().describe('Folder of the tree in the repository; default the top'),
  namespace: dnsLabel().exactOptional().describe('Namespace of the tool; default argocd or flux-system'),
  project: dnsName().exactOptional().describe('Project of Argo CD'),
  syncWaves: z.boolean().exactOptional().describe('Argo CD: order objects by annotation; default true'),
  source: dnsName().exactOptional().describe('Flux: an existing GitRepository instead of ours'),
  interval: durationField().exactOptional().describe('Flux: how often to look; default 10m'),
  sopsKeySecret: dnsName().exactOptional().describe('Flux: Secret with the key of SOPS; default sops-age'),
});

/** As many as a pod may sensibly name; `[]` takes back what the fleet says. */
const imagePullSecrets = z
  .array(dnsName())
  .max(8)
  .refine((names) => new Set(names).size === names.length, 'names one Secret twice, expected each once')
  .describe('Secrets that our own pods pull the image with, in each of their namespaces');

const systems = z.record(z.string(), z.unknown());

/** The top of a fleet; clusters and sections are checked one by one, so that every mistake has its own path. */
export const fleetSchema: z.ZodType<FleetTop> = z.strictObject({
  apiVersion: z.literal('pullwright.dev/v1alpha1').exactOptional().describe('Version of the file'),
  kind: z.literal('Fleet').exactOptional().describe('Kind of the file'),
  image: imageReference().describe('Image of every pod'),
  imagePullSecrets: imagePullSecrets.exactOptional(),
  namespace: dnsLabel().exactOptional().describe('Namespace of our own pods'),
  gitops: gitops.exactOptional().describe('What makes Argo CD or Flux sync the tree'),
  runbooks: z
    .url({ protocol: /^https?$/, error: 'expected a URL that begins with https:// or http://' })
    .exactOptional()
    .describe('Folder of the runbooks that alerts point at'),
  defaults: z
    .strictObject({
      reconciler: reconciler.exactOptional(),
      monitoring: z.boolean().exactOptional().describe(MONITORING),
      dashboards: z.boolean().exactOptional().describe(DASHBOARDS),
      network: network.exactOptional(),
      systems: systems.exactOptional(),
    })
    .exactOptional()
    .describe('What every cluster has unless it says otherwise'),
  clusters: z.array(z.unknown()).min(1, 'expected at least one cluster').describe('Clusters of the fleet'),
});

/** A fleet whose clusters have not been looked at. */
export interface FleetTop extends Omit<FleetInput, 'clusters' | 'defaults'> {
  readonly defaults?: Omit<FleetDefaults, 'systems'> & {
    readonly systems?: Readonly<Record<string, unknown>>;
  };
  readonly clusters: readonly unknown[];
}

/** A cluster whose sections have not been looked at. */
export interface ClusterTop extends Omit<ClusterInput, 'systems'> {
  readonly systems?: Readonly<Record<string, unknown>>;
}

export const clusterSchema: z.ZodType<ClusterTop> = z.strictObject({
  name: dnsLabel().describe('Name of the cluster, unique within the fleet'),
  kind: z.enum(['standalone', 'management', 'hosted']).exactOptional().describe('Default: standalone'),
  path: folderField().exactOptional().describe('Folder below the output; default the name'),
  delivery: z
    .enum(['gitops', 'reconciler'])
    .exactOptional()
    .describe('Who applies what stands in the cluster'),
  image: imageReference().exactOptional().describe('Image of every pod of this cluster'),
  imagePullSecrets: imagePullSecrets.exactOptional(),
  namespace: dnsLabel().exactOptional().describe('Namespace of our own pods in this cluster'),
  management: dnsLabel().exactOptional().describe('For hosted: the cluster that runs its control plane'),
  hostedCluster: z
    .strictObject({
      namespace: dnsLabel().exactOptional().describe('Its namespace; default clusters'),
      name: dnsLabel().exactOptional().describe('Its name; default that of the cluster'),
      controlPlaneNamespace: dnsLabel().exactOptional().describe('Where its control plane runs'),
      serviceAccount: z
        .strictObject({
          namespace: dnsLabel().describe('Its namespace'),
          name: dnsName().describe('Its name'),
        })
        .exactOptional()
        .describe('ServiceAccount of the hosted cluster as which the reconciler works there'),
    })
    .exactOptional()
    .describe('For hosted: its HostedCluster'),
  discovery: z
    .boolean()
    .exactOptional()
    .describe('For management: also serve hosted clusters that the fleet does not name'),
  reconciler: reconciler.exactOptional(),
  monitoring: z.boolean().exactOptional().describe(MONITORING),
  dashboards: z.boolean().exactOptional().describe(DASHBOARDS),
  network: network.exactOptional(),
  destination: z
    .strictObject({
      server: z
        .url({ protocol: /^https$/, error: 'expected an https URL' })
        .exactOptional()
        .describe('API server, as Argo CD knows it'),
      name: z.string().min(1).exactOptional().describe('Name of the cluster in Argo CD'),
      kubeConfigSecret: dnsName().exactOptional().describe('For Flux: Secret that holds its kubeconfig'),
    })
    .exactOptional()
    .describe('Where the cluster is, for the tool that syncs it'),
  systems: systems.exactOptional(),
  extend: z
    .custom<NonNullable<ClusterInput['extend']>>(
      (value) => typeof value === 'function',
      'expected a function',
    )
    .exactOptional(),
});

// The fleet file as JSON Schema, for editors that complete and check while one types.

type Schema = Record<string, unknown>;

/**
 * JSON Schema (2020-12) of a `fleet.yaml`.
 *
 * @example
 * ```ts
 * import { fleetJsonSchema } from './fleet-schema.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.match(JSON.stringify(fleetJsonSchema()), /"global-pull-secret"/);
 * ```
 */
export function fleetJsonSchema(): Schema {
  const fleet = schemaOf(fleetSchema);
  const { extend: _onlyTypeScript, ...clusterFields } = fieldsOf(schemaOf(clusterSchema));
  const systems: Schema = {
    type: 'object',
    description: 'What runs in the cluster: a section for each system',
    additionalProperties: false,
    properties: Object.fromEntries(SYSTEMS.map((system) => [system.name, sectionSchema(system)])),
  };
  const defaults = fieldsOf(fleet)['defaults'] as Schema;
  return {
    $id: 'https://pullwright.dev/schema/fleet.schema.json',
    ...fleet,
    title: 'Pullwright fleet',
    properties: {
      ...fieldsOf(fleet),
      defaults: { ...defaults, properties: { ...fieldsOf(defaults), systems } },
      clusters: {
        ...(fieldsOf(fleet)['clusters'] as Schema),
        items: { ...schemaOf(clusterSchema), properties: { ...clusterFields, systems } },
      },
    },
  };
}

/** The schema as it is printed and published. */
export function fleetSchemaText(): string {
  return `${JSON.stringify(fleetJsonSchema(), null, 2)}\n`;
}

function sectionSchema(system: (typeof SYSTEMS)[number]): Schema {
  const { $schema: _shared, ...section } = schemaOf(system.config);
  return { description: system.summary, anyOf: [{ type: ['boolean', 'null'] }, section] };
}

function schemaOf(schema: z.ZodType): Schema {
  const { ...plain } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return plain;
}

function fieldsOf(schema: Schema): Schema {
  return schema['properties'] as Schema;
}
