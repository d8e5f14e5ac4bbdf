/** Maps errors of Google's APIs to outcomes of the Job. */
import type { OutcomeReason } from '../outcome.ts';

// Outcome and remedy for each reason of google.rpc.ErrorInfo: all of `google.api.ErrorReason` that Secret Manager and Resource
// Manager can return to a service account with an access token.
// Source of the rule: google/api/error_reason.proto; Google's documentation of VPC Service Controls and of organization policies.

/** The text may contain `{project}` and `{permission}`, the permission that the call requires. */
type Remedy = readonly [reason: OutcomeReason, text: string];

/** Keys are reasons of google.rpc.ErrorInfo or canonical codes. */
const REMEDIES: Readonly<Record<string, Remedy>> = {
  SERVICE_DISABLED: [
    'ApiDisabled',
    'the Secret Manager API is disabled; enable secretmanager.googleapis.com in project "{project}"',
  ],
  BILLING_DISABLED: [
    'BillingDisabled',
    'billing is disabled; link a billing account to project "{project}"; no permission helps',
  ],
  'SERVICE_NOT_VISIBLE CONSUMER_SUSPENDED GCP_SUSPENDED': [
    'PolicyDenied',
    'the project or its account is suspended, or has no access to the service; the owner of project "{project}" must contact Google',
  ],
  'CONSUMER_INVALID RESOURCE_PROJECT_INVALID': [
    'InvalidConfiguration',
    'the project does not exist, or is being deleted; check spec.gcp.projectId, or restore project "{project}"',
  ],
  USER_PROJECT_DENIED: [
    'IamPermissionDenied',
    'the identity of the Job may not use the project for quota; grant roles/serviceusage.serviceUsageConsumer in project "{project}" to it',
  ],
  'IAM_PERMISSION_DENIED PERMISSION_DENIED': [
    'IamPermissionDenied',
    'permission denied; grant {permission} in project "{project}" to the identity of the Job (roles/secretmanager.admin has those of Secret Manager)',
  ],
  ACCESS_TOKEN_SCOPE_INSUFFICIENT: [
    'IamPermissionDenied',
    'the token lacks the scope cloud-platform; add it to the node pool or the key',
  ],
  NOT_FOUND: ['IamPermissionDenied', 'project "{project}" or the secret does not exist or is not visible'],
  SECURITY_POLICY_VIOLATED: [
    'PolicyDenied',
    'a VPC Service Controls perimeter denies it; add an ingress rule for the identity of the Job to the perimeter of project "{project}"; no role helps',
  ],
  'USER_BLOCKED_BY_ADMIN RESOURCE_USAGE_RESTRICTION_VIOLATED ENDPOINT_USAGE_RESTRICTION_VIOLATED': [
    'PolicyDenied',
    'an organization policy restricts the service or its endpoint; allow secretmanager.googleapis.com by gcp.restrictServiceUsage for project "{project}" and in the identity\'s own organization, and set --location to a region that gcp.restrictEndpointUsage allows',
  ],
  'TLS_ORG_POLICY_VIOLATED TLS_CIPHER_RESTRICTION_VIOLATED ORG_RESTRICTION_VIOLATION ORG_RESTRICTION_HEADER_INVALID':
    [
      'PolicyDenied',
      'an organization policy denies the connection; check proxies that terminate TLS, gcp.restrictTLSVersion and gcp.restrictTLSCipherSuites of project "{project}", and the header X-Goog-Allowed-Resources that a proxy sets',
    ],
  'LOCATION_POLICY_VIOLATED LOCATION_ORG_POLICY_VIOLATED LOCATION_TAX_POLICY_VIOLATED': [
    'PolicyDenied',
    'an organization policy, or the tax rules of the billing account, restrict locations; set --replication or --location to what gcp.resourceLocations allows for project "{project}"',
  ],
  'ACCESS_TOKEN_EXPIRED ACCOUNT_STATE_INVALID': [
    'IdentityUnavailable',
    'the token has expired, or its service account is disabled or deleted; enable or recreate it, and check the clock of the node',
  ],
  'UNAUTHENTICATED ACCESS_TOKEN_TYPE_UNSUPPORTED ACCOUNT_TYPE_UNSUPPORTED CREDENTIALS_MISSING CREDENTIAL_TYPE_UNSUPPORTED JWT_TOKEN_INVALID':
    [
      'IdentityUnavailable',
      'the access token was rejected; check the workload identity binding or the key of the Job',
    ],
  'RATE_LIMIT_EXCEEDED RESOURCE_EXHAUSTED': [
    'QuotaExceeded',
    'the quota of project "{project}" is exhausted; raise the quota of Secret Manager, or wait',
  ],
  RESOURCE_QUOTA_EXCEEDED: [
    'QuotaExceeded',
    'project "{project}" has reached its resource quota; raise the quota of Secret Manager, or delete secrets and versions; waiting does not help',
  ],
};

