/** The section `systems.credential-provider` of a fleet, and constructs for other charts. */
import type { Construct } from 'constructs';
import { GLOBAL_PULL_SECRET } from '../../runtime/core/kubernetes/hypershift.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { OWN_NAMESPACE } from '../../runtime/core/kubernetes/objects.ts';
import { defined } from '../../runtime/core/record.ts';
import { namespaceAccess, nodeAccess } from '../../runtime/credential-provider/access.ts';
import { credentialProviderConfig, credentialProviderCrd } from '../../runtime/credential-provider/kind.ts';
import { executableMachineConfigs } from '../../runtime/credential-provider/objects.ts';
import {
  type CredentialProviderInput,
  mistakes,
  type NamespaceAccess,
  schema,
} from '../../runtime/credential-provider/options.ts';
import { ObjectGroup } from '../shared/group.ts';
import { type ChartSystem, clusterOptions, configNamespace } from '../shared/system.ts';
import {
  clusterAccess,
  followedAccess,
  type HostedProvider,
  hostedClustersAccess,
  hostedNodesAccess,
} from './access.ts';
import { credentialProviderAlerts } from './alerts.ts';
import { installerObjects } from './installer.ts';

export const credentialProviderSystem: ChartSystem<CredentialProviderInput, CredentialProviderInput> = {
  name: 'credential-provider',
  summary: 'Lets pods pull from mirrors with the pull secrets of their namespace',
  config: schema,
  kinds: ['standalone', 'hosted'],
  check: (config, cluster) => mistakes(config, cluster.kind),
  objects: (config, { image, namespace }) => {
    const { installer, executable, provider = {}, secretAnnotation = false } = config;
    const pools = executable?.pools ?? [];
    return [
      ...credentialProviderObjects({ ...config, monitoringNamespace: namespace }, installer !== undefined),
      ...(installer === undefined
        ? []
        : installerObjects({ ...installer, image, secretAnnotation, provider })),
      ...executableMachineConfigs({ pools, image, settings: provider }),
    ];
  },
  reconciler: (config) => ({
    options: { ...optionsOf(config), ...rolesOption(config) },
    access: [
      ...clusterAccess(GLOBAL_PULL_SECRET.configNamespace),
      ...followed(config).map(({ namespace }) => followedAccess(namespace)),
    ],
  }),
  hostedAccess: hostedNodesAccess,
  managementReconciler: (_management, hosted) => ({
    options: clusterOptions(hosted, (config, { image }) => ({
      ...optionsOf(config),
      ...hostedExecutable(config, image),
    })),
    access: hostedClustersAccess(
      hosted.map(({ cluster, config }) => ({ cluster, ...hostedExecutable(config, cluster.image) })),
    ),
  }),
};

/** The executable as an option of the reconciler, which writes the ConfigMap that NodePools refer to. */
function hostedExecutable(
  { executable, provider }: CredentialProviderInput,
  image: string,
): Pick<HostedProvider, 'executable'> {
  if (executable === undefined) return {};
  return { executable: { image, ...(provider === undefined ? {} : { settings: provider }) } };
}

/** Namespaces whose Role is reconciled. */
function followed({ namespaces = [] }: CredentialProviderInput): readonly NamespaceAccess[] {
  return namespaces.filter(({ secrets }) => secrets === 'inUse');
}

function rolesOption(config: CredentialProviderInput): { readonly namespaces?: object } {
  const entries = followed(config).map(
    ({ namespace, serviceAccounts = ['default'], readReferences = true }) =>
      [namespace, { serviceAccounts, readReferences }] as const,
  );
  return entries.length === 0 ? {} : { namespaces: Object.fromEntries(entries) };
}

function optionsOf(config: CredentialProviderInput): Readonly<Record<string, unknown>> {
  const { mode, secretAnnotation, installer } = config;
  const installs = installer === undefined || installer.uninstall === true ? undefined : true;
  return defined({ mode, secretAnnotation, installer: installs });
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
  const { matchImages, namespaces = [], monitoringNamespace = OWN_NAMESPACE } = props;
  const access = props.nodeAccess ?? 'narrow';
  return [
    ...configNamespace(props),
    ...(props.crd === true ? [credentialProviderCrd()] : []),
    ...(matchImages === undefined ? [] : [credentialProviderConfig(matchImages)]),
    ...(access === 'none' ? [] : nodeAccess({ readServiceAccounts: access === 'shipped' })),
    ...namespaces.flatMap(namespaceAccess),
    ...(props.alerts === true ? [credentialProviderAlerts(monitoringNamespace, installer)] : []),
  ];
}

/**
 * Everything that a cluster needs besides the executable on its nodes: the config object, RBAC, alerts.
 *
 * @throws TypeError that names each pattern the CRD would reject
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
