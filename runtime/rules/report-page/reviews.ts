/** What the API server is asked about whoever wants the report, and what its answers mean. Nothing but a plain yes is one. */
import type { KubeObject } from '../kubernetes/object.ts';
import { isRecord, recordOf } from '../record.ts';
import type { Redacted } from '../redacted.ts';

/** The audience that a token must be for, so that one for this page opens nothing else, and no other opens this page. */
export const REPORT_AUDIENCE = 'reports.pullwright.dev';

/** No API server serves it: roles name it, and access reviews ask for it. */
export const REPORT_GROUP = 'reports.pullwright.dev';

/** The whole, and what concerns one namespace. */
export const REPORT_RESOURCES = { fleet: 'fleetreports', namespace: 'namespacereports' } as const;

/** Who has the token, as the API server says. */
export interface ReportUser {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Asks who has `token`, which becomes text where the request leaves. */
export function tokenReview(token: Redacted<string>): KubeObject {
  return {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    // It is never stored: the name is for messages alone.
    metadata: { name: '' },
    spec: { token, audiences: [REPORT_AUDIENCE] },
  };
}

/**
 * Who has the token, or undefined: it is not valid, or not for this audience. An API server that knows no audiences leaves them
 * out of its answer, and then nothing says that the token is meant for us.
 *
 * @example
 * ```ts
 * import { REPORT_AUDIENCE, reviewedUser } from './reviews.ts';
 * import assert from 'node:assert/strict';
 *
 * const status = { authenticated: true, audiences: [REPORT_AUDIENCE], user: { username: 'ann', groups: ['team'] } };
 * assert.deepEqual(reviewedUser({ status }), { username: 'ann', groups: ['team'], extra: {} });
 * assert.equal(reviewedUser({ status: { ...status, audiences: undefined } }), undefined);
 * ```
 */
export function reviewedUser({ status }: { readonly status?: unknown }): ReportUser | undefined {
  const { authenticated, audiences, user } = recordOf(status);
  if (authenticated !== true || !Array.isArray(audiences) || !audiences.includes(REPORT_AUDIENCE))
    return undefined;
  const { username, uid, groups, extra } = recordOf(user);
  if (typeof username !== 'string' || username === '') return undefined;
  return {
    username,
    ...(typeof uid === 'string' && uid !== '' ? { uid } : {}),
    groups: textsOf(groups),
    extra: Object.fromEntries(Object.entries(recordOf(extra)).map(([key, values]) => [key, textsOf(values)])),
  };
}

/** Asks whether `user` may see the whole, or what concerns `namespace`. */
export function accessReview(user: ReportUser, namespace: string | undefined): KubeObject {
  const resource = namespace === undefined ? REPORT_RESOURCES.fleet : REPORT_RESOURCES.namespace;
  const { username, uid, groups, extra } = user;
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    metadata: { name: '' },
    spec: {
      user: username,
      groups,
      ...(uid === undefined ? {} : { uid }),
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
      resourceAttributes: {
        group: REPORT_GROUP,
        version: '*',
        resource,
        verb: 'get',
        ...(namespace === undefined ? {} : { namespace }),
      },
    },
  };
}

/**
 * Whether it is allowed.
 *
 * @example
 * ```ts
 * import { isAllowed } from './reviews.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(isAllowed({ status: { allowed: true } }), true);
 * assert.equal(isAllowed({ status: { allowed: true, denied: true } }), false);
 * assert.equal(isAllowed({}), false);
 * ```
 */
export function isAllowed({ status }: { readonly status?: unknown }): boolean {
  return isRecord(status) && status['allowed'] === true && status['denied'] !== true;
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
