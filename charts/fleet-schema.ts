/** Schemas of a fleet file, and the TypeScript types inferred from them. */

import type { Chart } from 'cdk8s';
import { z } from 'zod';
import {
  dnsLabel,
  dnsName,
  durationField,
  type Frozen,
  folderField,
  imageReference,
  networkField,
  optional,
} from '../runtime/core/kubernetes/fields.ts';
import type { NetworkSettings } from '../runtime/core/kubernetes/objects.ts';
import { jsonText } from '../runtime/core/text.ts';
import { reconcilerSettings } from './shared/reconciler.ts';
import type { ClusterContext } from './shared/system.ts';
import { SYSTEMS, type SystemInputs } from './systems.ts';

const network: z.ZodType<NetworkSettings, NetworkSettings> = z
  .strictObject(
    optional({
      monitoringNamespaces: z.array(dnsLabel).min(1).describe('Namespaces whose pods may scrape metrics'),
      apiServer: z
        .array(networkField)
        .min(1)
        .describe('Networks of the API server, as seen by pods: the only peers of the webhook'),
      egress: z
        .array(networkField)
        .min(1)
        .describe('Networks that the other pods may contact on their ports'),
    }),
  )
  .describe('Allowed ingress and egress of the pods');

const gitops = z.strictObject({
  tool: z.enum(['argo-cd', 'flux']).describe('GitOps tool that syncs the tree'),
  repository: z
    .string()
    .regex(
      /^(?:https:\/\/|ssh:\/\/|git@)(?:[^\s@]+@)?[^\s@]+$/,
      'expected a URL that begins with https://, ssh:// or git@',
    )
    .refine((url) => !/^https:\/\/[^/:]*:[^/@]*@/.test(url), 'a password is not allowed in a fleet')
    .describe('Repository of the rendered tree'),
  ...optional({
    revision: z.string().min(1).describe('Branch, tag or commit; default main'),
    path: folderField.describe('Folder of the tree in the repository; default the root'),
    namespace: dnsLabel.describe('Namespace of the tool; default argocd or flux-system'),
    project: dnsName.describe('Project of Argo CD; default "default"'),
    syncWaves: z.boolean().describe('Argo CD: order objects by annotation; default true'),
    source: dnsName.describe('Flux: an existing GitRepository; default: render one named pullwright'),
    interval: durationField.describe('Flux: sync interval; default 10m'),
    sopsKeySecret: dnsName.describe('Flux: Secret with the key of SOPS; default sops-age'),
  }),
});

/** Limited to a reasonable number for one pod; `[]` overrides the fleet's value. */
const imagePullSecrets = z
  .array(dnsName)
  .max(8)
  .refine((names) => new Set(names).size === names.length, 'duplicate Secret name')
  .describe('imagePullSecrets of our pods, in each of their namespaces');

const systems = z.record(z.string(), z.unknown());

/** Fields of clusters and of `defaults`. */
const common = {
  reconciler: reconcilerSettings,
  monitoring: z.boolean().describe('Renders PrometheusRule and ServiceMonitor, in an overlay'),
  dashboards: z.boolean().describe('Renders Grafana dashboards, one per system, as ConfigMaps'),
  network,
};

/** Top level of a fleet. Clusters and sections are validated one by one, so that each problem has its own path. */
export const fleetSchema = z.strictObject({
  ...optional({
    apiVersion: z.literal('pullwright.dev/v1alpha1').describe('Version of the file'),
    kind: z.literal('Fleet').describe('Kind of the file'),
  }),
  image: imageReference.describe('Image of every pod, with tag or digest'),
  ...optional({
    imagePullSecrets,
    namespace: dnsLabel.describe('Namespace of our pods; default pullwright-system'),
    gitops: gitops.describe('Renders objects for Argo CD or Flux that sync the tree'),
    runbooks: z
      .url({ protocol: /^https?$/, error: 'expected a URL that begins with https:// or http://' })
      .describe('Base URL of the runbooks that alerts link to; default https://pullwright.dev/runbooks'),
    defaults: z
      .strictObject(optional({ ...common, systems }))
      .describe('Defaults of every cluster: maps are merged, lists and scalars replaced'),
  }),
  clusters: z.array(z.unknown()).min(1, 'expected at least one cluster').describe('Clusters of the fleet'),
});

