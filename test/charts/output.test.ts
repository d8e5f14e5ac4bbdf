/** The tree of files, and what happens in a folder that holds other things as well. */

import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parse, parseAllDocuments } from 'yaml';
import {
  compareTree,
  headerOf,
  type ManifestTree,
  pathOf,
  renderTree,
  writeTree,
  yamlOf,
} from '../../charts/output.ts';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { forAll } from '../support/for-all.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const role = (namespace: string, name = 'syncer'): KubeObject =>
  meta('rbac.authorization.k8s.io/v1 Role', { name, namespace });

const filesOf = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

const tree = (...namespaces: readonly string[]): ManifestTree =>
  renderTree(namespaces.map((one) => role(one)));

test('two Roles of one name in two namespaces have a file each', () => {
  assert.deepEqual(
    [...renderTree([role('openshift-config'), role('kube-system')]).keys()],
    ['kube-system/role-syncer.yaml', 'kustomization.yaml', 'openshift-config/role-syncer.yaml'],
  );
});

test('the same object twice is refused with both names', () => {
  assert.throws(
    () => renderTree([role('a'), role('a')]),
    /Cannot write "a\/role-syncer.yaml": Role\/a\/syncer .* and Role\/a\/syncer .* both have this path, expected one/,
  );
});

test('the order of objects and of their keys does not matter', () => {
  const a = renderTree([
    role('a'),
    { metadata: { namespace: 'b', name: 'x' }, kind: 'Role', apiVersion: 'v1', z: 1, y: 2 },
  ]);
  const b = renderTree([
    { apiVersion: 'v1', kind: 'Role', y: 2, z: 1, metadata: { name: 'x', namespace: 'b' } },
    role('a'),
  ]);
  assert.deepEqual([...a], [...b]);
});

test('what has no namespace comes first, even before a namespace that begins with a digit', () => {
  const text = renderTree([
    role('1st'),
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: '1st' } },
  ]).get('kustomization.yaml');
  assert.deepEqual(parse(text ?? '').resources, ['_cluster/namespace-1st.yaml', '1st/role-syncer.yaml']);
});

test('CRDs and overlays have kustomizations of their own; the base refers only to the CRDs', () => {
  const written = renderTree([
    role('a'),
    meta('apiextensions.k8s.io/v1 CustomResourceDefinition', { name: 'xs.example.com' }),
    meta('monitoring.coreos.com/v1 PrometheusRule', { name: 'r', namespace: 'a' }),
  ]);
  const resources = (path: string): unknown => parse(written.get(path) ?? '').resources;
  assert.deepEqual(resources('kustomization.yaml'), ['a/role-syncer.yaml', 'crds']);
  assert.deepEqual(resources('crds/kustomization.yaml'), ['xs.example.com.yaml']);
  assert.deepEqual(resources('overlays/monitoring.coreos.com/kustomization.yaml'), [
    'a/prometheusrule-r.yaml',
  ]);
});

test('every object has a file of its own, whatever its name', () => {
  const name = fc.string({ minLength: 1, maxLength: 253, unit: 'grapheme' });
  forAll({}, fc.uniqueArray(name, { minLength: 2, maxLength: 20 }), (names) => {
    const paths = names.map((one) =>
      pathOf({ apiVersion: 'v1', kind: 'ClusterRole', metadata: { name: one } }),
    );
    assert.equal(new Set(paths.map((path) => path.toLowerCase())).size, names.length);
    for (const path of paths) assert.match(path, /^_cluster\/[^/]{1,255}$/);
  });
});

test('what is written is read back the same by a parser of YAML 1.1 and of 1.2', () => {
  forAll({ numRuns: 300 }, fc.dictionary(fc.stringMatching(/^[a-z]{1,9}$/), fc.jsonValue()), (spec) => {
    const text = yamlOf({ apiVersion: 'v1', kind: 'X', metadata: { name: 'x' }, spec });
    const expected = JSON.parse(JSON.stringify(spec)) as unknown;
    for (const version of ['1.1', '1.2'] as const)
      assert.deepEqual((parse(text, { version }) as { spec: unknown }).spec, expected);
    assert.equal(parseAllDocuments(text).length, 1);
  });
});

test('writing twice changes nothing the second time', () => {
  const folder = tempFolder();
  assert.equal(writeTree(folder, tree('a', 'b')).added.length, 3);
  assert.deepEqual(writeTree(folder, tree('a', 'b')), {
    added: [],
    changed: [],
    stale: [],
    inTheWay: [],
    unchanged: 3,
  });
});

