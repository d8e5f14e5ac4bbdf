/**
 * Kubernetes objects as raw JSON. No class, no decoding: a field that this program does not know survives.
 * In a Secret, the values of `data` and `stringData` and the annotation
 * `kubectl.kubernetes.io/last-applied-configuration` are `Redacted` from the decoder on.
 */
import { PullwrightError } from '../errors.ts';
import { isRecord, recordOf, recordsIn, textOf } from '../record.ts';
import type { Redacted } from '../redacted.ts';
import { shellWord } from '../text.ts';

/** A JSON value in which leaves may be redacted. */
export type Json =
  | null
  | boolean
  | number
  | string
  | Redacted<string>
  | readonly Json[]
  | { readonly [key: string]: Json | undefined };

/** Object metadata: the fields that are read here, and any others. */
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

/** A Secret as the decoder gives it: base64 text, wrapped. */
export interface SecretObject extends KubeObject {
  readonly kind: 'Secret';
  readonly type?: string;
  readonly data?: Readonly<Record<string, Redacted<string>>>;
}

/** The names that a ServiceAccount, or the spec of a pod, lists; empty for an entry without one. */
export function listedPullSecrets(holder: unknown): readonly string[] {
  return recordsIn(recordOf(holder)['imagePullSecrets']).map(({ name }) => textOf(name));
}

/** Whether `object` is a core/v1 Secret. Other API groups (with a slash) may define a Secret too; its values are not wrapped. */
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

// Names of objects as parts of a path, of files and of the API: in one function, which rejects path traversal.

/**
 * One part of a path, made of a namespace or a kind and a name that come from outside. The API server takes no such name, but a
 * dump, an event or a token may hold anything.
 *
 * @param what for the message: `namespace`, `name`
 * @returns `text` as it is; a colon, which roles have, becomes `_`
 * @throws PullwrightError `UnsafeName` for what is not a name of an object: empty, over 253 characters, `.`, `..`, with a slash, a
 *   control character or anything else but letters, digits, `.`, `-`, `_` and `:`
 */
export function pathPart(what: string, text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$/.test(text)) return text.replaceAll(':', '_');
  throw new PullwrightError(
    `${what} "${text.slice(0, 100)}" cannot be part of a file's name: expected at most 253 letters, digits, ".", "-" and "_", and a letter or digit first`,
    {
      code: 'UnsafeName',
      retryPolicy: 'terminal',
      hint: 'Correct the name in the document that it comes from',
    },
  );
}

/**
 * Whether an object may have this name at all: whatever its kind, the API server takes none that is a step of a path or has one in it.
 * References to other objects (of a pod to its Secrets) are not validated by the API server, and may hold anything.
 *
 * Source of the rule: `IsValidPathSegmentName` of apimachinery, and a name has to be there, since without it the path is that of all.
 */
export function isPathSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('%');
}

// Which texts can be names of objects.
// Source of the rule: the API conventions of Kubernetes: a DNS subdomain (RFC 1123), and for namespaces a DNS label.

const SUBDOMAIN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Whether `value` can be the name of a Secret or a ServiceAccount.
 */
export function isObjectName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 253 && SUBDOMAIN.test(value);
}

/** `kubectl` with these words, quoted where a shell needs it; undefined where one of `names` is a name that no object can have. */
export function kubectl(words: readonly string[], names: readonly unknown[] = []): string | undefined {
  return names.every(isObjectName) ? ['kubectl', ...words].map(shellWord).join(' ') : undefined;
}

/**
 * Whether `value` can be the name of a namespace.
 */
export function isNamespaceName(value: unknown): value is string {
  return typeof value === 'string' && LABEL.test(value);
}

// Containers of a pod or pod template, from a cluster or a folder. Types in a folder have not been validated.

/**
 * The containers of the template; none where there is no such list.
 */
export function templateContainers({ spec }: KubeObject): readonly Readonly<Record<string, unknown>>[] {
  const { containers } = recordOf(recordOf(recordOf(spec)['template'])['spec']);
  return Array.isArray(containers) ? containers.filter(isRecord) : [];
}

/** Whether the agents that a DaemonSet starts report: by the flag of their program. */
export function startsReporting(daemonSet: KubeObject): boolean {
  return templateContainers(daemonSet).some(
    ({ command }) => Array.isArray(command) && command.includes('--report'),
  );
}
