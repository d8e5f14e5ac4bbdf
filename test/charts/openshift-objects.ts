/** An object of each of OpenShift's kinds that we render and whose definition can be installed. */

import { mirrorMachineConfig, mirrorSetObject } from '../../charts/registry-overrides/chart.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { executableMachineConfigs, machineConfig } from '../../runtime/credential-provider/objects.ts';

const entry = { source: 'quay.io/team', mirrors: ['mirror.example.com/team'] };
const set = { name: 'a', entries: [entry] };

export const OPENSHIFT_OBJECTS: readonly KubeObject[] = [
  mirrorSetObject({ name: 'a', entries: [{ ...entry, mirrorSourcePolicy: 'NeverContactSource' }] }),
  mirrorSetObject({ ...set, type: 'tag' }),
  mirrorSetObject({ ...set, type: 'content-source-policy' }),
  mirrorMachineConfig('worker', [set]),
  ...executableMachineConfigs({ pools: ['worker'], image: 'registry.example.com/pullwright:1' }),
  machineConfig('worker', [{ path: '/etc/a', text: 'a' }]),
];

/** Object that strict validation must reject. */
export const MISSPELT_MIRROR_SET: KubeObject = {
  ...mirrorSetObject(set),
  spec: { imageTagMirrors: [entry] },
};
