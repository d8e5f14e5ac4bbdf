import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseManifests } from '../../runtime/engine/offline/manifests.ts';
import { plantedAuth, plantedPassword } from '../support/canary.ts';
import { forAll } from '../support/for-all.ts';
import { type Case, table, test } from '../support/suite.ts';

const map = (name: string, kind = 'ConfigMap'): string =>
  `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: ${name}\n`;

interface Row extends Case {
  readonly text: string;
  readonly names?: readonly string[];
  /** `line: message` of each problem; the message as a pattern. */
  readonly problems?: readonly (readonly [number, RegExp])[];
}

const rows: readonly Row[] = [
  {
    name: 'several documents',
    reason: 'kustomize and kubectl print them so',
    text: `${map('a')}---\n${map('b')}`,
    names: ['a', 'b'],
  },
  {
    name: 'comments and empty documents',
    reason: 'headers are common',
    text: `# head\n---\n\n---\n# only a comment\n---\n${map('a')}---\n`,
    names: ['a'],
  },
  {
    name: 'CRLF',
    reason: 'files from Windows',
    text: `${map('a')}---\n${map('b')}`.replaceAll('\n', '\r\n'),
    names: ['a', 'b'],
  },
  { name: 'byte order mark', reason: 'editors add it', text: `\uFEFF${map('a')}`, names: ['a'] },
  {
    name: 'a List',
    reason: 'kubectl get -o yaml of several objects',
    text: 'apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n',
    names: ['a'],
  },
  {
    name: 'a typed list as JSON',
    reason: 'the API server answers this; items carry no kind',
    text: '{"apiVersion":"v1","kind":"SecretList","items":[{"metadata":{"name":"a"},"data":{"k":"eA=="}}]}',
    names: ['a'],
  },
  {
    name: 'flow style YAML',
    reason: 'starts like JSON and is not',
    text: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}',
    names: ['a'],
  },
  {
    name: 'dashes inside a block scalar',
    reason: 'indented, so no document marker',
    text: `${map('a')}data:\n  x: |\n    ---\n    y\n`,
    names: ['a'],
  },
  {
    name: 'content on the marker line',
    text: `${map('a')}--- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n`,
    names: ['a', 'b'],
  },
  {
    name: 'anchors',
    reason: 'people write them, kubectl takes them',
    text: `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &n a, labels: {n: *n}}\n`,
    names: ['a'],
  },
  {
    name: 'an alias bomb',
    reason: 'a file must not be able to eat the memory',
    text: `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n`,
    problems: [[1, /not usable YAML/]],
  },
  {
    name: 'a tab',
    reason: 'the classic; the line must be right in the second document',
    text: `${map('a')}---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: b\n`,
    names: ['a'],
    problems: [[9, /not valid YAML/]],
  },
  {
    name: 'a value on the line of its block sign',
    reason: 'a slip with a credential, which the library would quote',
    text: `${map('a')}data:\n  x: |${plantedAuth('slip')}\n`,
    problems: [[6, /not valid YAML: Block scalar header includes extra characters$/]],
  },
  {
    name: 'a wrong escape',
    reason: 'the library would quote what follows it',
    text: `${map('a')}data: {x: "\\ucAnArY7"}\n`,
    problems: [[5, /not valid YAML: an unknown escape sequence/]],
  },
  {
    name: 'a tag that is none',
    reason: 'a value that begins with an exclamation mark is one to YAML, and the library would quote it',
    text: `${map('a')}data: {x: !${plantedPassword('tag')}! y}\n`,
    problems: [[5, /not valid YAML: an unknown tag/]],
  },
  {
    name: 'a duplicate key',
    reason: 'the API server refuses it, and one of the two would be lost',
    text: `${map('a')}data:\n  x: "1"\n  x: "2"\n`,
    problems: [[7, /not valid YAML.*unique/]],
  },
  {
    name: 'truncated JSON',
    text: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"',
    problems: [[1, /not valid YAML/]],
  },
  {
    name: 'no kind',
    reason: 'a values file among manifests',
    text: 'replicas: 3\n',
    problems: [[1, /has no apiVersion/]],
  },
  {
    name: 'no name',
    reason: 'generateName is nothing to reconcile',
    text: 'apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n',
    problems: [[1, /Pod has no metadata.name/]],
  },
  {
    name: 'a label that is on',
    reason: 'YAML types bite, and the older spellings too',
    text: 'apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {x: on}}\n',
    problems: [[1, /metadata.labels\["x"\] must be a string: quote it/]],
  },
  {
    name: 'plain text',
    reason: 'somebody pointed at the wrong file',
    text: 'hello',
    problems: [[1, /not a Kubernetes object/]],
  },
  { name: 'an empty file', reason: 'nothing is in it, and that is no fault', text: '' },
  {
    name: 'one line of 1 MB',
    reason: 'long base64 must not be quadratic',
    text: `${map('a', 'Secret')}data:\n  x: ${'A'.repeat(1 << 20)}\n`,
    names: ['a'],
  },
];

table(test, rows, (row) => {
  const parsed = parseManifests(row.text, 'f.yaml');
  assert.deepEqual(
    parsed.manifests.map((manifest) => manifest.object.metadata.name),
    row.names ?? [],
  );
  assert.equal(parsed.problems.length, row.problems?.length ?? 0, JSON.stringify(parsed.problems));
  for (const [index, [line, message]] of (row.problems ?? []).entries()) {
    assert.equal(parsed.problems[index]?.line, line);
    assert.match(parsed.problems[index]?.message ?? '', message);
  }
});

test('kinds that no system reads are not parsed', () => {
  const parsed = parseManifests(
    `${map('a')}---\nkind: Pod\nmetadata: [broken\n---\n${map('s', 'Secret')}`,
    'f.yaml',
    new Set(['Secret']),
  );
  assert.deepEqual(
    parsed.manifests.map((manifest) => manifest.object.metadata.name),
    ['s'],
  );
  assert.equal(parsed.problems.length, 0);
});

test('a parse error never quotes what it stumbled over', () => {
  const parsed = parseManifests(
    `kind: Secret\ndata:\n  p: "${plantedPassword('yaml')}\n  q: '${plantedPassword('x')}\n`,
    'f.yaml',
  );
  assert.equal(parsed.problems.length, 1);
  process.stdout.write(JSON.stringify(parsed.problems));
});

test('property: total on any text', () => {
  const piece = fc.constantFrom(
    '---',
    '\n',
    'kind: Pod',
    'apiVersion: v1',
    'metadata:',
    '  name: a',
    '- x',
    '{',
    '}',
    '"',
    ': ',
    '&a',
    '*a',
    '\t',
    '|',
    '#',
  );
  forAll(
    {},
    fc.array(fc.oneof(piece, fc.string({ maxLength: 5 }))),
    (parts) => void parseManifests(parts.join(''), 'f.yaml'),
  );
});
