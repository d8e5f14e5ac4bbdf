/** When a policy of admission binds a right: each row is something that a stolen token could do unseen otherwise. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import type { Right } from '../../runtime/rules/rights/right.ts';
import { rightsOf } from '../../runtime/rules/rights/rights.ts';
import { suite } from '../support/suite.ts';
import { granted, rule } from './rights-objects.ts';

const test = suite('rightsOf bounds');
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

const SHOP = { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } };
const named = { apiGroups: [''], apiVersions: ['*'], operations: ['*'], resources: ['secrets'] };

/** Where a policy is not asked, it is no guard: what is left is said, or it does not count at all. */
for (const { reason, constraints = {}, spec = {}, bind = {}, wanted } of [
  { reason: 'nothing is left out', wanted: 'closed' },
  {
    reason: 'the namespace of the right is selected by name',
    constraints: { namespaceSelector: SHOP },
    wanted: 'closed',
  },
  {
    reason: 'a namespace may lack a further label',
    constraints: { namespaceSelector: { matchLabels: { ...SHOP.matchLabels, guarded: 'true' } } },
    wanted: 'open',
  },
  {
    reason: 'a namespace may not meet a further expression',
    constraints: {
      namespaceSelector: { ...SHOP, matchExpressions: [{ key: 'guarded', operator: 'Exists' }] },
    },
    wanted: 'open',
  },
  {
    reason: 'the selected namespace is another',
    constraints: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'other' } } },
    wanted: 'open',
  },
  {
    reason: 'objects have labels of their authors',
    constraints: { objectSelector: { matchLabels: { guarded: 'true' } } },
    wanted: 'open',
  },
  {
    reason: 'Secrets are excluded',
    constraints: { excludeResourceRules: [{ ...named, resourceNames: ['own'] }] },
    wanted: 'open',
  },
  {
    reason: 'rules that speak of nothing exclude nothing',
    constraints: { excludeResourceRules: [] },
    wanted: 'closed',
  },
  {
    reason: 'conditions leave objects out',
    spec: { matchConditions: [{ name: 'a', expression: "object.metadata.name != 'own'" }] },
    wanted: 'open',
  },
  {
    reason: 'conditions leave everybody but somebody else out',
    spec: {
      matchConditions: [
        { name: 'a', expression: "request.userInfo.username == 'system:serviceaccount:a:other'" },
      ],
    },
    wanted: 'none',
  },
  {
    reason: 'conditions leave the account out',
    spec: {
      matchConditions: [
        { name: 'a', expression: "request.userInfo.username != 'system:serviceaccount:a:x'" },
      ],
    },
    wanted: 'none',
  },
  {
    reason: 'the binding is of some objects',
    bind: { matchResources: { namespaceSelector: SHOP } },
    wanted: 'none',
  },
  { reason: 'the binding is of another policy', bind: { policyName: 'q' }, wanted: 'none' },
  { reason: 'the binding warns and records', bind: { validationActions: ['Warn', 'Audit'] }, wanted: 'none' },
] as readonly {
  readonly reason: string;
  readonly constraints?: object;
  readonly spec?: object;
  readonly bind?: object;
  readonly wanted: 'closed' | 'open' | 'none';
}[])
  test(`of a policy leaves a right ${wanted === 'closed' ? 'bound' : `not bound (${wanted})`}: ${reason}`, () => {
    const [written, binding] = policy(
      { matchConstraints: { resourceRules: [named], ...constraints }, ...spec },
      [],
    );
    assert.ok(written !== undefined && binding !== undefined);
    const bound = { ...binding, spec: { ...(binding.spec as object), ...bind } };
    const [right] = of([...granted('x', ['secrets patch'], 'shop'), written, bound]);
    const said = right?.boundBy.map(({ unless }) => (unless.length === 0 ? 'closed' : 'open'));
    assert.deepEqual(said, wanted === 'none' ? [] : [wanted]);
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
