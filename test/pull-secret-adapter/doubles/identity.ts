/**
 * Token sources on loopback: the metadata server of Workload Identity, the Security Token Service of federation, the token
 * endpoint for key files, and IAM Credentials for impersonation. Every token contains a planted secret.
 */
import { createPublicKey, createVerify } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { plantedPassword } from '../../support/canary.ts';

export type MetadataMode =
  | 'ok'
  /** Every answer is 503. */
  | 'down'
  /** No ServiceAccount of Google is bound: 404 for the token. */
  | 'unbound'
  /** Accepts and never answers. */
  | 'silent'
  /** Something else listens there. */
  | 'html';

interface Issued {
  readonly from: string;
  readonly expires: number;
}

export class IdentityDouble {
  metadata: MetadataMode = 'ok';
  /** Service accounts that may not be taken on. */
  denyImpersonation = false;
  /** The service account does not exist. */
  unknownAccount = false;
  /** Answers of IAM Credentials before it answers well. */
  impersonationFailures: number[] = [];
  tokenSeconds = 3600;
  /** Token of the pod, which federation must present, and its audience. */
  subjectToken = '';
  audience = '';
  /** PEM of the public key that assertions of the key file must be signed with. */
  publicKey = '';
  readonly requests: string[] = [];
  readonly impersonated: string[] = [];
  readonly #issued = new Map<string, Issued>();
  #count = 0;

  /** Where a token came from: `metadata`, `federation`, `key` or `impersonation`; undefined for an unknown or expired token. */
  originOf(authorization: string): string | undefined {
    const issued = this.#issued.get(authorization.replace(/^Bearer /, ''));
    return issued === undefined || issued.expires < Date.now() ? undefined : issued.from;
  }

  /** No token that was given so far is accepted any more. */
  revokeAll(): void {
    this.#issued.clear();
  }

  /** True when the request was for one of these servers. */
  serve(url: URL, request: IncomingMessage, text: string, response: ServerResponse): boolean {
    const { pathname } = url;
    if (pathname.startsWith('/computeMetadata/')) this.#metadata(url, request, response);
    else if (pathname.endsWith(':generateAccessToken')) this.#impersonate(url, request, response);
    else if (pathname === '/v1/token') this.#exchange(new URLSearchParams(text), response);
    else if (pathname === '/token') this.#assertion(new URLSearchParams(text), response);
    else return false;
    this.requests.push(`${request.method} ${pathname}`);
    return true;
  }

  #issue(from: string): string {
    this.#count += 1;
    const token = `ya29.${plantedPassword(`token-${from}-${this.#count}`)}`;
    this.#issued.set(token, { from, expires: Date.now() + this.tokenSeconds * 1000 });
    return token;
  }

  #metadata(url: URL, request: IncomingMessage, response: ServerResponse): void {
    if (this.metadata === 'silent') return;
    if (this.metadata === 'html')
      return end(response, 200, '<html>not the metadata server</html>', 'text/html');
    if (this.metadata === 'down' || request.headers['metadata-flavor'] !== 'Google')
      return end(response, 503, 'unavailable');
    response.setHeader('Metadata-Flavor', 'Google');
    if (url.pathname.endsWith('/token')) {
      if (this.metadata === 'unbound') return end(response, 404, 'service account not found');
      const token = {
        access_token: this.#issue('metadata'),
        expires_in: this.tokenSeconds,
        token_type: 'Bearer',
      };
      return json(response, 200, token);
    }
    const answers: Readonly<Record<string, string>> = {
      '/computeMetadata/v1/project/project-id': 'mgmt-project',
      '/computeMetadata/v1/instance/service-accounts/default/email':
        'job@mgmt-project.iam.gserviceaccount.com',
      '/computeMetadata/v1/universe/universe-domain': 'googleapis.com',
    };
    end(response, 200, answers[url.pathname] ?? 'ok', 'application/text');
  }

  #impersonate(url: URL, request: IncomingMessage, response: ServerResponse): void {
    const account = decodeURIComponent(/serviceAccounts\/([^:]+):/.exec(url.pathname)?.[1] ?? '');
    this.impersonated.push(account);
    const failure = this.impersonationFailures.shift();
    if (failure !== undefined)
      return json(response, failure, { error: { code: failure, status: 'UNAVAILABLE', message: 'later' } });
    if (this.originOf(request.headers.authorization ?? '') === undefined)
      return json(response, 401, {
        error: {
          code: 401,
          status: 'UNAUTHENTICATED',
          message: 'Request had invalid authentication credentials.',
        },
      });
    if (this.unknownAccount)
      return json(response, 404, {
        error: { code: 404, status: 'NOT_FOUND', message: 'Not found; Gaia id not found for email' },
      });
    if (this.denyImpersonation) {
      const message =
        "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).";
      return json(response, 403, { error: { code: 403, status: 'PERMISSION_DENIED', message } });
    }
    const expireTime = new Date(Date.now() + this.tokenSeconds * 1000).toISOString();
    json(response, 200, { accessToken: this.#issue('impersonation'), expireTime });
  }

  /** RFC 8693. */
  #exchange(form: URLSearchParams, response: ServerResponse): void {
    const wanted: Readonly<Record<string, string>> = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience: this.audience,
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token: this.subjectToken,
    };
    const wrong = Object.entries(wanted).find(([key, value]) => form.get(key) !== value)?.[0];
    if (wrong !== undefined || this.subjectToken === '')
      return json(response, 400, { error: 'invalid_grant', error_description: `The ${wrong} is not valid.` });
    json(response, 200, {
      access_token: this.#issue('federation'),
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: this.tokenSeconds,
    });
  }

  /** RFC 7523: the signature, the audience and the times are checked. */
  #assertion(form: URLSearchParams, response: ServerResponse): void {
    const parts = (form.get('assertion') ?? '').split('.');
    const [head = '', claims = '', signature = ''] = parts;
    const verifier = createVerify('RSA-SHA256').update(`${head}.${claims}`);
    const signed =
      this.publicKey !== '' && verifier.verify(createPublicKey(this.publicKey), signature, 'base64url');
    if (!signed)
      return json(response, 400, { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' });
    const claim = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Readonly<
      Record<string, unknown>
    >;
    const now = Date.now() / 1000;
    const good =
      claim['aud'] === 'https://oauth2.googleapis.com/token' &&
      Number(claim['exp']) > now &&
      Number(claim['iat']) <= now + 60;
    if (!good) return json(response, 400, { error: 'invalid_grant', error_description: 'Invalid JWT.' });
    json(response, 200, {
      access_token: this.#issue('key'),
      expires_in: this.tokenSeconds,
      token_type: 'Bearer',
    });
  }
}

function json(response: ServerResponse, status: number, body: unknown): void {
  end(response, status, JSON.stringify(body), 'application/json');
}

function end(response: ServerResponse, status: number, text: string, type = 'text/plain'): void {
  response.writeHead(status, { 'content-type': type }).end(text);
}
