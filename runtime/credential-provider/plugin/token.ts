/**
 * Who pulls, from the claims of the ServiceAccount token. The signature is not checked here: the API server does that when the
 * token is used, and nothing is done before with what the claims say.
 */

import { PullwrightError } from '../../rules/errors.ts';
import { isRecord } from '../../rules/record.ts';
import { type Redacted, reveal } from '../../rules/redacted.ts';

export interface Puller {
  readonly namespace: string;
  readonly pod: string | undefined;
  readonly podUid?: string;
  readonly serviceAccount: string | undefined;
}

/**
 * Reads the claim `kubernetes.io`. A namespace that cannot be one is refused before it reaches a path or a URL.
 *
 * @example
 * ```ts
 * import { pullerOf } from './token.ts';
 * import { redact } from '../../rules/redacted.ts';
 * import assert from 'node:assert/strict';
 *
 * const claims = { 'kubernetes.io': { namespace: 'team-a', serviceaccount: { name: 'app' } } };
 * const token = `${btoa('{}')}.${btoa(JSON.stringify(claims))}.c2ln`;
 * assert.equal(pullerOf(redact(token)).namespace, 'team-a');
 * ```
 */
export function pullerOf(token: Redacted<string>): Puller {
  const claims = objectOr(claimsOf(reveal(token)), 'token is malformed: its claims are no JSON object');
  if (claims['kubernetes.io'] === undefined) throw refused('no kubernetes.io claim name in JWT claims found');
  const own = objectOr(claims['kubernetes.io'], 'kubernetes.io claim does not contain a map');
  const { namespace } = own;
  if (namespace === undefined) throw refused('no namespace found in kubernetes claim');
  if (typeof namespace !== 'string') throw refused('namespace is not a string object');
  if (namespace.length > 63 || !DNS_LABEL.test(namespace))
    throw refused(
      `namespace ${JSON.stringify(namespace.slice(0, 80))} cannot be one, expected a DNS label (RFC 1123)`,
    );
  const podUid = fieldIn(own['pod'], 'uid');
  return {
    namespace,
    pod: fieldIn(own['pod'], 'name'),
    serviceAccount: fieldIn(own['serviceaccount'], 'name'),
    ...(podUid === undefined ? {} : { podUid }),
  };
}

const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

function claimsOf(token: string): unknown {
  if (/\s/.test(token)) throw refused('token is malformed: it has blanks or line breaks');
  const parts = token.split('.');
  if (parts.length !== 3) throw refused('token is malformed: it has other than three parts');
  try {
    return JSON.parse(textOfBase64Url(parts[1] ?? ''));
  } catch {
    throw refused('token is malformed: its claims are no JSON');
  }
}

function textOfBase64Url(text: string): string {
  const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (char) =>
    char.charCodeAt(0),
  );
  return new TextDecoder().decode(bytes);
}

function fieldIn(claim: unknown, field: 'name' | 'uid'): string | undefined {
  const value = isRecord(claim) ? claim[field] : undefined;
  return typeof value === 'string' && value.length <= 253 && DNS_SUBDOMAIN.test(value) ? value : undefined;
}

function objectOr(value: unknown, state: string): Readonly<Record<string, unknown>> {
  if (isRecord(value)) return value;
  throw refused(state);
}

function refused(state: string): PullwrightError {
  return new PullwrightError(`unable to extract namespace: ${state}`, {
    code: 'TokenUnusable',
    disposition: 'terminal',
  });
}
