/**
 * What the reasons of google.rpc.ErrorInfo mean for a run, and what helps: all of `google.api.ErrorReason` that a service account
 * with an access token can meet at Secret Manager or Resource Manager.
 *
 * Source of the rule: google/api/error_reason.proto; Google's documentation of VPC Service Controls and of organization policies.
 */
import type { OutcomeReason } from '../outcome.ts';

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
 *
 * @example
 * ```ts
 * import { remedyFor } from './gcp-remedies.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(remedyFor('BILLING_DISABLED')?.reason, 'BillingDisabled');
 * assert.match(remedyFor('IAM_PERMISSION_DENIED')?.todo('secretmanager.secrets.get') ?? '', /grant secretmanager\.secrets\.get/);
 * assert.equal(remedyFor('toString'), undefined);
 * ```
 */
export function remedyFor(info: string): Remedy | undefined {
  const row = Object.hasOwn(ROWS, info) ? ROWS[info] : undefined;
  if (row === undefined) return undefined;
  const [reason, state, todo] = row;
  return { reason, state, todo: (permission) => todo.replaceAll('{permission}', () => permission) };
}
