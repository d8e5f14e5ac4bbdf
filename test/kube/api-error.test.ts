/** Errors for rejected requests, which contain no text of the response body. */
import assert from 'node:assert/strict';
import { describeError } from '../../runtime/core/errors.ts';
import { apiErrorOf } from '../../runtime/kube/api-error.ts';
import { plantedPassword } from '../support/canary.ts';
import { type Case, table, test } from '../support/suite.ts';

interface Row extends Case {
  readonly status: number;
  readonly body: unknown;
  readonly says: RegExp;
  /** @default {'waiting'} */
  readonly retryPolicy?: string;
}

const SECRET = plantedPassword('body');
const cause = (reason: string, field: string, message = SECRET): object => ({ reason, field, message });

const ROWS: readonly Row[] = [
  {
    name: 'an invalid field',
    reason: 'the server quotes the value in its message',
    status: 422,
    body: {
      reason: 'Invalid',
      message: SECRET,
      details: { causes: [cause('FieldValueInvalid', 'data[.dockerconfigjson]')] },
    },
    says: /422 Invalid \(data\[\.dockerconfigjson\]: FieldValueInvalid\)/,
    retryPolicy: 'terminal',
  },
  {
    name: 'a conflict of field managers',
    reason: 'the operator wants to know who',
    status: 409,
    body: {
      reason: 'Conflict',
      details: { causes: [cause('FieldManagerConflict', '.data', 'conflict with "helm" using v1')] },
    },
    says: /\.data is owned by "helm"/,
    retryPolicy: 'retry',
  },
  {
    name: 'no right',
    reason: 'it heals when the right is given',
    status: 403,
    body: { message: SECRET },
    says: /403 Forbidden.*Grant the verb "patch"/,
  },
  {
    name: 'too many requests',
    reason: 'the server asks for patience',
    status: 429,
    body: undefined,
    says: /429 TooManyRequests/,
  },
  {
    name: 'a namespace that terminates',
    reason: 'nothing can be made there until it is gone',
    status: 403,
    body: { reason: 'Forbidden', details: { causes: [cause('NamespaceTerminating', 'metadata.namespace')] } },
    says: /its namespace is being deleted/,
  },
  {
    name: 'no right, in the words of the API server',
    reason: 'whoever grants it needs the verb, the resource, the namespace and the user',
    status: 403,
    body: {
      reason: 'Forbidden',
      message: `secrets "${SECRET}" is forbidden: User "system:serviceaccount:pullwright-system:pullwright-reconciler" cannot create resource "secrets" in API group "" in the namespace "shop"`,
    },
    says: /403 Forbidden\. Grant the verb "create" on secrets in namespace "shop" to "system:serviceaccount:pullwright-system:pullwright-reconciler" by RBAC$/,
  },
  {
    name: 'no right to what has no namespace',
    reason: 'it takes a ClusterRole',
    status: 403,
    body: {
      message:
        'nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the cluster scope',
    },
    says: /Grant the verb "list" on nodes for the cluster to "ann" by RBAC$/,
  },
  {
    name: 'a quota',
    reason: 'it is a 403 as well, and no right would help',
    status: 403,
    body: {
      reason: 'Forbidden',
      message:
        'secrets "a" is forbidden: exceeded quota: none, requested: count/secrets=1, used: count/secrets=4',
    },
    says: /"Secret\/ns\/a": the ResourceQuota "none" is exceeded\. Raise it/,
  },
  {
    name: 'an admission webhook',
    reason: 'its name is what the operator needs, its words may hold anything',
    status: 403,
    body: {
      reason: 'Forbidden',
      message: `admission webhook "policy.example.com" denied the request: ${SECRET}`,
    },
    says: /the admission webhook "policy\.example\.com" denied it/,
  },
  {
    name: 'an admission policy',
    reason: 'it is a 422, which is asked again only because the policy may change',
    status: 422,
    body: {
      reason: 'Invalid',
      message: `secrets "a" is forbidden: ValidatingAdmissionPolicy 'no-secrets' with binding 'all' denied request: ${SECRET}`,
    },
    says: /the ValidatingAdmissionPolicy "no-secrets" \(binding "all"\) denied it/,
  },
  {
    name: 'an admission webhook that is down',
    reason: 'the API server answers 500, and nothing is wrong with it',
    status: 500,
    body: {
      reason: 'InternalError',
      message: `Internal error occurred: failed calling webhook "policy.example.com": ${SECRET}`,
    },
    says: /the admission webhook "policy\.example\.com" does not respond to the API server/,
    retryPolicy: 'retry',
  },
  {
    name: 'a page of a proxy',
    reason: 'not everything that answers is an API server',
    status: 502,
    body: undefined,
    says: /502 ServerError/,
    retryPolicy: 'retry',
  },
  {
    name: 'a reason that is a text',
    reason: 'a text could hold anything',
    status: 400,
    body: { reason: `no ${SECRET}` },
    says: /400 BadRequest/,
    retryPolicy: 'terminal',
  },
];

table(test, ROWS, ({ status, body, says, retryPolicy = 'waiting' }) => {
  const error = apiErrorOf({ verb: 'apply', subject: 'Secret/ns/a', status, body });
  assert.match(describeError(error), says);
  assert.match(error.message, /Secret\/ns\/a/);
  assert.equal(error.retryPolicy, retryPolicy);
  assert.equal(describeError(error).includes(SECRET), false);
});
