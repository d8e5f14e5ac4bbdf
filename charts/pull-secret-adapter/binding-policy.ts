/**
 * What the adapter may bind. RBAC lets it give one role by its name, yet not say to whom and where: whoever has the adapter's token could
 * let anybody write, and so read, the Secret of that name in any namespace. The API server refuses that here.
 */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { admissionPolicy } from '../shared/objects.ts';
import { JOB_BINDING, JOB_CLUSTER_ROLE } from './objects.ts';

export interface BindingPolicyInput {
  readonly account: string;
  readonly jobAccount: string;
  readonly namespace: string;
  readonly labels: NonNullable<ObjectMeta['labels']>;
}

/** A policy of the API server for RoleBindings that the adapter writes, and its binding. */
export function bindingPolicy(input: BindingPolicyInput): readonly KubeObject[] {
  const { account, jobAccount, namespace, labels } = input;
  const user = `system:serviceaccount:${namespace}:${account}`;
  const subject = `object.subjects[0].kind == 'ServiceAccount' && object.subjects[0].name == '${jobAccount}' && object.subjects[0].namespace == '${namespace}'`;
  return admissionPolicy({
    metadata: { name: 'pullwright-pull-secret-adapter-bindings', labels },
    apiGroup: 'rbac.authorization.k8s.io',
    apiVersion: 'v1',
    resource: 'rolebindings',
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    matchConditions: [{ name: 'by-the-adapter', expression: `request.userInfo.username == '${user}'` }],
    validations: [
      {
        expression: `request.operation == 'DELETE' || (object.roleRef.kind == 'ClusterRole' && object.roleRef.name == '${JOB_CLUSTER_ROLE}')`,
        message: `the pull secret adapter binds the ClusterRole ${JOB_CLUSTER_ROLE} and no other role`,
      },
      {
        expression: `request.operation == 'DELETE' || (has(object.subjects) && object.subjects.size() == 1 && ${subject})`,
        message: `the pull secret adapter binds for the ServiceAccount ${namespace}/${jobAccount} and nobody else`,
      },
      {
        expression: `request.name == '${JOB_BINDING}'`,
        message: `the binding of the pull secret adapter is named ${JOB_BINDING}`,
      },
      {
        expression:
          "!(request.namespace in ['default', 'openshift']) && !request.namespace.startsWith('kube-') && !request.namespace.startsWith('openshift-')",
        message: 'the pull secret adapter has nothing to do in namespaces of the platform',
      },
    ],
    actions: ['Deny'],
    // Without the answer of the policy there is no proof.
    failurePolicy: 'Fail',
  });
}
