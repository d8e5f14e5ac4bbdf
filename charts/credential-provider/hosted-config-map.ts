/** The MachineConfig of a hosted cluster, as its NodePools take it: a ConfigMap beside the HostedCluster. */

import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { kubernetesObject } from '../shared/kubernetes.ts';

/** Name of the ConfigMap, to be put into `spec.config` of each NodePool. */
export function hostedConfigMapName(hostedCluster: string): string {
  return `${hostedCluster}-crio-credential-provider`;
}

/**
 * The object. JSON is YAML, and a MachineConfig has no comments worth keeping.
 *
 * @example
 * ```ts
 * import { hostedConfigMap } from './hosted-config-map.ts';
 * import { machineConfig } from './machine-config.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = hostedConfigMap({ namespace: 'clusters', name: 'east' }, machineConfig({ pool: 'worker', files: [] }));
 * assert.equal(object.metadata.name, 'east-crio-credential-provider');
 * ```
 */
export function hostedConfigMap(
  hostedCluster: { readonly namespace: string; readonly name: string },
  machineConfig: KubeObject,
): KubeObject {
  return kubernetesObject(
    'ConfigMap',
    { name: hostedConfigMapName(hostedCluster.name), namespace: hostedCluster.namespace },
    {
      data: { config: `${JSON.stringify(machineConfig, null, 2)}\n` },
    },
  );
}
