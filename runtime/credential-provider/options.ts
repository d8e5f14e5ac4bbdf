/** The fields of the section `systems.credential-provider`, and which of them exclude each other. */
import { z } from 'zod';
import { dnsLabel, dnsName, optional } from '../core/kubernetes/fields.ts';
import type { SectionProblem } from '../core/kubernetes/kind.ts';
import { readOptions } from '../core/kubernetes/read-spec.ts';
import { matchImagesSchema } from './kind.ts';
import { IMAGE_NAME } from './objects.ts';
import {
  PROVIDER_FLAGS,
  PROVIDER_PATH,
  type ProviderFlagKind,
  type ProviderSettings,
} from './provider-flags.ts';

const namespaceSchema = z.strictObject({
  namespace: dnsLabel.describe('Namespace whose Secrets are offered to its pods'),
  ...optional({
    serviceAccounts: z.array(dnsName).min(1).describe('ServiceAccount whose pods pull; default: "default"'),
    secrets: z
      .union([z.array(dnsName).min(1), z.literal('inUse')])
      .describe(
        'Readable Secrets, by name; inUse: those that ServiceAccounts and pods reference; default: all',
      ),
    readReferences: z.boolean().describe('Prefer conflicting Secrets in the order of pod and ServiceAccount'),
  }),
});

export type NamespaceAccess = z.infer<typeof namespaceSchema>;

const absolutePath = z.string().regex(PROVIDER_PATH, 'must be an absolute path without blanks and commas');

const FIELD_OF_KIND: Readonly<Record<ProviderFlagKind, z.ZodType>> = {
  path: absolutePath,
  paths: z.array(absolutePath).min(1),
  secrets: z.enum(['list', 'named']),
  boolean: z.boolean(),
  milliseconds: z.int().min(100).max(55_000),
};

/** A field for each flag of the executable. */
const providerSchema = z.strictObject(
  optional(
    Object.fromEntries(
      Object.entries(PROVIDER_FLAGS).map(([field, { kind, flag, help }]) => [
        field,
        FIELD_OF_KIND[kind].describe(`--${flag}: ${help}`),
      ]),
    ),
  ),
) as z.ZodType<ProviderSettings, ProviderSettings>;

export const schema = z.strictObject(
  optional({
    matchImages: matchImagesSchema.describe('Image patterns for which the kubelet calls the provider'),
    crd: z.boolean().describe('Render the CustomResourceDefinition, for clusters without it'),
    nodeAccess: z.enum(['narrow', 'shipped', 'none']).describe('Roles that let nodes request tokens'),
    namespaces: z.array(namespaceSchema).describe('Whose service accounts may read their pull secrets'),
    alerts: z.boolean().describe('Render a PrometheusRule'),
    createConfigNamespace: z.boolean().describe('Render Namespace openshift-config if missing'),
    mode: z.enum(['auto', 'own', 'observe']).describe('Reconciler for the Machine Config Operator'),
    secretAnnotation: z.boolean().describe('Pass the annotation with Secret names to the provider'),
    provider: providerSchema.describe("Options of our executable, as args in the kubelet's file"),
    executable: z
      .strictObject(
        optional({
          pools: z
            .array(dnsLabel)
            .min(1)
            .describe('Pools of the Machine Config Operator; none for hosted clusters'),
        }),
      )
      .describe("Install Pullwright's executable on OpenShift nodes, replacing OpenShift's own"),
    installer: z
      .strictObject(
        optional({
          nodeSelector: z.record(z.string(), z.string()).describe('Nodes to install on'),
          restartWindowSeconds: z
            .int()
            .min(0)
            .max(86_400)
            .describe('Spread kubelet restarts over this many seconds'),
          report: z.boolean().describe('Write a PullStatus and Events about each node'),
          metrics: z
            .boolean()
            .describe('Let Prometheus read /metrics of each installer, on the address of its node'),
          uninstall: z
            .boolean()
            .describe('Uninstall from the nodes; remove the installer when all its pods are ready'),
        }),
      )
      .describe(
        'Install the provider on nodes without the Machine Config Operator, and restart their kubelets',
      ),
  }),
);

