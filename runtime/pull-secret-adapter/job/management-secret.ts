/**
 * The Secret from which HyperShift takes the pull secret, in the management namespace of the cluster.
 *
 * The API server checks rights before it looks, so that "forbidden" is also the answer where the namespace, and with it our
 * RoleBinding, does not exist yet: that is tried again soon.
 */

import type { KubeObject } from '../../core/kubernetes/object.ts';
import { Redacted, redact, reveal, sameSecret } from '../../core/redacted.ts';
import { isApiError } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { CLUSTER_LABEL, clusterLabels } from '../names.ts';
import { NOT_THERE, type OutcomeReason } from '../outcome.ts';
import { JobError } from './gcp-error.ts';

const MANAGER = 'pullwright-pull-secret-adapter';
const TYPE = 'kubernetes.io/dockerconfigjson';
const KEY = '.dockerconfigjson';

export interface ManagementSecretInput {
  readonly client: Pick<KubeClient, 'get' | 'apply' | 'remove'>;
  readonly namespace: string;
  readonly name: string;
  readonly clusterId: string;
  readonly clusterName: string;
  /** Take over a Secret that names no cluster. */
  readonly adopt: boolean;
}

/**
 * Writes the Secret, byte for byte what is stored at Google; nothing when it is so already.
 *
 * @param dryRun the API server goes through all of it (namespace, rights, admission) and keeps nothing
 * @throws JobError
 */
export async function writeManagementSecret(
  input: ManagementSecretInput,
  content: Redacted<string>,
  dryRun = false,
): Promise<'create' | 'change' | 'leave as it is'> {
  return explained(input, async () => {
    const wanted = wantedSecret(input, content);
    const present = await read(input);
    if (present !== undefined) {
      assertOurs(input, present);
      if (isSame(present, wanted)) return 'leave as it is';
    }
    // Of two that write at once, the second must look again: it may be another cluster's.
    const seen = present?.metadata.resourceVersion;
    const metadata = seen === undefined ? wanted.metadata : { ...wanted.metadata, resourceVersion: seen };
    await input.client.apply({ ...wanted, metadata }, { manager: MANAGER, force: true, dryRun });
    return present === undefined ? 'create' : 'change';
  });
}

/** Removes the Secret if it is this cluster's. @returns what became of it @throws JobError */
export async function removeManagementSecret(input: ManagementSecretInput): Promise<string> {
  return explained(input, async () => {
    const present = await read(input);
    if (present === undefined) return NOT_THERE;
    if (present.metadata.labels?.[CLUSTER_LABEL] !== input.clusterId) return 'is not ours: it stays';
    const uid = present.metadata.uid;
    const { namespace, name } = input;
    await input.client.remove(
      { apiVersion: 'v1', kind: 'Secret', namespace, name },
      uid === undefined ? {} : { uid },
    );
    return 'removed';
  });
}

async function read(input: ManagementSecretInput): Promise<KubeObject | undefined> {
  const { client, namespace, name } = input;
  try {
    return await client.get({ apiVersion: 'v1', kind: 'Secret', namespace, name });
  } catch (error) {
    // The right comes with a RoleBinding in that namespace: without the namespace, the API server says "forbidden", not "not found".
    if (!isApiError(error, 403)) throw error;
    throw new JobError(
      'ManagementNamespaceMissing',
      `Cannot read Secret/${namespace}/${name}: the namespace does not exist yet, or has no RoleBinding for the ServiceAccount of the Job`,
      error,
    );
  }
}

function wantedSecret(input: ManagementSecretInput, content: Redacted<string>): KubeObject {
  const { name, namespace, clusterId: id, clusterName } = input;
  const cluster = { id, name: clusterName, region: undefined, provider: 'gcp' };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace, labels: clusterLabels(cluster, 'pull-secret') },
    type: TYPE,
    data: { [KEY]: redact(Buffer.from(reveal(content)).toString('base64')) },
  };
}

/** Other labels and keys are not compared: we do not own them. */
function isSame(present: KubeObject, wanted: KubeObject): boolean {
  const labels = Object.entries(wanted.metadata.labels ?? {});
  if (labels.some(([key, value]) => present.metadata.labels?.[key] !== value)) return false;
  const [had, has] = [present, wanted].map(
    (secret) => (secret['data'] as Record<string, unknown> | undefined)?.[KEY],
  );
  return had instanceof Redacted && has instanceof Redacted && sameSecret(had, has);
}

/** @throws JobError PullSecretConflict */
function assertOurs(input: ManagementSecretInput, present: KubeObject): void {
  const owner = present.metadata.labels?.[CLUSTER_LABEL];
  if (owner !== input.clusterId && !(owner === undefined && input.adopt)) {
    const whose =
      owner === undefined
        ? `has no label ${CLUSTER_LABEL}`
        : `belongs to another cluster, by its label ${CLUSTER_LABEL}`;
    throw conflict(input, `it ${whose}; remove it, or give the cluster a namespace of its own`);
  }
  const type = present['type'];
  if (type !== TYPE) {
    throw conflict(input, `its type is not ${TYPE}, and cannot be changed; remove it`);
  }
  if (present['immutable'] === true) throw conflict(input, 'it is immutable; remove it');
}

function conflict({ namespace, name }: ManagementSecretInput, why: string): JobError {
  return new JobError('PullSecretConflict', `Cannot write Secret/${namespace}/${name}: ${why}`);
}

async function explained<T>(input: ManagementSecretInput, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof JobError) throw error;
    const [reason, text] = explanation(error);
    throw new JobError(reason, `Cannot write Secret/${input.namespace}/${input.name}: ${text}`, error);
  }
}

function explanation(error: unknown): readonly [OutcomeReason, string] {
  if (!isApiError(error)) return ['ManagementClusterUnavailable', 'the API server rejected it'];
  if (error.status === 404) return ['ManagementNamespaceMissing', 'the namespace does not exist yet'];
  if (error.status === 422)
    return ['PullSecretConflict', 'the API server refuses it; look at the Secret that is there'];
  if (error.status !== 403)
    return ['ManagementClusterUnavailable', `the API server rejected it (HTTP ${error.status})`];
  if (error.causes.some((cause) => cause.reason === 'NamespaceTerminating'))
    return ['ManagementNamespaceMissing', 'the namespace is being removed'];
  return [
    'ManagementPermissionDenied',
    'the ServiceAccount of the Job may not; look at the RoleBinding in that namespace, and at admission policies',
  ];
}
