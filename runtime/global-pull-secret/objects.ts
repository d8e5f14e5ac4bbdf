/**
 * The objects of a cluster whose nodes get the global pull secret: rendered into git (`delivery: gitops`) or applied by the
 * reconciler (`delivery: reconciler`), from the same functions.
 */
import { GLOBAL_PULL_SECRET as NAMES } from '../core/kubernetes/hypershift.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { admissionPolicy, labels, type Validation } from '../core/kubernetes/objects.ts';
import { agentBounds, agentRbac } from './agent-access.ts';
import { agentDaemonSet, upstreamDaemonSet } from './daemon-set.ts';
import type { AgentOptions, Enforcement, UpstreamState } from './options.ts';

// Reports at write time what the reconciler would report later: an `additional-pull-secret` of the wrong type, or without its key.
// By default the author gets a warning and the audit log a line; nothing is refused, because a tenant's mistake is not a reason
// to break the tenant's pipeline. `deny` refuses, but spares updates of Secrets that already have another type: a type cannot
// be changed, so that a refusal would leave no way but deletion.

/** Name of the policy that warns; the one that denies has `-deny` at its end. */
export const POLICY_NAME = 'additional-pull-secret.pullwright.dev';

/** ValidatingAdmissionPolicies and their bindings. */
export function additionalSecretPolicies(enforce: Enforcement): readonly KubeObject[] {
  if (enforce === 'off') return [];
  const warn = policy(POLICY_NAME, ['Warn', 'Audit'], [HAS_TYPE, HAS_KEY]);
  if (enforce === 'warn') return warn;
  const spared = `(request.operation == 'UPDATE' && oldObject.type != '${NAMES.secretType}')`;
  const deny = [HAS_TYPE, HAS_KEY].map((validation) => ({
    ...validation,
    expression: `${spared} || (${validation.expression})`,
  }));
  return [...warn, ...policy(`${POLICY_NAME}-deny`, ['Deny'], deny)];
}

const SUBJECT = `Secret ${NAMES.namespace}/${NAMES.additional}`;

const HAS_TYPE: Validation = {
  expression: `object.type == '${NAMES.secretType}'`,
  message: `${SUBJECT} has another type than ${NAMES.secretType}: delete it and create it with that type`,
  messageExpression: `'${SUBJECT} has type ' + object.type + ', expected ${NAMES.secretType}: delete it and create it with that type'`,
};

const HAS_KEY: Validation = {
  expression: `has(object.data) && '${NAMES.dataKey}' in object.data`,
  message: `${SUBJECT} has no key ${NAMES.dataKey}: nothing of it is merged until it has one`,
};

function policy(
  name: string,
  actions: readonly ('Deny' | 'Warn' | 'Audit')[],
  validations: readonly Validation[],
): readonly KubeObject[] {
  return admissionPolicy({
    metadata: { name, labels: labels({ name: NAMES.additional, component: 'global-pull-secret' }) },
    apiGroup: '',
    apiVersion: 'v1',
    resource: 'secrets',
    resourceNames: [NAMES.additional],
    namespace: NAMES.namespace,
    operations: ['CREATE', 'UPDATE'],
    validations,
    actions,
  });
}

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
