/** Hosted clusters of a fleet: what names the reconciler there, and what one reconciler cannot do for two of them. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { renderFleet } from '../../charts/app.ts';
import { readFleet } from '../../charts/fleet.ts';
import { FleetError } from '../../charts/fleet-problems.ts';
import type { FleetInput } from '../../charts/fleet-schema.ts';
import { type Case, cases, table, test } from '../support/suite.ts';

const GUARD = 'validatingadmissionpolicy-pullwright-pull-secret-copies.yaml';
type Cluster = FleetInput['clusters'][number];

function fleet(hub: Partial<Cluster>, ...hosted: readonly Partial<Cluster>[]): FleetInput {
  return {
    image: 'registry.example.com/pullwright:0.1.0',
    clusters: [
      { name: 'hub', kind: 'management', ...hub },
      ...hosted.map(
        (one, index): Cluster => ({
          name: `hosted-${index}`,
          kind: 'hosted',
          management: 'hub',
          systems: { 'pull-secret-injection': {} },
          ...one,
        }),
      ),
    ],
  };
}

function filesOf(input: FleetInput): ReadonlyMap<string, string> {
  return renderFleet(readFleet(input)).tree;
}

function guardIn(tree: ReadonlyMap<string, string>, cluster: string): string | undefined {
  return [...tree].find(([path]) => path.startsWith(`${cluster}/`) && path.endsWith(GUARD))?.[1];
}

const OWN_ACCOUNT = { namespace: 'fleet-agents', name: 'pull-secrets' };

test('the guard names the account of the kubeconfig, in a namespace of its own', () => {
  const tree = filesOf(
    fleet(
      { reconciler: { kubeconfigSecret: 'pullwright-kubeconfig' } },
      { namespace: 'pull-secrets-system', hostedCluster: { serviceAccount: OWN_ACCOUNT } },
    ),
  );
  const guard = guardIn(tree, 'hosted-0') ?? '';
  assert.match(guard, /request\.userInfo\.username == 'system:serviceaccount:fleet-agents:pull-secrets'/);
  // No namespace is excepted, our own neither: of kube-system the two Secrets by name.
  assert.doesNotMatch(guard, /pull-secrets-system/);
  assert.match(guard, /request\.namespace == 'kube-system' && request\.name in/);
  const [types, ...others] = [...tree].filter(([path]) =>
    /\/validatingadmissionpolicy-.*-secrets\.yaml$/.test(path),
  );
  assert.deepEqual(others, []);
  assert.match(types?.[1] ?? '', /system:serviceaccount:fleet-agents:pull-secrets'/);
});

test('the account and its rights are rendered into the hosted cluster, and nobody else gets them', () => {
  const systems = { 'global-pull-secret': {}, 'pull-secret-injection': {}, 'registry-overrides': {} };
  const tree = filesOf(
    fleet(
      { reconciler: { kubeconfigSecret: 'pullwright-kubeconfig' } },
      { systems, hostedCluster: { serviceAccount: OWN_ACCOUNT } },
    ),
  );
  const made = [...tree].filter(([path]) => path.startsWith('hosted-0/')).map(([, text]) => parse(text));
  assert.ok(
    made.some(({ kind, metadata }) => kind === 'ServiceAccount' && metadata.name === OWN_ACCOUNT.name),
  );
  assert.ok(
    made.some(({ kind, metadata }) => kind === 'Namespace' && metadata.name === OWN_ACCOUNT.namespace),
  );
  const bindings = made.filter(({ kind }) => String(kind).endsWith('RoleBinding'));
  assert.deepEqual(
    [...new Set(bindings.map(({ metadata }) => String(metadata.name)))].sort(),
    ['global-pull-secret', 'pull-secret-injection', 'reconciler-identity', 'registry-overrides'].map(
      (name) => `pullwright-${name}`,
    ),
  );
  for (const { subjects } of bindings)
    assert.deepEqual(subjects, [{ kind: 'ServiceAccount', ...OWN_ACCOUNT }]);
  assert.equal(
    filesOf(fleet({}, { systems })).has('hosted-0/_cluster/clusterrole-pullwright-global-pull-secret.yaml'),
    false,
  );
});

test('without an account there is no guard, because it would bind nobody, or everybody', () => {
  assert.equal(guardIn(filesOf(fleet({}, {})), 'hosted-0'), undefined);
});

test('a stand-alone cluster in a namespace of its own is guarded by that name', () => {
  const tree = filesOf({
    image: 'registry.example.com/pullwright:0.1.0',
    namespace: 'pull-secrets',
    clusters: [{ name: 'one', systems: { 'pull-secret-injection': {} } }],
  });
  const [, guard = ''] = [...tree].find(([path]) => path.endsWith(GUARD)) ?? [];
  assert.match(guard, /'system:serviceaccount:pull-secrets:pullwright-reconciler'/);
});

test('the reconciler leaves the pods of our own namespaces alone, whatever they are called', () => {
  const tree = filesOf(
    fleet({ namespace: 'hub-system' }, { namespace: 'a-system' }, { namespace: 'b-system' }),
  );
  const text = tree.get('hub/hub-system/configmap-pullwright-reconciler-config.yaml') ?? '';
  const { data } = parse(text) as { data: Record<string, string> };
  const { systems } = parse(data['config.yaml'] ?? '') as { systems: Record<string, object> };
  assert.partialDeepStrictEqual(systems['pull-secret-injection'], {
    ownNamespace: 'hub-system',
    excludedNamespaces: ['a-system', 'b-system'],
  });
});

interface Bad extends Case {
  readonly input: FleetInput;
  readonly says: RegExp;
}

const BAD: readonly Bad[] = [
  {
    name: "an account beside HyperShift's own kubeconfig",
    reason: 'the guard would name an account that writes nothing',
    input: fleet(
      { reconciler: { kubeconfigSecret: 'admin-kubeconfig' } },
      { hostedCluster: { serviceAccount: OWN_ACCOUNT } },
    ),
    says: /clusters\[1\]\.hostedCluster\.serviceAccount: the reconciler of "hub" uses Secret admin-kubeconfig, which is system:admin: set reconciler\.kubeconfigSecret/,
  },
  {
    name: 'all Secrets beside control planes',
    reason: 'the kubeconfigs of the administrators of hosted clusters lie there',
    input: {
      image: 'registry.example.com/pullwright:0.1.0',
      clusters: [{ name: 'hub', kind: 'management', systems: { verify: { namespaceSecrets: true } } }],
    },
    says: /clusters\[0\]\.systems\.verify\.namespaceSecrets: lists all Secrets, which include administrator kubeconfigs of control planes: expected secretNames/,
  },
  {
    name: 'options that differ between two hosted clusters',
    reason: 'the second would silently get those of the first',
    input: fleet({}, {}, { systems: { 'pull-secret-injection': { audit: false } } }),
    says: /clusters\[2\]\.systems\.pull-secret-injection\.audit: clusters\[1\] has true, but the reconciler of "hub" uses one value for both: expected the same, got false/,
  },
];
table(test, BAD, ({ input, says }) => {
  assert.throws(
    () => readFleet(input),
    (error) => error instanceof FleetError && says.test(error.message),
  );
});

test('a reconciler is administrator of hosted clusters where the fleet says so, and whose way there nobody said is pointed out', () => {
  const said = (...input: Parameters<typeof fleet>): readonly string[] =>
    readFleet(fleet(...input)).warnings.map(({ path, text }) => `${path.join('.')}: ${text}`);
  const [warning = '', ...more] = said({}, {});
  assert.match(
    warning,
    /^clusters\.0\.reconciler\.kubeconfigSecret: without it the reconciler uses Secret pullwright-kubeconfig for hosted clusters, which HyperShift does not create: .* or set admin-kubeconfig/,
  );
  assert.deepEqual(more, []);
  for (const kubeconfigSecret of ['admin-kubeconfig', 'pullwright-kubeconfig'])
    assert.deepEqual(said({ reconciler: { kubeconfigSecret } }, {}), []);
  for (const discovery of [true, false]) {
    const all = [...filesOf(fleet({ discovery }, {}))];
    assert.ok(
      all.every(([, text]) => !text.includes('admin-kubeconfig')),
      `discovery: ${discovery}`,
    );
    assert.ok(all.some(([, text]) => text.includes('--kubeconfig-secret=pullwright-kubeconfig')));
  }
});

test('verify beside the credential provider is told what it takes to be complete', () => {
  const said = (verify: object): readonly string[] =>
    readFleet({
      image: 'registry.example.com/pullwright:0.1.0',
      clusters: [{ name: 'a', systems: { 'credential-provider': {}, verify } }],
    }).warnings.map(({ path, text }) => `${path.join('.')}: ${text}`);
  const [warning = ''] = said({});
  assert.match(
    warning,
    /^clusters\.0\.systems\.verify\.namespaceSecrets: .*report is Incomplete: set namespaceSecrets: true/,
  );
  assert.deepEqual(said({ namespaceSecrets: true }), []);
  assert.deepEqual(said({ secretNames: ['registry'] }), []);
});

test('options that are equal, said or not, are no mistake; nor are those of another management cluster', () => {
  readFleet(fleet({}, {}, { systems: { 'pull-secret-injection': { audit: true } } }));
  const two = fleet({}, {});
  readFleet({
    ...two,
    clusters: [
      ...two.clusters,
      { name: 'hub-2', kind: 'management' },
      {
        name: 'far',
        kind: 'hosted',
        management: 'hub-2',
        systems: { 'pull-secret-injection': { audit: false } },
      },
    ],
  });
});

const HOSTED: Partial<Cluster> = { kind: 'hosted', management: 'hub' };
/** Number of files with names of HyperShift's objects, and number of admission policies. */
const NAMED = [
  ['stand-alone', 'git is alone', {}, undefined, 8, 2],
  ['stand-alone, observed', 'somebody else makes them', {}, 'observe', 0, 0],
  ['hosted', "git cannot see HyperShift's operator", HOSTED, undefined, 0, 2],
  ['hosted, said to be ours', 'nor can it there', HOSTED, 'own', 0, 2],
  ['hosted, observed', 'nothing of ours', HOSTED, 'observe', 0, 0],
  [
    'hosted, by the reconciler',
    'git has nothing there at all',
    { ...HOSTED, delivery: 'reconciler' },
    'own',
    0,
    0,
  ],
] as const;

cases<
  [cluster: Partial<Cluster>, mode: 'auto' | 'own' | 'observe' | undefined, syncer: number, policies: number]
>(test, NAMED, (cluster, mode, syncer, policies) => {
  const section = mode === undefined ? {} : { mode };
  const tree = filesOf({
    image: 'registry.example.com/pullwright:0.1.0',
    clusters: [
      { name: 'hub', kind: 'management' },
      { name: 'one', ...cluster, systems: { 'global-pull-secret': section } },
    ],
  });
  const files = [...tree.keys()].filter((path) => path.startsWith('one/'));
  assert.equal(files.filter((path) => path.endsWith('-global-pull-secret-syncer.yaml')).length, syncer);
  assert.equal(files.filter((path) => /admissionpolicy.*additional-pull-secret/.test(path)).length, policies);
});
