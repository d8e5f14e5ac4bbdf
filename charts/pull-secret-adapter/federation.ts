/**
 * Workload Identity Federation of the Jobs, for clusters without Google's metadata server: the pod presents a token of its
 * ServiceAccount that is made for one provider, and Google's Security Token Service gives another for it.
 *
 * Source: Google's credential configuration of type `external_account` with a file as its source. It holds no secret.
 */
import type { EnvVar, Volume, VolumeMount } from '../shared/kubernetes.ts';

/** ConfigMap that holds the credential configuration, in the namespace of the Jobs. */
export const FEDERATION_CONFIG = 'pullsecret-adapter-job-credentials';
export const FEDERATION_KEY = 'credentials.json';
export const CONFIG_MOUNT = '/etc/pullwright/google';
export const TOKEN_MOUNT = '/var/run/pullwright/google';

/** The full name of a provider, as `gcloud iam workload-identity-pools providers describe` shows it. */
export const PROVIDER: RegExp =
  /^projects\/\d+\/locations\/global\/workloadIdentityPools\/[a-z0-9-]{4,32}\/providers\/[a-z0-9-]{4,32}$/;

/**
 * The credential configuration that google-auth-library reads.
 *
 * @param provider full name, see {@link PROVIDER}
 *
 * @example
 * ```ts
 * import { federationCredentials } from './federation.ts';
 * import assert from 'node:assert/strict';
 *
 * const provider = 'projects/1/locations/global/workloadIdentityPools/fleet/providers/openshift';
 * assert.equal(federationCredentials(provider)['audience'], `//iam.googleapis.com/${provider}`);
 * ```
 */
export function federationCredentials(provider: string): Readonly<Record<string, unknown>> {
  return {
    type: 'external_account',
    audience: `//iam.googleapis.com/${provider}`,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: 'https://sts.googleapis.com/v1/token',
    credential_source: { file: `${TOKEN_MOUNT}/token` },
  };
}

/** What the container and the pod of a Job need for it. */
export function federationOfPod(provider: string): {
  readonly env: readonly EnvVar[];
  readonly mounts: readonly VolumeMount[];
  readonly volumes: readonly Volume[];
} {
  // What a provider accepts unless it was given a list of its own.
  const audience = `https://iam.googleapis.com/${provider}`;
  const token = { serviceAccountToken: { audience, expirationSeconds: 3600, path: 'token' } };
  return {
    env: [{ name: 'GOOGLE_APPLICATION_CREDENTIALS', value: `${CONFIG_MOUNT}/${FEDERATION_KEY}` }],
    mounts: [
      { name: 'google-config', mountPath: CONFIG_MOUNT, readOnly: true },
      { name: 'google-token', mountPath: TOKEN_MOUNT, readOnly: true },
    ],
    volumes: [
      { name: 'google-config', configMap: { name: FEDERATION_CONFIG } },
      { name: 'google-token', projected: { sources: [token] } },
    ],
  };
}
