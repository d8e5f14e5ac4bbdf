/** The section `systems.credential-provider` of a fleet, and constructs for charts of one's own. */
import type { Construct } from 'constructs';
import { z } from 'zod';
import {
  PROVIDER_FLAGS,
  PROVIDER_PATH,
  type ProviderFlagKind,
  type ProviderSettings,
} from '../../runtime/rules/credential-provider/provider-flags.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { dnsLabel, dnsName } from '../shared/fields.ts';
import { ObjectGroup } from '../shared/object-group.ts';
import type { ChartSystem, SectionProblem } from '../shared/system.ts';
import { type NamespaceAccess, namespaceAccess, nodeAccess } from './access.ts';
import { credentialProviderAlerts } from './alerts.ts';
import { credentialProviderConfig, credentialProviderCrd, isMatchImage } from './crd.ts';
import { executableMachineConfigs } from './executable.ts';
import { installerObjects } from './installer.ts';
import { clusterAccess, hostedClusterAccess } from './reconciler-access.ts';

/** The section, as it is written. Every field may be left out. */
export interface CredentialProviderInput {
  /** Patterns of images for which the kubelet asks the provider. @default none: the object is kept elsewhere */
  readonly matchImages?: readonly string[];
  /** Render the CustomResourceDefinition, for clusters that lack it. @default {false} */
  readonly crd?: boolean;
  /** Roles that let nodes request tokens: `narrow`, `shipped` (as OpenShift has it), or `none`. @default {'narrow'} */
  readonly nodeAccess?: 'narrow' | 'shipped' | 'none';
  /** Namespaces whose service accounts may read their pull secrets. @default {[]} */
  readonly namespaces?: readonly NamespaceAccess[];
  /** Render a PrometheusRule. @default {false} */
  readonly alerts?: boolean;
  /** Whether the object is written where the Machine Config Operator manages it. @default {'auto'} */
  readonly mode?: 'auto' | 'own' | 'observe';
  /** Hand the annotation `pullwright.dev/image-pull-secrets` of service accounts over to the provider. @default {false} */
  readonly secretAnnotation?: boolean;
  /** Options of our executable, as `args` in the kubelet's file. The plugin that OpenShift brings knows none. @default {{}} */
  readonly provider?: ProviderSettings;
  /**
   * Put our executable on nodes of OpenShift, in place of the plugin of the same name that OpenShift brings. Reboots the nodes
   * of these pools, one after the other. @default none
   */
  readonly executable?: {
    /** Pools of the Machine Config Operator. */
    readonly pools: readonly string[];
  };
  /**
   * Put executable, file and drop-in on the nodes of a stand-alone cluster without the Machine Config Operator, and restart
   * their kubelets. @default none
   */
  readonly installer?: {
    /** Nodes that get it. @default {{ 'kubernetes.io/os': 'linux' }} */
    readonly nodeSelector?: Readonly<Record<string, string>>;
    /** Restarts of kubelets are spread over so many seconds. @default {300} */
    readonly restartWindowSeconds?: number;
    /** Write a PullStatus and Events about each node. @default {false} */
    readonly report?: boolean;
    /** Let Prometheus read `/metrics` of each installer, on the address of its node. @default {false} */
    readonly metrics?: boolean;
    /** Take everything back from the nodes; remove `installer` when all pods are ready. @default {false} */
    readonly uninstall?: boolean;
  };
}

const namespaceSchema = z.strictObject({
  namespace: dnsLabel(),
  serviceAccounts: z.array(dnsName()).min(1).exactOptional().describe('Whose pods pull; default: "default"'),
  secrets: z
    .array(dnsName())
    .min(1)
    .exactOptional()
    .describe('Only these may be read, by name; default: all'),
  readReferences: z
    .boolean()
    .exactOptional()
    .describe('Let pod and service account order contradicting secrets'),
});

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
  Object.fromEntries(
    Object.entries(PROVIDER_FLAGS).map(([field, { kind, flag, help }]) => [
      field,
      FIELD_OF_KIND[kind].exactOptional().describe(`--${flag}: ${help}`),
    ]),
  ),
) as z.ZodType<ProviderSettings, ProviderSettings>;

