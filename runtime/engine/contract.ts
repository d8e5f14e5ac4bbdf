/**
 * The contract between the engine and a reconciler.
 *
 * A reconciler is a pure function of the observed world: `(world, key) -> outcome`. It reads from caches, decides, and
 * says what should be true; the engine watches, applies, prunes, reports and retries. The same function runs offline over
 * folders of manifests and against live API servers.
 */

import { createHash } from 'node:crypto';
import type { RetryPolicy } from '../core/errors.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';

/** Which cluster of a pair. In a stand-alone cluster both roles are the same cluster. */
export type Role = 'hosted' | 'management';

/** Stands in {@link Watch.namespace} for the namespace of the hosted control plane, which differs per scope. */
export const CONTROL_PLANE_NAMESPACE = '{controlPlaneNamespace}';

/** Stands in {@link Watch.namespace} for the namespace of the HostedCluster and its NodePools. */
export const HOSTED_CLUSTER_NAMESPACE = '{hostedClusterNamespace}';

/** Stands in {@link Watch.name}, also within it, for the name of the HostedCluster. */
export const HOSTED_CLUSTER_NAME = '{hostedClusterName}';

/** Label and annotation that the engine puts on every object it creates; pruning requires both. */
export const OWNER_LABEL = 'pullwright.dev/owner';
/** Holds `<scope>|<namespace>|<name>` of the key that created the object. */
export const KEY_ANNOTATION = 'pullwright.dev/key';

/** What is reconciled: one name within one scope. */
export interface Request {
  /** `<namespace>/<HostedCluster>`, or `local` for a stand-alone cluster. */
  readonly scope: string;
  readonly namespace?: string;
  readonly name: string;
}

