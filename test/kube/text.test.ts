/** Lines of a watch in pieces of every size, and YAML as Kubernetes reads it; test/oracle/kubernetes/yaml.test.ts compares it with Go. */

import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { jsonLines } from '../../runtime/kube/http-client.ts';
import { parseYaml, toYaml } from '../../runtime/kube/yaml.ts';
import { test } from '../support/suite.ts';

// Lines of a watch, in pieces of every size.

async function* inPieces(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

test('the pieces in which lines come make no difference', async () => {
  const text = '{"a":"ä😀"}\n\n{"b":["\\n"]}\n{"c":3}\n{"broken off';
  for (let size = 1; size <= Buffer.byteLength(text); size += 1)
    assert.deepEqual(await Array.fromAsync(jsonLines(inPieces(text, size))), [
      { a: 'ä😀' },
      { b: ['\n'] },
      { c: 3 },
    ]);
});

test('what came before a damaged line is taken, and nothing after it', async () => {
  const seen: unknown[] = [];
  await assert.rejects(
    async () => {
      for await (const value of jsonLines(inPieces('{"a":1}\n{"b":["x\n{"c":3}\n', 100))) seen.push(value);
    },
    { code: 'WatchDamaged' },
  );
  assert.deepEqual(seen, [{ a: 1 }]);
});

// YAML as Kubernetes reads it; the reading itself is compared with Go in test/oracle/kubernetes/yaml.test.ts.

test('parseYaml() reads what Go decodes, and takes nothing that JSON cannot say', () => {
  assert.deepEqual(parseYaml('a: !!binary aGk='), { a: 'hi' });
  assert.throws(() => parseYaml('a: .inf'), /does not support/);
});

test('parseYaml() takes a file that ends with three dashes, and no second document', () => {
  assert.deepEqual(parseYaml('a: 1\n---\n'), { a: 1 });
  assert.deepEqual(parseYaml('---\na: 1\n...\n---\n# nothing\n'), { a: 1 });
  assert.equal(parseYaml(''), null);
  assert.throws(() => parseYaml('a: 1\n---\nb: 2\n'), /found 2 documents, expected one/);
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
