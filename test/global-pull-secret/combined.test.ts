import assert from 'node:assert/strict';
import { parseAllDocuments } from 'yaml';
import { renderFleet } from '../../charts/app.ts';
import { readFleet } from '../../charts/fleet.ts';
import type { KubeObject, SecretObject } from '../../runtime/rules/kubernetes/object.ts';
import { reveal } from '../../runtime/rules/redacted.ts';
import { type Case, suite, table } from '../support/suite.ts';
import { additional, auth, config, type Fleet, fleet, PLATFORM, secret } from './fleet.ts';

const test = suite('combined-pull-secret');

const TENANT = config({ 'new.example': auth('new'), 'quay.io': auth('tenant') });
const OWN = { mode: 'own' };

function combinedOf(one: Fleet): SecretObject | undefined {
  const ref = { apiVersion: 'v1', kind: 'Secret', namespace: 'clusters-a', name: 'combined-pull-secret' };
  return one.management.get(ref) as SecretObject | undefined;
}

function registriesOf(one: Fleet): Readonly<Record<string, unknown>> | undefined {
  const value = combinedOf(one)?.data?.['.dockerconfigjson'];
  if (value === undefined) return undefined;
  return (JSON.parse(Buffer.from(reveal(value), 'base64').toString()) as { auths: Record<string, unknown> })
    .auths;
}

/** As HyperShift's operator makes it when a cluster comes to be. */
function bootstrapped(text: string, annotations: Readonly<Record<string, string>> = {}): KubeObject {
  const made = secret('combined-pull-secret', 'clusters-a', { '.dockerconfigjson': text });
  const managedFields = [
    {
      manager: 'hypershift-operator-manager',
      operation: 'Update',
      fieldsV1: { 'f:data': { 'f:.dockerconfigjson': {} } },
    },
  ];
  return { ...made, metadata: { ...made.metadata, annotations, managedFields } };
}

test("with mode own, image imports get what nodes get, and the platform's entries win", () => {
  const one = fleet(PLATFORM, TENANT, OWN);
  one.reconcile();
  assert.deepEqual(registriesOf(one), one.auths('global-pull-secret'));
  assert.deepEqual(registriesOf(one)?.['quay.io'], auth('platform'));
  assert.equal(combinedOf(one)?.type, 'kubernetes.io/dockerconfigjson');
  const again = one.reconcile().objects.filter(({ verb }) => verb !== 'unchanged');
  assert.deepEqual(again, [], 'a second pass writes nothing');
});

test("without an additional secret it holds the platform's: a deployment mounts it", () => {
  const one = fleet(PLATFORM, TENANT, OWN);
  one.reconcile();
  one.hosted.delete({
    apiVersion: 'v1',
    kind: 'Secret',
    namespace: 'kube-system',
    name: 'additional-pull-secret',
  });
  one.reconcile();
  assert.deepEqual(Object.keys(registriesOf(one) ?? {}), ['quay.io', 'registry.example.com']);
});

test('a broken additional secret and an emptied platform secret leave it as it was', () => {
  const one = fleet(PLATFORM, TENANT, OWN);
  one.reconcile();
  const before = registriesOf(one);
  one.hosted.set(additional('{'));
  one.management.set(secret('pull-secret', 'clusters-a', { '.dockerconfigjson': '{"auths":{}}' }));
  one.reconcile();
  assert.deepEqual(registriesOf(one), before);
});

test('it stays when the mode is no longer own, and what it lacks is said', () => {
  const one = fleet(PLATFORM, TENANT, OWN);
  one.reconcile();
  const later = fleet(PLATFORM, config({ 'later.example': auth('later') }));
  later.management.set(combinedOf(one) as KubeObject);
  later.reconcile();
  assert.deepEqual(registriesOf(later), registriesOf(one));
  const found = later.status('original')?.verdicts.find(({ subject }) => subject.includes('combined'));
  assert.equal(found?.reason, 'ImageImportsLack');
  assert.match(found?.message ?? '', /made with mode "own", which is no longer set/);
});

interface Row extends Case {
  readonly options?: Readonly<Record<string, unknown>>;
  readonly present?: KubeObject;
  /** Verdict, or none. */
  readonly says?: RegExp;
  /** Registries afterwards. */
  readonly keys?: readonly string[];
}

