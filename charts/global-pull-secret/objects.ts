/**
 * What stands in a cluster whose nodes get the global pull secret: rendered into git (`delivery: gitops`) or applied by the
 * reconciler (`delivery: reconciler`), from the same functions.
 */
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { additionalSecretPolicies, type Enforcement } from './admission.ts';
import { agentDaemonSet, upstreamDaemonSet } from './agent.ts';
import { agentBounds } from './agent-bounds.ts';
import { agentRbac } from './agent-rbac.ts';
import type { AgentOptions, UpstreamState } from './options.ts';

export { additionalSecretPolicies, type Enforcement, POLICY_NAME } from './admission.ts';
export { agentDaemonSet, upstreamDaemonSet } from './agent.ts';
export { AGENT_POLICY_NAME, agentBounds } from './agent-bounds.ts';
export { agentRbac } from './agent-rbac.ts';
export type { AgentOptions, UpstreamState } from './options.ts';

/** Input of {@link syncObjects}. */
export interface SyncOptions {
  readonly agent: AgentOptions;
  /** @default {'warn'} */
  readonly enforce?: Enforcement;
  /** Needed for `shape: upstream`, ignored otherwise. */
  readonly upstream?: UpstreamState;
}

/**
 * ServiceAccount, Roles, RoleBindings, DaemonSet and admission policy.
 *
 * @example
 * ```ts
 * import { syncObjects } from './objects.ts';
 * import assert from 'node:assert/strict';
 *
 * const objects = syncObjects({ agent: { image: 'registry.example.com/pullwright:1' } });
 * assert.deepEqual(
 *   objects.filter((object) => object.kind === 'Role').map((object) => object.metadata.namespace),
 *   ['kube-system', 'openshift-config'],
 * );
 * ```
 *
 * @throws RangeError for `shape: upstream` without its state: the shape holds a hash of the content
 */
export function syncObjects(options: SyncOptions): readonly KubeObject[] {
  return [
    ...agentRbac(options.agent),
    ...agentBounds(options.agent),
    syncDaemonSet(options),
    ...additionalSecretPolicies(options.enforce ?? 'warn'),
  ];
}

function syncDaemonSet(options: SyncOptions): KubeObject {
  if (options.agent.shape !== 'upstream') return agentDaemonSet(options.agent);
  if (options.upstream === undefined)
    throw new RangeError(
      `Cannot render DaemonSet "${NAMES.syncer}" in upstream's shape: the hash of the content is missing`,
    );
  return upstreamDaemonSet(options.agent, options.upstream);
}