/** The remedy for a `reason` of google.rpc.ErrorInfo or a canonical code; undefined if none is known. */
export function remedyFor(infoOrStatus: string): Remedy | undefined {
  return Object.entries(REMEDIES).find(([names]) => names.split(' ').includes(infoOrStatus))?.[1];
}

/** `call` of a {@link GcpError} for a failed token request. */
export const TOKEN_CALL = 'GetAccessToken';

/** A failed run of the Job, with the reason for the result. The message never contains a response body. */
export class JobError extends Error {
  readonly reason: OutcomeReason;

  constructor(reason: OutcomeReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'JobError';
    this.reason = reason;
  }
}

interface GcpErrorDetails {
  /** `reason` of google.rpc.ErrorInfo, such as `SERVICE_DISABLED`. */
  readonly info?: string | undefined;
  /** Retry delay requested by the service: `Retry-After`, or google.rpc.RetryInfo. */
  readonly retryAfterMs?: number | undefined;
  /** Our own detail for the message. */
  readonly text?: string;
}

/** A rejected or failed call. `status` is the canonical code, such as `PERMISSION_DENIED`. */
export class GcpError extends Error {
  readonly status: string;
  readonly call: string;
  readonly details: GcpErrorDetails;

  constructor(call: string, status: string, details: GcpErrorDetails & ErrorOptions = {}) {
    super(`${call} failed: ${status}`, details);
    this.name = 'GcpError';
    this.status = status;
    this.call = call;
    this.details = details;
  }
}

/** The result of the call; undefined if it fails with one of these codes. */
export async function unlessStatus<T>(call: Promise<T>, ...codes: readonly string[]): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof GcpError && codes.includes(error.status)) return undefined;
    throw error;
  }
}

/** The permission that each call requires. Source: the table of IAM permissions of Secret Manager. */
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

/** The permission that a call requires, such as `secretmanager.versions.add` for `AddSecretVersion`. */
export function permissionOf(call: string): string {
  return PERMISSIONS[call] ?? call;
}

/**
 * Whether a call may be retried: as in the existing job, and ABORTED, for which Google recommends a retry. Accepts
 * `PERMISSION_DENIED` and `PermissionDenied`.
 */
export function retryableStatus(status: string): boolean {
  return ['UNAVAILABLE', 'DEADLINEEXCEEDED', 'INTERNAL', 'RESOURCEEXHAUSTED', 'ABORTED'].includes(
    status.replaceAll('_', '').toUpperCase(),
  );
}

/** The canonical code for a response without one, such as that of a proxy. Never PERMISSION_DENIED: a proxy does not know IAM. */
export function statusOfHttp(http: number): string {
  const known: Readonly<Record<number, string>> = {
    429: 'RESOURCE_EXHAUSTED',
    500: 'INTERNAL',
    504: 'DEADLINE_EXCEEDED',
  };
  return known[http] ?? 'UNAVAILABLE';
}

/** Converts a failed call to a JobError whose message says what to do. */
export function explainGcpError(error: GcpError, project: string): JobError {
  const { call, status } = error;
  if (call === TOKEN_CALL) {
    return new JobError(
      'IdentityUnavailable',
      `Cannot get an access token: the token source of the pod failed with ${status}`,
      error,
    );
  }
  const { info = '', text: detail } = error.details;
  const [reason, remedy] = remedyFor(info) ?? remedyFor(status) ?? [];
  if (reason !== undefined && remedy !== undefined) {
    const known: Readonly<Record<string, string>> = { permission: permissionOf(call), project };
    const text = remedy.replaceAll(/\{(\w+)\}/g, (_, name: string) => known[name] ?? name);
    return new JobError(reason, `Cannot ${call}: ${text}`, error);
  }
  if (status === 'INVALID_ARGUMENT' || status === 'FAILED_PRECONDITION') return refusedFor(error, project);
  const text = detail === undefined ? '' : ` (${detail})`;
  return new JobError('SecretManagerUnavailable', `Cannot ${call}: ${status}${text}`, error);
}

function refusedFor(error: GcpError, project: string): JobError {
  const { call, status } = error;
  const text = `Cannot ${call}: the request was rejected with ${status}`;
  if (status === 'INVALID_ARGUMENT') return new JobError('InvalidConfiguration', text, error);
  if (call !== 'CreateSecret') return new JobError('SecretManagerUnavailable', text, error);
  // A secret that does not exist has no state, so an organization policy was violated, such as one for locations.
  const todo = `check the organization policies of project "${project}": gcp.resourceLocations must allow the locations of --replication`;
  return new JobError('PolicyDenied', `${text}; ${todo}`, error);
}
