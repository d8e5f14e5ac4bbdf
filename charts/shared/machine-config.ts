/** MachineConfigs of the Machine Config Operator: whatever a system brings to the nodes of a pool. */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { customObject } from './custom-kinds.ts';
import type { IgnitionConfig } from './openshift.ts';

/** The pool that takes a MachineConfig. */
const ROLE_LABEL = 'machineconfiguration.openshift.io/role';

/**
 * A MachineConfig for the nodes of `pool`.
 *
 * @example
 * ```ts
 * import { machineConfigOf } from './machine-config.ts';
 * import assert from 'node:assert/strict';
 *
 * const object = machineConfigOf('worker', { name: '99-worker-banner' }, { ignition: { version: '3.2.0' } });
 * assert.deepEqual(object.metadata.labels, { 'machineconfiguration.openshift.io/role': 'worker' });
 * ```
 */
export function machineConfigOf(pool: string, metadata: ObjectMeta, config: IgnitionConfig): KubeObject {
  const labels = { ...metadata.labels, [ROLE_LABEL]: pool };
  return customObject('MachineConfig', { ...metadata, labels }, { spec: { config } });
}

/** The data URL of a file's text, as the operator itself writes it. */
export function dataUrl(text: string): string {
  return `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`;
}
