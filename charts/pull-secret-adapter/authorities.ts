/** Certificate authorities of the platform, for servers with certificates of their own: one ConfigMap for adapter, Sentinel and Jobs. */
import type { EnvVar, Volume, VolumeMount } from '../shared/kubernetes.ts';

/** Key of the ConfigMap. */
const AUTHORITIES_KEY = 'ca.crt';
export const AUTHORITIES_MOUNT = '/etc/pullwright/ca';

/**
 * What a container and its pod need so that these authorities are trusted beside those of the system, by every connection of the program:
 * the variable is the runtime's own.
 */
export function authoritiesOfPod(configMap: string): {
  readonly env: readonly EnvVar[];
  readonly mounts: readonly VolumeMount[];
  readonly volumes: readonly Volume[];
} {
  return {
    env: [{ name: 'NODE_EXTRA_CA_CERTS', value: `${AUTHORITIES_MOUNT}/${AUTHORITIES_KEY}` }],
    mounts: [{ name: 'authorities', mountPath: AUTHORITIES_MOUNT, readOnly: true }],
    volumes: [{ name: 'authorities', configMap: { name: configMap } }],
  };
}
