/**
 * A refusal by the API server, as an error that is safe to show: HTTP status, reason, object and the fields concerned. The
 * server's own message is not in it, because validation messages quote values; who refused is taken out of it, by name.
 */
import { type Disposition, PullwrightError } from '../rules/errors.ts';
import { type RefusalWords, refusalWords } from './refusal-words.ts';

/** One cause out of a Status object, without its message. */
export interface ApiCause {
  /** `FieldValueInvalid`, `FieldManagerConflict`, `NamespaceTerminating`... */
  readonly reason: string;
  readonly field: string;
  /** Whether the server said that the field cannot be changed. */
  readonly immutable: boolean;
  /** Of a `FieldManagerConflict`: who owns the field. */
  readonly manager?: string;
}

/** What {@link apiErrorOf} needs to know. */
export interface Refusal {
  /** `get`, `list`, `apply`... */
  readonly verb: string;
  /** `Secret/ns/name`, or the path for what is no object. */
  readonly subject: string;
  readonly status: number;
  readonly retryAfterMs?: number;
  /** The parsed body, if it was JSON. */
  readonly body: unknown;
}

export class ApiError extends PullwrightError {
  readonly status: number;
  readonly causes: readonly ApiCause[];

  constructor(
    message: string,
    options: {
      readonly code: string;
      readonly status: number;
      readonly causes: readonly ApiCause[];
      readonly disposition: Disposition;
      readonly afterMs?: number;
      readonly hint?: string;
    },
  ) {
    super(message, options);
    this.name = 'ApiError';
    this.status = options.status;
    this.causes = options.causes;
  }
}

/** Whether `error` is a refusal with one of these HTTP statuses. */
export function isApiError(error: unknown, ...statuses: readonly number[]): error is ApiError {
  return error instanceof ApiError && (statuses.length === 0 || statuses.includes(error.status));
}

/** Turns an answer of 400 or more into an error. */
export function apiErrorOf(refusal: Refusal): ApiError {
  const { status, verb, subject } = refusal;
  const details = detailsOf(refusal.body);
  const { code, state, hint } = wordsOf(refusal, details);
  const afterMs = refusal.retryAfterMs ?? waitOf(status, code);
  return new ApiError(`Cannot ${verb} "${subject}": ${state}`, {
    code,
    status,
    causes: details.causes,
    disposition: dispositionOf(status, code),
    ...(hint === undefined ? {} : { hint }),
    ...(afterMs === undefined ? {} : { afterMs }),
  });
}

function wordsOf(
  { status, verb }: Refusal,
  { reason, message, causes }: StatusDetails,
): Pick<RefusalWords, 'code' | 'state'> & { readonly hint: string | undefined } {
  const words = wordsOfCause(causes) ?? refusalWords(message);
  if (words !== undefined) return words;
  const code = reason === '' ? (REASONS[status] ?? 'ServerError') : reason;
  const fields = causes.map(describeCause).filter((text) => text !== '');
  const at = fields.length === 0 ? '' : ` (${[...new Set(fields)].slice(0, 5).join(', ')})`;
  return { code, state: `the API server answered ${status} ${code}${at}`, hint: hintOf(status, verb) };
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

function wordsOfCause(causes: readonly ApiCause[]): RefusalWords | undefined {
  return causes.some(({ reason }) => reason === TERMINATING.code) ? TERMINATING : undefined;
}

const TERMINATING: RefusalWords = {
  code: 'NamespaceTerminating',
  state: 'its namespace is being deleted',
  hint: 'Nothing can be made there until it is gone and made again',
};

/** Somebody else's admission refuses: nothing of ours changes when that changes, so it is asked again. */
const ADMISSION: readonly string[] = ['QuotaExceeded', 'AdmissionDenied'];

/** Rights that are given back are noticed soon, however long they were missing: not left to a back-off that grows. */
function waitOf(status: number, code: string): number | undefined {
  if (code === TERMINATING.code) return 5000;
  return status === 403 || ADMISSION.includes(code) ? 10_000 : undefined;
}

function dispositionOf(status: number, code: string): Disposition {
  if (status === 429 || status === 403 || ADMISSION.includes(code)) return 'waiting';
  return status === 400 || status === 413 || status === 422 ? 'terminal' : 'retry';
}

function hintOf(status: number, verb: string): string | undefined {
  if (status === 401) return 'The credentials are expired or not known to the cluster: renew them';
  if (status === 403) return `Grant the verb "${verb === 'apply' ? 'patch' : verb}" by RBAC`;
  if (status === 413) return 'The object is larger than the API server takes: make it smaller';
  return undefined;
}

function describeCause({ field, reason, manager }: ApiCause): string {
  if (manager !== undefined) return `${field} is owned by "${manager}"`;
  return field === '' ? reason : `${field}: ${reason}`;
}

interface StatusDetails {
  readonly reason: string;
  /** As it came: not to be shown. */
  readonly message: unknown;
  readonly causes: readonly ApiCause[];
}

function detailsOf(body: unknown): StatusDetails {
  if (typeof body !== 'object' || body === null) return { reason: '', message: undefined, causes: [] };
  const status = body as { reason?: unknown; message?: unknown; details?: { causes?: unknown } | null };
  const causes = Array.isArray(status.details?.causes) ? (status.details.causes as unknown[]) : [];
  return {
    // A word, so that no text can hide in it.
    reason: typeof status.reason === 'string' && /^\w{1,64}$/.test(status.reason) ? status.reason : '',
    message: status.message,
    causes: causes.map(causeOf),
  };
}

function causeOf(raw: unknown): ApiCause {
  const { reason, field, message } = raw as { reason?: unknown; field?: unknown; message?: unknown };
  const words = typeof message === 'string' ? message : '';
  const manager = /^conflict with "([^"]{1,128})"/.exec(words)?.[1];
  return {
    reason: typeof reason === 'string' ? reason.slice(0, 64) : '',
    field: typeof field === 'string' ? field.slice(0, 128) : '',
    immutable: /immutable|may not be changed|cannot change/i.test(words),
    ...(manager === undefined ? {} : { manager }),
  };
}
