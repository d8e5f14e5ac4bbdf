/**
 * Kubernetes objects as raw JSON, without classes or decoding, so that unknown fields are preserved.
 * In a Secret, the values of `data` and `stringData` and the annotation
 * `kubectl.kubernetes.io/last-applied-configuration` are `Redacted` from the decoder on.
 */
import { PullwrightError } from '../errors.ts';
import { isRecord, recordOf, recordsIn, textOf } from '../record.ts';
import type { Redacted } from '../redacted.ts';
import { shellWord } from '../text.ts';

/** Object metadata: the fields that Pullwright reads; others are preserved. */
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

/** A Secret as the decoder returns it, with wrapped base64 values. */
export interface SecretObject extends KubeObject {
  readonly kind: 'Secret';
  readonly type?: string;
  readonly data?: Readonly<Record<string, Redacted<string>>>;
}

/** The imagePullSecrets of a ServiceAccount or a pod spec, by name; the empty string for an entry without a name. */
export function listedPullSecrets(holder: unknown): readonly string[] {
  return recordsIn(recordOf(holder)['imagePullSecrets']).map(({ name }) => textOf(name));
}

/** Whether `object` is a core/v1 Secret. Other API groups (with a slash) may define a Secret too; its values are not wrapped. */
export function isSecret(object: KubeObject): object is SecretObject {
  return object.kind === 'Secret' && !object.apiVersion.includes('/');
}

/** `kind/namespace/name` or `kind/name`, for messages. */
export function describeObject(
  object:
    | Pick<KubeObject, 'kind' | 'metadata'>
    | { readonly kind: string; readonly namespace?: string | undefined; readonly name: string },
): string {
  const { namespace = '', name } = 'metadata' in object ? object.metadata : object;
  return namespace === '' ? `${object.kind}/${name}` : `${object.kind}/${namespace}/${name}`;
}

/** Annotation in which `kubectl apply` stores the last applied configuration. */
export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

// Object names in file and API paths: one function rejects path traversal.

/**
 * Validates a namespace, kind or name from outside as one part of a path. The API server accepts no unsafe name, but a dump, an
 * event or a token may contain anything.
 *
 * @param what for the message: `namespace`, `name`
 * @returns `text`; a colon, which names of roles may have, becomes `_`
 * @throws PullwrightError `UnsafeName` if it is empty, over 253 characters, or starts with another character than a letter or a
 *   digit, or contains anything but letters, digits, `.`, `-`, `_` and `:`
 */
export function pathPart(what: string, text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$/.test(text)) return text.replaceAll(':', '_');
  throw new PullwrightError(
    `${what} "${text.slice(0, 100)}" cannot be part of a file name: expected at most 253 letters, digits, ".", "-" and "_", and a letter or digit first`,
    { code: 'UnsafeName', retryPolicy: 'terminal', hint: 'Correct the name in its source document' },
  );
}

/**
 * Whether the API server accepts the name for any kind: not a path segment such as `..`, and without `/` or `%`. References to
 * other objects (of a pod to its Secrets) are not validated by the API server, and may contain anything.
 *
 * Source of the rule: `IsValidPathSegmentName` of apimachinery. The name must not be empty: that is the path of the collection.
 */
export function isPathSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('%');
}

// Valid object names.
// Source of the rule: the API conventions of Kubernetes: a DNS subdomain (RFC 1123), and for namespaces a DNS label.

const SUBDOMAIN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** Whether `value` is a valid name of a Secret or a ServiceAccount. */
export function isObjectName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 253 && SUBDOMAIN.test(value);
}

/** A `kubectl` command line, quoted for a shell; undefined if one of `names` is not a valid object name. */
export function kubectl(words: readonly string[], names: readonly unknown[] = []): string | undefined {
  return names.every(isObjectName) ? ['kubectl', ...words].map(shellWord).join(' ') : undefined;
}

/** Whether `value` is a valid name of a namespace. */
export function isNamespaceName(value: unknown): value is string {
  return typeof value === 'string' && LABEL.test(value);
}

// Containers of a pod template, from a cluster or a folder. Objects of a folder have not been validated.

/** The containers of the template; empty if it has no list. */
export function templateContainers({ spec }: KubeObject): readonly Readonly<Record<string, unknown>>[] {
  const { containers } = recordOf(recordOf(recordOf(spec)['template'])['spec']);
  return Array.isArray(containers) ? containers.filter(isRecord) : [];
}

/** Whether the agents of a DaemonSet report: their command has the flag `--report`. */
export function startsReporting(daemonSet: KubeObject): boolean {
  return templateContainers(daemonSet).some(
    ({ command }) => Array.isArray(command) && command.includes('--report'),
  );
}
