/** Permissions of this system's reconciler (`runtime/credential-provider`), by name where possible. */

import { type AccountBound, cel, celOf, GOES } from '../../runtime/core/kubernetes/account-bounds.ts';
import {
  applyByName,
  dataUrl,
  EVENTS,
  may,
  type PolicyRule,
  READ,
} from '../../runtime/core/kubernetes/objects.ts';
import { pullStatusName } from '../../runtime/core/kubernetes/pull-status.ts';
import { ROLE } from '../../runtime/credential-provider/access.ts';
import { CONFIG_API_VERSION, CONFIG_KIND } from '../../runtime/credential-provider/config.ts';
import {
  type HostedExecutable,
  hostedConfigMapName,
  hostedConfigText,
  ignition,
  machineConfigName,
} from '../../runtime/credential-provider/objects.ts';
import { CREDENTIAL_PROVIDER, platformFile } from '../../runtime/credential-provider/platform.ts';
import { configText, poolFiles } from '../../runtime/credential-provider/pools.ts';
import { type Access, type HostedCluster, statusRules } from '../shared/system.ts';

const POOLS: readonly string[] = ['master', 'worker', 'arbiter'];
const STATUS_NAME = pullStatusName(CREDENTIAL_PROVIDER.kind, CREDENTIAL_PROVIDER.objectName);

/** Access in a stand-alone cluster. @param namespace of the PullStatus */
export function clusterAccess(namespace: string): readonly Access[] {
  return [
    {
      rules: [
        ...nodeRules(),
        applyByName('machineconfiguration.openshift.io', 'machineconfigs', POOLS.map(machineConfigName)),
        EVENTS,
      ],
      bounds: [MACHINE_CONFIGS],
    },
    statusAccess(namespace),
  ];
}

const PLATFORMS = ['AWS', 'GCP', 'Azure', 'None'].map(platformFile);
const CONFIG = { apiVersion: CONFIG_API_VERSION, kind: CONFIG_KIND } as const;
const URL = dataUrl('');
/** Content of the kubelet's file in a rendered MachineConfig. Any content is admitted, because CEL cannot decode base64. */
const CONTENT = dataUrl(configText(CONFIG)).slice(URL.length);
const BASE64 = '[A-Za-z0-9+/]*={0,2}$';
const MESSAGE =
  "this account of Pullwright writes MachineConfigs only as they are rendered: the platform's file and a drop-in that points the kubelet at it";

const STORAGES = [true, false].flatMap((isKnownToKubelet) =>
  PLATFORMS.map((platform) => ignition(poolFiles({ ...platform, isKnownToKubelet }, CONFIG))['storage']),
);

/** Admits MachineConfigs as rendered, with any content of the platform's file. Roles name the MachineConfigs. */
const MACHINE_CONFIGS: AccountBound = {
  name: 'machine-configs',
  apiGroup: 'machineconfiguration.openshift.io',
  resource: 'machineconfigs',
  variables: [
    { name: 'storage', expression: 'dyn(object.spec.config.storage)' },
    {
      name: 'source',
      expression: `dyn(size(variables.storage) == 0 ? '${URL}' : variables.storage.files[0].contents.source)`,
    },
  ],
  validations: [
    {
      expression: `${GOES}(dyn(object.spec) == ${celOf({ config: { ...ignition([]), storage: cel('variables.storage') } })} && variables.source.matches('^${URL}${BASE64}') && variables.storage in ${celOf([{}, ...STORAGES]).replaceAll(celOf(URL + CONTENT), 'variables.source')})`,
      message: MESSAGE,
    },
  ],
};

