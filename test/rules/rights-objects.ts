/** Roles and bindings in short. */
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** e.g. `pods/exec create,get` or `rbac.authorization.k8s.io roles bind own`; the group is that of the core without one. */
export function rule(text: string): Rule {
  const words = text.split(' ');
  const [group = '', resources = '', verbs = '', names] = words[0]?.includes('.') ? words : ['', ...words];
  return {
    apiGroups: [group],
    resources: resources.split(','),
    verbs: verbs.split(','),
    ...(names === undefined ? {} : { resourceNames: names.split(',') }),
  };
}

/** What gives `a/<name>` these rules in the namespace, or everywhere. */
export function granted(name: string, rules: readonly string[], namespace?: string): readonly KubeObject[] {
  const kind = namespace === undefined ? 'ClusterRole' : 'Role';
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  return [
    { apiVersion: RBAC, kind, metadata, rules: rules.map(rule) },
    {
      apiVersion: RBAC,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { kind, name },
      subjects: [{ kind: 'ServiceAccount', namespace: 'a', name }],
    },
  ];
}
