/** Errors of Google's APIs: what they mean for a run. */
import { OUTCOMES, type OutcomeReason } from '../outcome.ts';
import { remedyFor } from './gcp-remedies.ts';

/** The call by which {@link GcpError} names a token that could not be had for now. */
export const TOKEN_CALL = 'GetAccessToken';

/** A failed run of the Job, with the reason that goes into the result. The message never holds a response body. */
export class JobError extends Error {
  readonly reason: OutcomeReason;

  constructor(reason: OutcomeReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'JobError';
    this.reason = reason;
  }

  get exitCode(): number {
    return OUTCOMES[this.reason].exitCode;
  }
}

/** A refused or failed call. `status` is the canonical code, such as `PERMISSION_DENIED`. */
export class GcpError extends Error {
  readonly status: string;
  readonly call: string;
  /** `reason` of google.rpc.ErrorInfo, such as `SERVICE_DISABLED`. */
  readonly info: string | undefined;
  /** How long the service wants to be left alone: `Retry-After`, or google.rpc.RetryInfo. */
  readonly retryAfterMs: number | undefined;
  /** Of ours, for a person. */
  readonly text: string | undefined;

  constructor(
    call: string,
    status: string,
    options: {
      info?: string | undefined;
      retryAfterMs?: number | undefined;
      text?: string;
      cause?: unknown;
    } = {},
  ) {
    super(`${call} failed: ${status}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GcpError';
    this.status = status;
    this.call = call;
    this.info = options.info;
    this.retryAfterMs = options.retryAfterMs;
    this.text = options.text;
  }
}

/** The permission that a call of Secret Manager needs. Source: its table of IAM permissions. */
const PERMISSIONS: Readonly<Record<string, string>> = {
  GetSecret: 'secretmanager.secrets.get',
  CreateSecret: 'secretmanager.secrets.create',
  UpdateSecret: 'secretmanager.secrets.update',
  DeleteSecret: 'secretmanager.secrets.delete',
  AddSecretVersion: 'secretmanager.versions.add',
  AccessSecretVersion: 'secretmanager.versions.access',
  ListSecretVersions: 'secretmanager.versions.list',
  DisableSecretVersion: 'secretmanager.versions.disable',
  DestroySecretVersion: 'secretmanager.versions.destroy',
  GetProject: 'resourcemanager.projects.get',
};

/** `secretmanager.versions.add` for `AddSecretVersion`. */
export function permissionOf(call: string): string {
  return PERMISSIONS[call] ?? call;
}

/**
 * Whether a call may succeed when made again. As the existing job, and ABORTED on top, which Google documents as "retry".
 * Takes `PERMISSION_DENIED` as well as `PermissionDenied`.
 */
export function retryableStatus(status: string): boolean {
  return ['UNAVAILABLE', 'DEADLINEEXCEEDED', 'INTERNAL', 'RESOURCEEXHAUSTED', 'ABORTED'].includes(
    status.replaceAll('_', '').toUpperCase(),
  );
}

/** The canonical code of an HTTP status, for answers without one (a proxy's page). */
export function statusOfHttp(http: number): string {
  const known: Readonly<Record<number, string>> = {
    400: 'INVALID_ARGUMENT',
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'NOT_FOUND',
    409: 'ALREADY_EXISTS',
    412: 'FAILED_PRECONDITION',
    429: 'RESOURCE_EXHAUSTED',
    500: 'INTERNAL',
    502: 'UNAVAILABLE',
    503: 'UNAVAILABLE',
    504: 'DEADLINE_EXCEEDED',
  };
  return known[http] ?? (http >= 500 ? 'UNAVAILABLE' : 'UNKNOWN');
}

/** What a call that failed for good means, in words that say what to do. */
export function explainGcpError(error: GcpError, project: string): JobError {
  const { call, status } = error;
  if (call === TOKEN_CALL) {
    return new JobError(
      'IdentityUnavailable',
      `Cannot get an access token: what gives them to the pod answers with ${status}, or not at all`,
      error,
    );
  }
  const remedy = remedyOf(error, project);
  if (remedy !== undefined) return remedy;
  if (status === 'PERMISSION_DENIED') {
    const todo = `grant ${permissionOf(call)} in project "${project}" to the identity of the Job (roles/secretmanager.admin has it)`;
    return new JobError('IamPermissionDenied', `Cannot ${call}: permission denied; ${todo}`, error);
  }
  if (status === 'UNAUTHENTICATED') {
    return new JobError('IdentityUnavailable', `Cannot ${call}: the access token was not accepted`, error);
  }
  if (status === 'RESOURCE_EXHAUSTED') {
    return new JobError(
      'QuotaExceeded',
      `Cannot ${call}: the quota of project "${project}" is used up`,
      error,
    );
  }
  if (status === 'NOT_FOUND') {
    return new JobError(
      'IamPermissionDenied',
      `Cannot ${call}: project "${project}" or the secret is not there or not visible`,
      error,
    );
  }
  if (status === 'INVALID_ARGUMENT' || status === 'FAILED_PRECONDITION') return refusedFor(error, project);
  const text = error.text === undefined ? '' : ` (${error.text})`;
  return new JobError('SecretManagerUnavailable', `Cannot ${call}: ${status}${text}`, error);
}

/** What Google says is the matter, where it does. */
function remedyOf(error: GcpError, project: string): JobError | undefined {
  const known = error.info === undefined ? undefined : remedyFor(error.info);
  if (known === undefined) return undefined;
  const todo = known.todo(permissionOf(error.call)).replaceAll('{project}', () => project);
  const state = known.state.replaceAll('{project}', () => project);
  return new JobError(known.reason, `Cannot ${error.call}: ${state}; ${todo}`, error);
}

function refusedFor(error: GcpError, project: string): JobError {
  const { call, status } = error;
  const text = `Cannot ${call}: the request was refused with ${status}`;
  if (status === 'INVALID_ARGUMENT') return new JobError('InvalidConfiguration', text, error);
  if (call !== 'CreateSecret') return new JobError('SecretManagerUnavailable', text, error);
  // Nothing is there yet that could be in a wrong state: a constraint of the organization speaks, such as on locations.
  const todo = `look at the organization policies of project "${project}": gcp.resourceLocations has to allow what --replication says`;
  return new JobError('PolicyDenied', `${text}; ${todo}`, error);
}
