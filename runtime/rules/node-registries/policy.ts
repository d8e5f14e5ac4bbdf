/**
 * `/etc/containers/policy.json`: which registries may be pulled from at all. Mirrors need no permission there.
 *
 * Source of the rule: the Machine Config Operator's `updatePolicyJSON`.
 */

interface Requirement {
  readonly type: 'insecureAcceptAnything' | 'reject';
}

type Scopes = Readonly<Record<string, readonly Requirement[]>>;

export interface PolicyDocument {
  readonly default: readonly Requirement[];
  readonly transports: Readonly<Record<string, Scopes>>;
}

const ACCEPT: readonly Requirement[] = [{ type: 'insecureAcceptAnything' }];
const REJECT: readonly Requirement[] = [{ type: 'reject' }];

/**
 * The document for derived lists (payload.ts).
 *
 * @example
 * ```ts
 * import { policyDocument } from './policy.ts';
 * import assert from 'node:assert/strict';
 *
 * const { default: others, transports } = policyDocument([], ['quay.io']);
 * assert.deepEqual(others, [{ type: 'reject' }]);
 * assert.deepEqual(transports['docker'], { 'quay.io': [{ type: 'insecureAcceptAnything' }] });
 * ```
 */
export function policyDocument(blocked: readonly string[], allowed: readonly string[]): PolicyDocument {
  const docker = new Map<string, readonly Requirement[]>();
  for (const scope of allowed) docker.set(scope, ACCEPT);
  for (const scope of blocked) docker.set(scope, REJECT);
  // The transport knows host, namespace and repository only.
  const scopes = [...docker].sort(([a], [b]) => (a < b ? -1 : 1));
  const atomic = scopes.filter(([scope]) => scope.split('/').length <= 3);
  return {
    default: allowed.length > 0 && blocked.length === 0 ? REJECT : ACCEPT,
    transports: {
      atomic: Object.fromEntries(atomic),
      docker: Object.fromEntries(scopes),
      'docker-daemon': { '': ACCEPT },
    },
  };
}
