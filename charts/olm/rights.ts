/** Roles as a ClusterServiceVersion has them: rules by ServiceAccount, which OLM makes roles and bindings of. */
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';

interface AccountRules {
  readonly serviceAccountName: string;
  readonly rules: readonly unknown[];
}

/** What the accounts of one namespace may do, and the objects that say so. */
export interface AccountRights {
  /** In that namespace. */
  readonly permissions: readonly AccountRules[];
  readonly clusterPermissions: readonly AccountRules[];
  /** Roles, bindings and accounts that need no object any more. */
  readonly covered: readonly KubeObject[];
}

interface Binding extends KubeObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

/**
 * Takes what is bound to accounts of `namespace`: cluster-wide, or in this namespace. Roles in other namespaces stay objects, since
 * OLM moves what it applies to the namespace of the installation.
 */
export function accountRights(objects: readonly KubeObject[], namespace: string): AccountRights {
  const bindings = objects.filter(isBinding).filter((binding) => isOf(binding, namespace));
  const found = bindings.flatMap((binding) => {
    const role = objects.find(
      ({ kind, metadata }) =>
        kind === binding.roleRef.kind &&
        metadata.name === binding.roleRef.name &&
        (kind === 'ClusterRole' || metadata.namespace === namespace),
    );
    return role === undefined ? [] : [{ binding, role }];
  });
  const rulesOf = (kind: string): readonly AccountRules[] => {
    const byAccount = Map.groupBy(
      found.filter(({ binding }) => binding.kind === kind),
      ({ binding }) => binding.subjects[0]?.name ?? '',
    );
    return [...byAccount].map(([serviceAccountName, own]) => ({
      serviceAccountName,
      rules: own.flatMap(({ role }) => (role['rules'] ?? []) as readonly unknown[]),
    }));
  };
  const permissions = rulesOf('RoleBinding');
  const clusterPermissions = rulesOf('ClusterRoleBinding');
  const names = new Set([...permissions, ...clusterPermissions].map((one) => one.serviceAccountName));
  const accounts = objects.filter(
    ({ kind, metadata }) =>
      kind === 'ServiceAccount' && metadata.namespace === namespace && names.has(metadata.name),
  );
  const covered = [...found.flatMap(({ binding, role }) => [binding, role]), ...accounts];
  return { permissions, clusterPermissions, covered };
}

function isBinding(object: KubeObject): object is Binding {
  return object.kind === 'RoleBinding' || object.kind === 'ClusterRoleBinding';
}

/** Cluster-wide or in the namespace, and for one account of it alone. */
function isOf({ kind, metadata, subjects }: Binding, namespace: string): boolean {
  const [subject, ...more] = subjects;
  return (
    (kind === 'ClusterRoleBinding' || metadata.namespace === namespace) &&
    more.length === 0 &&
    subject?.kind === 'ServiceAccount' &&
    subject.namespace === namespace
  );
}
