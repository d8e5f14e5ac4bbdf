/**
 * The Job and the RoleBinding that the adapter creates for a cluster, as plain objects. `synth` renders them as an example. They
 * contain no secret values.
 */

import type { KubeObject } from '../core/kubernetes/object.ts';
import {
  type EnvVar,
  HARDENED_POD,
  imagePullSecretsOf,
  kubernetesObject,
  type PodSpec,
  type Volume,
  type VolumeMount,
} from '../core/kubernetes/objects.ts';
import type { AdapterSettings, JobSettings } from './options.ts';
import { FAIL_JOB_EXIT_CODES } from './outcome.ts';

/** Additions to a container and its pod. */
export interface PodParts {
  readonly env: readonly EnvVar[];
  readonly mounts: readonly VolumeMount[];
  readonly volumes: readonly Volume[];
}

export const NO_PARTS: PodParts = { env: [], mounts: [], volumes: [] };

/** Joins additions in this order. */
export function joinedParts(...parts: readonly PodParts[]): PodParts {
  return {
    env: parts.flatMap(({ env }) => env),
    mounts: parts.flatMap(({ mounts }) => mounts),
    volumes: parts.flatMap(({ volumes }) => volumes),
  };
}

/** Mounts a volume read-only. */
export function mountedAt(mountPath: string, volume: Volume): PodParts {
  return { env: [], mounts: [{ name: volume.name, mountPath, readOnly: true }], volumes: [volume] };
}

// Certificate authorities of the platform: one ConfigMap for the adapter, Sentinel and the Jobs.

/** Key of the ConfigMap. */
const AUTHORITIES_KEY = 'ca.crt';
export const AUTHORITIES_MOUNT = '/etc/pullwright/ca';

/**
 * Mounts the authorities. The runtime reads the variable and trusts them, in addition to those of the system, on all connections.
 */
export function authoritiesOfPod(configMap: string): PodParts {
  return {
    ...mountedAt(AUTHORITIES_MOUNT, { name: 'authorities', configMap: { name: configMap } }),
    env: [{ name: 'NODE_EXTRA_CA_CERTS', value: `${AUTHORITIES_MOUNT}/${AUTHORITIES_KEY}` }],
  };
}

// Workload Identity Federation of the Jobs, for clusters without Google's metadata server. Google's Security Token Service
// exchanges the pod's ServiceAccount token, whose audience is the provider, for a Google token.
// Source: Google's credential configuration of type `external_account` with a file source. It contains no secret.

/** ConfigMap with the credential configuration, in the namespace of the Jobs. */
export const FEDERATION_CONFIG = 'pullsecret-adapter-job-credentials';
export const FEDERATION_KEY = 'credentials.json';
export const CONFIG_MOUNT = '/etc/pullwright/google';
export const TOKEN_MOUNT = '/var/run/pullwright/google';

/** The full name of a provider, as printed by `gcloud iam workload-identity-pools providers describe`. */
export const PROVIDER: RegExp =
  /^projects\/\d+\/locations\/global\/workloadIdentityPools\/[a-z0-9-]{4,32}\/providers\/[a-z0-9-]{4,32}$/;

/**
 * The credential configuration for google-auth-library.
 *
 * @param provider full name, see {@link PROVIDER}
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

/** Mounts the credential configuration and the projected token. */
export function federationOfPod(provider: string): PodParts {
  // The default audience of a provider without a list of allowed audiences.
  const audience = `https://iam.googleapis.com/${provider}`;
  const token = { serviceAccountToken: { audience, expirationSeconds: 3600, path: 'token' } };
  return {
    ...joinedParts(
      mountedAt(CONFIG_MOUNT, { name: 'google-config', configMap: { name: FEDERATION_CONFIG } }),
      mountedAt(TOKEN_MOUNT, { name: 'google-token', projected: { sources: [token] } }),
    ),
    env: [{ name: 'GOOGLE_APPLICATION_CREDENTIALS', value: `${CONFIG_MOUNT}/${FEDERATION_KEY}` }],
  };
}

/** Mount path of the pull secret in the Job's container. */
export const PULL_SECRET_MOUNT = '/var/run/pullwright/pull-secret';
/** Key of the temporary Secret. */
export const PULL_SECRET_KEY = 'pullsecret';
/** Folder of the result file, for a status sidecar. */
export const RESULTS_MOUNT = '/results';

/** Name of the Job's container; the adapter reads the result from its status. */
export const JOB_CONTAINER = 'job';

