/**
 * The contract between the engine and a reconciler.
 *
 * A reconciler is a pure function of the observed state: `(reader, key) -> result`. It reads from caches and returns the desired
 * state; the engine watches, applies, prunes, reports and retries. The same function runs offline over folders of manifests and
 * against live API servers.
 */

import { hash } from 'node:crypto';
import type { RetryPolicy } from '../core/errors.ts';
import { HOSTED_CLUSTER, NODE_POOL } from '../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { EventInput } from '../kube/events.ts';
import type { Collection, ObjectRef } from '../kube/resources.ts';

/** Which cluster of a pair. In a stand-alone cluster both roles are the same cluster. */
export type Role = 'hosted' | 'management';

/** Placeholder in {@link Watch.namespace} for the namespace of the hosted control plane, which differs per scope. */
export const CONTROL_PLANE_NAMESPACE = '{controlPlaneNamespace}';

/** Placeholder in {@link Watch.namespace} for the namespace of the HostedCluster and its NodePools. */
export const HOSTED_CLUSTER_NAMESPACE = '{hostedClusterNamespace}';

/** Placeholder in {@link Watch.name}, for all or a part of it, for the name of the HostedCluster. */
export const HOSTED_CLUSTER_NAME = '{hostedClusterName}';

/** Label and annotation that the engine puts on every object it creates; pruning requires both. */
export const OWNER_LABEL = 'pullwright.dev/owner';
/** Annotation with `<scope>|<namespace>|<name>` of the key that created the object. */
export const KEY_ANNOTATION = 'pullwright.dev/key';

/** The key of a reconcile: one name within one scope. */
export interface Request {
  /** `<namespace>/<HostedCluster>`, or `local` for a stand-alone cluster. */
  readonly scope: string;
  readonly namespace?: string;
  readonly name: string;
}

/** Reference to one object. With `uid`, only to that object and no later one of the same name. */
export interface Ref extends ObjectRef {
  readonly role: Role;
  readonly uid?: string;
}

/** One kind that a reconciler reads, as narrow as possible: caches and RBAC cover exactly this. */
export interface Watch extends Collection {
  readonly role: Role;
  /** A name, {@link CONTROL_PLANE_NAMESPACE} or {@link HOSTED_CLUSTER_NAMESPACE}; absent for cluster scope and all namespaces. */
  readonly namespace?: string;
  /** Exact, or with {@link HOSTED_CLUSTER_NAME} in it. */
  readonly name?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * For Secrets: reads the values of those in {@link Reconciler.secretsToRead}, and only the metadata of the others. Unsupported
   * with a namespace that differs by scope.
   */
  readonly values?: 'on-demand';
  /** The kind may be missing from the cluster: reported once, discovered again, the rest continues. */
  readonly optional?: boolean;
  /** RBAC may not allow the watch: reported once, see {@link Reader.isUnreadable}, and the rest continues. */
  readonly dispensable?: boolean;
}

/** Selects cached objects. Only what some {@link Watch} of the reconciler covers can be found. */
export interface Query extends Collection {
  readonly role: Role;
  readonly labels?: Readonly<Record<string, string>>;
}

/** The pair of clusters that a key's scope names. */
export interface ClusterPair {
  readonly name: string;
  /** Namespace of the hosted control plane; in a stand-alone cluster, that of the platform's pull secret. */
  readonly controlPlaneNamespace: string;
  /** The HostedCluster, absent when stand-alone. */
  readonly hostedCluster?: { readonly namespace: string; readonly name: string };
}

/** A look-up outside the API server. The engine runs it, caches the answer and requeues; offline, `facts.yaml` answers. */
export interface Lookup {
  readonly kind: 'registry-digest';
  readonly image: string;
  /** Secret of the management cluster with the credentials to try first: those of the cluster that needs the look-up. */
  readonly pullSecret?: { readonly namespace: string; readonly name: string };
  /** Look up even if the process has no credentials. */
  readonly asked?: true;
}

/** Answer to a {@link Lookup}. */
export type LookupResult =
  | { readonly ok: true; readonly value: string }
  | { readonly ok: false; readonly reason: string };

/** A pod that is created in a dry run, to see what admission changes. */
export interface AdmissionDryRun {
  readonly role: Role;
  readonly pod: KubeObject;
  /** Names of imagePullSecrets that admission should add. */
  readonly wants: readonly string[];
  /** Other inputs of the result than the pod: a change repeats the dry run. */
  readonly change: string;
  /** The result can also expire without a change in the cluster: the dry run is repeated after this. @default {never} */
  readonly lastsMs?: number;
}

