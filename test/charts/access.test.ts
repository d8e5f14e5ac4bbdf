/** The rights that are rendered cover what the reconcilers read: a kind that is served and may not be listed stops everything. */
import assert from 'node:assert/strict';
import { renderCluster } from '../../charts/app.ts';
import { readFleet } from '../../charts/fleet.ts';
import { SYSTEMS } from '../../charts/systems.ts';
import { RECONCILERS } from '../../runtime/commands/reconcile/reconcilers.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { PolicyRule } from '../../runtime/core/kubernetes/objects.ts';
import {
  CONTROL_PLANE_NAMESPACE,
  HOSTED_CLUSTER_NAMESPACE,
  type Role,
  type Watch,
} from '../../runtime/engine/contract.ts';
import { test } from '../support/suite.ts';

interface Grant {
  /** Absent: cluster-wide. */
  readonly namespace: string | undefined;
  readonly rule: PolicyRule;
}

/** Rights that these objects grant to the ServiceAccount of the reconciler. */
function grantsOf(objects: readonly KubeObject[]): readonly Grant[] {
  return objects.flatMap((binding) => {
    const subjects = (binding['subjects'] ?? []) as readonly { name: string }[];
    if (!subjects.some((subject) => subject.name === 'pullwright-reconciler')) return [];
    const ref = binding['roleRef'] as { kind: string; name: string };
    const role = objects.find(
      (object) =>
        object.kind === ref.kind &&
        object.metadata.name === ref.name &&
        object.metadata.namespace === binding.metadata.namespace,
    );
    assert.ok(role !== undefined, `${binding.kind} ${binding.metadata.name} binds a Role that is not there`);
    return (role['rules'] as readonly PolicyRule[]).map((rule) => ({
      namespace: binding.metadata.namespace,
      rule,
    }));
  });
}

function covers({ namespace, rule }: Grant, read: Watch, verb: 'list' | 'watch'): boolean {
  const group = read.apiVersion.includes('/') ? (read.apiVersion.split('/')[0] ?? '') : '';
  return (
    (namespace === undefined || namespace === read.namespace) &&
    rule.apiGroups.includes(group) &&
    rule.resources.includes(pluralOf(read.kind)) &&
    rule.verbs.includes(verb) &&
    (rule.resourceNames === undefined || (read.name !== undefined && rule.resourceNames.includes(read.name)))
  );
}

function pluralOf(kind: string): string {
  const word = kind.toLowerCase();
  return word.endsWith('y') ? `${word.slice(0, -1)}ies` : word.endsWith('s') ? `${word}es` : `${word}s`;
}

/** Reads that nothing grants, as text. */
function missing(reads: readonly Watch[], grants: readonly Grant[]): readonly string[] {
  return reads
    .filter(
      (read) =>
        !(['list', 'watch'] as const).every((verb) => grants.some((grant) => covers(grant, read, verb))),
    )
    .map((read) => `${read.kind} ${read.namespace ?? '*'}/${read.name ?? '*'}`);
}

const image = 'registry.example.com/pullwright:0.1.0';
const names = { [CONTROL_PLANE_NAMESPACE]: 'openshift-config' };

function placed(read: Watch, namespaces: Readonly<Record<string, string>>): Watch {
  return read.namespace === undefined
    ? read
    : { ...read, namespace: namespaces[read.namespace] ?? read.namespace };
}

const systems = SYSTEMS.filter(
  (system) => system.reconciler !== undefined || system.managementReconciler !== undefined,
);

for (const { name, kinds } of systems) {
  const readsOf = async (role: Role | 'both'): Promise<readonly Watch[]> => {
    const load = RECONCILERS[name];
    assert.ok(load !== undefined, `${name} has rights to reconcile, and no reconciler`);
    const reconcilers = (await load()).reconcilers({});
    return reconcilers.flatMap((one) => one.watches).filter((read) => role === 'both' || read.role === role);
  };

  for (const delivery of ['gitops', 'reconciler'] as const)
    test(`${name}: stand-alone, delivery ${delivery}`, async () => {
      const fleet = readFleet({ image, clusters: [{ name: 'a', delivery, systems: { [name]: {} } }] });
      const [cluster] = fleet.clusters;
      assert.ok(cluster !== undefined);
      const { objects } = renderCluster(fleet, cluster);
      // A system may have nothing to reconcile in a cluster of this kind.
      if (!objects.some((object) => object.kind === 'Deployment')) return;
      const reads = (await readsOf('both'))
        .filter((read) => read.namespace !== HOSTED_CLUSTER_NAMESPACE)
        .map((read) => placed(read, names));
      assert.deepEqual(missing(reads, grantsOf(objects)), []);
    });

  for (const discovery of [false, true])
    test(`${name}: management${discovery ? ', every hosted cluster' : ''}`, async () => {
      const fleet = readFleet({
        image,
        clusters: [
          {
            name: 'hub',
            kind: 'management',
            discovery,
            ...(kinds.includes('management') ? { systems: { [name]: {} } } : {}),
          },
          {
            name: 'a',
            kind: 'hosted',
            management: 'hub',
            ...(kinds.includes('hosted') ? { systems: { [name]: {} } } : {}),
          },
        ],
      });
      const [hub] = fleet.clusters;
      assert.ok(hub !== undefined);
      const namespaces = { [CONTROL_PLANE_NAMESPACE]: 'clusters-a', [HOSTED_CLUSTER_NAMESPACE]: 'clusters' };
      const reads = (await readsOf('management')).map((read) => placed(read, namespaces));
      const grants = grantsOf(renderCluster(fleet, hub).objects);
      assert.deepEqual(missing(reads, grants), []);
      const secrets = grants.filter(({ rule }) => rule.resources.includes('secrets'));
      for (const { rule } of secrets)
        assert.ok(rule.resourceNames !== undefined, 'Secrets are granted by name only');
    });
}

test('no rule has a wildcard', () => {
  for (const kind of ['standalone', 'management'] as const) {
    const fleet = readFleet({
      image,
      clusters: [
        {
          name: 'a',
          kind,
          ...(kind === 'management' ? { discovery: true } : {}),
          systems: Object.fromEntries(
            systems.filter((one) => one.kinds.includes(kind)).map((one) => [one.name, {}]),
          ),
        },
      ],
    });
    const [cluster] = fleet.clusters;
    assert.ok(cluster !== undefined);
    const rules = renderCluster(fleet, cluster).objects.flatMap(
      (object) => (object['rules'] ?? []) as readonly PolicyRule[],
    );
    assert.ok(rules.length > 3);
    for (const rule of rules) assert.ok(!JSON.stringify(rule).includes('*'), JSON.stringify(rule));
  }
});
