/**
 * The rights of adapter and Jobs. In its own namespace the adapter has Jobs, their pods temporary Secrets and
 * records; elsewhere one binding by its name, and only such that gives the Job's one role, which it holds by the verb `bind` without
 * having those rights itself.
 */
import type { KubeObject, ObjectMeta } from '../../runtime/rules/kubernetes/object.ts';
import { accountBounds } from '../shared/account-bounds.ts';
import {
  clusterRole,
  clusterRoleBinding,
  type PolicyRule,
  role,
  roleBinding,
  secretsByName,
} from '../shared/objects.ts';
import { adapterBounds, type JobBounds } from './job-policy.ts';
import { JOB_BINDING, JOB_CLUSTER_ROLE } from './objects.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';

const OWN: readonly PolicyRule[] = [
  { apiGroups: ['batch'], resources: ['jobs'], verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
  {
    apiGroups: [''],
    resources: ['configmaps'],
    verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
  },
  { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create', 'patch', 'delete'] },
  { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create', 'patch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update', 'patch'] },
];

const EVERYWHERE: readonly PolicyRule[] = [
  // Server-side apply names what it creates, so the one name suffices.
  {
    apiGroups: [RBAC_GROUP],
    resources: ['rolebindings'],
    resourceNames: [JOB_BINDING],
    verbs: ['get', 'create', 'patch', 'delete'],
  },
  // Whether a management namespace is there at all: a right inside it would end with it.
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get'] },
  {
    apiGroups: [RBAC_GROUP],
    resources: ['clusterroles'],
    resourceNames: [JOB_CLUSTER_ROLE],
    verbs: ['bind'],
  },
];

/** Input of {@link adapterRights}. */
export interface Rights extends JobBounds {
  readonly namespace: string;
  readonly account: string;
  readonly pullSecretName: string;
  readonly labels: NonNullable<ObjectMeta['labels']>;
  readonly jobLabels: NonNullable<ObjectMeta['labels']>;
}

export function adapterRights(input: Rights): readonly KubeObject[] {
  const { namespace, account, labels } = input;
  const subject = { name: account, namespace };
  const subjects = [subject];
  const meta = { name: 'pullwright-pull-secret-adapter', labels };
  // Server-side apply names what it creates, so the one name suffices.
  const job = secretsByName([input.pullSecretName], ['get', 'create', 'patch', 'delete']);
  return [
    clusterRole({ name: JOB_CLUSTER_ROLE, labels: input.jobLabels }, [job]),
    clusterRole(meta, EVERYWHERE),
    clusterRoleBinding(meta, subjects),
    role({ ...meta, namespace }, OWN),
    roleBinding({ ...meta, namespace }, subjects),
    ...accountBounds(subject, {
      component: 'adapter',
      rules: OWN,
      bounds: adapterBounds(input),
      secretTypes: ['Opaque'],
    }),
  ];
}
