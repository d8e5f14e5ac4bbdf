/**
 * Kubernetes objects as raw JSON. No class, no decoding: a field that this program does not know survives.
 * In a Secret, the values of `data` and `stringData` and the annotation
 * `kubectl.kubernetes.io/last-applied-configuration` are `Redacted` from the decoder on.
 */
import type { Redacted } from '../redacted.ts';

/** A JSON value in which leaves may be redacted. */
export type Json =
  | null
  | boolean
  | number
  | string
  | Redacted<string>
  | readonly Json[]
  | { readonly [key: string]: Json | undefined };

/** Object metadata: what is read here, and whatever else is there. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string | Redacted<string>>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
  readonly managedFields?: readonly ManagedFieldsEntry[];
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly subresource?: string;
  readonly fieldsType?: string;
  readonly fieldsV1?: Readonly<Record<string, unknown>>;
}

/** Any object. Kind-specific interfaces extend it. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly [field: string]: unknown;
}

/** A Secret as the decoder gives it: base64 text, wrapped. */
export interface SecretObject extends KubeObject {
  readonly kind: 'Secret';
  readonly type?: string;
  readonly immutable?: boolean;
  readonly data?: Readonly<Record<string, Redacted<string>>>;
}

/** Whether `object` is one. Groups have a slash, and Secrets of their own, whose values nobody has wrapped. */
export function isSecret(object: KubeObject): object is SecretObject {
  return object.kind === 'Secret' && !object.apiVersion.includes('/');
}

/** `kind/namespace/name` or `kind/name`, for messages. */
export function describeObject(object: {
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}): string {
  return object.namespace === undefined || object.namespace === ''
    ? `${object.kind}/${object.name}`
    : `${object.kind}/${object.namespace}/${object.name}`;
}

/** Annotation: what `kubectl apply` sent, as it writes it down itself. */
export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