/** Answer to an {@link AdmissionDryRun}: the names that admission did not add, or why the dry run failed. */
export type AdmissionDryRunResult =
  | { readonly ok: true; readonly lacks: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/** Synchronous view of the caches. Objects are raw JSON; Secret values are `Redacted`. */
export interface Reader {
  readonly scope: ClusterPair;
  readonly now: Date;
  get(ref: Ref): KubeObject | undefined;
  /** Sorted by namespace, then name. */
  list(query: Query): readonly KubeObject[];
  lookup(need: Lookup): LookupResult | undefined;
  /** The last answer; undefined when there is none yet, and in a folder. */
  dryRun(one: AdmissionDryRun): AdmissionDryRunResult | undefined;
  /**
   * Why the last write of the object was rejected, when a person must act. Code `ForeignObject`: a foreign object has the name,
   * and no watch covers it.
   */
  refusal(ref: Ref): ReconcileError | undefined;
  /** Whether RBAC does not allow a dispensable {@link Watch} of the object: then it may exist although {@link get} finds none. */
  isUnreadable(ref: Ref): boolean;
  /** Whether the cluster serves the kind; false for an optional {@link Watch} whose CRD is missing. */
  serves(kind: { readonly role: Role; readonly apiVersion: string; readonly kind: string }): boolean;
}

/** An object that should exist. */
export interface ApplyObject {
  readonly role: Role;
  readonly object: KubeObject;
  /** Take over a foreign object of this name. Without it, such an object is a `ForeignObject` problem. */
  readonly forceOwnership?: boolean;
  /**
   * Writes by plain create and merge patch, with the same field manager, at two thirds of the API server's cost for server-side
   * apply. For thousands of objects that are wholly ours and contain no lists.
   */
  readonly plain?: boolean;
}

/** Some fields of a foreign object. Includes its uid, so that the apply never creates an object. */
export interface FieldPatch {
  readonly part: Ref & { readonly uid: string };
  /** apiVersion, kind and metadata are filled in by the engine; fields that were ours and are no longer here are released. */
  readonly fields: { readonly metadata?: Partial<KubeObject['metadata']>; readonly spec?: unknown };
  /** Take the fields from other managers. Only when the user configured it. */
  readonly forceOwnership?: boolean;
}

export type Apply = ApplyObject | FieldPatch;

/** A JSON patch of a list that has other writers too. */
export interface Action {
  readonly ref: Ref;
  readonly operations: readonly JsonPatchOperation[];
}

export type JsonPatchOperation =
  | { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** The whole status of one object; written by server-side apply on the status subresource, when it differs. */
export interface StatusPatch {
  readonly ref: Ref;
  readonly status: Readonly<Record<string, unknown>>;
}

/** An Event of the object `regarding`. Sent once per change of (regarding, reason, note). */
export interface EventNote extends Omit<EventInput, 'regarding'> {
  readonly regarding: Ref;
}

/** A gauge of this key; removed when a later result of the key no longer has it. */
export interface Sample {
  readonly name: `pullwright_${string}`;
  readonly help: string;
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Why the key is not in the desired state. */
export interface ReconcileError {
  readonly retryPolicy: RetryPolicy;
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly afterMs?: number | undefined;
  readonly regarding?: Ref | undefined;
}

/** The desired state. Absent lists are empty. */
export interface Result {
  readonly apply?: readonly Apply[];
  /** Owned objects not to prune although missing in `apply`: the last good result while input is invalid. `all`: no pruning. */
  readonly retain?: readonly Ref[] | 'all';
  /** Objects to delete, with their uid. */
  readonly remove?: readonly (Ref & { readonly uid: string })[];
  readonly actions?: readonly Action[];
  readonly lookups?: readonly Lookup[];
  readonly dryRuns?: readonly AdmissionDryRun[];
  readonly status?: readonly StatusPatch[];
  readonly events?: readonly EventNote[];
  readonly metrics?: readonly Sample[];
  readonly requeueAfterMs?: number;
  readonly errors?: readonly ReconcileError[];
}

export interface Reconciler {
  /** Folder, field manager (`pullwright-<name>`), metric label and owner label. */
  readonly name: string;
  /** Names of the scopes to reconcile, from the configuration. @default all */
  readonly only?: ReadonlySet<string>;
  readonly watches: readonly Watch[];
  /** Keys that are reconciled at the same time. More for many small keys that wait for the server. @default {2} */
  readonly workers?: number;
  /** Milliseconds after a change until `key` is due, for keys that summarize other keys. @default {0} */
  debounceMs?(key: Request): number;
  /**
   * `<namespace>/<name>` of the Secrets whose values it needs, for watches with {@link Watch.values}. Must return the same set
   * object while the content is the same.
   */
  secretsToRead?(reader: Reader): ReadonlySet<string>;
  /** Keys to reconcile after `changed` changed. */
  requestsFor(changed: Ref, reader: Reader): readonly Request[];
  /** Never throws, whatever is in the cluster. */
  reconcile(reader: Reader, key: Request): Result;
}

// HyperShift's objects in the management cluster.

/** The HostedCluster of the scope. */
export const HOSTED_CLUSTER_READ: Watch = {
  role: 'management',
  ...HOSTED_CLUSTER,
  namespace: HOSTED_CLUSTER_NAMESPACE,
  name: HOSTED_CLUSTER_NAME,
  optional: true,
};

/** NodePools in its namespace. */
export const NODE_POOL_READ: Watch = {
  role: 'management',
  ...NODE_POOL,
  namespace: HOSTED_CLUSTER_NAMESPACE,
  optional: true,
};

/** The reference to the HostedCluster of the scope; undefined when stand-alone. */
export function hostedClusterRef({ hostedCluster }: ClusterPair): Ref | undefined {
  return hostedCluster && { role: 'management', ...HOSTED_CLUSTER, ...hostedCluster };
}

/** The HostedCluster of the scope; undefined when stand-alone or not found. */
export function hostedClusterOf(reader: Reader): KubeObject | undefined {
  const ref = hostedClusterRef(reader.scope);
  return ref && reader.get(ref);
}

// Synthetic uids for objects of a folder: the same in every run, and recognisable.

/** UUID version 8, which no API server assigns. */
const MARK = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/;

/** `object` with a uid, which is derived from its name when it has none. */
export function withIdentity(object: KubeObject): KubeObject {
  if (object.metadata.uid !== undefined) return object;
  const { kind, apiVersion, metadata } = object;
  const digest = hash('sha256', `${apiVersion} ${kind} ${metadata.namespace ?? ''} ${metadata.name}`);
  const uid = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  return { ...object, metadata: { ...metadata, uid } };
}

/** `object` without a uid that {@link withIdentity} made. */
export function withoutSyntheticIdentity(object: KubeObject): KubeObject {
  const { uid, ...metadata } = object.metadata;
  return uid !== undefined && MARK.test(uid) ? { ...object, metadata } : object;
}
