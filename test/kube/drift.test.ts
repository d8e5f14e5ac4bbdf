import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { decodeObject } from '../../runtime/kube/decode.ts';
import { applied, drift } from '../../runtime/kube/drift.ts';
import { plantedPassword } from '../support/canary.ts';
import { forAll } from '../support/for-all.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';

const ME = 'pullwright-test';

const object = (fields: Record<string, unknown>): KubeObject => ({
  ...meta('apps/v1 Deployment', { name: 'a' }),
  ...fields,
});

interface Row extends Case {
  readonly live: KubeObject;
  readonly desired: KubeObject;
  readonly paths: readonly string[];
}

const rows: readonly Row[] = [
  {
    name: 'equal objects',
    reason: 'nothing is sent when nothing differs',
    live: object({ spec: { replicas: 1 } }),
    desired: object({ spec: { replicas: 1 } }),
    paths: [],
  },
  {
    name: 'a field of others',
    reason: 'what we leave out belongs to somebody else',
    live: object({ spec: { replicas: 3, paused: true } }),
    desired: object({ spec: { paused: true } }),
    paths: [],
  },
  {
    name: 'a changed leaf',
    live: object({ spec: { replicas: 3 } }),
    desired: object({ spec: { replicas: 1 } }),
    paths: ['spec.replicas'],
  },
  {
    name: 'containers by name',
    reason: 'a keyed list is a map: order and injected siblings are no drift',
    live: object({
      spec: {
        containers: [
          { name: 'proxy', image: 'p' },
          { name: 'a', image: 'x', imagePullPolicy: 'Always' },
        ],
      },
    }),
    desired: object({ spec: { containers: [{ name: 'a', image: 'y' }] } }),
    paths: ['spec.containers[a].image'],
  },
  {
    name: 'one env variable',
    reason: 'a part that owns one variable sees only that one',
    live: object({
      spec: {
        containers: [
          {
            name: 'a',
            env: [
              { name: 'X', value: '1' },
              { name: 'Y', value: '2' },
            ],
          },
        ],
      },
    }),
    desired: object({ spec: { containers: [{ name: 'a', env: [{ name: 'Y', value: '3' }] }] } }),
    paths: ['spec.containers[a].env[Y].value'],
  },
  {
    name: 'an atomic list',
    reason: 'verbs of a rule are one value',
    live: object({ rules: [{ verbs: ['get', 'list'] }] }),
    desired: object({ rules: [{ verbs: ['get'] }] }),
    paths: ['rules'],
  },
  {
    name: 'defaults inside an atomic list',
    reason: 'the server fills elements in',
    live: object({ rules: [{ verbs: ['get'], scope: '*' }] }),
    desired: object({ rules: [{ verbs: ['get'] }] }),
    paths: [],
  },
  {
    name: 'an empty map',
    reason: 'securityContext: {} comes back as it was or not at all',
    live: object({ spec: {} }),
    desired: object({ spec: { securityContext: {} } }),
    paths: [],
  },
  {
    name: 'a label with a slash',
    reason: 'the path must be readable',
    live: object({}),
    desired: { ...object({}), metadata: { name: 'a', labels: { 'a/b': '1' } } },
    paths: ['metadata.labels'],
  },
];

table(test, rows, (row) =>
  assert.deepEqual(
    drift(row.desired, row.live, ME).map((difference) => difference.path),
    row.paths,
  ),
);

test('removes a label that was ours and is no longer desired, and keeps those of others', () => {
  const others = { ...object({}), metadata: { name: 'a', labels: { theirs: '1' } } };
  const first = applied({ ...object({}), metadata: { name: 'a', labels: { ours: '1' } } }, others, ME);
  assert.deepEqual(first.metadata.labels, { theirs: '1', ours: '1' });
  const wanted = object({});
  assert.deepEqual(drift(wanted, first, ME), [
    { path: 'metadata.labels.ours', before: '1', after: undefined },
  ]);
  assert.deepEqual(applied(wanted, first, ME).metadata.labels, { theirs: '1' });
});

test('a field with another owner stays when we release it, as an API server keeps it', () => {
  const shared = { ...object({}), metadata: { name: 'a', labels: { both: '1', ours: '1' } } };
  const fieldsV1 = { 'f:metadata': { 'f:labels': { 'f:both': {} } } };
  const made = applied(shared, object({}), ME);
  const theirs = { manager: 'somebody', operation: 'Update' as const, fieldsV1 };
  const live = {
    ...made,
    metadata: { ...made.metadata, managedFields: [...(made.metadata.managedFields ?? []), theirs] },
  };
  assert.deepEqual(
    drift(object({}), live, ME).map(({ path }) => path),
    ['metadata.labels.ours'],
  );
  assert.deepEqual(applied(object({}), live, ME).metadata.labels, { both: '1' });
});

test('gives up one element of a keyed list', () => {
  const env = (names: readonly string[]) =>
    object({ spec: { containers: [{ name: 'a', env: names.map((name) => ({ name, value: '1' })) }] } });
  const live = applied(env(['X', 'Y']), env(['Z']), ME);
  const next = applied(env(['X']), live, ME);
  assert.deepEqual(
    (next as { spec: { containers: { env: { name: string }[] }[] } }).spec.containers[0]?.env.map(
      (one) => one.name,
    ),
    ['Z', 'X'],
  );
});

test('sees a rotated Secret and shows no value', () => {
  const secret = (password: string) =>
    decodeObject({
      ...meta('v1 Secret', { name: 's' }),
      data: { key: Buffer.from(password).toString('base64') },
    });
  const found = drift(secret(plantedPassword('new')), secret(plantedPassword('old')), ME);
  assert.equal(JSON.stringify(found), '[{"path":"data.key","before":"[redacted]","after":"[redacted]"}]');
});

test('a zero value that the server does not store is drift once, not for ever', () => {
  const desired = object({ spec: { hostPID: false } });
  const live = object({ spec: {} });
  assert.equal(drift(desired, live, ME).length, 1);
  const stored = { ...applied(desired, live, ME), spec: {} };
  assert.equal(drift(desired, stored, ME).length, 0);
});

test('names that every object inherits are names like others', () => {
  for (const name of ['constructor', 'valueOf', 'toString', '__proto__']) {
    const labels = JSON.parse(`{"${name}":"x"}`) as Record<string, string>;
    const desired: KubeObject = { ...object({}), metadata: { name: 'a', labels } };
    const live = { ...object({}), metadata: { name: 'a', labels: { other: 'y' } } };
    assert.equal(drift(desired, live, ME).length, 1, name);
    assert.equal(drift(desired, applied(desired, live, ME), ME).length, 0, name);
    const list = object({ spec: { [name]: [''] } });
    assert.equal(drift(list, object({ spec: {} }), ME).length, 1, name);
  }
});

const tree = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.string(),
    fc.integer({ min: 1 }),
    fc.array(fc.string()),
    fc.dictionary(fc.string(), tie('value'), { maxKeys: 3 }),
  ),
}));

test('property: after applied() there is no drift, and applying again changes nothing', () => {
  forAll({}, fc.dictionary(fc.string(), tree.value), fc.dictionary(fc.string(), tree.value), (a, b) => {
    const live = applied(object({ spec: b }), object({ spec: a }), ME);
    assert.deepEqual(drift(object({ spec: b }), live, ME), []);
    assert.equal(JSON.stringify(applied(object({ spec: b }), live, ME)), JSON.stringify(live));
  });
});
