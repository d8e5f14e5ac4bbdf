/**
 * Where a pull secret is, or has ever been, written: each place as one line of text, so that it can stand in a report, in a ConfigMap
 * and in the environment of a Job. Before anything is written its place is recorded; deletion ends when each is proven gone.
 */

import { createHash } from 'node:crypto';
import type { HyperfleetCluster } from './cluster.ts';
import { fillTemplate, gcpSecretName } from './names.ts';
import type { AdapterSettings } from './options.ts';

export interface GooglePlace {
  readonly kind: 'google';
  readonly project: string;
  /** Of a regional secret; absent for one that Google replicates. */
  readonly location?: string;
  readonly secret: string;
}

export interface KubernetesPlace {
  readonly kind: 'kubernetes';
  readonly namespace: string;
  readonly secret: string;
}

export type Place = GooglePlace | KubernetesPlace;

/** Identifiers that are safe in a path, a label and an object name: what the API issues (UUIDv7) and `cls-123` of the requirement. */
export const CLUSTER_ID: RegExp = /^[a-z0-9]([a-z0-9-]{0,36}[a-z0-9])?$/;
/** Identifiers that fit into a resource path of GCP; the part before the colon is the domain of an older project. */
export const PROJECT_ID: RegExp = /^([a-z0-9.-]+:)?[a-z0-9][a-z0-9-]{0,62}$/;
export const GCP_SECRET_NAME: RegExp = /^[A-Za-z0-9_-]{1,255}$/;
/** A region of Google's, such as `europe-west3`; it becomes part of a host name. */
export const LOCATION: RegExp = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** A replication policy, filled in. */
const REPLICATION = /^(automatic|user-managed:[a-z][a-z0-9-]*(,[a-z][a-z0-9-]*)*)$/;
const NAMESPACE = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const SECRET = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/**
 * A place as text: its name in Google's API, or its path in Kubernetes.
 */
export function placeText(place: Place): string {
  if (place.kind === 'kubernetes') return `namespaces/${place.namespace}/secrets/${place.secret}`;
  const location = place.location === undefined ? '' : `/locations/${place.location}`;
  return `projects/${place.project}${location}/secrets/${place.secret}`;
}

const PLACE =
  /^(?:namespaces\/(?<namespace>[^/]+)|projects\/(?<project>[^/]+)(?:\/locations\/(?<location>[^/]+))?)\/secrets\/(?<secret>[^/]+)$/;

/** Undefined for an invalid location, so that no request path is ever built from it. */
export function readPlace(text: string): Place | undefined {
  const { namespace, project = '', location, secret = '' } = PLACE.exec(text)?.groups ?? {};
  if (namespace !== undefined)
    return NAMESPACE.test(namespace) && SECRET.test(secret)
      ? { kind: 'kubernetes', namespace, secret }
      : undefined;
  if (!PROJECT_ID.test(project) || !GCP_SECRET_NAME.test(secret)) return undefined;
  if (location === undefined) return { kind: 'google', project, secret };
  return LOCATION.test(location) ? { kind: 'google', project, location, secret } : undefined;
}

/** Each once, sorted; invalid locations are skipped. */
export function uniquePlaces(texts: Iterable<string>): readonly string[] {
  return [...new Set(texts)].filter((text) => readPlace(text) !== undefined).sort();
}

/** Where the pull secret of a cluster belongs; nothing of Google while the document names no project. */
export function wantedPlaces(cluster: HyperfleetCluster, settings: AdapterSettings): readonly string[] {
  const { projectId: project, provider } = cluster;
  if (project === undefined || provider !== 'gcp') return [];
  const location = settings.location === '' ? {} : { location: secretLocation(cluster, settings) };
  const namespace = managementNamespace(cluster, settings);
  const places: readonly Place[] = [
    { kind: 'google', project, ...location, secret: gcpSecretName(settings, cluster) },
    ...(namespace === ''
      ? []
      : [{ kind: 'kubernetes', namespace, secret: settings.pullSecretName } as const]),
  ];
  return uniquePlaces(places.map(placeText));
}

