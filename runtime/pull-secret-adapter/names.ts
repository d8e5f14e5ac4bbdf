/** Names, labels and annotations of the adapter's objects. Source: the requirement and its historic configuration. */

import type { HyperfleetCluster } from './cluster.ts';

/** Replaces `{id}`, `{name}`, `{region}` and `{project}` in a template, without escaping. A missing value is empty. */
export function fillTemplate(
  template: string,
  { id, name, projectId, region }: HyperfleetCluster,
  project = projectId,
): string {
  const known: Readonly<Record<string, string>> = {
    '{id}': id,
    '{name}': name,
    '{project}': project ?? '',
    '{region}': region ?? '',
  };
  return template.replaceAll(/\{(?:id|name|project|region)\}/g, (found) => known[found] ?? found);
}

/**
 * The project in service account addresses: accounts of `example.com:one` end with `@one.example.com.iam...`.
 *
 * Source of the rule: Google's documentation of domain-scoped projects.
 */
export function accountDomain(project: string): string {
  const [domain = '', name] = project.split(':');
  return name === undefined ? project : `${name}.${domain}`;
}

export const ADAPTER = 'pullsecret';
export const CLUSTER_LABEL = 'hyperfleet.io/cluster-id';
export const ADAPTER_LABEL = 'hyperfleet.io/adapter';
export const PURPOSE_LABEL = 'pullwright.dev/purpose';
export const GENERATION_ANNOTATION = 'hyperfleet.io/generation';
export const PROJECT_ANNOTATION = 'hyperfleet.io/gcp-project';
export const SECRET_NAME_ANNOTATION = 'hyperfleet.io/secret-name';
/** On a Job: hash of the locations that it writes to. */
export const TARGET_ANNOTATION = 'pullwright.dev/target';
/** On the record of a cluster: a new value requests an immediate check of the stored secrets. */
export const VERIFY_ANNOTATION = 'pullwright.dev/verify';
/** On the record of a cluster: a new value requests that all older versions are revoked immediately. */
export const REVOKE_ANNOTATION = 'pullwright.dev/revoke';
export const HASH_ANNOTATION = 'pullwright.dev/content';
export const ATTEMPT_ANNOTATION = 'pullwright.dev/attempt';

/** Name of the temporary Secret that passes the pull secret to the Job. */
export function dataSecretName(clusterId: string): string {
  return `cluster-${clusterId}-pullsecret-data`;
}

/** Name of the ConfigMap that records every location that the pull secret of a cluster was written to. */
export function recordName(clusterId: string): string {
  return `cluster-${clusterId}-pullsecret-places`;
}

/** Name of the Job of a generation. A Job is immutable, so each generation has its own. */
export function jobName(clusterId: string, generation: number): string {
  return `pullsecret-${clusterId}-gen${generation}`;
}

/** Label selector for all objects of one cluster. */
export function clusterSelector(clusterId: string): string {
  return `${CLUSTER_LABEL}=${clusterId},${ADAPTER_LABEL}=${ADAPTER}`;
}

type Labels = Readonly<Record<string, string>>;
/** What the labels of a cluster's objects name. */
type Labelled = Pick<HyperfleetCluster, 'id' | 'name' | 'region' | 'provider'>;

/** Labels of every object that the adapter creates for a cluster. */
export function clusterLabels(cluster: Labelled, resourceType: string): Labels {
  return {
    'app.kubernetes.io/name': 'pull-secret-adapter',
    'app.kubernetes.io/part-of': 'pullwright',
    'app.kubernetes.io/managed-by': 'pullwright',
    [CLUSTER_LABEL]: cluster.id,
    [ADAPTER_LABEL]: ADAPTER,
    'hyperfleet.io/managed-by': 'hyperfleet',
    'hyperfleet.io/resource-type': resourceType,
    ...labelValue('hyperfleet.io/cluster-name', cluster.name),
    ...labelValue('hyperfleet.io/region', cluster.region),
    ...labelValue('hyperfleet.io/provider', cluster.provider),
  };
}

/** Labels of a Job that stores or deletes. */
export function jobLabels(cluster: Labelled, purpose: 'store' | 'delete'): Labels {
  return { ...clusterLabels(cluster, 'job'), [PURPOSE_LABEL]: purpose };
}

/** Skips a label whose value Kubernetes would reject. */
function labelValue(key: string, value: string | undefined): Labels {
  return value !== undefined && /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/.test(value)
    ? { [key]: value }
    : {};
}

/** Labels of the secret in Secret Manager: those of the existing job, and `cluster-name` if it is a valid label value. */
export function gcpLabels({ id, name }: { readonly id: string; readonly name?: string }): Labels {
  return {
    'managed-by': 'hyperfleet',
    adapter: ADAPTER,
    'cluster-id': id,
    'resource-type': 'pull-secret',
    'hyperfleet-version': 'v1',
    ...(name !== undefined && /^[a-z0-9_-]{1,63}$/.test(name) ? { 'cluster-name': name } : {}),
  };
}

/** W3C Trace Context, version 00 and later versions of the same format. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Returns a valid trace context; undefined for anything else. */
export function readTraceparent(text: string | undefined): string | undefined {
  return text !== undefined && TRACEPARENT.test(text) ? text : undefined;
}
