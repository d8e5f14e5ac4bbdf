/** Hosted clusters of a fleet: what names the reconciler there, and what one reconciler cannot do for two of them. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { renderFleet } from '../../charts/app.ts';
import { type FleetInput, readFleet } from '../../charts/fleet.ts';
import { FleetError } from '../../charts/fleet-problems.ts';
import { type Case, suite, table } from '../support/suite.ts';

const test = suite('hosted clusters of a fleet');
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
  assert.match(guard, /"pull-secrets-system"/);
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
    input: fleet({}, { hostedCluster: { serviceAccount: OWN_ACCOUNT } }),
    says: /clusters\[1\]\.hostedCluster\.serviceAccount: the reconciler of "hub" comes with Secret admin-kubeconfig, which is system:admin: wanted reconciler\.kubeconfigSecret/,
  },
  {
    name: 'the same, said by name',
    reason: 'the default is written out',
    input: fleet(
      { reconciler: { kubeconfigSecret: 'admin-kubeconfig' } },
      { hostedCluster: { serviceAccount: OWN_ACCOUNT } },
    ),
    says: /system:admin/,
  },
  {
    name: 'options that differ between two hosted clusters',
    reason: 'the second would silently get those of the first',
    input: fleet({}, {}, { systems: { 'pull-secret-injection': { evict: true } } }),
    says: /clusters\[2\]\.systems\.pull-secret-injection\.evict: clusters\[1\] has false, and the reconciler of "hub" serves both with one value: wanted the same, got true/,
  },
];
table(test, BAD, ({ input, says }) => {
  assert.throws(
    () => readFleet(input),
    (error) => error instanceof FleetError && says.test(error.message),
  );
});

test('options that are equal, said or not, are no mistake; nor are those of another management cluster', () => {
  readFleet(fleet({}, {}, { systems: { 'pull-secret-injection': { evict: false, audit: true } } }));
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
        systems: { 'pull-secret-injection': { evict: true } },
      },
    ],
  });
});

test.run();
