/** The section `systems.credential-provider` of a fleet, and constructs for charts of one's own. */
import type { Construct } from 'constructs';
import { z } from 'zod';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { dnsLabel, dnsName } from '../shared/fields.ts';
import { ObjectGroup } from '../shared/object-group.ts';
import type { ChartSystem } from '../shared/system.ts';
import { type NamespaceAccess, namespaceAccess, nodeAccess } from './access.ts';
import { credentialProviderAlerts } from './alerts.ts';
import { credentialProviderConfig, credentialProviderCrd, isMatchImage } from './crd.ts';
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
  check: (config, cluster) =>
    config.installer === undefined || cluster.kind === 'standalone'
      ? []
      : [
          {
            path: ['installer'],
            text: `the cluster is of kind ${cluster.kind}, wanted standalone: nodes of hosted clusters take the ConfigMap of their NodePools`,
          },
        ],
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

function optionsOf({ mode, secretAnnotation }: CredentialProviderInput): Readonly<Record<string, unknown>> {
  return {
    ...(mode === undefined ? {} : { mode }),
    ...(secretAnnotation === undefined ? {} : { secretAnnotation }),
  };
}

/** Properties of {@link CredentialProvider}. */
export interface CredentialProviderProps
  extends Omit<CredentialProviderInput, 'mode' | 'secretAnnotation' | 'installer'> {
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
