/**
 * What is worth having for somebody with a stolen token, and which rules give it.
 *
 * Source of the rule: "Role Based Access Control Good Practices" of the Kubernetes documentation (privilege escalation risks), and
 * what a MachineConfig, a Machine and a NodePool do to nodes on OpenShift and HyperShift.
 */
import type { RbacRule } from './grants.ts';

export interface Power {
  readonly name: string;
  /** Verb phrase: who has it can ... */
  readonly says: string;
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** A rule inside a namespace says nothing of such resources. */
  readonly clusterScoped?: true;
}

const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection'];
const SET = ['create', 'update', 'patch'];
const RBAC_GROUP = 'rbac.authorization.k8s.io';

type Reach = Omit<Power, 'name' | 'says' | 'apiGroups'> & { readonly group?: string };

/** From the worst to the least. */
export const POWERS: readonly Power[] = [
  power('escalate', 'grant rights that it does not have', {
    group: RBAC_GROUP,
    resources: ['roles', 'clusterroles'],
    verbs: ['escalate'],
  }),
  power('bind', 'bind roles whose rights it does not have', {
    group: RBAC_GROUP,
    resources: ['roles', 'clusterroles'],
    verbs: ['bind'],
  }),
  power('impersonate', 'act as somebody else', {
    resources: ['users', 'groups', 'serviceaccounts'],
    verbs: ['impersonate'],
  }),
  // For single requests, which further verbs name.
  power('impersonate', 'act as somebody else', {
    group: 'authentication.k8s.io',
    resources: ['users', 'groups', 'serviceaccounts', 'nodes'],
    verbs: [
      'impersonate:user-info',
      'impersonate:serviceaccount',
      'impersonate:arbitrary-node',
      'impersonate:associated-node',
    ],
  }),
  power('write-logins', 'say who logs in as whom', {
    group: 'user.openshift.io',
    resources: ['users', 'groups', 'identities', 'useridentitymappings'],
    verbs: SET,
    clusterScoped: true,
  }),
  power('write-logins', 'say who logs in as whom', {
    group: 'oauth.openshift.io',
    resources: ['oauthaccesstokens', 'oauthauthorizetokens'],
    verbs: SET,
    clusterScoped: true,
  }),
  power('write-logins', 'say who logs in as whom', {
    group: 'config.openshift.io',
    resources: ['oauths', 'authentications'],
    verbs: SET,
    clusterScoped: true,
  }),
  power('mint-tokens', 'ask for tokens of service accounts', {
    resources: ['serviceaccounts/token'],
    verbs: ['create'],
  }),
  power('approve-certificates', 'have certificates signed', {
    group: 'certificates.k8s.io',
    resources: ['certificatesigningrequests/approval', 'signers'],
    verbs: ['update', 'patch', 'approve', 'sign'],
    clusterScoped: true,
  }),
  power('change-admission', 'change what admission does', {
    group: 'admissionregistration.k8s.io',
    resources: [
      'validatingadmissionpolicies',
      'validatingadmissionpolicybindings',
      'validatingwebhookconfigurations',
      'mutatingadmissionpolicies',
      'mutatingadmissionpolicybindings',
      'mutatingwebhookconfigurations',
    ],
    verbs: WRITE,
    clusterScoped: true,
  }),
  power('write-api-services', 'answer for groups of the API in place of the API server', {
    group: 'apiregistration.k8s.io',
    resources: ['apiservices'],
    verbs: SET,
    clusterScoped: true,
  }),
  power('write-machine-configs', 'write files on nodes', {
    group: 'machineconfiguration.openshift.io',
    // A MachineOSConfig says of what the nodes' image is built.
    resources: ['machineconfigs', 'machineosconfigs'],
    verbs: SET,
    clusterScoped: true,
  }),
  power('exec', 'run commands in pods of others', {
    resources: ['pods/exec', 'pods/attach', 'pods/ephemeralcontainers'],
    verbs: ['get', ...SET],
  }),
  power('reach-pods', 'speak to pods and Services through the API server', {
    resources: ['pods/portforward', 'pods/proxy', 'services/proxy'],
    verbs: ['get', ...SET],
  }),
  power('node-proxy', 'speak to kubelets through the API server', {
    resources: ['nodes/proxy'],
    verbs: ['get', ...SET],
    clusterScoped: true,
  }),
  power('run-pods', 'run pods', { resources: ['pods', 'replicationcontrollers'], verbs: SET }),
  power('run-pods', 'run pods', {
    group: 'apps',
    resources: ['deployments', 'daemonsets', 'statefulsets', 'replicasets'],
    verbs: SET,
  }),
  power('run-pods', 'run pods', { group: 'batch', resources: ['jobs', 'cronjobs'], verbs: SET }),
  // In a namespace it is the use of one there.
  power('loosen-pods', 'let pods be root of nodes', {
    group: 'security.openshift.io',
    resources: ['securitycontextconstraints'],
    verbs: ['use', ...SET],
  }),
  power('write-volumes', 'make volumes of folders of nodes', {
    resources: ['persistentvolumes'],
    verbs: SET,
    clusterScoped: true,
  }),
  power('install-operators', 'install operators', {
    group: 'operators.coreos.com',
    resources: ['clusterserviceversions', 'subscriptions', 'installplans', 'catalogsources'],
    verbs: SET,
  }),
  power('read-secrets', 'read Secrets', { resources: ['secrets'], verbs: ['get', 'list', 'watch'] }),
  power('write-secrets', 'write Secrets', { resources: ['secrets'], verbs: WRITE }),
  power('write-roles', 'write roles with rights of its own', {
    group: RBAC_GROUP,
    resources: ['roles', 'clusterroles'],
    verbs: WRITE,
  }),
  power('write-bindings', 'bind roles with rights of its own', {
    group: RBAC_GROUP,
    resources: ['rolebindings', 'clusterrolebindings'],
    verbs: WRITE,
  }),
  // A rule inside a namespace reaches the object of that namespace.
  power('write-namespaces', 'change Namespaces', { resources: ['namespaces'], verbs: WRITE }),
  power('write-accounts', 'change ServiceAccounts', { resources: ['serviceaccounts'], verbs: WRITE }),
  power('write-nodes', 'change Nodes', {
    resources: ['nodes', 'nodes/status'],
    verbs: WRITE,
    clusterScoped: true,
  }),
  power('write-machines', 'change Machines', {
    group: 'cluster.x-k8s.io',
    resources: ['machines'],
    verbs: WRITE,
  }),
  power('write-hosted-clusters', 'change HostedClusters and NodePools', {
    group: 'hypershift.openshift.io',
    resources: ['hostedclusters', 'nodepools', 'hostedcontrolplanes'],
    verbs: WRITE,
  }),
  power('write-definitions', 'change definitions of kinds', {
    group: 'apiextensions.k8s.io',
    resources: ['customresourcedefinitions'],
    verbs: WRITE,
    clusterScoped: true,
  }),
  power('end-pods', 'end pods of others', { resources: ['pods/eviction'], verbs: ['create'] }),
  power('end-pods', 'end pods of others', { resources: ['pods'], verbs: ['delete', 'deletecollection'] }),
  power('redirect-services', 'send the traffic of Services elsewhere', {
    resources: ['endpoints'],
    verbs: SET,
  }),
  power('redirect-services', 'send the traffic of Services elsewhere', {
    group: 'discovery.k8s.io',
    resources: ['endpointslices'],
    verbs: SET,
  }),
  power('write-config', 'write ConfigMaps', { resources: ['configmaps'], verbs: WRITE }),
];

