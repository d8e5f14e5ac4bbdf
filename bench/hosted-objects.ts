/** Objects that a bench's management cluster serves, in general and for each hosted cluster. */

export type Json = Readonly<Record<string, unknown>>;

/** Group and version to the kinds that are served. */
export const SERVED: Readonly<
  Record<string, readonly (readonly [kind: string, plural: string, namespaced: boolean])[]>
> = {
  '/apis/hypershift.openshift.io/v1beta1': [
    ['HostedControlPlane', 'hostedcontrolplanes', true],
    ['NodePool', 'nodepools', true],
    ['HostedCluster', 'hostedclusters', true],
  ],
  '/apis/apiextensions.k8s.io/v1': [['CustomResourceDefinition', 'customresourcedefinitions', false]],
  '/apis/cluster.x-k8s.io/v1beta1': [['Machine', 'machines', true]],
  '/apis/pullwright.dev/v1alpha1': [['PullStatus', 'pullstatuses', true]],
  '/apis/rbac.authorization.k8s.io/v1': [
    ['ClusterRole', 'clusterroles', false],
    ['ClusterRoleBinding', 'clusterrolebindings', false],
    ['Role', 'roles', true],
    ['RoleBinding', 'rolebindings', true],
  ],
  '/apis/admissionregistration.k8s.io/v1': [
    ['ValidatingAdmissionPolicy', 'validatingadmissionpolicies', false],
    ['ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings', false],
  ],
};

/** @param index of the hosted cluster, from 0 */
export function controlPlane(index: number, version: number): Json {
  return {
    apiVersion: 'hypershift.openshift.io/v1beta1',
    kind: 'HostedControlPlane',
    metadata: {
      name: `hosted-${index}`,
      namespace: `clusters-hosted-${index}`,
      resourceVersion: String(version),
      uid: `u${index}`,
      annotations: { 'hypershift.openshift.io/cluster': `clusters/hosted-${index}` },
    },
  };
}

/** Type and data of a pull secret for one registry. */
export function pullSecretFor(registry: string): Json {
  const auths = JSON.stringify({ auths: { [registry]: { auth: Buffer.from('u:p').toString('base64') } } });
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(auths).toString('base64') },
  };
}
