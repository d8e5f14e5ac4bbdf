/** Builds the objects of a pass: temporary Secret, record, Job, RoleBinding. */
import type { KubeObject } from '../../core/kubernetes/object.ts';
import { configMap } from '../../core/kubernetes/objects.ts';
import { redact, reveal } from '../../core/redacted.ts';
import {
  ATTEMPT_ANNOTATION,
  accountDomain,
  clusterLabels,
  dataSecretName,
  fillTemplate,
  GENERATION_ANNOTATION,
  HASH_ANNOTATION,
  jobLabels,
  PROJECT_ANNOTATION,
  recordName,
  SECRET_NAME_ANNOTATION,
  TARGET_ANNOTATION,
  VERIFY_ANNOTATION,
} from '../names.ts';
import { PULL_SECRET_KEY, pullSecretBinding, pullSecretJob, RESULTS_MOUNT } from '../objects.ts';
import { challengeOf, namespacesOf } from '../places.ts';
import { contentHash, type DesiredState, type Effect, targetHash } from './desired-state.ts';

/** The cluster that the objects are for, and the settings. */
type Subject = Pick<DesiredState, 'cluster' | 'settings'>;

/** The temporary Secret. The Job becomes its owner, so that it is garbage-collected with the Job. */
export function dataSecret(
  { cluster, settings }: Subject,
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
      annotations: annotations({ cluster, settings }),
      ...(owner === undefined
        ? {}
        : { ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: owner.name, uid: owner.uid }] }),
    },
    type: 'Opaque',
    data: { [PULL_SECRET_KEY]: redact(Buffer.from(value).toString('base64')) },
  };
}

/** The record of every location that the pull secret of a cluster was written to. */
export function recordObject({ cluster, settings }: Subject, places: readonly string[]): KubeObject {
  const metadata = {
    name: recordName(cluster.id),
    namespace: settings.namespace,
    labels: clusterLabels(cluster, 'record'),
  };
  return configMap(metadata, { places: `${places.join('\n')}\n` });
}

/** The task of a Job. */
export interface JobRequest extends Omit<Extract<Effect, { do: 'start' }>, 'do'> {
  /** Of the record. */
  readonly verifyRequest?: string | undefined;
  readonly revokeRequest?: string | undefined;
  /** W3C Trace Context. */
  readonly traceparent?: string | undefined;
}

/** The Job of one generation. */
export function jobObject(subject: Subject, step: JobRequest): KubeObject {
  const { cluster, settings } = subject;
  const { verifyRequest = '' } = step;
  const job = pullSecretJob({
    ...settings,
    name: step.job,
    labels: jobLabels(cluster, step.purpose),
    annotations: annotations(subject),
    needsApiServer: boundNamespaces(subject, step).length > 0,
    env: environmentOf(subject, step),
    ...(step.purpose === 'store' ? { dataSecret: dataSecretName(cluster.id) } : {}),
  });
  return {
    ...job,
    metadata: {
      ...job.metadata,
      annotations: {
        ...job.metadata.annotations,
        [ATTEMPT_ANNOTATION]: String(step.attempt),
        [TARGET_ANNOTATION]: targetHash(cluster, settings),
        ...(verifyRequest === '' ? {} : { [VERIFY_ANNOTATION]: verifyRequest }),
      },
    },
  };
}

/** The RoleBinding in a management namespace. */
export function bindingObject({ cluster, settings }: Subject, namespace: string): KubeObject {
  return pullSecretBinding(namespace, clusterLabels(cluster, 'role-binding'), settings);
}

/** Namespaces in which a Job needs a RoleBinding. */
export function boundNamespaces(
  { cluster, settings }: Subject,
  { purpose, places }: Pick<JobRequest, 'purpose' | 'places'>,
): readonly string[] {
  if (purpose === 'delete') return namespacesOf(places);
  const namespace = fillTemplate(settings.managementNamespace, cluster);
  return namespace === '' ? [] : [namespace];
}

function annotations({ cluster, settings }: Subject): Readonly<Record<string, string>> {
  return {
    [GENERATION_ANNOTATION]: String(cluster.generation),
    [HASH_ANNOTATION]: contentHash(cluster),
    'hyperfleet.io/created-by': 'pullwright',
    [PROJECT_ANNOTATION]: cluster.projectId ?? '',
    [SECRET_NAME_ANNOTATION]: fillTemplate(settings.gcpSecretName, cluster),
  };
}

/** Environment of a Job: variables of the existing job, and additional ones. Contains no secrets. */
function environmentOf(
  { cluster, settings }: Subject,
  { purpose, places, revokeRequest = '', traceparent }: JobRequest,
): Readonly<Record<string, string>> {
  const project = cluster.projectId ?? '';
  return {
    GCP_API_TIMEOUT: '30s',
    ...settings.jobEnv,
    // The following variables override `jobEnv`.
    CLUSTER_ID: cluster.id,
    CLUSTER_NAME: cluster.name,
    CLUSTER_GENERATION: String(cluster.generation),
    RESULT_FILE: `${RESULTS_MOUNT}/adapter-result.json`,
    JOB_MODE: purpose,
    ...(purpose === 'delete'
      ? {
          PLACES: places.join(' '),
          // Keep the placeholder: the Job uses the project of each location.
          GCP_SERVICE_ACCOUNT: fillTemplate(settings.impersonate, cluster, '{project}'),
        }
      : {
          GCP_PROJECT_ID: project,
          SECRET_NAME: fillTemplate(settings.gcpSecretName, cluster),
          SECRET_LOCATION: fillTemplate(settings.location, cluster),
          REPLICATION_POLICY: settings.location === '' ? fillTemplate(settings.replication, cluster) : '',
          KMS_KEY_NAME: fillTemplate(settings.kmsKey, cluster),
          KEEP_VERSIONS: String(settings.keepVersions),
          PREVIOUS_FOR_SECONDS: String(settings.previousForSeconds ?? ''),
          DESTROY_AFTER_SECONDS: String(settings.destroyAfterSeconds),
          TENANT_CHALLENGE: settings.challenge === 'none' ? '' : challengeOf(cluster, settings),
          GCP_SERVICE_ACCOUNT: fillTemplate(settings.impersonate, cluster, accountDomain(project)),
          MANAGEMENT_NAMESPACE: fillTemplate(settings.managementNamespace, cluster),
          MANAGEMENT_SECRET_NAME: settings.pullSecretName,
          ADOPT: String(settings.adopt),
          REVOKE_PREVIOUS: revokeRequest,
        }),
    ...(traceparent === undefined ? {} : { TRACEPARENT: traceparent }),
  };
}
