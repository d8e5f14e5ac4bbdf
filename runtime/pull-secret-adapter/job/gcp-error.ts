/** Errors of Google's APIs: what they mean for a run. */
import { OUTCOMES, type OutcomeReason } from '../outcome.ts';

// What the reasons of google.rpc.ErrorInfo mean for a run, and what helps: all of `google.api.ErrorReason` that a service account
// with an access token can meet at Secret Manager or Resource Manager.
// Source of the rule: google/api/error_reason.proto; Google's documentation of VPC Service Controls and of organization policies.

/** See {@link remedyFor}. `{project}` stands for the project in both texts. */
export interface Remedy {
  readonly reason: OutcomeReason;
  /** What is the case. */
  readonly state: string;
  /** What to do. @param permission the one that the call needs, such as `secretmanager.secrets.create` */
  readonly todo: (permission: string) => string;
}

type Row = readonly [reason: OutcomeReason, state: string, todo: string];

const TOKEN = 'look at the workload identity binding or the key that the Job gets its token by';

const ROWS: Readonly<Record<string, Row>> = {
  SERVICE_DISABLED: [
    'ApiDisabled',
    'the Secret Manager API is disabled',
    'enable secretmanager.googleapis.com in project "{project}"',
  ],
  SERVICE_NOT_VISIBLE: [
    'PolicyDenied',
    'the service is not visible to the project',
    'the owner of project "{project}" has to ask Google for secretmanager.googleapis.com',
  ],
  BILLING_DISABLED: [
    'BillingDisabled',
    'billing is disabled',
    'link a billing account to project "{project}"; no permission helps',
  ],
  CONSUMER_SUSPENDED: [
    'PolicyDenied',
    'Google has suspended the project',
    'the owner of project "{project}" has to speak with Google',
  ],
  GCP_SUSPENDED: [
    'PolicyDenied',
    'Google has suspended the account that the project belongs to',
    'the owner of project "{project}" has to speak with Google',
  ],
  CONSUMER_INVALID: [
    'InvalidConfiguration',
    'the project is not there, or is being deleted',
    'look at spec.gcp.projectId, or restore project "{project}"',
  ],
  RESOURCE_PROJECT_INVALID: [
    'InvalidConfiguration',
    'the project is empty or badly written',
    'look at spec.gcp.projectId, which is "{project}"',
  ],
  USER_PROJECT_DENIED: [
    'IamPermissionDenied',
    'the identity of the Job may not use the project for quota',
    'grant roles/serviceusage.serviceUsageConsumer in project "{project}" to the identity of the Job',
  ],
  IAM_PERMISSION_DENIED: [
    'IamPermissionDenied',
    'permission denied',
    'grant {permission} in project "{project}" to the identity of the Job (roles/secretmanager.admin has those of Secret Manager)',
  ],
  USER_BLOCKED_BY_ADMIN: [
    'PolicyDenied',
    "an administrator of the identity's own organization blocks the service",
    'let that administrator allow secretmanager.googleapis.com to the identity of the Job',
  ],
  SECURITY_POLICY_VIOLATED: [
    'PolicyDenied',
    'a perimeter of VPC Service Controls refuses it',
    'let the identity of the Job into the perimeter of project "{project}" by an ingress rule; no role helps',
  ],
  RESOURCE_USAGE_RESTRICTION_VIOLATED: [
    'PolicyDenied',
    'an organization policy restricts the use of the service',
    'allow secretmanager.googleapis.com by gcp.restrictServiceUsage for project "{project}"',
  ],
  ENDPOINT_USAGE_RESTRICTION_VIOLATED: [
    'PolicyDenied',
    'an organization policy restricts the endpoint',
    'set --location to a region whose endpoint gcp.restrictEndpointUsage allows for project "{project}"',
  ],
  TLS_ORG_POLICY_VIOLATED: [
    'PolicyDenied',
    'an organization policy refuses the version of TLS',
    'look at what ends TLS on the way to Google: 1.2 is the oldest that gcp.restrictTLSVersion lets through',
  ],
  TLS_CIPHER_RESTRICTION_VIOLATED: [
    'PolicyDenied',
    'an organization policy refuses the cipher suite of TLS',
    'look at what ends TLS on the way to Google, and at gcp.restrictTLSCipherSuites of project "{project}"',
  ],
  LOCATION_POLICY_VIOLATED: [
    'PolicyDenied',
    'an organization policy restricts locations',
    'set --replication to locations that gcp.resourceLocations allows for project "{project}"',
  ],
  LOCATION_ORG_POLICY_VIOLATED: [
    'PolicyDenied',
    'an organization policy restricts locations',
    'set --replication or --location to what gcp.resourceLocations allows for project "{project}"',
  ],
  LOCATION_TAX_POLICY_VIOLATED: [
    'PolicyDenied',
    'tax rules of the billing account exclude the location',
    'set --replication or --location to another one, or link project "{project}" to another billing account',
  ],
  ORG_RESTRICTION_VIOLATION: [
    'PolicyDenied',
    'an organization restriction refuses it',
    'add the organization of project "{project}" to the header that the proxy sets',
  ],
  ORG_RESTRICTION_HEADER_INVALID: [
    'PolicyDenied',
    'the header for organization restrictions cannot be read',
    'correct the header X-Goog-Allowed-Resources that the proxy sets',
  ],
  ACCESS_TOKEN_EXPIRED: [
    'IdentityUnavailable',
    'the access token has ended',
    `compare the clock of the node with Google's; ${TOKEN}`,
  ],
  ACCESS_TOKEN_SCOPE_INSUFFICIENT: [
    'IamPermissionDenied',
    'the token has too narrow scopes',
    'give the node pool, or the key, the scope cloud-platform',
  ],
  ACCESS_TOKEN_TYPE_UNSUPPORTED: ['IdentityUnavailable', 'the kind of access token is not supported', TOKEN],
  ACCOUNT_STATE_INVALID: [
    'IdentityUnavailable',
    'the service account of the Job is disabled or deleted',
    'enable or make it again, and bind it to the identity of the Job',
  ],
  ACCOUNT_TYPE_UNSUPPORTED: ['IdentityUnavailable', 'the kind of account is not supported', TOKEN],
  CREDENTIALS_MISSING: ['IdentityUnavailable', 'no access token arrived', TOKEN],
  CREDENTIAL_TYPE_UNSUPPORTED: ['IdentityUnavailable', 'the kind of credential is not supported', TOKEN],
  JWT_TOKEN_INVALID: ['IdentityUnavailable', 'the token is not valid', TOKEN],
  RATE_LIMIT_EXCEEDED: [
    'QuotaExceeded',
    'the quota of project "{project}" is used up',
    'raise the quota of Secret Manager, or wait',
  ],
  RESOURCE_QUOTA_EXCEEDED: [
    'QuotaExceeded',
    'project "{project}" has as many resources as it may',
    'raise the quota of Secret Manager, or delete secrets and versions; waiting does not help',
  ],
};

/**
 * The remedy for `info`, the `reason` of google.rpc.ErrorInfo; undefined where it says nothing that the status does not.
 */
export function remedyFor(info: string): Remedy | undefined {
  const row = Object.hasOwn(ROWS, info) ? ROWS[info] : undefined;
  if (row === undefined) return undefined;
  const [reason, state, todo] = row;
  return { reason, state, todo: (permission) => todo.replaceAll('{permission}', () => permission) };
}

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