test('what is no longer wanted goes with its folder, what is not ours stays', () => {
  const folder = tempFolder();
  writeTree(folder, tree('a', 'b', 'c'));
  const foreign = {
    'README.md': 'hello',
    'b/notes.yaml': 'kept: true\n',
    // A copy of a rendered file belongs to the user.
    'c-copy/role-syncer.yaml': readFileSync(join(folder, 'c/role-syncer.yaml'), 'utf8'),
    '.git/a.yaml': headerOf('.git/a.yaml'),
  };
  for (const [path, text] of Object.entries(foreign)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const difference = writeTree(folder, tree('a'));
  assert.deepEqual(difference.stale, ['b/role-syncer.yaml', 'c/role-syncer.yaml']);
  assert.deepEqual(
    filesOf(folder),
    [...Object.keys(foreign), 'a/role-syncer.yaml', 'kustomization.yaml'].sort(),
  );
  assert.ok(!existsSync(join(folder, 'c')));
  for (const [path, text] of Object.entries(foreign))
    assert.equal(readFileSync(join(folder, path), 'utf8'), text);
});

test('a file that stands in the way stops the run before anything is written, and --overwrite replaces it', () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'a'));
  writeFileSync(join(folder, 'a/role-syncer.yaml'), 'mine: true\n');
  assert.throws(
    () => writeTree(folder, tree('a', 'b')),
    /Cannot write to ".*": 1 path has files that were not rendered: a\/role-syncer.yaml/,
  );
  assert.deepEqual(filesOf(folder), ['a/role-syncer.yaml']);
  writeTree(folder, tree('a', 'b'), { overwrite: true });
  assert.equal(compareTree(folder, tree('a', 'b')).unchanged, 3);
});

test('links are never followed: neither a file nor a folder', () => {
  const folder = tempFolder();
  const outside = tempFolder();
  writeFileSync(join(outside, 'victim'), 'kept');
  const out = join(folder, 'out');
  mkdirSync(join(out, 'a'), { recursive: true });
  symlinkSync(join(outside, 'victim'), join(out, 'a/role-syncer.yaml'));
  symlinkSync(outside, join(out, 'b'));
  assert.deepEqual(compareTree(out, tree('a', 'b')).inTheWay, ['a/role-syncer.yaml', 'b/role-syncer.yaml']);
  assert.throws(() => writeTree(out, tree('a', 'b')), /2 paths/);
  assert.equal(readFileSync(join(outside, 'victim'), 'utf8'), 'kept');
});

test('a file that a run left empty or half written is finished by the next', () => {
  const folder = tempFolder();
  writeTree(folder, tree('a', 'b'));
  const whole = readFileSync(join(folder, 'a/role-syncer.yaml'), 'utf8');
  writeFileSync(join(folder, 'a/role-syncer.yaml'), '');
  writeFileSync(join(folder, 'b/role-syncer.yaml'), headerOf('b/role-syncer.yaml'));
  assert.deepEqual(writeTree(folder, tree('a', 'b')).changed, ['a/role-syncer.yaml', 'b/role-syncer.yaml']);
  assert.equal(readFileSync(join(folder, 'a/role-syncer.yaml'), 'utf8'), whole);
});

test('lines that git gave other ends, and edits by hand, are changes', () => {
  const folder = tempFolder();
  writeTree(folder, tree('a', 'b'));
  const file = join(folder, 'a/role-syncer.yaml');
  writeFileSync(file, readFileSync(file, 'utf8').replaceAll('\n', '\r\n'));
  appendFileSync(join(folder, 'b/role-syncer.yaml'), 'extra: 1\n');
  assert.deepEqual(compareTree(folder, tree('a', 'b')).changed, ['a/role-syncer.yaml', 'b/role-syncer.yaml']);
});

for (const path of ['../out.yaml', 'a/../../out.yaml', '/out.yaml', 'a//out.yaml', 'a/..', '.', ''])
  test(`a path that leads elsewhere is refused here too, whoever let its name pass: ${JSON.stringify(path)}`, () => {
    const folder = tempFolder();
    const to = join(folder, 'to');
    const both = new Map([
      ['a/good.yaml', 'kind: X\n'],
      [path, 'kind: X\n'],
    ]);
    assert.throws(() => writeTree(to, both, { overwrite: true }), { code: 'UnsafeName' });
    assert.deepEqual(filesOf(folder), []);
  });
