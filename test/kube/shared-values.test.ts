/** Values that thousands of copies share are stored once. */
import assert from 'node:assert/strict';
import type { SecretObject } from '../../runtime/core/kubernetes/object.ts';
import { reveal } from '../../runtime/core/redacted.ts';
import { decodeObject, leanObject } from '../../runtime/kube/decode.ts';
import { meta } from '../support/meta.ts';
import { test } from '../support/suite.ts';

const BODY = Buffer.from('x'.repeat(200)).toString('base64');

function copyIn(namespace: string, body: string): SecretObject {
  const fieldsV1 = { 'f:data': { 'f:.dockerconfigjson': {} }, 'f:type': {} };
  const raw = {
    ...meta('v1 Secret', {
      name: 'reg',
      namespace,
      managedFields: [{ manager: namespace, operation: 'Update', fieldsV1 }],
    }),
    data: { '.dockerconfigjson': body },
  };
  return leanObject(decodeObject(JSON.parse(JSON.stringify(raw)))) as SecretObject;
}

test('two copies of one Secret have one body, and the same fields', () => {
  const [a, b] = [copyIn('a', BODY), copyIn('b', BODY)];
  assert.ok(a.data?.['.dockerconfigjson'] !== undefined);
  assert.equal(a.data['.dockerconfigjson'], b.data?.['.dockerconfigjson']);
  assert.equal(a.metadata.managedFields?.[0]?.fieldsV1, b.metadata.managedFields?.[0]?.fieldsV1);
  assert.equal(b.metadata.managedFields?.[0]?.manager, 'b');
});

test('another body is another one, however many came in between', () => {
  const bodies = Array.from({ length: 40 }, (_, at) => Buffer.from(`${at}`.repeat(100)).toString('base64'));
  for (const body of [...bodies, ...bodies]) {
    const value = copyIn('a', body).data?.['.dockerconfigjson'];
    assert.ok(value !== undefined);
    assert.equal(reveal(value), body);
  }
});
