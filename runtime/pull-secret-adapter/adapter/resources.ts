/** The objects that a step makes: temporary Secret, Job, binding. */
import {
  PULL_SECRET_KEY,
  pullSecretBinding,
  pullSecretJob,
  RESULTS_MOUNT,
} from '../../../charts/pull-secret-adapter/objects.ts';
import type { KubeObject } from '../../rules/kubernetes/object.ts';
import { redact, reveal } from '../../rules/redacted.ts';
import type { Cluster } from '../cluster.ts';
import {
  ATTEMPT_ANNOTATION,
  bindingName,
  clusterLabels,
  dataSecretName,
  GENERATION_ANNOTATION,
  gcpSecretName,
  HASH_ANNOTATION,
  jobLabels,
  PROJECT_ANNOTATION,
  SECRET_NAME_ANNOTATION,
} from '../names.ts';
import { FAIL_JOB_EXIT_CODES } from '../outcome.ts';
import { contentHash } from './decision.ts';
import type { Purpose } from './observe.ts';
import { type AdapterSettings, fillTemplate } from './settings.ts';

/** The temporary Secret; owned by the Job as soon as there is one, so that it goes with it. */
export function dataSecret(
  cluster: Cluster,
  settings: AdapterSettings,
  owner: { readonly name: string; readonly uid: string } | undefined,
): KubeObject {
  const value = cluster.pullSecret === undefined ? '' : reveal(cluster.pullSecret);
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: dataSecretName(cluster.id),
      namespace: settings.namespace,
      labels: clusterLabels(cluster, 'secret'),
      annotations: annotations(cluster, settings),
      ...(owner === undefined
        ? {}
        : { ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: owner.name, uid: owner.uid }] }),
    },
    type: 'Opaque',
    data: { [PULL_SECRET_KEY]: redact(Buffer.from(value).toString('base64')) },
  };
}

/** The Job of one generation. */
export function jobObject(
  cluster: Cluster,
  settings: AdapterSettings,
  step: { readonly job: string; readonly purpose: Purpose; readonly attempt: number },
): KubeObject {
  const job = pullSecretJob({
    name: step.job,
    namespace: settings.namespace,
    labels: jobLabels(cluster, step.purpose),
    annotations: annotations(cluster, settings),
    image: settings.image,
    serviceAccount: settings.serviceAccount,
    needsApiServer: managementNamespace(cluster, settings) !== '',
    env: jobEnvironment(cluster, settings, step.purpose),
    ...(step.purpose === 'store' ? { dataSecret: dataSecretName(cluster.id) } : {}),
    passAs: settings.passAs,
    ...(settings.federation === '' ? {} : { federation: settings.federation }),
    ttlSeconds: settings.jobTtlSeconds,
    deadlineSeconds: settings.jobDeadlineSeconds,
    failJobExitCodes: FAIL_JOB_EXIT_CODES,
  });
  return {
    ...job,
    metadata: {
      ...job.metadata,
      annotations: { ...job.metadata.annotations, [ATTEMPT_ANNOTATION]: String(step.attempt) },
    },
  };
}

/** The binding in the management namespace; undefined when there is none to write to. */
export function bindingObject(cluster: Cluster, settings: AdapterSettings): KubeObject | undefined {
  const namespace = managementNamespace(cluster, settings);
  if (namespace === '') return undefined;
  return pullSecretBinding({
    name: bindingName(cluster.id),
    namespace,
    labels: clusterLabels(cluster, 'role-binding'),
    serviceAccount: settings.serviceAccount,
    serviceAccountNamespace: settings.namespace,
  });
}

/** Namespace of the Secret for HyperShift; empty for none. */
export function managementNamespace(cluster: Cluster, settings: AdapterSettings): string {
  return fillTemplate(settings.managementNamespace, cluster);
}

function annotations(cluster: Cluster, settings: AdapterSettings): Readonly<Record<string, string>> {
  return {
    [GENERATION_ANNOTATION]: String(cluster.generation),
    [HASH_ANNOTATION]: contentHash(cluster),
    'hyperfleet.io/created-by': 'pullwright',
    [PROJECT_ANNOTATION]: cluster.projectId ?? '',
    [SECRET_NAME_ANNOTATION]: gcpSecretName(settings, cluster),
  };
}

/** Names as the existing job reads them, and ours; nothing secret. */
function jobEnvironment(
  cluster: Cluster,
  settings: AdapterSettings,
  purpose: Purpose,
): Readonly<Record<string, string>> {
  const project = cluster.projectId ?? '';
  return {
    JOB_MODE: purpose,
    CLUSTER_ID: cluster.id,
    CLUSTER_NAME: cluster.name,
    CLUSTER_GENERATION: String(cluster.generation),
    GCP_PROJECT_ID: project,
    SECRET_NAME: gcpSecretName(settings, cluster),
    REPLICATION_POLICY: settings.replication,
    KMS_KEY_NAME: settings.kmsKey,
    KEEP_VERSIONS: String(settings.keepVersions),
    GCP_SERVICE_ACCOUNT: fillTemplate(settings.impersonate, { ...cluster, project }),
    MANAGEMENT_NAMESPACE: managementNamespace(cluster, settings),
    MANAGEMENT_SECRET_NAME: settings.pullSecretName,
    ON_DELETION: settings.onDeletion,
    ADOPT: String(settings.adopt),
    RESULT_FILE: `${RESULTS_MOUNT}/adapter-result.json`,
    LOG_FORMAT: 'json',
    GCP_API_TIMEOUT: '30s',
    ...settings.jobEnv,
  };
}
