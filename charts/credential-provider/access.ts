/** What the reconciler of this system may do: what it reads and writes (`runtime/credential-provider`), by name where it can be. */

import type { AccountBound } from '../../runtime/core/kubernetes/account-bounds.ts';
import { applyByName, dataUrl, type PolicyRule } from '../../runtime/core/kubernetes/objects.ts';
import { pullStatusName } from '../../runtime/core/kubernetes/pull-status.ts';
import { ROLE } from '../../runtime/credential-provider/access.ts';
import {
  hostedConfigMapName,
  ignition,
  machineConfigName,
  variableDropIn,
} from '../../runtime/credential-provider/objects.ts';
import {
  CREDENTIAL_PROVIDER,
  kubeletFlags,
  platformFile,
} from '../../runtime/credential-provider/platform.ts';
import { type Access, EVENTS, type HostedCluster, may, READ, statusRules } from '../shared/system.ts';

const POOLS: readonly string[] = ['master', 'worker', 'arbiter'];
const STATUS_NAME = pullStatusName(CREDENTIAL_PROVIDER.kind, CREDENTIAL_PROVIDER.objectName);

/** In a stand-alone cluster; `namespace` is where it reports. */
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

const CONFIG_FILES = ['AWS', 'GCP', 'Azure', 'None'].map((platform) => platformFile(platform).path);
const DROP_INS = CONFIG_FILES.map((path) => dataUrl(variableDropIn(kubeletFlags(path))));
/** CEL has no literal of a map whose values differ in type. */
const IGNITION = Object.entries(ignition([]).ignition).map(([key, value]) => ({
  key,
  holds: `variables.ignition.?${key}.orValue(${JSON.stringify(value)}) == ${JSON.stringify(value)}`,
}));

/** The platform's file, the drop-in for it, and nothing else that a MachineConfig could hold: units, users, kernels, images. */
const MACHINE_CONFIGS: AccountBound = {
  name: 'machine-configs',
  apiGroup: 'machineconfiguration.openshift.io',
  resource: 'machineconfigs',
  variables: [
    { name: 'spec', expression: "request.operation == 'DELETE' ? {} : dyn(object.spec)" },
    { name: 'config', expression: 'dyn(variables.spec.?config.orValue({}))' },
    { name: 'ignition', expression: 'dyn(variables.config.?ignition.orValue({}))' },
    { name: 'storage', expression: 'dyn(variables.config.?storage.orValue({}))' },
  ],
  validations: [
    {
      expression: `request.name in ${JSON.stringify(POOLS.map(machineConfigName))}`,
      message: 'this account of Pullwright writes only the MachineConfigs of the credential provider',
    },
    {
      expression: `variables.storage.?files.orValue([]).all(file, file.path in ${JSON.stringify(CONFIG_FILES)} || (file.path == '${CREDENTIAL_PROVIDER.dropIn}' && file.contents.source in ${JSON.stringify(DROP_INS)}))`,
      message: `this account of Pullwright writes only the platform's file below ${CREDENTIAL_PROVIDER.configDir} and a drop-in that points the kubelet at it`,
    },
    {
      expression: `variables.ignition.all(key, key in ${JSON.stringify(IGNITION.map(({ key }) => key))}) && ${IGNITION.map(({ holds }) => holds).join(' && ')}`,
      message: 'this account of Pullwright makes nodes fetch nothing',
    },
    {
      expression:
        "variables.spec.all(key, key in ['config']) && variables.storage.all(key, key in ['files']) && ['systemd', 'passwd', 'kernelArguments'].all(key, size(variables.config[?key].orValue({})) == 0)",
      message: 'this account of Pullwright brings no units, users, links, kernels or images to nodes',
    },
  ],
};

/** In a hosted cluster: the nodes' configuration is read there, and delivered by the management cluster. */
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
 * In a namespace whose Role is kept equal to the pull secrets in use. An account can only grant what it has: it may read the
 * secrets of this namespace itself.
 */
export function followedAccess(namespace: string): Access {
  return {
    namespace,
    rules: [
      may(READ, '', ['pods', 'serviceaccounts']),
      may(['get'], '', ['secrets']),
      applyByName('rbac.authorization.k8s.io', 'roles', [ROLE]),
      // They are looked up by label, which RBAC cannot express.
      may(['list', 'watch'], 'rbac.authorization.k8s.io', ['roles']),
    ],
  };
}

/** In a management cluster, for each hosted cluster: its ConfigMap and its report. */
export function hostedClusterAccess(cluster: HostedCluster): readonly Access[] {
  const { namespace, name } = cluster.hostedCluster;
  return [
    {
      namespace,
      rules: [
        applyByName('', 'configmaps', [hostedConfigMapName(name)]),
        // They are looked up by label, which RBAC cannot express.
        may(['list', 'watch'], '', ['configmaps']),
        // Which NodePools refer to the ConfigMap, and how far they are.
        may(READ, 'hypershift.openshift.io', ['nodepools']),
      ],
    },
    statusAccess(cluster.controlPlaneNamespace),
    { rules: [EVENTS] },
  ];
}

function statusAccess(namespace: string): Access {
  return { namespace, rules: statusRules([STATUS_NAME]) };
}
