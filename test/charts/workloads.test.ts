/** Every container that is rendered, over all systems and their options, against the table of what it needs. */
import assert from 'node:assert/strict';
import { parseFleet } from '../../charts/fleet.ts';
import { fleetJsonSchema } from '../../charts/fleet-schema.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { containerNeeds, podOf } from '../support/container-needs.ts';
import { test } from '../support/suite.ts';
import {
  CLUSTERS,
  madeAtRunTime,
  NO_POD,
  renderedBy,
  WORKLOAD_PULL_SECRET,
} from '../support/workload-fleets.ts';
import { ROWS } from './workload-rows.ts';

const RENDERED: Readonly<Record<string, readonly KubeObject[]>> = {
  ...Object.fromEntries(Object.keys(CLUSTERS).map((name) => [name, renderedBy(name)])),
  ...madeAtRunTime(),
};
const ALL = Object.values(RENDERED).flat();

for (const [name, objects] of Object.entries(RENDERED))
  test(`${name}: each has what its row says, and no more`, () => {
    for (const needs of containerNeeds(objects)) {
      const row = ROWS.find(({ at }) => at === needs.at);
      assert.ok(row !== undefined, `${needs.at} has no row: say in workload-rows.ts what it needs, and why`);
      const { why, except, ...usual } = row;
      assert.deepEqual(needs, { ...usual, ...except?.[name] }, why);
    }
  });

test('every row and every exception is rendered by something', () => {
  for (const { at, except = {} } of ROWS) {
    const names = Object.entries(RENDERED).flatMap(([name, objects]) =>
      containerNeeds(objects).some((needs) => needs.at === at) ? [name] : [],
    );
    assert.notEqual(names.length, 0, at);
    for (const name of Object.keys(except)) assert.ok(names.includes(name), `${at}: ${name}`);
  }
});

test('every option of every system is used here, or is known to reach no pod', () => {
  const used = new Set(
    Object.values(CLUSTERS)
      .flat()
      .flatMap(({ systems = {} }) => leaves(systems)),
  );
  const schema = fleetJsonSchema() as unknown as Schema;
  const { systems } = schema.properties?.['clusters']?.items?.properties ?? {};
  const known = paths(systems ?? {});
  assert.ok(known.length > 80);
  const open = known.filter((path) => !used.has(path) && !NO_POD.some((pattern) => pattern.test(path)));
  assert.deepEqual(open, []);
  for (const pattern of NO_POD)
    assert.ok(
      known.some((path) => pattern.test(path)),
      String(pattern),
    );
});

test('every pod names the Secret that our image is pulled with', () => {
  for (const object of ALL) {
    const pod = podOf(object);
    if (pod !== undefined)
      assert.deepEqual(pod.imagePullSecrets, [{ name: WORKLOAD_PULL_SECRET }], object.metadata.name);
  }
});

test('a cluster pulls our image with the Secrets of the fleet, with its own, or with none', () => {
  const { clusters } = parseFleet(`image: registry.example.com/p:1
imagePullSecrets: [a]
clusters: [{ name: x }, { name: y, imagePullSecrets: [b] }, { name: z, imagePullSecrets: [] }]
`);
  assert.deepEqual(
    clusters.map(({ context }) => context.imagePullSecrets),
    [['a'], ['b'], []],
  );
});

test('what is not root stands where nothing else is admitted; what is root stands in kube-system alone', () => {
  const restricted = ALL.filter(
    ({ kind, metadata }) =>
      kind === 'Namespace' && metadata.labels?.['pod-security.kubernetes.io/enforce'] === 'restricted',
  ).map(({ metadata }) => metadata.name);
  for (const { at, rights } of ALL.flatMap((object) => containerNeeds([object]))) {
    const [namespace = ''] = at.split('/');
    if (rights.startsWith('user 0')) assert.equal(namespace, 'kube-system', at);
    // The namespace of HyperFleet's adapters is not ours to close.
    else assert.ok([...restricted, 'hyperfleet-system'].includes(namespace), at);
  }
});

test('the webhook of a stand-alone cluster says where its certificate comes from; a hosted one is OpenShift', () => {
  const read = (fields: string): unknown =>
    parseFleet(`image: registry.example.com/p:1
clusters:
  - { name: hub, kind: management }
  - { name: a, ${fields} }
`);
  const webhook = 'systems: { pull-secret-injection: { admission: webhook } }';
  assert.throws(
    () => read(webhook),
    /clusters\[1\]\.systems\.pull-secret-injection\.certificates: missing, expected \{kind: service-ca\} on OpenShift/,
  );
  read(`kind: hosted, management: hub, ${webhook}`);
});

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** Paths of every value, without those below lists and free-form maps. */
function paths({ properties = {}, anyOf = [], oneOf = [] }: Schema): readonly string[] {
  const own = Object.entries(properties).flatMap(([name, below]) => {
    const further = paths(below);
    return further.length === 0 ? [name] : further.map((path) => `${name}.${path}`);
  });
  return [...own, ...[...anyOf, ...oneOf].flatMap(paths)];
}

/** Paths of all values that are set, at every depth. */
function leaves(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([name, below]) => [
    name,
    ...leaves(below).map((path) => `${name}.${path}`),
  ]);
}
