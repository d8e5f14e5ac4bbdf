/** Names, labels and annotations of everything that the adapter makes. Source: the requirement and its historic configuration. */

import type { HyperfleetCluster } from './cluster.ts';
import type { AdapterSettings } from './options.ts';

// Names that are made from a cluster's document.

/** What a template may name. */
export interface TemplateValues {
  readonly id: string;
  readonly name: string;
  readonly project?: string | undefined;
  readonly region?: string | undefined;
}

/**
 * Fills `{id}`, `{name}`, `{region}` and `{project}` into a template, each value as it is.
 */
export function fillTemplate(template: string, values: TemplateValues): string {
  const known: Readonly<Record<string, string>> = {
    '{id}': values.id,
    '{name}': values.name,
    '{project}': values.project ?? '',
    '{region}': values.region ?? '',
  };
  return template.replaceAll(/\{(?:id|name|project|region)\}/g, (found) => known[found] ?? found);
}

/**
 * A project as it stands in the name of a service account: of `example.com:one` the accounts end with `@one.example.com.iam...`.
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
/** Where the Job of an annotation writes to: a hash of its places. */
export const TARGET_ANNOTATION = 'pullwright.dev/target';
/** On the record of a cluster: any new text requests a check of the stored secrets now. */
export const VERIFY_ANNOTATION = 'pullwright.dev/verify';
/** On the record of a cluster: any new text requests that all older versions are revoked now. */
export const REVOKE_ANNOTATION = 'pullwright.dev/revoke';
export const HASH_ANNOTATION = 'pullwright.dev/content';
export const ATTEMPT_ANNOTATION = 'pullwright.dev/attempt';

/** The temporary Secret that carries the pull secret to the Job. */
export function dataSecretName(clusterId: string): string {
  return `cluster-${clusterId}-pullsecret-data`;
}

/** The ConfigMap that says where the pull secret of a cluster was ever written. */
export function recordName(clusterId: string): string {
  return `cluster-${clusterId}-pullsecret-places`;
}

/**
 * A Job cannot be changed, so each generation has its own.
 */
export function jobName(clusterId: string, generation: number): string {
  return `pullsecret-${clusterId}-gen${generation}`;
}

/** Selects everything of one cluster. */
export function clusterSelector(clusterId: string): string {
  return `${CLUSTER_LABEL}=${clusterId},${ADAPTER_LABEL}=${ADAPTER}`;
}

/** Labels of every object that the adapter makes for a cluster. */
export function clusterLabels(
  cluster: Pick<HyperfleetCluster, 'id' | 'name' | 'region' | 'provider'>,
  resourceType: string,
): Readonly<Record<string, string>> {
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

/** Labels of the Job of a purpose. */
export function jobLabels(
  cluster: Parameters<typeof clusterLabels>[0],
  purpose: 'store' | 'delete',
): Readonly<Record<string, string>> {
  return { ...clusterLabels(cluster, 'job'), [PURPOSE_LABEL]: purpose };
}

/** Skips labels with values that Kubernetes would reject. */
function labelValue(key: string, value: string | undefined): Readonly<Record<string, string>> {
  return value !== undefined && /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/.test(value)
    ? { [key]: value }
    : {};
}

/** Labels of the secret in Secret Manager: the existing job's, and `cluster-name` where it fits their rule. */
export function gcpLabels(cluster: {
  readonly id: string;
  readonly name?: string;
}): Readonly<Record<string, string>> {
  return {
    'managed-by': 'hyperfleet',
    adapter: ADAPTER,
    'cluster-id': cluster.id,
    'resource-type': 'pull-secret',
    'hyperfleet-version': 'v1',
    ...(cluster.name !== undefined && /^[a-z0-9_-]{1,63}$/.test(cluster.name)
      ? { 'cluster-name': cluster.name }
      : {}),
  };
}

/** Name of the secret in Secret Manager. */
export function gcpSecretName(settings: AdapterSettings, cluster: HyperfleetCluster): string {
  return fillTemplate(settings.gcpSecretName, cluster);
}

/** W3C Trace Context, version 00 and later ones that keep its form. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A trace context that can be handed on; undefined for anything else. */
export function readTraceparent(text: string | undefined): string | undefined {
  return text !== undefined && TRACEPARENT.test(text) ? text : undefined;
}
