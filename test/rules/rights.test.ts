/** What rules of RBAC amount to, and when a policy binds them: each row is something that a stolen token could do unseen otherwise. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import type { Right } from '../../runtime/rules/rights/right.ts';
import { rightsOf } from '../../runtime/rules/rights/rights.ts';
import { suite } from '../support/suite.ts';
import { granted } from './rights-objects.ts';

const test = suite('rightsOf');
const RBAC = 'rbac.authorization.k8s.io';

const of = (objects: readonly KubeObject[]): readonly Right[] =>
  rightsOf(objects, (account) => account === 'ServiceAccount a/x');

const WAYS: readonly {
  readonly reason: string;
  readonly rules: readonly string[];
  readonly namespace?: string;
  readonly leads: boolean;
}[] = [
  { reason: 'a group of administrators', rules: ['groups impersonate system:masters'], leads: true },
  { reason: 'some other group', rules: ['groups impersonate developers'], leads: false },
  {
    reason: 'accounts of controllers',
    namespace: 'kube-system',
    rules: ['serviceaccounts impersonate'],
    leads: true,
  },
  {
    reason: 'the role of administrators, bound where it may',
    rules: [`${RBAC} clusterroles bind cluster-admin`, `${RBAC} clusterrolebindings create`],
    leads: true,
  },
  {
    reason: 'a role of its own, bound',
    rules: [`${RBAC} clusterroles bind own`, `${RBAC} clusterrolebindings create`],
    leads: false,
  },
  {
    reason: 'a role that grants what it likes where controllers live',
    namespace: 'kube-system',
    rules: [`${RBAC} roles escalate,update`],
    leads: true,
  },
  {
    // Kubernetes asks for a namespace's own object in that namespace, so that its labels for pods are within reach.
    reason: 'the same where none do: privileged pods, after its labels were changed',
    namespace: 'shop',
    rules: [`${RBAC} roles escalate,update`],
    leads: true,
  },
  {
    reason: 'a role of every cluster that gives Secrets and pods, bound where controllers live',
    rules: [`${RBAC} clusterroles bind edit`, `${RBAC} rolebindings create`],
    leads: true,
  },
  {
    reason: 'the role of namespace administrators in kube-system alone',
    namespace: 'kube-system',
    rules: [`${RBAC} clusterroles bind admin`, `${RBAC} rolebindings patch`],
    leads: true,
  },
  {
    reason: 'a role of the control plane',
    rules: [
      `${RBAC} clusterroles bind system:controller:clusterrole-aggregation-controller`,
      `${RBAC} clusterrolebindings create`,
    ],
    leads: true,
  },
  {
    reason: 'a role that asks who somebody is',
    rules: [`${RBAC} clusterroles bind system:auth-delegator`, `${RBAC} clusterrolebindings create`],
    leads: false,
  },
  {
    reason: 'bindings are deleted alone',
    rules: [`${RBAC} clusterroles bind edit`, `${RBAC} rolebindings delete`],
    leads: false,
  },
  {
    reason: 'an account of a controller by the name of its user',
    rules: ['users impersonate system:serviceaccount:kube-system:namespace-controller'],
    leads: true,
  },
  { reason: 'some other user', rules: ['users impersonate jane'], leads: false },
  {
    reason: 'the control plane itself',
    rules: ['users impersonate system:kube-controller-manager'],
    leads: true,
  },
  {
    reason: 'nodes, for single requests',
    rules: ['authentication.k8s.io nodes impersonate:arbitrary-node'],
    leads: true,
  },
  {
    reason: 'privileged pods, after the labels of their namespace were changed',
    namespace: 'shop',
    rules: ['namespaces patch shop', 'pods create'],
    leads: true,
  },
  { reason: 'labels of a namespace without pods of its own', rules: ['namespaces patch'], leads: false },
  {
    reason: 'a namespace that is deleted',
    namespace: 'shop',
    rules: ['namespaces delete', 'pods create'],
    leads: false,
  },
  {
    reason: 'labels of another namespace than that of the pods',
    namespace: 'shop',
    rules: ['namespaces patch other', 'pods create'],
    leads: false,
  },
  {
    reason: 'privileged pods by the constraints of OpenShift',
    namespace: 'shop',
    rules: ['security.openshift.io securitycontextconstraints use privileged', 'pods create'],
    leads: true,
  },
  {
    reason: 'constraints of OpenShift that no pod of its own uses',
    rules: ['security.openshift.io securitycontextconstraints use privileged'],
    leads: false,
  },
  {
    reason: 'an operator in one namespace has rights in all',
    namespace: 'shop',
    rules: ['operators.coreos.com clusterserviceversions patch'],
    leads: true,
  },
  {
    reason: 'a catalog installs nothing',
    rules: ['operators.coreos.com catalogsources patch'],
    leads: false,
  },
  {
    reason: 'a token by which a node joins',
    namespace: 'kube-system',
    rules: ['secrets create'],
    leads: true,
  },
  {
    reason: 'a Secret of another name there',
    namespace: 'kube-system',
    rules: ['secrets create global-pull-secret'],
    leads: false,
  },
  { reason: 'who logs in by what', rules: ['config.openshift.io oauths patch'], leads: true },
  {
    reason: 'a group of administrators of OpenShift',
    rules: ['user.openshift.io groups patch system:cluster-admins'],
    leads: true,
  },
  { reason: 'a group of developers', rules: ['user.openshift.io groups patch developers'], leads: false },
  {
    reason: 'who is administrator on EKS',
    namespace: 'kube-system',
    rules: ['configmaps update aws-auth'],
    leads: true,
  },
  {
    reason: 'nobody, once it is deleted',
    namespace: 'kube-system',
    rules: ['configmaps delete aws-auth'],
    leads: false,
  },
  {
    reason: 'a ConfigMap of its own',
    namespace: 'kube-system',
    rules: ['configmaps update own'],
    leads: false,
  },
  {
    reason: 'folders of nodes through a volume',
    rules: ['persistentvolumes create', 'pods create'],
    leads: true,
  },
  { reason: 'volumes that nothing mounts', rules: ['persistentvolumes create'], leads: false },
  {
    reason: 'an operator with the rights that it asks for',
    rules: ['operators.coreos.com clusterserviceversions create'],
    leads: true,
  },
];

for (const { reason, rules, namespace, leads } of WAYS)
  test(`${leads ? 'leads' : 'does not lead'} to all rights: ${reason}`, () => {
    const admin = of(granted('x', rules, namespace)).some(({ power }) => power === 'become-cluster-admin');
    assert.equal(admin, leads);
  });

for (const [text, power] of [
  ['namespaces patch', 'write-namespaces'],
  ['serviceaccounts patch', 'write-accounts'],
  ['services/proxy get', 'reach-pods'],
  ['pods/portforward create', 'reach-pods'],
  ['persistentvolumes create', 'write-volumes'],
  ['endpoints update', 'redirect-services'],
  ['discovery.k8s.io endpointslices create', 'redirect-services'],
  ['apiregistration.k8s.io apiservices patch', 'write-api-services'],
  ['operators.coreos.com subscriptions create', 'install-operators'],
  ['security.openshift.io securitycontextconstraints use privileged', 'loosen-pods'],
  ['user.openshift.io useridentitymappings create', 'write-logins'],
  ['machineconfiguration.openshift.io machineosconfigs patch', 'write-machine-configs'],
  ['authentication.k8s.io serviceaccounts impersonate:serviceaccount', 'impersonate'],
] as const)
  test(`names what ${text} gives: ${power}`, () => {
    assert.ok(of(granted('x', [text])).some((right) => right.power === power));
  });

test.run();
