/**
 * Somebody has the token of an account of ours: what it reaches is known, was looked at, and does not grow unseen; and what RBAC
 * cannot narrow the API server refuses all the same.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultFleet, type FleetInput, readFleet, renderFleet, writeTree } from '../../charts/mod.ts';
import type { RbacRule } from '../../runtime/rules/rights/grants.ts';
import { rightsOf } from '../../runtime/rules/rights/rights.ts';
import { suite } from '../support/suite.ts';
import { discovery, full, hub, named, rights } from './rights-fleets.ts';

const test = suite('rights');
const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'pullwright-rights-'));
test.lastly('the scratch folder goes', () => rmSync(folder, { recursive: true }));

/** Each fleet, and the folder of the cluster in it. */
const FLEETS: readonly (readonly [name: string, fleet: FleetInput, cluster: string])[] = [
  ['default', defaultFleet, '.'],
  ['full', full, '.'],
  ['hub', hub, 'hub'],
  ['guest', hub, 'guest'],
  ['discovery', discovery, '.'],
  ['named', named, '.'],
];

for (const [name, fleet, cluster] of FLEETS)
  test(`of ${name} are those that were looked at`, async () => {
    const place = join(folder, name);
    writeTree(place, renderFleet(readFleet(fleet)).tree);
    const accepted = join(root, 'test/golden/rights', `${name}.json`);
    const from = join(place, cluster);
    const all = await rights('--from', from, '--output=json');
    assert.equal(all.code, 0, all.stderr);
    if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(accepted, all.stdout);
    const grown = await rights('--from', from, '--baseline', accepted);
    assert.equal(grown.code, 0, `${grown.stdout}${grown.stderr}`);
    // What is no longer there is taken out of the list too, or it could come back unseen.
    assert.equal(all.stdout, readFileSync(accepted, 'utf8'), 'run it with UPDATE_GOLDEN=1');
    const wide = await rights('--from', from, '--wide', '--output=json');
    const unexplained = JSON.parse(wide.stdout).rights.filter(
      (right: { reason?: string; boundBy: unknown[] }) => right.reason === undefined,
    );
    assert.deepEqual(unexplained, [], 'a wide right is named with its reason');
  });

test('where everything is named reach no Secret beyond these names and namespaces', async () => {
  const all = await rights('--from', join(folder, 'named'), '--output=json');
  const found: readonly { power: string; namespace?: string; names?: readonly string[] }[] = JSON.parse(
    all.stdout,
  ).rights;
  const places = found
    .filter(({ power }) => power.endsWith('-secrets'))
    .flatMap(({ namespace = '*', names = ['*'] }) => names.map((name) => `${namespace}/${name}`));
  assert.deepEqual([...new Set(places)].sort(), [
    'kube-system/global-pull-secret',
    'openshift-config/pull-secret',
    'platform/quay',
    'platform/reg',
    'shop/reg',
  ]);
});

test('that are wide stand in the threat model', async () => {
  const document = join(root, 'docs/threat-model.md');
  const tables = await Promise.all(
    ['full', 'hub/hub', 'hub/guest', 'discovery'].map((cluster) =>
      rights('--from', join(folder, cluster), '--wide', '--output=markdown'),
    ),
  );
  const [head = '', line = ''] = (tables[0]?.stdout ?? '').split('\n');
  const rows = new Set(tables.flatMap(({ stdout }) => stdout.split('\n').slice(2, -1)));
  const block = `<!-- rights -->\n\n${[head, line, ...rows].join('\n')}\n\n<!-- /rights -->`;
  const text = readFileSync(document, 'utf8');
  const wanted = text.replace(/<!-- rights -->[^]*<!-- \/rights -->/, () => block);
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(document, wanted);
  assert.equal(readFileSync(document, 'utf8'), wanted, 'run it with UPDATE_GOLDEN=1');
});

test('that grow make the command fail and are shown alone', async () => {
  const place = join(folder, 'grown');
  const { tree } = renderFleet(readFleet(defaultFleet));
  writeTree(place, tree);
  const path = 'kube-system/role-pullwright-global-pull-secret.yaml';
  const more = (tree.get(path) ?? '').replace(
    '- additional-pull-secret',
    '- additional-pull-secret\n      - other',
  );
  assert.notEqual(more, tree.get(path));
  writeFileSync(join(place, path), more);
  const { code, stdout, stderr } = await rights(
    '--from',
    place,
    '--output=json',
    '--baseline',
    join(root, 'test/golden/rights/default.json'),
  );
  assert.equal(code, 1, stderr);
  assert.deepEqual(
    JSON.parse(stdout).rights.map(({ power, names }: { power: string; names: string[] }) => [power, names]),
    [['read-secrets', ['additional-pull-secret', 'other']]],
  );
});

/** Rights of an account with this one rule. */
function rightsBy(rule: RbacRule, namespace?: string): readonly string[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  const kind = namespace === undefined ? 'ClusterRole' : 'Role';
  const metadata = { name: 'r', ...(namespace === undefined ? {} : { namespace }) };
  return rightsOf([
    { apiVersion, kind, metadata, rules: [rule] },
    {
      apiVersion,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { kind, name: 'r' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'a', name: 'x' }],
    },
  ]).map(({ power }) => power);
}

test('of whoever sets what admission makes of the objects of others are those of an administrator', () => {
  const apiGroups = ['admissionregistration.k8s.io'];
  const by = (resource: string, verb: string): readonly string[] =>
    rightsBy({ apiGroups, resources: [resource], verbs: [verb], resourceNames: ['ours'] });
  for (const resource of ['mutatingadmissionpolicies', 'mutatingwebhookconfigurations'])
    assert.deepEqual(by(resource, 'patch'), ['become-cluster-admin', 'change-admission'], resource);
  assert.deepEqual(by('mutatingadmissionpolicies', 'delete'), ['change-admission']);
  assert.deepEqual(by('validatingadmissionpolicies', 'patch'), ['change-admission']);
});

test("of whoever reads HyperShift's own kubeconfig are those of an administrator of that cluster", () => {
  const rule = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
  const by = (name: string, namespace?: string): readonly string[] =>
    rightsBy({ ...rule, resourceNames: [name] }, namespace);
  for (const namespace of [undefined, 'clusters-guest'])
    assert.deepEqual(by('admin-kubeconfig', namespace), ['administer-hosted-clusters', 'read-secrets']);
  assert.deepEqual(by('pullwright-kubeconfig', 'clusters-guest'), ['read-secrets']);
});

test('of two clusters in one folder are not added up', async () => {
  const place = join(folder, 'hub');
  const { code, stderr } = await rights('--from', place);
  assert.equal(code, 2);
  assert.match(stderr, /Cannot tell the clusters of .* apart: .* give the folder of one/);
});

test.run();
