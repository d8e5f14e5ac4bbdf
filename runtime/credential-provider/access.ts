/**
 * RBAC of the credential provider: nodes may request tokens for its audience, and ServiceAccounts of selected
 * namespaces may read their pull secrets.
 */

import type { KubeObject } from '../core/kubernetes/object.ts';
import { kubernetesObject, labels, may, type PolicyRule, secretsByName } from '../core/kubernetes/objects.ts';
import type { FollowedNamespace, NamespaceAccess } from './options.ts';
import { CREDENTIAL_PROVIDER } from './platform.ts';

const RBAC = 'rbac.authorization.k8s.io';

/**
 * ClusterRole and binding that let the group of nodes request tokens for the API server's audience.
 *
 * @param options `readServiceAccounts`: also let nodes read every ServiceAccount, as the Machine Config Operator does. Not needed
 *   since Kubernetes 1.34: the node authorizer lets a kubelet read the ServiceAccounts of its own pods
 */
export function nodeAccess({ readServiceAccounts = false } = {}): readonly KubeObject[] {
  const name = 'node-credential-providers';
  const serviceAccounts = may(['get', 'list'], '', ['serviceaccounts']);
  const audience = {
    ...may([], '', [CREDENTIAL_PROVIDER.audience]),
    verbs: ['request-serviceaccounts-token-audience'],
  };
  return [
    kubernetesObject(
      'ClusterRole',
      { name, labels: ours(name) },
      { rules: readServiceAccounts ? [serviceAccounts, audience] : [audience] },
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

/** Labels that distinguish our objects from OpenShift's with the same names, also for `uninstall`. */
function ours(name: string): Readonly<Record<string, string>> {
  return labels({ name, component: 'credential-provider' });
}

/**
 * Role and RoleBinding of one namespace. A Role that names Secrets does not permit a list, so the provider needs the names: from
 * the annotation `pullwright.dev/image-pull-secrets` of the ServiceAccount, or by reading pod and ServiceAccount. With `inUse`
 * the reconciler keeps the Role equal to the Secrets that ServiceAccounts and pods reference.
 */
export function namespaceAccess(access: NamespaceAccess): readonly KubeObject[] {
  const { namespace, serviceAccounts = ['default'], secrets, readReferences = true } = access;
  const binding = kubernetesObject(
    'RoleBinding',
    { name: `${ROLE}-binding`, namespace, labels: ours(ROLE) },
    {
      roleRef: { apiGroup: RBAC, kind: 'Role', name: ROLE },
      subjects: serviceAccounts.map((account) => ({ kind: 'ServiceAccount', name: account, namespace })),
    },
  );
  if (secrets === 'inUse') return [binding];
  return [namespaceRole({ namespace, serviceAccounts, secrets, readReferences }), binding];
}

/** Name of the Role in each namespace. */
export const ROLE: string = 'credential-provider-secret-access';

/**
 * The Role alone. `secrets`: names; an empty list grants none, undefined grants all.
 */
export function namespaceRole({
  namespace,
  serviceAccounts,
  secrets,
  readReferences,
}: FollowedNamespace & { namespace: string; secrets: readonly string[] | undefined }): KubeObject {
  const references = [may(['get'], '', ['pods']), may(['get'], '', ['serviceaccounts'], serviceAccounts)];
  const rules = [...secretRules(secrets), ...(readReferences ? references : [])];
  return kubernetesObject('Role', { name: ROLE, namespace, labels: ours(ROLE) }, { rules });
}

function secretRules(secrets: readonly string[] | undefined): readonly PolicyRule[] {
  if (secrets === undefined) return [may(['get', 'list'], '', ['secrets'])];
  // A rule without names would grant every Secret.
  return secrets.length === 0 ? [] : [secretsByName(secrets, ['get'])];
}