/** Input of {@link pullSecretJob}: settings of all Jobs, and values of the cluster. */
export interface PullSecretJobInput
  extends JobSettings,
    Pick<AdapterSettings, 'passAs' | 'jobTtlSeconds' | 'jobDeadlineSeconds'> {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Whether the pod sends requests to the API server, so its ServiceAccount token must be mounted. */
  readonly needsApiServer: boolean;
  /** Must not contain secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** The temporary Secret; absent for a Job that only deletes. */
  readonly dataSecret?: string;
}

/**
 * Builds the Job: one unprivileged pod with a read-only root file system and its own ServiceAccount. There is no `runAsUser`,
 * because OpenShift assigns a UID per namespace. For the same reason the mounted pull secret is readable by every UID in the pod.
 */
export function pullSecretJob(input: PullSecretJobInput): KubeObject {
  const { name, namespace, labels, annotations } = input;
  return kubernetesObject(
    'Job',
    { name, namespace, labels, annotations },
    {
      spec: {
        backoffLimit: 3,
        activeDeadlineSeconds: input.jobDeadlineSeconds,
        ttlSecondsAfterFinished: input.jobTtlSeconds,
        podReplacementPolicy: 'Failed',
        podFailurePolicy: {
          rules: [
            { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
            {
              action: 'FailJob',
              onExitCodes: { containerName: JOB_CONTAINER, operator: 'In', values: FAIL_JOB_EXIT_CODES },
            },
          ],
        },
        template: { metadata: { labels, annotations }, spec: podSpec(input) },
      },
    },
  );
}

function podSpec(input: PullSecretJobInput): PodSpec {
  const results = { name: 'results', mountPath: RESULTS_MOUNT };
  const { env, mounts, volumes } = joinedParts(
    { ...NO_PARTS, env: Object.entries(input.env).map(([name, value]) => ({ name, value })) },
    pullSecretOfPod(input),
    { env: [], mounts: [results], volumes: [{ name: 'results', emptyDir: { sizeLimit: '1Mi' } }] },
    input.federation === '' ? NO_PARTS : federationOfPod(input.federation),
    input.jobAuthorities === '' ? NO_PARTS : authoritiesOfPod(input.jobAuthorities),
  );
  return {
    restartPolicy: 'Never',
    serviceAccountName: input.serviceAccount,
    automountServiceAccountToken: input.needsApiServer,
    enableServiceLinks: false,
    ...imagePullSecretsOf(input.imagePullSecrets),
    securityContext: HARDENED_POD,
    containers: [
      {
        name: JOB_CONTAINER,
        image: input.image,
        args: ['job'],
        env,
        terminationMessagePolicy: 'File',
        resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '500m', memory: '512Mi' } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: mounts,
      },
    ],
    volumes,
  };
}

/** Passes the temporary Secret to the Job. */
function pullSecretOfPod({ passAs, dataSecret }: PullSecretJobInput): PodParts {
  if (dataSecret === undefined) return NO_PARTS;
  if (passAs === 'env') {
    const reference = { secretKeyRef: { name: dataSecret, key: PULL_SECRET_KEY } };
    return { ...NO_PARTS, env: [{ name: 'PULL_SECRET_DATA', valueFrom: reference }] };
  }
  const volume = { name: 'pull-secret', secret: { secretName: dataSecret, defaultMode: 0o444 } };
  return {
    ...mountedAt(PULL_SECRET_MOUNT, volume),
    env: [{ name: 'PULL_SECRET_FILE', value: `${PULL_SECRET_MOUNT}/${PULL_SECRET_KEY}` }],
  };
}

/** ClusterRole that allows access to the one Secret; bound per management namespace. */
export const JOB_CLUSTER_ROLE = 'pullwright-pull-secret-job';
/** Its RoleBinding, with the same name in every management namespace, so that the adapter's RBAC can be limited to this name. */
export const JOB_BINDING = 'pullsecret-adapter-job';

/** Allows the Job's ServiceAccount to write the pull secret in one namespace. */
export function pullSecretBinding(
  namespace: string,
  labels: Readonly<Record<string, string>>,
  account: Pick<JobSettings, 'namespace' | 'serviceAccount'>,
): KubeObject {
  return kubernetesObject(
    'RoleBinding',
    { name: JOB_BINDING, namespace, labels },
    {
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: JOB_CLUSTER_ROLE },
      subjects: [{ kind: 'ServiceAccount', name: account.serviceAccount, namespace: account.namespace }],
    },
  );
}