/** The section as input. */
export type CredentialProviderInput = z.infer<typeof schema>;

/** Fields that exclude each other, or that the kind of cluster does not support. */
export function mistakes(section: CredentialProviderInput, kind: string): readonly SectionProblem[] {
  const { installer, executable, provider, namespaces = [] } = section;
  const isStandalone = kind === 'standalone';
  const expected = `the cluster is of kind ${kind}, expected standalone`;
  const found: readonly (false | SectionProblem)[] = [
    installer !== undefined &&
      !isStandalone && {
        path: ['installer'],
        text: `${expected}: nodes of hosted clusters use the ConfigMap of their NodePools`,
      },
    executable !== undefined &&
      isStandalone !== (executable.pools !== undefined) && {
        path: ['executable', 'pools'],
        text: isStandalone
          ? 'expected the names of pools of the Machine Config Operator'
          : `the cluster is of kind ${kind}, which has no pools, expected none: every NodePool that references its ConfigMap uses it`,
      },
    ...namespaces.map(
      ({ secrets }, index) =>
        secrets === 'inUse' &&
        !isStandalone && {
          path: ['namespaces', String(index), 'secrets'],
          text: `${expected}: name the secrets`,
        },
    ),
    installer !== undefined &&
      executable !== undefined &&
      installer.uninstall !== true && {
        path: ['executable'],
        text: 'installer is for nodes without the Machine Config Operator, executable for nodes with it: set one of them',
      },
    provider !== undefined &&
      installer === undefined &&
      executable === undefined && {
        path: ['provider'],
        text: "only Pullwright's executable supports these options: set installer, or executable on OpenShift",
      },
  ];
  return found.filter((one) => one !== false);
}

// Options of the credential provider's reconciler, read from the configuration of `reconcile`.

/** A namespace with a reconciled Role: ServiceAccounts whose pods pull, and whether they may read pod and ServiceAccount. */
const followedSchema = z.strictObject({
  serviceAccounts: z.array(z.string()).readonly(),
  readReferences: z.boolean(),
});
export type FollowedNamespace = z.infer<typeof followedSchema>;

const optionsSchema = z.strictObject({
  /** `auto`: observe where the Machine Config Operator manages the object, else own. */
  mode: z.enum(['auto', 'own', 'observe']).default('auto'),
  /** Platform type where Infrastructure/cluster has none; without either, nothing is rendered. */
  platform: z.string().min(1).exactOptional(),
  /** Pass the annotation with Secret names to the provider, for namespaces that grant no list. */
  secretAnnotation: z.boolean().default(false),
  /** Whether a DaemonSet installs the provider on nodes without the Machine Config Operator. */
  installer: z.boolean().exactOptional(),
  /** Our executable for the nodes of hosted clusters, in the ConfigMap of their NodePools. */
  executable: z
    .strictObject({ image: z.string().regex(IMAGE_NAME), settings: providerSchema.exactOptional() })
    .exactOptional(),
  /** Namespaces whose Role follows the pull secrets in use, by name. */
  namespaces: z
    .record(z.string(), followedSchema)
    .transform((by): ReadonlyMap<string, FollowedNamespace> => new Map(Object.entries(by)))
    .exactOptional(),
});

export type ReconcilerOptions = z.infer<typeof optionsSchema>;

/** Options by the scope of a cluster. @throws UsageError that names every wrong field */
export function parseReconcilerOptions(raw: Readonly<Record<string, unknown>>) {
  // Roles of namespaces are reconciled in stand-alone clusters only.
  const namespaces = z.never({ error: 'unknown field; only beside clusters' }).exactOptional();
  return readOptions('credential-provider', raw, optionsSchema, z.looseObject({ namespaces }));
}
