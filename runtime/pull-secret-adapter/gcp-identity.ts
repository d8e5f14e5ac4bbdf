/**
 * Access tokens: the identity of the environment (Workload Identity through the metadata server, federation, a key file, in the
 * order of Google's default credentials), and from it the one that may write in the customer's project.
 */
import { type Redacted, redact } from '../rules/redacted.ts';
import { JobError } from './gcp-error.ts';

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

export interface IdentityOptions {
  /** Service account to take on; empty: none. */
  readonly impersonate: string;
  readonly iamCredentialsEndpoint: string;
}

/** Gives a token that is still valid; the library keeps it until shortly before it expires. */
export type TokenSource = () => Promise<Redacted<string>>;

/** @throws JobError IdentityUnavailable or IamPermissionDenied, from the returned function */
export async function gcpIdentity(options: IdentityOptions): Promise<TokenSource> {
  // Loaded here: the library takes some 90 ms, which a wrong environment need not wait for.
  const { GoogleAuth, Impersonated } = await import('google-auth-library');
  const auth = new GoogleAuth({ scopes: [SCOPE] });
  const source = auth.getClient();
  source.catch(() => undefined);
  const client = source.then((own) =>
    options.impersonate === ''
      ? own
      : new Impersonated({
          sourceClient: own,
          targetPrincipal: options.impersonate,
          targetScopes: [SCOPE],
          delegates: [],
          lifetime: 3600,
          endpoint: options.iamCredentialsEndpoint,
        }),
  );
  client.catch(() => undefined);
  return async () => {
    try {
      const { token } = await (await client).getAccessToken();
      if (typeof token === 'string' && token !== '') return redact(token);
    } catch (error) {
      throw identityError(error, options.impersonate);
    }
    throw new JobError(
      'IdentityUnavailable',
      'Cannot get an access token: the identity of the pod gives none',
    );
  };
}

function identityError(error: unknown, impersonate: string): JobError {
  const { status, code } = error as { readonly status?: unknown; readonly code?: unknown };
  const denied = [status, code].some((value) => Number(value) === 403 || Number(value) === 404);
  if (denied && impersonate !== '') {
    return new JobError(
      'IamPermissionDenied',
      `Cannot take on "${impersonate}": grant roles/iam.serviceAccountTokenCreator on it to the identity of the Job`,
      error,
    );
  }
  return new JobError(
    'IdentityUnavailable',
    'Cannot get an access token: the metadata server or the credentials of the pod did not answer with one; look at its ServiceAccount',
    error,
  );
}
