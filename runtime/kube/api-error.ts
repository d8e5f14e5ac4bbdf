/**
 * Errors of the API server that are safe to show: HTTP status, reason, object and fields. They omit the server's message, which
 * may quote values, except for the name of the webhook, policy or quota that rejected the request.
 */
import { type ErrorOptions, errnoOf, PullwrightError, type RetryPolicy } from '../core/errors.ts';
import { describeObject, type KubeObject, kubectl } from '../core/kubernetes/object.ts';
import { recordOf, textOf, valueAt } from '../core/record.ts';

// Extracts from the API server's message who rejected a request: names of webhooks, policies, quotas, users and resources.
// Source of the rule: messages of kube-apiserver 1.36 (authorization, ResourceQuota, ValidatingAdmissionPolicy, webhooks).

/** Replaces status and reason in the message. */
export interface RefusalWords {
  /** CamelCase, stable. */
  readonly code: string;
  /** Follows the colon of the message. */
  readonly state: string;
  readonly hint: string;
}

/** A name in Kubernetes. */
const NAME = '[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}';

/** `$1` and `$2` are replaced by the groups of the pattern. */
const RULES: readonly (RefusalWords & { readonly pattern: RegExp })[] = [
  {
    pattern: new RegExp(`exceeded quota: (${NAME}(?:,${NAME})*)(?:,|$)`),
    code: 'QuotaExceeded',
    state: 'the ResourceQuota "$1" is exceeded',
    hint: 'Raise it, or delete objects that it counts; it is retried',
  },
  {
    pattern: new RegExp(`admission webhook "(${NAME})" denied the request`),
    code: 'AdmissionDenied',
    state: 'the admission webhook "$1" denied it',
    hint: 'Exempt it there, or ask the owner of the webhook for the reason; it is retried',
  },
  {
    pattern: new RegExp(`ValidatingAdmissionPolicy '(${NAME})' with binding '(${NAME})' denied request`),
    code: 'AdmissionDenied',
    state: 'the ValidatingAdmissionPolicy "$1" (binding "$2") denied it',
    hint: 'Exempt it there, or satisfy the policy; it is retried',
  },
  {
    pattern: new RegExp(`failed calling webhook "(${NAME})"`),
    code: 'AdmissionUnreachable',
    state: 'the admission webhook "$1" does not respond to the API server',
    hint: 'Check that the pods behind it run; it is retried',
  },
];

const DENIED = new RegExp(
  `User "(?<user>${NAME})" cannot (?<verb>[a-z*]{1,32}) resource "(?<resource>[a-z0-9./-]{1,253})" in API group "(?<group>[a-z0-9.-]{0,253})"(?: in the namespace "(?<namespace>${NAME})"| at the cluster scope)?`,
);

/** Parses the message of a Status; undefined if it matches no rule. */
export function refusalWords(message: unknown): RefusalWords | undefined {
  if (typeof message !== 'string') return undefined;
  const denied = DENIED.exec(message)?.groups;
  if (denied !== undefined) return deniedWords(denied);
  for (const { pattern, code, state, hint } of RULES) {
    const match = pattern.exec(message);
    if (match !== null) return { code, hint, state: state.replace(/\$(\d)/g, (_, at) => match[at] ?? '') };
  }
  return undefined;
}

function deniedWords(denied: Readonly<Record<string, string | undefined>>): RefusalWords {
  const { user, verb, resource, group, namespace } = denied;
  const kind = group === '' ? resource : `${resource}.${group}`;
  const place = namespace === undefined ? 'for the cluster' : `in namespace "${namespace}"`;
  return {
    code: 'Forbidden',
    state: 'the API server returned 403 Forbidden',
    hint: `Grant the verb "${verb}" on ${kind} ${place} to "${user}" by RBAC`,
  };
}

/** Input of {@link apiErrorOf}. */
export interface Refusal {
  /** `get`, `list`, `apply`... */
  readonly verb: string;
  /** `Secret/ns/name`, or the path if there is no object. */
  readonly subject: string;
  readonly status: number;
  readonly retryAfterMs?: number | undefined;
  /** The parsed body, if it was JSON. */
  readonly body: unknown;
}

export class ApiError extends PullwrightError {
  readonly status: number;
  readonly causes: readonly ReturnType<typeof causeOf>[];

  constructor(message: string, options: ErrorOptions & Pick<ApiError, 'status' | 'causes'>) {
    super(message, options);
    this.name = 'ApiError';
    this.status = options.status;
    this.causes = options.causes;
  }
}

/** Whether `error` is an ApiError with one of these statuses, or with any if none is given. */
export function isApiError(error: unknown, ...statuses: readonly number[]): error is ApiError {
  return error instanceof ApiError && (statuses.length === 0 || statuses.includes(error.status));
}

/** The result of the request; undefined if it fails with one of these statuses. */
export async function unlessRefused<T>(
  request: Promise<T>,
  ...statuses: readonly number[]
): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (isApiError(error, ...statuses)) return undefined;
    throw error;
  }
}

/** Converts a response with a status from 400 on to an error. */
export function apiErrorOf(refusal: Refusal): ApiError {
  const { status, verb, subject } = refusal;
  const details = detailsOf(refusal.body);
  const { code, state, hint } = wordsOf(refusal, details);
  const afterMs = refusal.retryAfterMs ?? waitOf(status, code);
  return new ApiError(`Cannot ${verb} "${subject}": ${state}`, {
    code,
    status,
    causes: details.causes,
    retryPolicy: retryPolicyOf(status, code),
    hint,
    afterMs,
  });
}

