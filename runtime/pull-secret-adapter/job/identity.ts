/**
 * Access tokens for the Job: from Google's application default credentials (Workload Identity through the metadata server,
 * federation or a key file), and by impersonation of the service account that may write in the customer's project.
 *
 * Impersonation does not use google-auth-library: its class prints a warning on every run, and its error does not name the
 * identity that lacks the permission.
 */
import type { AuthClient } from 'google-auth-library';
import { withDeadline } from '../../core/parallel.ts';
import { recordOf, scalarText } from '../../core/record.ts';
import { type Redacted, redact } from '../../core/redacted.ts';
import type { OutcomeReason } from '../outcome.ts';
import type { JobConfig } from './config.ts';
import { GcpError, JobError, retryableStatus, statusOfHttp, TOKEN_CALL } from './gcp-error.ts';
import { callGoogleApi, type GoogleApiOptions, type TokenSource } from './secret-manager.ts';

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const LIFETIME_S = 3600;
/** Tokens are renewed this long before they expire, because a call may take as long. */
const MARGIN_MS = 120_000;

export type IdentityOptions = Omit<GoogleApiOptions, 'token'> &
  Pick<JobConfig, 'gcpProjectId' | 'impersonate' | 'iamCredentialsEndpoint'>;

/**
 * Returns the token source of the Job. It fails with a GcpError if a retry may succeed, otherwise with a JobError
 * (`IdentityUnavailable`, `IamPermissionDenied` or `ApiDisabled`).
 */
export function gcpIdentity(options: IdentityOptions): TokenSource {
  const own = ownIdentity(options);
  return options.impersonate === '' ? own : takenOn(options, own);
}

/** The token of the pod. The library caches it until shortly before it expires. */
function ownIdentity(options: IdentityOptions): TokenSource {
  let client: Promise<AuthClient> | undefined;
  return async (fresh) => {
    // Loaded lazily, because loading takes some 90 ms. The deadline does not cover it: it uses no network.
    const { GoogleAuth } = await import('google-auth-library');
    if (fresh) client = undefined;
    // Without a project, the library runs `gcloud` and queries the metadata server to find one.
    client ??= new GoogleAuth({ scopes: [SCOPE], projectId: options.gcpProjectId }).getClient();
    const opened = client;
    let token: string | null | undefined;
    try {
      const asked = opened.then((one) => one.getAccessToken());
      token = (await within(options, asked)).token;
    } catch (error) {
      // Drop the client after a failure: the library caches the error.
      client = undefined;
      throw ownError(error);
    }
    if (typeof token === 'string' && token !== '') return redact(token);
    throw new JobError(
      'IdentityUnavailable',
      'Cannot get an access token: the identity of the pod returned none',
    );
  };
}

/** The token of the impersonated account, by `generateAccessToken` of IAM Credentials. */
function takenOn(options: IdentityOptions, own: TokenSource): TokenSource {
  const { impersonate, iamCredentialsEndpoint } = options;
  const account = encodeURIComponent(impersonate);
  const url = `${iamCredentialsEndpoint}/v1/projects/-/serviceAccounts/${account}:generateAccessToken`;
  let kept: { readonly token: Redacted<string>; readonly until: number } | undefined;
  return async (fresh) => {
    if (!fresh && kept !== undefined && Date.now() < kept.until) return kept.token;
    try {
      const answer = await callGoogleApi<{ accessToken?: unknown; expireTime?: unknown }>(
        { name: TOKEN_CALL, method: 'POST', url },
        { ...options, token: (again) => own(again || fresh) },
        { scope: [SCOPE], lifetime: `${LIFETIME_S}s` },
      );
      if (typeof answer.accessToken !== 'string' || answer.accessToken === '')
        throw new GcpError(TOKEN_CALL, 'UNKNOWN');
      const token = redact(answer.accessToken);
      kept = { token, until: Date.parse(scalarText(answer.expireTime)) - MARGIN_MS };
      return token;
    } catch (error) {
      throw error instanceof GcpError ? targetError(error, impersonate) : error;
    }
  };
}

/** Adds a deadline, because the library has none for the metadata server. */
function within<T>({ timeoutMs, signal }: IdentityOptions, answer: Promise<T>): Promise<T> {
  const interrupted = Promise.withResolvers<never>();
  const stop = (): void => interrupted.reject(signal.reason as Error);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop);
  const late = (): Error => new GcpError(TOKEN_CALL, 'DEADLINE_EXCEEDED');
  const first = Promise.race([answer, interrupted.promise]);
  return withDeadline(first, timeoutMs, late).finally(() => signal.removeEventListener('abort', stop));
}

function ownError(error: unknown): Error {
  if (error instanceof JobError || error instanceof GcpError) return error;
  const { status, code, response } = recordOf(error);
  const http = [recordOf(response)['status'], status, code]
    .map(Number)
    .find((value) => value >= 100 && value < 600);
  const passing = http === undefined ? isCut(code) : http === 429 || http >= 500;
  if (passing)
    return new GcpError(TOKEN_CALL, http === undefined ? 'UNAVAILABLE' : statusOfHttp(http), {
      cause: error,
    });
  const answer = http === undefined ? '' : ` (HTTP ${http})`;
  return new JobError(
    'IdentityUnavailable',
    `Cannot get an access token: the metadata server or the credentials of the pod returned none${answer}; check the annotation iam.gke.io/gcp-service-account of its ServiceAccount, or the file in GOOGLE_APPLICATION_CREDENTIALS`,
    error,
  );
}

/** Whether the code is a connection error such as ECONNRESET, and not a file error such as ENOENT. */
function isCut(code: unknown): boolean {
  return typeof code === 'string' && /^(ECONN|EHOST|ENET|EPIPE|ETIMEDOUT|EAI_AGAIN|UND_)/.test(code);
}

/** What to do, by the reason of google.rpc.ErrorInfo or the canonical code. */
const TARGET_REMEDIES: Readonly<Record<string, readonly [OutcomeReason, string]>> = {
  SERVICE_DISABLED: [
    'ApiDisabled',
    'the API is disabled; enable iamcredentials.googleapis.com in the project of the identity of the Job',
  ],
  PERMISSION_DENIED: [
    'IamPermissionDenied',
    'grant roles/iam.serviceAccountTokenCreator on it to the identity of the Job',
  ],
  NOT_FOUND: [
    'IamPermissionDenied',
    'service account not found; create it in the project of the customer, or set another with --impersonate',
  ],
};

function targetError(error: GcpError, account: string): Error {
  const { status, details } = error;
  const remedy = TARGET_REMEDIES[details.info === 'SERVICE_DISABLED' ? details.info : status];
  if (remedy === undefined && retryableStatus(status)) return error;
  const [reason, text] = remedy ?? ['IdentityUnavailable', `IAM Credentials returned ${status}`];
  return new JobError(reason, `Cannot impersonate "${account}": ${text}`, error);
}
