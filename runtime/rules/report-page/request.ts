/** What a request for the report's page asks for, and with which token: judged before anybody is asked about either. */
import { type Redacted, redact } from '../redacted.ts';

/** What may be asked for. Without a namespace it is the whole. */
export type PageRequest =
  | { readonly is: 'sign-in' }
  | {
      readonly is: 'report';
      readonly form: 'html' | 'json';
      readonly namespace?: string;
      readonly token: Redacted<string>;
    }
  | { readonly is: 'refused'; readonly status: 400 | 401 | 404 | 405; readonly why: string };

/** What is looked at of a request. */
export interface RequestParts {
  readonly method: string;
  /** With its query, which counts for nothing. */
  readonly url: string;
  /** The value of the header `Authorization`. */
  readonly authorization?: string | undefined;
}

const ROUTE = /^(?:\/namespaces\/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?))?\/report\.(html|json)$/;

/** RFC 6750. A token of Kubernetes has about a thousand characters; of other issuers that an API server trusts, some thousands. */
const BEARER = /^bearer +([a-z0-9._~+/-]{1,8192}=*)$/i;

/**
 * Reads a request. Total, and linear in its length.
 *
 * @example
 * ```ts
 * import { readPageRequest } from './request.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(readPageRequest({ method: 'GET', url: '/' }), { is: 'sign-in' });
 * const asked = readPageRequest({ method: 'GET', url: '/namespaces/shop/report.json', authorization: 'Bearer abc' });
 * assert.equal(asked.is === 'report' && asked.namespace, 'shop');
 * const bare = readPageRequest({ method: 'GET', url: '/report.json' });
 * assert.equal(bare.is === 'refused' && bare.status, 401);
 * ```
 */
export function readPageRequest({ method, url, authorization }: RequestParts): PageRequest {
  if (method !== 'GET' && method !== 'HEAD') return refused(405, 'expected GET');
  const [path = ''] = url.split(/[?#]/, 1);
  if (path === '/') return { is: 'sign-in' };
  const route = ROUTE.exec(path);
  if (route === null)
    return refused(
      404,
      'no such page: expected /, /report.html, /report.json, or these below /namespaces/<namespace>',
    );
  if (authorization === undefined)
    return refused(401, 'expected a bearer token in the header Authorization; a browser signs in at /');
  const token = BEARER.exec(authorization.trim())?.[1];
  if (token === undefined)
    return refused(400, 'the header Authorization is not what was expected: "Bearer" and a token');
  const [, namespace, form] = route;
  return {
    is: 'report',
    form: form === 'json' ? 'json' : 'html',
    token: redact(token),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

function refused(status: 400 | 401 | 404 | 405, why: string): PageRequest {
  return { is: 'refused', status, why };
}