/** What a rule gives of a power. */
export interface PowerOf {
  readonly power: Power;
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/**
 * The powers that `rule` gives.
 *
 * @param everywhere whether it was granted for the whole cluster
 *
 * @example
 * ```ts
 * import { powersOf } from './powers.ts';
 * import assert from 'node:assert/strict';
 *
 * const rule = { apiGroups: [''], resources: ['secrets', 'nodes'], verbs: ['get', 'patch'], resourceNames: [] };
 * const names = (everywhere: boolean) => powersOf(rule, everywhere).map(({ power }) => power.name);
 * assert.deepEqual(names(true), ['read-secrets', 'write-secrets', 'write-nodes']);
 * assert.deepEqual(names(false), ['read-secrets', 'write-secrets']);
 * ```
 */
export function powersOf(rule: RbacRule, everywhere: boolean): readonly PowerOf[] {
  return POWERS.filter((one) => everywhere || one.clusterScoped !== true).flatMap((one) => {
    if (!one.apiGroups.some((group) => has(rule.apiGroups, group))) return [];
    const resources = one.resources.filter((resource) => hasResource(rule.resources, resource));
    const verbs = one.verbs.filter((verb) => has(rule.verbs, verb));
    return resources.length === 0 || verbs.length === 0 ? [] : [{ power: one, resources, verbs }];
  });
}

function power(name: string, says: string, { group = '', ...reach }: Reach): Power {
  return { name, says, apiGroups: [group], ...reach };
}

function has(list: readonly string[], one: string): boolean {
  return list.includes(one) || list.includes('*');
}

/** `*` is every resource and subresource, and `*` before a slash every resource that has the subresource. */
function hasResource(list: readonly string[], resource: string): boolean {
  const [, sub] = resource.split('/');
  return has(list, resource) || (sub !== undefined && list.includes(`*/${sub}`));
}
