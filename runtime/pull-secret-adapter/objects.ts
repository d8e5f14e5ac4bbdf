/**
 * The Job and the binding that the adapter makes for a cluster, as plain objects: rendered by `synth` as an example, applied by the
 * adapter. No value of a secret goes through here.
 */

import type { KubeObject } from '../core/kubernetes/object.ts';
import {
  type EnvVar,
  imagePullSecretsOf,
  kubernetesObject,
  type PodSpec,
  type Volume,
  type VolumeMount,
} from '../core/kubernetes/objects.ts';
import type { AdapterSettings } from './options.ts';
import { FAIL_JOB_EXIT_CODES } from './outcome.ts';

/** What a container and its pod need for something that they use. */
export interface PodParts {
  readonly env: readonly EnvVar[];
  readonly mounts: readonly VolumeMount[];
  readonly volumes: readonly Volume[];
}

// Certificate authorities of the platform, for servers with certificates of their own: one ConfigMap for adapter, Sentinel and Jobs.

/** Key of the ConfigMap. */
const AUTHORITIES_KEY = 'ca.crt';
export const AUTHORITIES_MOUNT = '/etc/pullwright/ca';

/**
 * What a container and its pod need so that these authorities are trusted beside those of the system, by every connection of the program:
 * the variable is the runtime's own.
 */
export function authoritiesOfPod(configMap: string): PodParts {
  return {
    env: [{ name: 'NODE_EXTRA_CA_CERTS', value: `${AUTHORITIES_MOUNT}/${AUTHORITIES_KEY}` }],
    mounts: [{ name: 'authorities', mountPath: AUTHORITIES_MOUNT, readOnly: true }],
    volumes: [{ name: 'authorities', configMap: { name: configMap } }],
  };
}

// Workload Identity Federation of the Jobs, for clusters without Google's metadata server: the pod presents a token of its
// ServiceAccount that is made for one provider, and Google's Security Token Service gives another for it.
// Source: Google's credential configuration of type `external_account` with a file as its source. It holds no secret.

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
export function federationOfPod(provider: string): PodParts {
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

/** Where the pull secret is mounted in the Job's container. */
export const PULL_SECRET_MOUNT = '/var/run/pullwright/pull-secret';
/** Key of the temporary Secret. */
export const PULL_SECRET_KEY = 'pullsecret';
/** Folder of the result file that a status side-car may read. */
export const RESULTS_MOUNT = '/results';

/** The container that does the work; by its name its result is found. */
export const JOB_CONTAINER = 'job';

/** Input of {@link pullSecretJob}: how Jobs are made, and what is the cluster's own. */
export interface PullSecretJobInput
  extends Pick<
    AdapterSettings,
    | 'namespace'
    | 'image'
    | 'imagePullSecrets'
    | 'serviceAccount'
    | 'passAs'
    | 'federation'
    | 'jobAuthorities'
    | 'jobTtlSeconds'
    | 'jobDeadlineSeconds'
  > {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Whether the pod speaks to the API server: its ServiceAccount mounts no token by itself. */
  readonly needsApiServer: boolean;
  /** Plain settings; nothing secret. */
  readonly env: Readonly<Record<string, string>>;
  /** The temporary Secret; absent for a Job that only deletes. */
  readonly dataSecret?: string;
}

/**
 * The Job. One pod, read-only root, no privilege, its own identity, the pull secret as a file. No user is named: the image has one, and
 * OpenShift gives each namespace its own; for the same reason files may be read by every user of the pod, which has but one.
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

export const NO_PARTS: PodParts = { env: [], mounts: [], volumes: [] };

function podSpec(input: PullSecretJobInput): PodSpec {
  const file = input.passAs === 'file' ? input.dataSecret : undefined;
  const mount = { name: 'pull-secret', mountPath: PULL_SECRET_MOUNT, readOnly: true };
  const google = input.federation === '' ? NO_PARTS : federationOfPod(input.federation);
  const trust = input.jobAuthorities === '' ? NO_PARTS : authoritiesOfPod(input.jobAuthorities);
  return {
    restartPolicy: 'Never',
    serviceAccountName: input.serviceAccount,
    automountServiceAccountToken: input.needsApiServer,
    enableServiceLinks: false,
    ...imagePullSecretsOf(input.imagePullSecrets),
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: JOB_CONTAINER,
        image: input.image,
        args: ['job'],
        env: [...containerEnv(input), ...google.env, ...trust.env],
        terminationMessagePolicy: 'File',
        resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { cpu: '500m', memory: '512Mi' } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        volumeMounts: [
          ...(file === undefined ? [] : [mount]),
          { name: 'results', mountPath: RESULTS_MOUNT },
          ...google.mounts,
          ...trust.mounts,
        ],
      },
    ],
    volumes: [
      ...(file === undefined
        ? []
        : [{ name: 'pull-secret', secret: { secretName: file, defaultMode: 0o444 } }]),
      { name: 'results', emptyDir: { sizeLimit: '1Mi' } },
      ...google.volumes,
      ...trust.volumes,
    ],
  };
}

function containerEnv(input: PullSecretJobInput): readonly EnvVar[] {
  const plain = Object.entries(input.env).map(([name, value]) => ({ name, value }));
  if (input.dataSecret === undefined) return plain;
  if (input.passAs === 'file')
    return [...plain, { name: 'PULL_SECRET_FILE', value: `${PULL_SECRET_MOUNT}/${PULL_SECRET_KEY}` }];
  const reference = { secretKeyRef: { name: input.dataSecret, key: PULL_SECRET_KEY } };
  return [...plain, { name: 'PULL_SECRET_DATA', valueFrom: reference }];
}

/** ClusterRole with the rights on the one Secret; bound per management namespace. */
export const JOB_CLUSTER_ROLE = 'pullwright-pull-secret-job';
/** The binding of it, by the same name in every management namespace: so the adapter's right to write bindings is one by name. */
export const JOB_BINDING = 'pullsecret-adapter-job';

/** Lets the Job's identity write the pull secret in one namespace. */
export function pullSecretBinding(
  namespace: string,
  labels: Readonly<Record<string, string>>,
  account: Pick<AdapterSettings, 'namespace' | 'serviceAccount'>,
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
