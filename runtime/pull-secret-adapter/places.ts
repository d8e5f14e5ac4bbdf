/**
 * Locations of a pull secret, each as one line of text for reports, the record ConfigMap and the environment of Jobs. The adapter
 * records a location before writing to it; a deletion is complete when every recorded location is proven removed.
 */

import { hash } from 'node:crypto';
import type { HyperfleetCluster } from './cluster.ts';
import { fillTemplate } from './names.ts';
import type { AdapterSettings } from './options.ts';

export interface GooglePlace {
  readonly kind: 'google';
  readonly project: string;
  /** Set for a regional secret; absent for a replicated one. */
  readonly location?: string;
  readonly secret: string;
}

export interface KubernetesPlace {
  readonly kind: 'kubernetes';
  readonly namespace: string;
  readonly secret: string;
}

export type Place = GooglePlace | KubernetesPlace;

/** IDs that are safe in a path, a label and an object name: UUIDv7 of the API, and `cls-123` of the requirement. */
export const CLUSTER_ID: RegExp = /^[a-z0-9]([a-z0-9-]{0,36}[a-z0-9])?$/;
/** IDs that are safe in a GCP resource path. A prefix with a colon is the domain of a domain-scoped project. */
export const PROJECT_ID: RegExp = /^([a-z0-9.-]+:)?[a-z0-9][a-z0-9-]{0,62}$/;
export const GCP_SECRET_NAME: RegExp = /^[A-Za-z0-9_-]{1,255}$/;
/** A Google region such as `europe-west3`, which becomes part of a host name. */
export const LOCATION: RegExp = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
/** A replication policy without placeholders. */
const REPLICATION = /^(automatic|user-managed:[a-z][a-z0-9-]*(,[a-z][a-z0-9-]*)*)$/;
const NAMESPACE = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const SECRET = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** A location as text: its resource name in Google's API, or its path in Kubernetes. */
export function placeText(place: Place): string {
  if (place.kind === 'kubernetes') return `namespaces/${place.namespace}/secrets/${place.secret}`;
  const location = place.location === undefined ? '' : `/locations/${place.location}`;
  return `projects/${place.project}${location}/secrets/${place.secret}`;
}

const PLACE =
  /^(?:namespaces\/(?<namespace>[^/]+)|projects\/(?<project>[^/]+)(?:\/locations\/(?<location>[^/]+))?)\/secrets\/(?<secret>[^/]+)$/;

/** Parses a location. Undefined if it is invalid, so that it never becomes part of a request path. */
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

/** The namespaces among the locations. */
export function namespacesOf(places: readonly string[]): readonly string[] {
  const found = places.map(readPlace).filter((place) => place?.kind === 'kubernetes');
  return [...new Set(found.map(({ namespace }) => namespace))];
}

/** Sorted and without duplicates; invalid locations are skipped. */
export function uniquePlaces(texts: Iterable<string>): readonly string[] {
  return [...new Set(texts)].filter((text) => readPlace(text) !== undefined).sort();
}

/** The desired locations of a cluster's pull secret; none without a GCP project. */
export function wantedPlaces(cluster: HyperfleetCluster, settings: AdapterSettings): readonly string[] {
  const { projectId: project, provider } = cluster;
  if (project === undefined || provider !== 'gcp') return [];
  const location = settings.location === '' ? {} : { location: fillTemplate(settings.location, cluster) };
  const namespace = fillTemplate(settings.managementNamespace, cluster);
  const places: readonly Place[] = [
    { kind: 'google', project, ...location, secret: fillTemplate(settings.gcpSecretName, cluster) },
    ...(namespace === ''
      ? []
      : [{ kind: 'kubernetes', namespace, secret: settings.pullSecretName } as const]),
  ];
  return uniquePlaces(places.map(placeText));
}

/** Namespaces that are never used for a cluster's pull secret, whatever its name or ID. */
const RESERVED = /^(default|kube-.*|openshift|openshift-.*)$/;

/** Errors of the names built from the cluster document; empty if all are valid. */
export function nameFaults(cluster: HyperfleetCluster, settings: AdapterSettings): readonly string[] {
  const namespace = fillTemplate(settings.managementNamespace, cluster);
  const secret = fillTemplate(settings.gcpSecretName, cluster);
  const location = fillTemplate(settings.location, cluster);
  const replication = fillTemplate(settings.replication, cluster);
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
      `"${settings.location}" is not a valid location for this cluster: expected one such as europe-west3${missing}`,
    ],
    [
      !REPLICATION.test(replication),
      `"${settings.replication}" is not a valid replication policy for this cluster: expected automatic or user-managed:LOCATION[,LOCATION]${missing}`,
    ],
  ];
  return faults.flatMap(([isThere, fault]) => (isThere ? [fault] : []));
}

// The challenge: a label with which the owner of a project allows a tenant to store pull secrets there.

export const CHALLENGE_LABEL = 'pullwright-tenant';

/**
 * The expected value of {@link CHALLENGE_LABEL} for a cluster's tenant; empty if the cluster has no tenant. It is not a secret:
 * setting it requires write access to the project.
 */
export function challengeOf({ tenantFields }: HyperfleetCluster, { tenantKey }: AdapterSettings): string {
  const tenant = Object.hasOwn(tenantFields, tenantKey) ? (tenantFields[tenantKey] ?? '') : '';
  return tenant === '' ? '' : hash('sha256', `${tenantKey}\n${tenant}`).slice(0, 32);
}

/** Why the tenant of a cluster may not use its project; undefined if it may. Checked before any request to the project. */
export function tenancyFault(
  { tenantFields, projectId = '' }: HyperfleetCluster,
  { tenants, tenantKey, challenge }: AdapterSettings,
): string | undefined {
  if (tenants === undefined && challenge === 'none') return undefined;
  const { [tenantKey]: tenant } = tenantFields;
  if (tenant === undefined || tenant === '')
    return `the cluster has no tenant: expected a value of "${tenantKey}"${tenants === undefined ? '' : ' that is in the list of tenants'}`;
  // The Job checks the label of the project before anything else.
  if (tenants === undefined) return undefined;
  const allowed = Object.hasOwn(tenants, tenant) ? (tenants[tenant] ?? []) : [];
  const found = allowed.some((pattern) =>
    pattern.endsWith('*') ? projectId.startsWith(pattern.slice(0, -1)) : projectId === pattern,
  );
  return found
    ? undefined
    : 'spec.gcp.projectId is not allowed for the tenant: expected it in the list of tenants';
}
