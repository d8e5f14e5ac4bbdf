/** YAML as Kubernetes reads it; the reading itself is compared with Go in test/oracle/kubernetes/yaml.test.ts. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { parseManifests } from '../../runtime/engine/offline/manifests.ts';
import { parseYaml, toYaml } from '../../runtime/kube/yaml.ts';
import { table, test } from '../support/suite.ts';

const READ = [
  ['yes', true, 'a boolean to the kubelet: a provider with such an env value stops it from starting'],
  ['On', true, 'in three spellings'],
  ['n', false, 'one letter is enough'],
  ['oN', 'oN', 'mixed case is a text'],
  ['0644', 420, 'file modes of MachineConfigs are octal'],
  ['0o644', 420, 'in both spellings'],
  ['08', 8, 'what is not octal after all'],
  ['1_000', 1000, 'underscores are skipped'],
  ['_1', '_1', 'but not in front'],
  ['0B1', 1, 'binary in upper case'],
  ['12345678.', 12_345_678, 'a number may end with its point'],
  ['1e999', '1e999', 'what no number holds is a text'],
  ['1:20', '1:20', 'no base 60'],
  ['2001-01-01', '2001-01-01', 'a date is a text'],
  ['!!binary aGk=', 'hi', 'decoded, as Go does it'],
] as const;
table(
  test,
  READ.map(([text, wanted, reason]) => ({
    name: `"${text}" is ${JSON.stringify(wanted)}`,
    reason,
    text,
    wanted,
  })),
  ({ text, wanted }) => assert.deepEqual(parseYaml(`a: ${text}`), { a: wanted }),
);

const REFUSED = [
  ['a: .inf', /cannot say/, 'JSON has no infinite numbers'],
  ['~: a', /null as a key/, 'Go refuses it'],
  ['yes: 1\non: 2', /unique/, 'two spellings of one key'],
] as const;
table(
  test,
  REFUSED.map(([text, wanted, reason]) => ({ name: JSON.stringify(text), reason, text, wanted })),
  ({ text, wanted }) => assert.throws(() => parseYaml(text), wanted),
);

test('parseYaml() takes a file that ends with three dashes, and no second document', () => {
  assert.deepEqual(parseYaml('a: 1\n---\n'), { a: 1 });
  assert.deepEqual(parseYaml('---\na: 1\n...\n---\n# nothing\n'), { a: 1 });
  assert.equal(parseYaml(''), null);
  assert.throws(() => parseYaml('a: 1\n---\nb: 2\n'), /there are 2 documents, expected one/);
});

test('a merged key wins over one that is written before it, as in Go', () => {
  assert.deepEqual(parseYaml('base: &b {a: 1, b: 1}\nuse:\n  a: 2\n  <<: *b\n  b: 3'), {
    base: { a: 1, b: 1 },
    use: { a: 1, b: 3 },
  });
});

test('toYaml() quotes what any reader would take for something else', () => {
  for (const text of [
    'yes',
    'n',
    'on',
    '0B1',
    '0X1',
    '1_0',
    '08',
    '1:20',
    '2001-01-01',
    '<<',
    '~',
    '1e5',
    '\ufeff',
  ])
    for (const read of [parse, parseYaml]) assert.deepEqual(read(toYaml({ [text]: text })), { [text]: text });
});

test('toYaml() leaves usual texts as they are', () => {
  assert.equal(
    toYaml({ image: 'quay.io/a:1.2', zone: 'a', size: 3, on: null, list: [true, 1.5] }),
    'image: quay.io/a:1.2\nzone: a\nsize: 3\n"on": null\nlist:\n  - true\n  - 1.5\n',
  );
});

test('parseManifests() refuses a label that kubectl would refuse', () => {
  const { problems } = parseManifests(
    'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  labels:\n    pull: on\n',
    'a.yaml',
  );
  assert.match(problems[0]?.message ?? '', /metadata\.labels\["pull"\] must be a string: quote it/);
});