/** Admits ConfigMaps for NodePools as rendered, with the executable of any hosted cluster, and any content of the file. */
function hostedMachineConfigs(hosted: readonly HostedProvider[]): AccountBound {
  const parts = (platform = platformFile('None'), executable?: HostedExecutable): readonly string[] =>
    hostedConfigText(poolFiles(platform, CONFIG), executable).split(CONTENT);
  const [head = ''] = parts();
  // Up to the end of the file list.
  const middles = PLATFORMS.map((platform) => parts(platform)[1]?.split('\n        ]')[0] ?? '');
  const executables = new Map(hosted.map(({ executable }) => [JSON.stringify(executable), executable]));
  // CEL variables, because the strings are long and shared by all platforms.
  const ends = [...executables.values()].map((executable, index) => ({
    name: `end${index}`,
    expression: JSON.stringify(parts(PLATFORMS[0], executable)[1]?.slice(middles[0]?.length)),
  }));
  const content = `variables.text.substring(${head.length}, size(variables.text) - size(middle + end))`;
  return {
    name: 'hosted-machine-configs',
    apiGroup: '',
    resource: 'configmaps',
    // Hosted clusters in different namespaces may have the same name, and the API server rejects duplicates.
    resourceNames: [...new Set(hosted.map(({ cluster }) => hostedConfigMapName(cluster.hostedCluster.name)))],
    variables: [
      { name: 'text', expression: "object.?data[?'config'].orValue('')" },
      { name: 'head', expression: JSON.stringify(head) },
      { name: 'middles', expression: JSON.stringify(middles) },
      ...ends,
    ],
    validations: [
      {
        expression: `${GOES}(object.data.all(key, key == 'config') && !has(object.binaryData) && (variables.text == ${JSON.stringify(hostedConfigText([]))} || (variables.text.startsWith(variables.head) && [${ends.map(({ name }) => `variables.${name}`).join(', ')}].exists(end, variables.text.endsWith(end) && variables.middles.exists(middle, size(variables.text) >= ${head.length} + size(middle + end) && variables.text.endsWith(middle + end) && ${content}.matches('^${BASE64}'))))))`,
        message: MESSAGE,
      },
    ],
  };
}

/** Access in a hosted cluster: reads the nodes' configuration, which the management cluster delivers. */
export function hostedNodesAccess(): readonly Access[] {
  return [{ rules: [...nodeRules(), EVENTS] }];
}

function nodeRules(): readonly PolicyRule[] {
  const { group, plural, objectName } = CREDENTIAL_PROVIDER;
  return [
    may(READ, group, [plural, 'infrastructures']),
    may(['get', 'patch'], group, [`${plural}/status`], [objectName]),
    may(READ, '', ['nodes']),
    // The names of the pools' rendered configs are not known in advance.
    may(READ, 'machineconfiguration.openshift.io', ['machineconfigpools', 'machineconfigs']),
  ];
}

/**
 * Access in a namespace with a reconciled Role. RBAC allows an account to grant only permissions it has, so the account may
 * read the Secrets of this namespace itself.
 */
export function followedAccess(namespace: string): Access {
  return {
    namespace,
    rules: [
      may(READ, '', ['pods', 'serviceaccounts']),
      may(['get'], '', ['secrets']),
      applyByName('rbac.authorization.k8s.io', 'roles', [ROLE]),
      // Looked up by label, which RBAC cannot express.
      may(['list', 'watch'], 'rbac.authorization.k8s.io', ['roles']),
    ],
  };
}

/** A hosted cluster and the provider executable for its nodes. */
export interface HostedProvider {
  readonly cluster: HostedCluster;
  readonly executable?: HostedExecutable | undefined;
}

/** Access in a management cluster to the ConfigMaps and reports of its hosted clusters. */
export function hostedClustersAccess(hosted: readonly HostedProvider[]): readonly Access[] {
  return [
    { rules: [EVENTS], bounds: [hostedMachineConfigs(hosted)] },
    ...hosted.flatMap(({ cluster: { hostedCluster, controlPlaneNamespace } }) => [
      {
        namespace: hostedCluster.namespace,
        rules: [
          applyByName('', 'configmaps', [hostedConfigMapName(hostedCluster.name)]),
          // Looked up by label, which RBAC cannot express.
          may(['list', 'watch'], '', ['configmaps']),
          // References to the ConfigMap, and the rollout state.
          may(READ, 'hypershift.openshift.io', ['nodepools']),
        ],
      },
      statusAccess(controlPlaneNamespace),
    ]),
  ];
}

function statusAccess(namespace: string): Access {
  return { namespace, rules: statusRules([STATUS_NAME]) };
}