const clusterFields = z.strictObject({
  name: dnsLabel.describe('Name of the cluster, unique within the fleet'),
  ...optional({
    kind: z.enum(['standalone', 'management', 'hosted']).describe('Default: standalone'),
    path: folderField.describe('Folder below the output; "." only for a single cluster; default the name'),
    delivery: z
      .enum(['gitops', 'reconciler'])
      .describe('What applies the objects in the cluster; default gitops, for management reconciler'),
    image: imageReference.describe('Image of every pod of this cluster'),
    imagePullSecrets,
    namespace: dnsLabel.describe('Namespace of our pods in this cluster'),
    management: dnsLabel.describe('For hosted: the cluster that runs its control plane'),
    hostedCluster: z
      .strictObject(
        optional({
          namespace: dnsLabel.describe('Its namespace; default clusters'),
          name: dnsLabel.describe('Its name; default the name of the cluster'),
          controlPlaneNamespace: dnsLabel.describe(
            'Namespace of its control plane; default <namespace>-<name>',
          ),
          serviceAccount: z
            .strictObject({
              namespace: dnsLabel.describe('Its namespace'),
              name: dnsName.describe('Its name'),
            })
            .describe(
              'ServiceAccount of the hosted cluster that the reconciler uses there; without it, system:admin, which policies cannot distinguish from people',
            ),
        }),
      )
      .describe('For hosted: its HostedCluster'),
    discovery: z.boolean().describe('For management: also manage hosted clusters that are not in the fleet'),
    ...common,
    destination: z
      .strictObject(
        optional({
          server: z
            .url({ protocol: /^https$/, error: 'expected an https URL' })
            .describe('API server URL in Argo CD; default https://kubernetes.default.svc'),
          name: z.string().min(1).describe('Name of the cluster in Argo CD, instead of server'),
          kubeConfigSecret: dnsName.describe('For Flux: Secret with its kubeconfig'),
        }),
      )
      .describe('Address of the cluster, for the tool that syncs it'),
    systems,
    extend: z.custom<(chart: Chart, cluster: ClusterContext) => void>(
      (value) => typeof value === 'function',
      'expected a function',
    ),
  }),
});

export const clusterSchema = clusterFields.superRefine(
  ({ kind, management, hostedCluster, discovery, reconciler }, context) => {
    const only = (of: typeof kind, path: string[], value: unknown, why = ''): void => {
      if (kind !== of && value !== undefined)
        context.addIssue({ code: 'custom', path, message: `only for kind "${of}"${why}` });
    };
    only('hosted', ['management'], management);
    only('hosted', ['hostedCluster'], hostedCluster);
    only('management', ['discovery'], discovery === true ? discovery : undefined);
    const why = ': a shard is a part of its hosted clusters';
    only('management', ['reconciler', 'shards'], reconciler?.shards, why);
  },
);

/** A fleet with unvalidated clusters. */
export type FleetTop = Frozen<z.input<typeof fleetSchema>>;

/** A cluster with unvalidated sections. */
export type ClusterTop = Frozen<z.input<typeof clusterSchema>>;

export type GitOpsInput = NonNullable<FleetTop['gitops']>;

/** Address of the cluster for the GitOps tool. */
export type DestinationInput = NonNullable<ClusterTop['destination']>;

interface WithSystems {
  readonly systems?: SystemInputs;
}

export type ClusterInput = Omit<ClusterTop, 'systems'> & WithSystems;

/** A fleet: the clusters, their systems, and the delivery of the rendered tree. */
export type FleetInput = Omit<FleetTop, 'clusters' | 'defaults'> & {
  readonly defaults?: Omit<NonNullable<FleetTop['defaults']>, 'systems'> & WithSystems;
  readonly clusters: readonly ClusterInput[];
};

// The fleet file as JSON Schema, for completion and validation in editors.

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
    description: 'Systems of the cluster: a section for each system',
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

/** The JSON Schema as printed and published. */
export function fleetSchemaText(): string {
  return jsonText(fleetJsonSchema());
}

function sectionSchema(system: (typeof SYSTEMS)[number]): Schema {
  const { $schema: _shared, ...section } = schemaOf(system.config);
  return { description: system.summary, anyOf: [{ type: ['boolean', 'null'] }, section] };
}

function schemaOf(schema: z.ZodType): Schema {
  return { ...z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) };
}

function fieldsOf(schema: Schema): Schema {
  return schema['properties'] as Schema;
}
