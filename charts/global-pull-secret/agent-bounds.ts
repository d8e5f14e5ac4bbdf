/**
 * What RBAC cannot say about the agents' account: the agent of a node speaks of that node alone. The API server puts the node of a
 * pod's token beside its user name (Kubernetes 1.30 and later); one that does not is not asked, see docs/threat-model.md.
 */
import { GLOBAL_PULL_SECRET as NAMES } from '../../runtime/rules/kubernetes/global-pull-secret.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { userOf } from '../shared/account-bounds.ts';
import { admissionPolicy, labels } from '../shared/objects.ts';
import { type AgentOptions, reports } from './options.ts';

/** Name of the policy and its binding. */
export const AGENT_POLICY_NAME = 'global-pull-secret-syncer.pullwright.dev';

const CLAIM = 'authentication.kubernetes.io/node-name';

/** The policy and its binding; none where agents do not report. */
export function agentBounds(options: Pick<AgentOptions, 'report' | 'shape'>): readonly KubeObject[] {
  if (!reports(options)) return [];
  const user = userOf({ namespace: NAMES.namespace, name: NAMES.syncer });
  return admissionPolicy({
    metadata: {
      name: AGENT_POLICY_NAME,
      labels: labels({ name: NAMES.syncer, component: 'global-pull-secret' }),
    },
    apiGroup: ['pullwright.dev', 'events.k8s.io'],
    apiVersion: '*',
    resource: ['pullstatuses', 'pullstatuses/status', 'events'],
    operations: ['CREATE', 'UPDATE'],
    failurePolicy: 'Fail',
    matchConditions: [
      { name: 'account', expression: `request.userInfo.username == '${user}'` },
      {
        name: 'node-is-known',
        expression: `has(request.userInfo.extra) && '${CLAIM}' in request.userInfo.extra`,
      },
    ],
    variables: [{ name: 'node', expression: `request.userInfo.extra['${CLAIM}'][0]` }],
    validations: [
      {
        expression:
          "request.resource.resource == 'events' ? object.?regarding.?kind.orValue('') == 'Node' && object.?regarding.?name.orValue('') == variables.node : object.metadata.name == 'node-' + variables.node",
        message: 'the agent of a node reports on that node alone',
      },
    ],
    actions: ['Deny'],
  });
}