export const schema: z.ZodType<CredentialProviderInput, CredentialProviderInput> = z.strictObject({
  matchImages: z
    .array(
      z
        .string()
        .refine(isMatchImage, 'wanted a host in lower case with optional wildcard labels, port and path'),
    )
    .min(1)
    .max(50)
    .refine((list) => new Set(list).size === list.length, 'an entry is there twice')
    .exactOptional()
    .describe('Patterns of images for which the kubelet asks the provider'),
  crd: z.boolean().exactOptional().describe('Render the definition, for clusters that lack it'),
  nodeAccess: z
    .enum(['narrow', 'shipped', 'none'])
    .exactOptional()
    .describe('Roles that let nodes request tokens'),
  namespaces: z
    .array(namespaceSchema)
    .exactOptional()
    .describe('Whose service accounts may read their pull secrets'),
  alerts: z.boolean().exactOptional().describe('Render a PrometheusRule'),
  mode: z.enum(['auto', 'own', 'observe']).exactOptional().describe('Beside the Machine Config Operator'),
  secretAnnotation: z
    .boolean()
    .exactOptional()
    .describe('Hand the annotation with secret names over to the provider'),
  provider: providerSchema
    .exactOptional()
    .describe("Options of our executable, as args in the kubelet's file"),
  executable: z
    .strictObject({
      pools: z.array(dnsLabel()).min(1).describe('Pools of the Machine Config Operator'),
    })
    .exactOptional()
    .describe('Put our executable on nodes of OpenShift, in place of the one that OpenShift brings'),
  installer: z
    .strictObject({
      nodeSelector: z.record(z.string(), z.string()).exactOptional().describe('Nodes that get it'),
      restartWindowSeconds: z
        .int()
        .min(0)
        .max(86_400)
        .exactOptional()
        .describe('Spread the restarts of kubelets over so many seconds'),
      report: z.boolean().exactOptional().describe('Write a PullStatus and Events about each node'),
      metrics: z
        .boolean()
        .exactOptional()
        .describe('Let Prometheus read /metrics of each installer, on the address of its node'),
      uninstall: z
        .boolean()
        .exactOptional()
        .describe('Take everything back from the nodes; remove the installer when all pods are ready'),
    })
    .exactOptional()
    .describe(
      'Install the provider on nodes without the Machine Config Operator, and restart their kubelets',
    ),
});

/** Where a stand-alone cluster keeps the platform's pull secret; the reconciler reports there. */
const STATUS_NAMESPACE = 'openshift-config';

export const credentialProviderSystem: ChartSystem<CredentialProviderInput, CredentialProviderInput> = {
  name: 'credential-provider',
  summary: 'Lets pods pull from mirrors with the pull secrets of their namespace',
  config: schema,
  kinds: ['standalone', 'hosted'],
  check: (config, cluster) => mistakes(config, cluster.kind),
  objects: (config, cluster) => [
    ...credentialProviderObjects(
      { ...config, monitoringNamespace: cluster.namespace },
      config.installer !== undefined,
    ),
    ...(config.installer === undefined
      ? []
      : installerObjects({
          ...config.installer,
          image: cluster.image,
          ...(config.secretAnnotation === true ? { secretAnnotation: true } : {}),
          ...(config.provider === undefined ? {} : { provider: config.provider }),
        })),
    ...(config.executable === undefined
      ? []
      : executableMachineConfigs({
          pools: config.executable.pools,
          image: cluster.image,
          ...(config.provider === undefined ? {} : { settings: config.provider }),
        })),
  ],
  reconciler: (config, cluster) =>
    cluster.kind === 'standalone'
      ? { name: 'credential-provider', options: optionsOf(config), access: clusterAccess(STATUS_NAMESPACE) }
      : undefined,
  managementReconciler: (_management, hosted) =>
    hosted.length === 0
      ? undefined
      : {
          name: 'credential-provider',
          options: {
            clusters: Object.fromEntries(
              hosted.map(({ cluster, config }) => [
                `${cluster.hostedCluster.namespace}/${cluster.hostedCluster.name}`,
                optionsOf(config),
              ]),
            ),
          },
          access: hosted.flatMap(({ cluster }) => hostedClusterAccess(cluster)),
        },
};