const ALL = ['new.example', 'quay.io', 'registry.example.com'];
const BASE = ['quay.io', 'registry.example.com'];

const rows: readonly Row[] = [
  { name: 'auto, none there', reason: 'HyperShift before it mounts one: nobody would read it' },
  { name: 'observe, none there', reason: 'nothing is written', options: { mode: 'observe' } },
  {
    name: "auto, the operator's",
    reason: 'another writer: said, not written',
    present: bootstrapped(PLATFORM),
    says: /^ImageImportsLack .*lack "new\.example", which nodes have: it is kept by hypershift-operator-manager; where/,
    keys: BASE,
  },
  {
    name: "own, the operator's",
    reason: 'it is handed over on its own, so that nodes do not wait for it',
    options: OWN,
    present: bootstrapped(PLATFORM),
    says: /^ImageImportsLack .*annotate it with pullwright\.dev\/adopt: "true" to hand it over$/,
    keys: BASE,
  },
  {
    name: 'own, handed over',
    reason: 'a person said that it is ours',
    options: OWN,
    present: bootstrapped(PLATFORM, { 'pullwright.dev/adopt': 'true' }),
    keys: ALL,
  },
  {
    name: 'auto, handed over',
    reason: 'the account has no right to write it without mode own',
    present: bootstrapped(PLATFORM, { 'pullwright.dev/adopt': 'true' }),
    says: /^ImageImportsLack/,
    keys: BASE,
  },
  {
    name: 'the operator merges',
    reason: 'the next release of HyperShift',
    present: bootstrapped(
      config({
        'new.example': auth('new'),
        'quay.io': auth('platform'),
        'registry.example.com': auth('platform-2'),
      }),
    ),
    says: /^InCombinedPullSecret image imports have what nodes have$/,
    keys: ALL,
  },
  {
    name: 'not readable',
    reason: 'all of it is lacking',
    present: bootstrapped('{'),
    says: /^ImageImportsLack .*lack "new\.example" and 2 more/,
  },
];

table(test, rows, ({ options, present, says, keys }) => {
  const one = fleet(PLATFORM, TENANT, options);
  if (present !== undefined) one.management.set(present);
  one.reconcile();
  const found = one.status('original')?.verdicts.find(({ subject }) => subject.includes('combined'));
  if (says === undefined) assert.equal(found, undefined);
  else assert.match(`${found?.reason} ${found?.message}`, says);
  if (keys !== undefined) assert.deepEqual(Object.keys(registriesOf(one) ?? {}).sort(), keys);
  if (present === undefined) assert.equal(combinedOf(one), undefined);
});

/** Verbs on the Secret that the rendered account of the management cluster has. */
function verbsWith(mode: string | undefined, discovery: boolean): readonly string[] {
  const settings = mode === undefined ? {} : { mode };
  const { tree } = renderFleet(
    readFleet({
      image: 'registry.example.com/pullwright:0.1.0',
      clusters: discovery
        ? [{ name: 'hub', kind: 'management', discovery: true, systems: { 'global-pull-secret': settings } }]
        : [
            { name: 'hub', kind: 'management' },
            { name: 'one', kind: 'hosted', management: 'hub', systems: { 'global-pull-secret': settings } },
          ],
    }),
  );
  const rules = [...tree.values()]
    .flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Record<string, unknown>))
    .filter((object) => String(object?.['kind']).endsWith('Role'))
    .flatMap((object) => (object['rules'] ?? []) as { resourceNames?: string[]; verbs: string[] }[]);
  const verbs = rules.filter(({ resourceNames }) => resourceNames?.includes('combined-pull-secret'));
  return [...new Set(verbs.flatMap((rule) => rule.verbs))].sort();
}

test('the account may write it with mode own alone', () => {
  const read = ['get', 'list', 'watch'];
  for (const discovery of [true, false]) {
    assert.deepEqual(verbsWith(undefined, discovery), read, `discovery ${discovery}`);
    assert.deepEqual(verbsWith('observe', discovery), read);
    assert.deepEqual(verbsWith('own', discovery), ['create', ...read.slice(0, 2), 'patch', 'watch']);
  }
});

test.run();
