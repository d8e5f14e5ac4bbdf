/** Why there was no response, in messages without URL and password: those of a runtime may quote both. */

export type HttpFailure =
  | 'Aborted'
  | 'AnswerTooLarge'
  | 'AnswerUnreadable'
  | 'CertificateNotTrusted'
  | 'ConnectionLost'
  | 'ConnectionRefused'
  | 'HostNotFound'
  | 'ProxyFailed'
  | 'RedirectRefused'
  | 'Timeout'
  | 'TlsFailed'
  | 'TlsWanted';

/** Failures after which another address of the host may answer. */
export const MAY_WORK_ELSEWHERE: readonly HttpFailure[] = [
  'ConnectionLost',
  'ConnectionRefused',
  'HostNotFound',
];

export class HttpError extends Error {
  readonly failure: HttpFailure;
  /** Code of the runtime, such as `ECONNRESET`. */
  readonly code: string | undefined;
  /** `host[:port]` of the request; after a redirect it is another one. */
  readonly host: string | undefined;

  constructor(failure: HttpFailure, message: string, code?: string, host?: string) {
    super(message);
    this.name = 'HttpError';
    this.failure = failure;
    this.code = code;
    this.host = host;
  }
}

/** The error for a response above its size limit. */
export function tooLarge(limitBytes: number): HttpError {
  return new HttpError('AnswerTooLarge', `the response is larger than ${limitBytes} bytes`);
}

/** The error for a truncated body. */
export function torn(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  const known = httpErrorOf(error);
  return known.failure === 'ConnectionLost'
    ? new HttpError('ConnectionLost', 'the connection was closed during the response', known.code)
    : known;
}

const BROKEN_ANSWERS = /^HPE_|Invalid(?:ContentLength|HTTP|Transfer)|Malformed|^ERR_HTTP/;
const CERTIFICATES =
  /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)|ALTNAME|HOSTNAME_MISMATCH|DEPTH_ZERO|certificate|Invalid CA/i;

/** Failures by error code, or by message without a code; the first match wins. */
const KNOWN: readonly (readonly [pattern: RegExp, failure: HttpFailure, text: string])[] = [
  [/ERR_PROXY|PROXY_TUNNEL|ProxyConn|Proxy/i, 'ProxyFailed', 'the proxy failed to connect'],
  [/REFUSED|ConnectionRefused|FailedToOpenSocket/, 'ConnectionRefused', 'the connection was refused'],
  [/ENOTFOUND|EAI_AGAIN|DNS/, 'HostNotFound', 'the host name cannot be resolved'],
  [CERTIFICATES, 'CertificateNotTrusted', "the server's certificate is not trusted"],
  [/^EPROTO|^ERR_SSL|^ERR_TLS|^ERR_OSSL|BAD_VERSION/, 'TlsFailed', 'the TLS handshake failed'],
  [BROKEN_ANSWERS, 'AnswerUnreadable', 'the response is not valid HTTP'],
];

/**
 * `error` of a runtime, as one of ours.
 *
 * @param host `host[:port]` of the request
 *
 * @example
 * ```ts
 * import { httpErrorOf } from './http-error.ts';
 * import assert from 'node:assert/strict';
 *
 * const error = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1'), { code: 'ECONNREFUSED' });
 * assert.equal(httpErrorOf(error).failure, 'ConnectionRefused');
 * assert.equal(httpErrorOf(new Error('https://user:password@host')).message, 'the connection was lost');
 * ```
 */
export function httpErrorOf(error: unknown, host?: string): HttpError {
  if (error instanceof HttpError) return error;
  const { code, said } = namesOf(error);
  const [, failure = 'ConnectionLost', text = 'the connection was lost'] =
    KNOWN.find(([pattern]) => pattern.test(code ?? said)) ?? [];
  const message = code === undefined || failure === 'ConnectionRefused' ? text : `${text} (${code})`;
  return new HttpError(failure, message, code, host);
}

function namesOf(error: unknown): { readonly code: string | undefined; readonly said: string } {
  if (!(error instanceof Error)) return { code: undefined, said: '' };
  const { code } = error as { readonly code?: unknown };
  if (typeof code === 'string' && /^\w{1,64}$/.test(code)) return { code, said: '' };
  return error.cause instanceof Error ? namesOf(error.cause) : { code: undefined, said: error.message };
}