function mistakes(
  { installer, executable, provider }: CredentialProviderInput,
  kind: string,
): readonly SectionProblem[] {
  const isStandalone = kind === 'standalone';
  const nodes = 'nodes of hosted clusters take the ConfigMap of their NodePools';
  return [
    ...(installer === undefined || isStandalone
      ? []
      : [{ path: ['installer'], text: `the cluster is of kind ${kind}, wanted standalone: ${nodes}` }]),
    ...(executable === undefined || isStandalone
      ? []
      : [{ path: ['executable'], text: `the cluster is of kind ${kind}, wanted standalone: ${nodes}` }]),
    ...(installer === undefined || executable === undefined || installer.uninstall === true
      ? []
      : [
          {
            path: ['executable'],
            text: 'installer is for nodes without the Machine Config Operator, executable for nodes with it: set one of them',
          },
        ]),
    ...(provider === undefined || installer !== undefined || executable !== undefined
      ? []
      : [
          {
            path: ['provider'],
            text: 'only our own executable knows these options: set installer, or executable on OpenShift',
          },
        ]),
  ];
}

function optionsOf(config: CredentialProviderInput): Readonly<Record<string, unknown>> {
  const { mode, secretAnnotation, installer } = config;
  return {
    ...(mode === undefined ? {} : { mode }),
    ...(secretAnnotation === undefined ? {} : { secretAnnotation }),
    ...(installer === undefined || installer.uninstall === true ? {} : { installer: true }),
  };
}

/** Properties of {@link CredentialProvider}. */
export interface CredentialProviderProps
  extends Omit<
    CredentialProviderInput,
    'mode' | 'secretAnnotation' | 'provider' | 'executable' | 'installer'
  > {
  /** Namespace of the PrometheusRule. @default {'pullwright-system'} */
  readonly monitoringNamespace?: string;
}

function credentialProviderObjects(props: CredentialProviderProps, installer = false): readonly KubeObject[] {
  const { matchImages, namespaces = [], monitoringNamespace = 'pullwright-system' } = props;
  const access = props.nodeAccess ?? 'narrow';
  return [
    ...(props.crd === true ? [credentialProviderCrd()] : []),
    ...(matchImages === undefined ? [] : [credentialProviderConfig(matchImages)]),
    ...(access === 'none' ? [] : nodeAccess({ readServiceAccounts: access === 'shipped' })),
    ...namespaces.flatMap(namespaceAccess),
    ...(props.alerts === true
      ? [credentialProviderAlerts({ namespace: monitoringNamespace, installer })]
      : []),
  ];
}

/**
 * Everything that a cluster needs beside the executable on its nodes: the object, the roles, the alerts.
 *
 * @throws TypeError that names each pattern which the definition would refuse
 * @example
 * ```ts
 * import { CredentialProvider } from './chart.ts';
 * import { Testing } from 'cdk8s';
 * import assert from 'node:assert/strict';
 *
 * const chart = Testing.chart();
 * new CredentialProvider(chart, 'provider', { matchImages: ['docker.io'], namespaces: [{ namespace: 'app-team-alpha' }] });
 * assert.deepEqual(Testing.synth(chart).map((object) => object.kind).sort(), [
 *   'CRIOCredentialProviderConfig', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding',
 * ]);
 * ```
 */
export class CredentialProvider extends ObjectGroup {
  constructor(scope: Construct, id: string, props: CredentialProviderProps) {
    super(scope, id, credentialProviderObjects(props));
  }
}
