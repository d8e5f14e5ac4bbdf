/**
 * Which texts can be names of objects.
 *
 * Source of the rule: the API conventions of Kubernetes: a DNS subdomain (RFC 1123), and for namespaces a DNS label.
 */

const SUBDOMAIN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Whether `value` can be the name of a Secret or a ServiceAccount.
 *
 * @example
 * ```ts
 * import { isObjectName } from './object-names.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(['quay.io-pull', 'No_Name', '', 7].map(isObjectName), [true, false, false, false]);
 * ```
 */
export function isObjectName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 253 && SUBDOMAIN.test(value);
}

/**
 * Whether `value` can be the name of a namespace.
 *
 * @example
 * ```ts
 * import { isNamespaceName } from './object-names.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(['team-a', 'team.a', ''].map(isNamespaceName), [true, false, false]);
 * ```
 */
export function isNamespaceName(value: unknown): value is string {
  return typeof value === 'string' && LABEL.test(value);
}
