/** What rules of RBAC amount to, and when a policy binds them: each row is something that a stolen token could do unseen otherwise. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import type { Right } from '../../runtime/rules/rights/right.ts';
import { rightsOf } from '../../runtime/rules/rights/rights.ts';
import { suite } from '../support/suite.ts';
import { granted, rule } from './rights-objects.ts';

const test = suite('rightsOf');
const RBAC = 'rbac.authorization.k8s.io';
const ADMISSION = 'admissionregistration.k8s.io';

function policy(spec: object, resources: readonly string[], more: object = {}): readonly KubeObject[] {
  const apiVersion = `${ADMISSION}/v1`;
  const operations = ['*'];
  const constraint = { apiGroups: ['*'], apiVersions: ['v1'], operations, resources, ...more };
  return [
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'p' },
      spec: {
        validations: [{ expression: 'false' }],
        matchConstraints: { resourceRules: [constraint] },
        ...spec,
      },
    },
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'b' },
      spec: { policyName: 'p', validationActions: ['Deny'] },
    },
  ];
}

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
    reason: 'the same where none do',
    namespace: 'shop',
    rules: [`${RBAC} roles escalate,update`],
    leads: false,
  },
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
] as const)
  test(`names what ${text} gives: ${power}`, () => {
    assert.ok(of(granted('x', [text])).some((right) => right.power === power));
  });

/** The policies that bind the right which the first rule gives. */
function bounds(
  text: string,
  policies: readonly KubeObject[],
  others: readonly string[] = [],
): readonly string[] {
  const all = of([...granted('x', [text, ...others]), ...policies]);
  const { resources } = rule(text);
  return all
    .filter((right) => right.resources.join() === resources.join())
    .flatMap(({ boundBy }) => boundBy.map((bound) => bound.policy));
}

for (const { reason, right, policies, bound } of [
  { reason: 'each write', right: 'secrets patch', policies: policy({}, ['secrets']), bound: true },
  { reason: 'all resources', right: 'secrets patch', policies: policy({}, ['*']), bound: true },
  {
    reason: 'nothing is refused',
    right: 'secrets patch',
    policies: policy({ validations: [] }, ['*']),
    bound: false,
  },
  {
    reason: 'a star alone has no subresources',
    right: 'nodes/proxy create',
    policies: policy({}, ['*']),
    bound: false,
  },
  { reason: 'stars on both sides', right: 'nodes/proxy create', policies: policy({}, ['*/*']), bound: true },
  {
    reason: 'all of the resource',
    right: 'nodes/proxy create',
    policies: policy({}, ['nodes/*']),
    bound: true,
  },
  {
    reason: 'the resource itself, too',
    right: 'secrets patch',
    policies: policy({}, ['secrets/*']),
    bound: true,
  },
  {
    reason: 'the subresource of all',
    right: 'nodes/proxy create',
    policies: policy({}, ['*/proxy']),
    bound: true,
  },
  {
    reason: 'a connection is no creation',
    right: 'pods/exec create',
    policies: policy({}, ['pods/exec'], { operations: ['CREATE', 'UPDATE'] }),
    bound: false,
  },
  {
    reason: 'a connection by get is one as well',
    right: 'pods/exec get',
    policies: policy({}, ['pods/exec'], { operations: ['CONNECT'] }),
    bound: true,
  },
  {
    reason: 'objects without a namespace alone',
    right: 'secrets patch',
    policies: policy({}, ['*'], { scope: 'Cluster' }),
    bound: false,
  },
  {
    reason: 'one version of the API alone',
    right: 'secrets patch',
    policies: policy(
      {
        matchConstraints: {
          matchPolicy: 'Exact',
          resourceRules: [
            { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['secrets'] },
          ],
        },
      },
      [],
    ),
    bound: false,
  },
  {
    reason: 'admission is not asked about its own objects',
    right: `${ADMISSION} mutatingwebhookconfigurations patch`,
    policies: policy({}, ['*/*']),
    bound: false,
  },
])
  test(`of a policy that says ${JSON.stringify(policies[0]?.spec).slice(0, 300)} ${bound ? 'binds' : 'does not bind'} ${right}: ${reason}`, () => {
    assert.deepEqual(bounds(right, policies), bound ? ['p'] : []);
  });

const second: KubeObject = {
  apiVersion: `${ADMISSION}/v1`,
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: 'c' },
  spec: { policyName: 'p', validationActions: ['Deny'] },
};

for (const { reason, others, more = [], lifted } of [
  { reason: 'it deletes the policy', others: ['validatingadmissionpolicies delete p'], lifted: true },
  { reason: 'it changes the policy', others: ['validatingadmissionpolicies patch p'], lifted: true },
  { reason: 'it changes another', others: ['validatingadmissionpolicies patch q'], lifted: false },
  { reason: 'it makes policies', others: ['validatingadmissionpolicies create'], lifted: false },
  { reason: 'it deletes the binding', others: ['validatingadmissionpolicybindings delete b'], lifted: true },
  {
    reason: 'another binding is left',
    others: ['validatingadmissionpolicybindings delete b'],
    more: [second],
    lifted: false,
  },
  {
    reason: 'it deletes each binding, by two rules',
    others: ['validatingadmissionpolicybindings delete b', 'validatingadmissionpolicybindings patch c'],
    more: [second],
    lifted: true,
  },
])
  test(`${lifted ? 'counts no' : 'counts the'} policy as a bound where ${reason}`, () => {
    const objects = [...policy({}, ['secrets']), ...more];
    const rules = others.map((one) => `${ADMISSION} ${one}`);
    assert.deepEqual(bounds('secrets patch', objects, rules), lifted ? [] : ['p']);
    const powers = of([...granted('x', ['secrets patch', ...rules]), ...objects]).map(({ power }) => power);
    assert.equal(powers.includes('lift-bounds'), lifted);
  });
test.run();
