/**
 * Who may do what for the credential provider: nodes ask for tokens of the right audience, and the service accounts of chosen
 * namespaces read their pull secrets.
 */
import { CREDENTIAL_PROVIDER } from '../../runtime/rules/credential-provider/platform.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { kubernetesObject, labels, role, secretsByName } from '../shared/objects.ts';

const RBAC = 'rbac.authorization.k8s.io';

export interface NodeAccessOptions {
  /**
   * Also let nodes read every ServiceAccount, as the Machine Config Operator does. Not needed since Kubernetes 1.34: the node
   * authorizer lets a kubelet read the ServiceAccounts of its own pods.
   * @default {false}
   */
  readonly readServiceAccounts?: boolean;
}

/** ClusterRole and binding that let the group of nodes request tokens for the API server's audience. */
export function nodeAccess({ readServiceAccounts = false }: NodeAccessOptions = {}): readonly KubeObject[] {
  const name = 'node-credential-providers';
  const serviceAccounts = { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['get', 'list'] };
  const audience = {
    apiGroups: [''],
    resources: [CREDENTIAL_PROVIDER.audience],
    verbs: ['request-serviceaccounts-token-audience'],
  };
  return [
    kubernetesObject(
      'ClusterRole',
      { name, labels: ours(name) },
      {
        rules: readServiceAccounts ? [serviceAccounts, audience] : [audience],
      },
    ),
    kubernetesObject(
      'ClusterRoleBinding',
      { name: `${name}-binding`, labels: ours(name) },
      {
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
        subjects: [{ kind: 'Group', apiGroup: RBAC, name: 'system:nodes' }],
      },
    ),
  ];
}

/** OpenShift has objects of these names too: the mark tells whose they are, and lets `uninstall` find ours. */
function ours(name: string): Readonly<Record<string, string>> {
  return labels({ name, component: 'credential-provider' });
}

export interface NamespaceAccess {
  readonly namespace: string;
  /** Service accounts whose pods pull. @default {['default']} */
  readonly serviceAccounts?: readonly string[];
  /**
   * Secrets that may be read, by name; then nothing can be listed, and the names must reach the provider: by the annotation
   * `pullwright.dev/image-pull-secrets` on the ServiceAccount, or because pod and ServiceAccount may be read.
   * Absent: every secret of the namespace.
   */
  readonly secrets?: readonly string[];
  /** Let the provider read pod and ServiceAccount, so that contradicting secrets are ordered as the pod orders them. @default {true} */
  readonly readReferences?: boolean;
}

/**
 * Role and RoleBinding of one namespace.
 *
 * @example
 * ```ts
 * import { namespaceAccess } from './access.ts';
 * import assert from 'node:assert/strict';
 *
 * const [role] = namespaceAccess({ namespace: 'app-team-alpha', secrets: ['mirror'], readReferences: false });
 * assert.deepEqual(role?.rules, [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['mirror'], verbs: ['get'] }]);
 * ```
 */
export function namespaceAccess(access: NamespaceAccess): readonly KubeObject[] {
  const { namespace, serviceAccounts = ['default'], secrets, readReferences = true } = access;
  const name = 'credential-provider-secret-access';
  const secretRule =
    secrets === undefined
      ? ({ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list'] } as const)
      : secretsByName(secrets, ['get']);
  const references = [
    { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
    { apiGroups: [''], resources: ['serviceaccounts'], resourceNames: serviceAccounts, verbs: ['get'] },
  ] as const;
  return [
    role(
      { name, namespace, labels: ours(name) },
      readReferences ? [secretRule, ...references] : [secretRule],
    ),
    kubernetesObject(
      'RoleBinding',
      { name: `${name}-binding`, namespace, labels: ours(name) },
      {
        roleRef: { apiGroup: RBAC, kind: 'Role', name },
        subjects: serviceAccounts.map((account) => ({ kind: 'ServiceAccount', name: account, namespace })),
      },
    ),
  ];
}