/** Points at one object. With `uid`, at that very object and no later one of the same name. */
export interface Ref {
  readonly role: Role;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

/** One kind a reconciler reads, as narrow as can be: the caches hold, and RBAC grants, exactly this. */
export interface Watch {
  readonly role: Role;
  readonly apiVersion: string;
  readonly kind: string;
  /** Exact, {@link CONTROL_PLANE_NAMESPACE} or {@link HOSTED_CLUSTER_NAMESPACE}; absent for cluster-scoped kinds and for all namespaces. */
  readonly namespace?: string;
  /** Exact, or with {@link HOSTED_CLUSTER_NAME} in it. */
  readonly name?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * Of Secrets: the values of those that {@link Reconciler.secretsToRead} names are read, of the others the metadata alone. Not of a namespace
   * that differs by scope.
   */
  readonly values?: 'on-demand';
  /** The kind may be missing from the cluster: reported once, discovered again, the rest continues. */
  readonly optional?: boolean;
  /** The account may lack the right to it: reported once, see {@link Reader.isUnreadable}, and the rest continues. */
  readonly dispensable?: boolean;
}

/** Selects cached objects. Only what some {@link Watch} of the reconciler covers can be found. */
export interface Query {
  readonly role: Role;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** The pair of clusters that a key's scope names. */
export interface ClusterPair {
  readonly name: string;
  /** Namespace of the hosted control plane in the management cluster; in a stand-alone cluster the namespace that holds the platform's pull secret. */
  readonly controlPlaneNamespace: string;
  /** The HostedCluster, absent when stand-alone. */
  readonly hostedCluster?: { readonly namespace: string; readonly name: string };
}

/** A look-up outside the API server. The engine runs it, caches the answer and requeues; offline, `facts.yaml` answers. */
export interface Lookup {
  readonly kind: 'registry-digest';
  readonly image: string;
  /** Secret of the management cluster whose credentials are tried first: those of the cluster that the look-up is for. */
  readonly pullSecret?: { readonly namespace: string; readonly name: string };
  /** Ask although the process was given no credentials. */
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
  /** Names of pull secrets that it should come back with. */
  readonly wants: readonly string[];
  /** What the result depends on beside the pod: a change repeats the dry run. */
  readonly change: string;
  /** The result can also expire without a change in the cluster: the dry run is repeated after this. @default {never} */
  readonly lastsMs?: number;
}

/** Answer to a {@link AdmissionDryRun}: the names that the pod came back without, or why it could not be tried. */
export type AdmissionDryRunResult =
  | { readonly ok: true; readonly lacks: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/** What can be seen, synchronously, from caches. Objects are raw JSON; Secret values are `Redacted`. */
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
   * Why the last write of the object was refused, where that does not pass by itself. Code `ForeignObject`: a foreign object has the name,
   * which no read shows.
   */
  refusal(ref: Ref): ReconcileError | undefined;
  /** Whether the account may not read the object of a dispensable {@link Watch}: that it is not seen says nothing then. */
  isUnreadable(ref: Ref): boolean;
  /** Whether the cluster knows the kind (an optional {@link Watch} whose CRD is missing answers false). */
  serves(kind: { readonly role: Role; readonly apiVersion: string; readonly kind: string }): boolean;
}

/** An object that should exist. */
export interface ApplyObject {
  readonly role: Role;
  readonly object: KubeObject;
  /** Take over a foreign object of this name. Without it, such an object is a `ForeignObject` problem. */
  readonly forceOwnership?: boolean;
  /**
   * Made by a plain create and changed by a merge patch, under the same field manager, which costs the API server two thirds of
   * server-side apply. For objects by the thousand that are wholly ours and hold no lists.
   */
  readonly plain?: boolean;
}

/** A few fields of a foreign object. Carries the uid that was seen, so that it never creates. */
export interface FieldPatch {
  readonly part: Ref & { readonly uid: string };
  /** apiVersion, kind and metadata are filled in by the engine; fields that were ours and are no longer here are released. */
  readonly fields: { readonly metadata?: Partial<KubeObject['metadata']>; readonly spec?: unknown };
  /** Take the fields from managers that claim them. Only where a person said that they are ours. */
  readonly forceOwnership?: boolean;
}

export type Apply = ApplyObject | FieldPatch;

/** A change of a list that others write too. */
export interface Action {
  readonly action: 'json-patch';
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

/** An event for a person who looks at `regarding`. Sent once per change of (regarding, reason, note). */
export interface EventNote {
  readonly regarding: Ref;
  readonly type: 'Normal' | 'Warning';
  /** CamelCase, stable. */
  readonly reason: string;
  /** What was being done: `Merge`, `Validate`, `Label`. */
  readonly action: string;
  readonly note: string;
}

/** A gauge of this key; gone when a later outcome of the key no longer has it. */
export interface Sample {
  readonly name: `pullwright_${string}`;
  readonly help: string;
  readonly value: number;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Why the key is not as it should be. */
export interface ReconcileError {
  readonly retryPolicy: RetryPolicy;
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly afterMs?: number | undefined;
  readonly regarding?: Ref | undefined;
}

/** What should be true now. Absent lists are empty. */
export interface Result {
  readonly apply?: readonly Apply[];
  /** Owned objects that stay as they are although they are not in `apply`: the last good result while input is bad. `all`: remove nothing. */
  readonly retain?: readonly Ref[] | 'all';
  /** With the uid that was seen. */
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
  /** Names of the scopes it works on. Absent: on all of them. Set by the configuration, not by the system. */
  readonly only?: ReadonlySet<string>;
  readonly watches: readonly Watch[];
  /** How many keys are worked on at once. For many small keys that wait for the server. @default {2} */
  readonly workers?: number;
  /** Milliseconds after a change until `key` is due: for keys that sum up what the others do. @default {0} */
  debounceMs?(key: Request): number;
  /**
   * `<namespace>/<name>` of the Secrets whose values it reads, of those that are read without (`Read.values`). The same set as
   * long as it says the same.
   */
  secretsToRead?(reader: Reader): ReadonlySet<string>;
  /** Keys to reconcile after `changed` changed. */
  requestsFor(changed: Ref, reader: Reader): readonly Request[];
  /** Total: never throws for anything that can be in a cluster. */
  reconcile(reader: Reader, key: Request): Result;
}

// The uid that a server would give, for objects of a folder: the same in every run, and recognisable.

/** Version digit of a UUID that no API server hands out. */
const MARK = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/;

/** `object` with a uid, made from its name when it has none. */
export function withIdentity(object: KubeObject): KubeObject {
  if (object.metadata.uid !== undefined) return object;
  const { kind, apiVersion, metadata } = object;
  const digest = createHash('sha256')
    .update(`${apiVersion} ${kind} ${metadata.namespace ?? ''} ${metadata.name}`)
    .digest('hex');
  const uid = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  return { ...object, metadata: { ...metadata, uid } };
}

/** `object` without a uid that {@link withIdentity} made. */
export function withoutSyntheticIdentity(object: KubeObject): KubeObject {
  const { uid, ...metadata } = object.metadata;
  return uid !== undefined && MARK.test(uid) ? { ...object, metadata } : object;
}
