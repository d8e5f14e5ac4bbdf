/** What the administrators, editors and viewers of a namespace may do with our kinds there, added to the roles of Kubernetes. */
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { clusterRole, labels } from '../shared/objects.ts';

const READ = ['get', 'list', 'watch'] as const;
const WRITE = ['create', 'delete', 'patch', 'update'] as const;
const GROUP = ['pullwright.dev'];

/**
 * A PullStatus is addressed to the owner of its namespace, who has to be able to read it; consent is given by whoever may write Secrets
 * there.
 */
export function aggregatedRoles(): readonly KubeObject[] {
  return [
    role(
      'pullwright-view',
      ['view', 'edit', 'admin'],
      [
        {
          apiGroups: GROUP,
          resources: ['pullsecretgrants', 'pullstatuses'],
          verbs: READ,
        },
      ],
    ),
    role(
      'pullwright-edit',
      ['edit', 'admin'],
      [{ apiGroups: GROUP, resources: ['pullsecretgrants'], verbs: WRITE }],
    ),
  ];
}

function role(name: string, to: readonly string[], rules: Parameters<typeof clusterRole>[1]): KubeObject {
  const aggregate = to.map((one) => [`rbac.authorization.k8s.io/aggregate-to-${one}`, 'true']);
  return clusterRole(
    {
      name,
      labels: { ...labels({ name, component: 'pull-secret-injection' }), ...Object.fromEntries(aggregate) },
    },
    rules,
  );
}
