/**
 * Where a redirect leads, and what goes there. Source of the rule: RFC 9110, section 15.4, and decision 073: a credential goes to
 * the origin that it is meant for and to no other.
 */
import { HttpError } from './http-error.ts';
import type { HttpAnswer, HttpRequest } from './request.ts';

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const FOR_ONE_ORIGIN: readonly string[] = ['authorization', 'cookie', 'proxy-authorization'];

/**
 * The request that a redirect asks for; undefined when the answer is none. Only GET and HEAD are followed: what else was asked
 * stays unasked elsewhere.
 *
 * @throws HttpError `RedirectRefused` for a target that is no URL or names a user
 * @example
 * ```ts
 * import { redirectOf } from './redirect.ts';
 * import assert from 'node:assert/strict';
 *
 * const answer = { status: 307, header: () => 'https://cdn.example.com/blob' };
 * const request = { method: 'GET', url: 'https://r.example.com/v2/', headers: { authorization: 'Basic x', accept: '*' } };
 * const next = redirectOf(answer, request);
 * assert.equal(next?.url, 'https://cdn.example.com/blob');
 * assert.deepEqual(next.headers, { accept: '*' });
 * ```
 */
export function redirectOf(
  answer: Pick<HttpAnswer, 'status' | 'header'>,
  request: HttpRequest,
): HttpRequest | undefined {
  const { method, url, headers = {} } = request;
  if (!REDIRECTS.includes(answer.status) || (method !== 'GET' && method !== 'HEAD')) return undefined;
  const location = answer.header('location') ?? '';
  const target = location !== '' && URL.canParse(location, url) ? new URL(location, url) : undefined;
  if (target === undefined || target.username !== '' || target.password !== '')
    throw new HttpError('RedirectRefused', 'the server redirects to a place that is no URL');
  const stays = target.origin === new URL(url).origin;
  const kept = Object.entries(headers).filter(
    ([name]) => stays || !FOR_ONE_ORIGIN.includes(name.toLowerCase()),
  );
  return { ...request, url: target.href, headers: Object.fromEntries(kept) };
}