/** Namespace of the Secret for HyperShift; empty for none. */
export function managementNamespace(cluster: HyperfleetCluster, settings: AdapterSettings): string {
  return fillTemplate(settings.managementNamespace, cluster);
}

/** Where a regional secret is; empty for one that Google replicates. */
export function secretLocation(cluster: HyperfleetCluster, settings: AdapterSettings): string {
  return fillTemplate(settings.location, { ...cluster, project: cluster.projectId });
}

/** Namespaces that no cluster may have its pull secret in, whatever its name or identifier says. */
const RESERVED = /^(default|kube-.*|openshift|openshift-.*)$/;

/** What is wrong with names that were filled in from the cluster's document; none when they can be used. */
export function nameFaults(cluster: HyperfleetCluster, settings: AdapterSettings): readonly string[] {
  const namespace = managementNamespace(cluster, settings);
  const secret = gcpSecretName(settings, cluster);
  const location = secretLocation(cluster, settings);
  const replication = fillTemplate(settings.replication, { ...cluster, project: cluster.projectId });
  const missing = cluster.region === undefined ? '; spec.gcp.region is missing' : '';
  const faults: readonly (readonly [isThere: boolean, fault: string])[] = [
    [
      namespace !== '' && !NAMESPACE.test(namespace),
      'the name of the management namespace is not valid: expected up to 63 of a-z, 0-9 and -',
    ],
    [
      RESERVED.test(namespace) || namespace === settings.namespace,
      `the management namespace would be "${namespace}", which is reserved`,
    ],
    [
      !GCP_SECRET_NAME.test(secret),
      'the name in Secret Manager is not valid: expected up to 255 of A-Z, a-z, 0-9, _ and -',
    ],
    [
      settings.location !== '' && !LOCATION.test(location),
      `"${settings.location}" gives no location for this cluster: expected such as europe-west3${missing}`,
    ],
    [
      !REPLICATION.test(replication),
      `"${settings.replication}" gives no replication policy for this cluster: expected automatic or user-managed:LOCATION[,LOCATION]${missing}`,
    ],
  ];
  return faults.flatMap(([isThere, fault]) => (isThere ? [fault] : []));
}

// The challenge: what the owner of a project sets on it, so that the clusters of a tenant may have their pull secret there.

/** The label of the project. */
export const CHALLENGE_LABEL = 'pullwright-tenant';

/**
 * The value of the label that lets the tenant of a cluster into its project; empty when the cluster names no tenant. It is not a secret: only
 * who may change the project can set it.
 */
export function challengeOf({ tenantFields }: HyperfleetCluster, { tenantKey }: AdapterSettings): string {
  const tenant = Object.hasOwn(tenantFields, tenantKey) ? (tenantFields[tenantKey] ?? '') : '';
  return tenant === ''
    ? ''
    : createHash('sha256').update(`${tenantKey}\n${tenant}`).digest('hex').slice(0, 32);
}

/**
 * Why the tenant of a cluster may not name its project; undefined: it may. The project is not touched before.
 */
export function tenancyFault(
  { tenantFields, projectId = '' }: HyperfleetCluster,
  { tenants, tenantKey, challenge }: AdapterSettings,
): string | undefined {
  if (tenants === undefined && challenge === 'none') return undefined;
  const { [tenantKey]: tenant } = tenantFields;
  if (tenant === undefined || tenant === '')
    return `the cluster names no tenant: expected a value of "${tenantKey}"${tenants === undefined ? '' : ' that is in the list of tenants'}`;
  // The project itself is asked by the Job, before anything else is.
  if (tenants === undefined) return undefined;
  const allowed = Object.hasOwn(tenants, tenant) ? (tenants[tenant] ?? []) : [];
  const found = allowed.some((pattern) =>
    pattern.endsWith('*') ? projectId.startsWith(pattern.slice(0, -1)) : projectId === pattern,
  );
  return found
    ? undefined
    : 'spec.gcp.projectId is not among the projects of the tenant: expected it in the list of tenants';
}
