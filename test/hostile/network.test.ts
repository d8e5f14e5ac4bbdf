/**
 * Every pod of ours is behind a NetworkPolicy in both directions or on the host's network, where no policy holds; a policy says from whom
 * and to where wherever that can be said.
 */
import assert from 'node:assert/strict';
import { renderFleet } from '../../charts/app.ts';
import { readFleet } from '../../charts/fleet.ts';
import { FleetError } from '../../charts/fleet-problems.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import type { NetworkSettings } from '../../runtime/core/kubernetes/objects.ts';
import { isRecord } from '../../runtime/core/record.ts';
import { podSpecIn } from '../../runtime/diagnose/model/pull.ts';
import { table, test } from '../support/suite.ts';
import { CLUSTERS, madeAtRunTime, renderedBy, WORKLOAD_IMAGE } from '../support/workload-fleets.ts';

interface Rule {
  readonly ports?: readonly { readonly port: number | string }[];
  readonly from?: readonly object[];
  readonly to?: readonly object[];
}
interface PolicySpec {
  readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly policyTypes: readonly string[];
  readonly ingress?: readonly Rule[];
  readonly egress?: readonly Rule[];
}

const policiesOf = (objects: readonly KubeObject[]): readonly KubeObject[] =>
  objects.filter(({ kind }) => kind === 'NetworkPolicy');
const specOf = (object: KubeObject): PolicySpec => object['spec'] as PolicySpec;

/** The template of pods below an object, wherever its kind keeps it. */
function templateOf(
  value: unknown,
): { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> } } | undefined {
  if (!isRecord(value)) return undefined;
  if (isRecord(value['template']) && isRecord(value['template']['spec'])) return value['template'];
  for (const key of ['spec', 'jobTemplate']) {
    const found = templateOf(value[key]);
    if (found !== undefined) return found;
  }
  return undefined;
}

const adapter = renderedBy('defaults');
const workloads = [
  ...Object.keys(CLUSTERS).map((name) => [name, renderedBy(name)] as const),
  // Jobs run in the adapter's namespace, and its installation contains their policy.
  ...Object.entries(madeAtRunTime()).map(
    ([name, objects]) => [name, [...objects, ...policiesOf(adapter)]] as const,
  ),
];

for (const [name, objects] of workloads)
  test(`every pod has a policy in both directions: ${name}`, () => {
    const policies = policiesOf(objects);
    const pods = objects.filter((object) => templateOf(object) !== undefined);
    for (const object of pods) {
      if ((podSpecIn(object) as { hostNetwork?: boolean }).hostNetwork === true) continue;
      const labels = templateOf(object)?.metadata?.labels ?? {};
      const own = policies.filter((policy) =>
        Object.entries(specOf(policy).podSelector.matchLabels).every(([key, value]) => labels[key] === value),
      );
      assert.notDeepEqual(own, [], `${object.kind} ${object.metadata.name}`);
      for (const policy of own) assert.deepEqual(specOf(policy).policyTypes, ['Ingress', 'Egress']);
    }
    assert.ok(pods.length > 0 || objects.every(({ kind }) => kind !== 'Deployment'));
  });

function ruled(network?: NetworkSettings): Readonly<Record<string, PolicySpec>> {
  const [cluster] = CLUSTERS['defaults'] ?? [];
  assert.ok(cluster !== undefined);
  const fleet = readFleet({
    image: WORKLOAD_IMAGE,
    ...(network === undefined ? {} : { defaults: { network } }),
    clusters: [cluster],
  });
  const policies = policiesOf(renderFleet(fleet).clusters.flatMap(({ objects }) => objects));
  return Object.fromEntries(policies.map((policy) => [policy.metadata.name, specOf(policy)]));
}

const block = (cidr: string): object => ({ ipBlock: { cidr } });
const portsOf = (rules: readonly Rule[] = []): readonly (number | string)[] =>
  rules.flatMap(({ ports = [] }) => ports.map(({ port }) => port));

