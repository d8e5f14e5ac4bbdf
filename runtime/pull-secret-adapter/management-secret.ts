/** The Secret from which HyperShift takes the pull secret, in the management namespace of the cluster. */

import { isApiError } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Redacted, redact, reveal } from '../rules/redacted.ts';
import { JobError } from './gcp-error.ts';
import { CLUSTER_LABEL, clusterLabels } from './names.ts';

const MANAGER = 'pullwright-pull-secret-adapter';

export interface ManagementSecretInput {
  readonly client: Pick<KubeClient, 'get' | 'apply' | 'remove'>;
  readonly namespace: string;
  readonly name: string;
  readonly clusterId: string;
  readonly clusterName: string;
  /** Take over a Secret that names no cluster. */
  readonly adopt: boolean;
}

/** Writes the Secret, byte for byte what is stored at Google. @throws JobError */
export async function writeManagementSecret(
  input: ManagementSecretInput,
  content: Redacted<string>,
): Promise<void> {
  const { client, namespace, name } = input;
  await explained(input, async () => {
    const owner = await ownerOf(input);
    if (owner === 'other') throw conflict(input);
    await client.apply(
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name,
          namespace,
          labels: clusterLabels(
            { id: input.clusterId, name: input.clusterName, region: undefined, provider: 'gcp' },
            'pull-secret',
          ),
        },
        type: 'kubernetes.io/dockerconfigjson',
        data: { '.dockerconfigjson': redact(Buffer.from(reveal(content)).toString('base64')) },
      },
      { manager: MANAGER, force: true },
    );
  });
}

/** Removes the Secret if it is this cluster's. @throws JobError */
export async function removeManagementSecret(input: ManagementSecretInput): Promise<void> {
  const { client, namespace, name } = input;
  await explained(input, async () => {
    const present = await client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name });
    if (present?.metadata.labels?.[CLUSTER_LABEL] !== input.clusterId) return;
    const uid = present.metadata.uid;
    await client.remove(
      { apiVersion: 'v1', kind: 'Secret', namespace, name },
      uid === undefined ? {} : { uid },
    );
  });
}

async function ownerOf(input: ManagementSecretInput): Promise<'none' | 'ours' | 'other'> {
  const { namespace, name } = input;
  const present = await input.client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name });
  if (present === undefined) return 'none';
  const owner = present.metadata.labels?.[CLUSTER_LABEL];
  if (owner === input.clusterId || (owner === undefined && input.adopt)) return 'ours';
  return 'other';
}

function conflict({ namespace, name }: ManagementSecretInput): JobError {
  return new JobError(
    'PullSecretConflict',
    `Cannot write Secret/${namespace}/${name}: it does not carry the label ${CLUSTER_LABEL} of this cluster; remove it, or give the cluster a namespace of its own`,
  );
}

async function explained(input: ManagementSecretInput, work: () => Promise<void>): Promise<void> {
  const where = `Secret/${input.namespace}/${input.name}`;
  try {
    await work();
  } catch (error) {
    if (error instanceof JobError) throw error;
    if (isApiError(error, 403))
      throw new JobError(
        'ManagementPermissionDenied',
        `Cannot write ${where}: the ServiceAccount of the Job may not; look at the RoleBinding in that namespace`,
        error,
      );
    if (isApiError(error, 404))
      throw new JobError(
        'ManagementNamespaceMissing',
        `Cannot write ${where}: the namespace is not there yet`,
        error,
      );
    throw new JobError(
      'ManagementClusterUnavailable',
      `Cannot write ${where}: the API server did not take it`,
      error,
    );
  }
}
