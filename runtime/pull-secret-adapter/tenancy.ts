/** The challenge: what the owner of a project sets on it, so that the clusters of a tenant may have their pull secret there. */
import { createHash } from 'node:crypto';
import type { AdapterSettings } from './adapter/settings.ts';
import type { HyperfleetCluster } from './cluster.ts';

/** The label of the project. */
export const CHALLENGE_LABEL = 'pullwright-tenant';

/**
 * The value of the label that lets the tenant of a cluster into its project; empty when the cluster names no tenant. It is no secret: only
 * who may change the project can set it.
 *
 * @example
 * ```ts
 * import { challengeOf } from './tenancy.ts';
 * import assert from 'node:assert/strict';
 *
 * const value = challengeOf({ tenantFields: { created_by: 'a@example.com' } }, { tenantKey: 'created_by' });
 * assert.match(value, /^[0-9a-f]{32}$/);
 * assert.notEqual(value, challengeOf({ tenantFields: { created_by: 'b@example.com' } }, { tenantKey: 'created_by' }));
 * ```
 */
export function challengeOf(
  { tenantFields }: Pick<HyperfleetCluster, 'tenantFields'>,
  { tenantKey }: Pick<AdapterSettings, 'tenantKey'>,
): string {
  const tenant = Object.hasOwn(tenantFields, tenantKey) ? (tenantFields[tenantKey] ?? '') : '';
  return tenant === ''
    ? ''
    : createHash('sha256').update(`${tenantKey}\n${tenant}`).digest('hex').slice(0, 32);
}
