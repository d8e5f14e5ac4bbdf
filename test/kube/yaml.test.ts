/** YAML as Kubernetes reads it; the reading itself is compared with Go in test/oracle/kubernetes/yaml.test.ts. */
import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { parseYaml, toYaml } from '../../runtime/kube/yaml.ts';
import { test } from '../support/suite.ts';

test('parseYaml() reads what Go decodes, and takes nothing that JSON cannot say', () => {
  assert.deepEqual(parseYaml('a: !!binary aGk='), { a: 'hi' });
  assert.throws(() => parseYaml('a: .inf'), /cannot say/);
});

test('parseYaml() takes a file that ends with three dashes, and no second document', () => {
  assert.deepEqual(parseYaml('a: 1\n---\n'), { a: 1 });
  assert.deepEqual(parseYaml('---\na: 1\n...\n---\n# nothing\n'), { a: 1 });
  assert.equal(parseYaml(''), null);
  assert.throws(() => parseYaml('a: 1\n---\nb: 2\n'), /there are 2 documents, expected one/);
});

test('toYaml() leaves usual texts as they are', () => {
  assert.equal(
    toYaml({ image: 'quay.io/a:1.2', zone: 'a', size: 3, on: null, list: [true, 1.5] }),
    'image: quay.io/a:1.2\nzone: a\nsize: 3\n"on": null\nlist:\n  - true\n  - 1.5\n',
  );
});

test('toYaml() quotes what readers of YAML 1.1 take for something else', () => {
  for (const text of ['on', 'yes', '08', '1:20', '<<'])
    assert.deepEqual(parse(toYaml([text]), { version: '1.1' }), [text]);
});