function wordsOf({ status, verb }: Refusal, { reason, message, causes }: ReturnType<typeof detailsOf>) {
  const isTerminating = causes.some((cause) => cause.reason === TERMINATING.code);
  const words = isTerminating ? TERMINATING : refusalWords(message);
  if (words !== undefined) return words;
  const code = reason === '' ? (REASONS[status] ?? 'ServerError') : reason;
  const fields = causes.map(describeCause).filter((text) => text !== '');
  const at = fields.length === 0 ? '' : ` (${[...new Set(fields)].slice(0, 5).join(', ')})`;
  return { code, state: `the API server returned ${status} ${code}${at}`, hint: hintOf(status, verb) };
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  422: 'Invalid',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

const TERMINATING: RefusalWords = {
  code: 'NamespaceTerminating',
  state: 'its namespace is being deleted',
  hint: 'Objects can be created there after the namespace is recreated',
};

/** Rejected by admission control or a quota. No event reports a change, so the request is retried. */
const ADMISSION: readonly string[] = ['QuotaExceeded', 'AdmissionDenied'];

/** A fixed retry delay, so that granted permissions are detected soon, however long they were missing. */
function waitOf(status: number, code: string): number | undefined {
  if (code === TERMINATING.code) return 5000;
  return status === 403 || ADMISSION.includes(code) ? 10_000 : undefined;
}

function retryPolicyOf(status: number, code: string): RetryPolicy {
  if (status === 429 || status === 403 || ADMISSION.includes(code)) return 'waiting';
  return status === 400 || status === 413 || status === 422 ? 'terminal' : 'retry';
}

function hintOf(status: number, verb: string): string | undefined {
  if (status === 401) return 'The credentials are expired or invalid: renew them';
  if (status === 403) return `Grant the verb "${verb === 'apply' ? 'patch' : verb}" by RBAC`;
  if (status === 413) return 'The object is larger than the API server accepts: make it smaller';
  return undefined;
}

/** The field of a cause, and what is wrong with it. */
export function describeCause({ field, reason, manager }: ReturnType<typeof causeOf>): string {
  if (manager !== undefined) return `${field} is owned by "${manager}"`;
  return field === '' ? reason : `${field}: ${reason}`;
}

function detailsOf(body: unknown) {
  const { reason, message, details } = recordOf(body);
  const { causes } = recordOf(details);
  return {
    // Accept only a word, so that it cannot quote a value.
    reason: /^\w{0,64}$/.test(textOf(reason)) ? textOf(reason) : '',
    /** Unfiltered: must not be shown. */
    message,
    causes: Array.isArray(causes) ? causes.map(causeOf) : [],
  };
}

/** One cause of a Status object, without its message. */
function causeOf(raw: unknown) {
  const { reason, field, message } = recordOf(raw);
  const words = textOf(message);
  return {
    /** `FieldValueInvalid`, `FieldManagerConflict`, `NamespaceTerminating`... */
    reason: textOf(reason).slice(0, 64),
    field: textOf(field).slice(0, 128),
    /** Whether the field is immutable. */
    immutable: /immutable|may not be changed|cannot change/i.test(words),
    /** The owner of the field, for a `FieldManagerConflict`. */
    manager: /^conflict with "([^"]{1,128})"/.exec(words)?.[1],
  };
}

/** Converts an error to a PullwrightError. Keeps only the code of others, because their message may quote received data. */
export function asPullwrightError(error: unknown): PullwrightError {
  if (error instanceof PullwrightError) return error;
  const code = errnoOf(error) ?? '';
  const name = /^\w{1,64}$/.test(code) ? ` (${code})` : '';
  return new PullwrightError(`Cannot contact the API server: the connection was lost${name}`, {
    code: 'ConnectionLost',
  });
}

// Message for an immutable field: the present value, the desired one, and the remedy.

/** Kinds that are never recreated, because their content would be deleted with them. */
const CARRIERS: ReadonlySet<string> = new Set([
  'CustomResourceDefinition',
  'Namespace',
  'PersistentVolumeClaim',
]);

/** Whether an object may be deleted and recreated to change it. */
export function isReplaceable({ kind }: Pick<KubeObject, 'kind'>): boolean {
  return !CARRIERS.has(kind);
}

/**
 * @param fields paths of the immutable fields, such as `spec.selector`
 * @returns message and hint, without values of Secrets
 */
export function immutableText(before: KubeObject, desired: KubeObject, fields: readonly string[]) {
  const { kind, metadata } = before;
  const { namespace, name } = metadata;
  const said = [...new Set(fields)].map((field) => fieldText(before, desired, field)).join('; ');
  const scope = namespace === undefined ? [] : ['-n', namespace];
  const command =
    kubectl([...scope, 'delete', kind.toLowerCase(), name], [...scope.slice(1), name]) ?? 'delete it';
  return {
    message: `Cannot change "${describeObject({ kind, namespace, name })}" in place: ${said}`,
    hint: isReplaceable(before)
      ? `Keep what you need of it, then: ${command}`
      : `Its content is deleted with it, so Pullwright does not delete it: save the content, then: ${command}`,
  };
}

function fieldText(before: KubeObject, desired: KubeObject, field: string): string {
  const [there, wanted] = [valueAt(before, field), valueAt(desired, field)];
  const isSecret = before.kind === 'Secret' && /^(data|stringData)\b/.test(field);
  const why = isSecret && before['immutable'] === true ? ' because "immutable: true" is set' : '';
  if (isSecret || there === undefined || wanted === undefined) return `${field} cannot be changed${why}`;
  return `${field} is immutable: it is ${shown(there)}, expected ${shown(wanted)}`;
}

/** A value as JSON, shortened for Events; redacted values are masked. */
function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 157)}...` : text;
}