test('metrics are for the monitoring namespaces alone; probes need no rule, and nothing else comes in', () => {
  for (const [values, policies] of [
    [['monitoring', 'openshift-monitoring', 'openshift-user-workload-monitoring'], ruled()],
    [['prometheus'], ruled({ monitoringNamespaces: ['prometheus'] })],
  ] as const) {
    const from = [
      {
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values }],
        },
      },
    ];
    const rules = Object.entries(policies).flatMap(([name, { ingress = [] }]) =>
      ingress.map((rule) => [name, rule] as const),
    );
    for (const [name, rule] of rules)
      if (portsOf([rule]).includes('metrics')) assert.deepEqual(rule.from, from, name);
      else assert.deepEqual([name, portsOf([rule])], ['pullwright-webhook', ['webhook']]);
    assert.deepEqual(policies['pullwright-verify']?.ingress, undefined);
    assert.deepEqual(policies['pullsecret-adapter-job']?.ingress, undefined);
  }
});

test('the webhook connects to the API server only, if the fleet says so', () => {
  const said = ruled({ apiServer: ['10.0.0.1', '172.30.0.1/32', 'fd00::1'] })['pullwright-webhook'];
  const peers = ['10.0.0.1/32', '172.30.0.1/32', 'fd00::1/128'].map(block);
  assert.deepEqual(said?.ingress?.[0]?.from, peers);
  assert.deepEqual(said.egress?.[1]?.to, peers);
  assert.deepEqual(portsOf(said.egress?.slice(1)), [443, 6443]);
  assert.equal(ruled()['pullwright-webhook']?.ingress?.[0]?.from, undefined);
});

test('the others go where the platform says, and to the API server', () => {
  const policies = ruled({ egress: ['192.0.2.0/24'], apiServer: ['10.0.0.1'] });
  for (const name of [
    'pullwright-reconciler',
    'pullwright-verify',
    'pull-secret-adapter',
    'pullsecret-adapter-job',
  ])
    assert.deepEqual(policies[name]?.egress?.[1]?.to, ['192.0.2.0/24', '10.0.0.1/32'].map(block), name);
});

for (const [name, clusters] of Object.entries(CLUSTERS))
  test(`every rule says from whom or to where, but that of DNS, once the platform says its networks: ${name}`, () => {
    const network = { apiServer: ['10.0.0.1'], egress: ['192.0.2.0/24'] };
    const fleet = readFleet({ image: WORKLOAD_IMAGE, defaults: { network }, clusters });
    const policies = policiesOf(renderFleet(fleet).clusters.flatMap(({ objects }) => objects));
    for (const policy of policies) {
      const { ingress = [], egress = [] } = specOf(policy);
      for (const rule of ingress) assert.ok((rule.from ?? []).length > 0, policy.metadata.name);
      const open = egress.filter(({ to }) => to === undefined);
      assert.deepEqual(new Set(portsOf(open)), new Set([53, 5353]), policy.metadata.name);
    }
  });

test("Google's metadata server is reached at its own addresses, and by no other port than its own", () => {
  for (const [name, { egress = [] }] of Object.entries(ruled())) {
    const free = egress.filter(({ to }) => to === undefined);
    assert.ok(!portsOf(free).includes(80) && !portsOf(free).includes(988), name);
  }
  assert.deepEqual(ruled()['pullsecret-adapter-job']?.egress?.at(-1), {
    ports: [80, 988].map((port) => ({ port, protocol: 'TCP' })),
    to: ['169.254.169.254/32', '169.254.169.252/32', '127.0.0.1/32'].map(block),
  });
});

table(
  test,
  [
    { name: 'no network', reason: 'a name', network: { apiServer: ['api.example.com'] } },
    { name: 'a length that is none', reason: 'a typing error', network: { egress: ['10.0.0.0/33'] } },
    { name: 'nobody', reason: 'an empty list would read as nothing', network: { apiServer: [] } },
    { name: 'no namespace', reason: 'a selector', network: { monitoringNamespaces: ['team=a'] } },
  ],
  ({ network }) => {
    assert.throws(() => ruled(network), FleetError);
  },
);
