// needs: control plane
/** Merge patches of objects that are wholly ours, and what the real API server makes of them. */
import assert from 'node:assert/strict';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { drift, plainPatch } from '../../runtime/kube/drift.ts';
import { controlPlane } from '../control-plane/live.ts';
import { resourcePath } from '../control-plane/resource-path.ts';
import { meta } from '../support/meta.ts';
import { type Case, table, test } from '../support/suite.ts';

const MANAGER = 'pullwright-demo';

function configMap(data: Record<string, string>, metadata: object = {}): KubeObject {
  return { ...meta('v1 ConfigMap', { name: 'a', namespace: 'default', ...metadata }), data };
}

const created = (...names: readonly string[]): object => ({
  manager: MANAGER,
  operation: 'Update',
  fieldsV1: {
    'f:data': Object.fromEntries(['.', ...names.map((name) => `f:${name}`)].map((key) => [key, {}])),
  },
});

const DESIRED = { x: '1' };
interface Row extends Case {
  readonly live: Record<string, string>;
  readonly managed: object;
  /** Entries of others. */
  readonly others?: readonly object[];
  /** @default none */
  readonly differs?: readonly string[];
  /** Set to null by the patch. */
  readonly gone?: readonly string[];
}

table<Row>(
  test,
  [
    {
      name: 'nothing differs',
      reason: 'a pass over what is well sends nothing',
      live: { x: '1' },
      managed: created('x'),
    },
    {
      name: 'a value differs',
      live: { x: '2' },
      managed: created('x'),
      differs: ['data.x'],
    },
    {
      name: 'what others added stays',
      reason: 'it is a merge patch, not a replacement',
      live: { x: '1', theirs: '1' },
      managed: created('x'),
    },
    {
      name: 'what it created once and wants no longer goes',
      reason: 'a create records its fields as Update, and they are given up all the same',
      live: { x: '1', old: '1' },
      managed: created('x', 'old'),
      differs: ['data.old'],
      gone: ['old'],
    },
    {
      name: 'what it applied once and wants no longer goes',
      reason: 'copies that an older version applied',
      live: { x: '1', old: '1' },
      managed: { ...created('x', 'old'), operation: 'Apply' },
      differs: ['data.old'],
      gone: ['old'],
    },
    {
      name: 'what somebody else owns too stays',
      reason: 'as after an apply',
      live: { x: '1', old: '1' },
      managed: created('x', 'old'),
      others: [{ ...created('old'), manager: 'kubectl' }],
    },
    {
      name: 'fields of its status entry do not count',
      reason: 'the status is another resource',
      live: { x: '1', old: '1' },
      managed: { ...created('old'), subresource: 'status' },
    },
  ],
  ({ live, managed, others = [], differs = [], gone = [] }) => {
    const present = configMap(live, { uid: 'u', managedFields: [managed, ...others] });
    const found = drift(configMap(DESIRED), present, MANAGER, 'written').map(({ path }) => path);
    assert.deepEqual(found, differs);
    const patch = plainPatch(configMap(DESIRED), present, MANAGER) as KubeObject;
    assert.deepEqual(patch.metadata, { name: 'a', namespace: 'default', uid: 'u' });
    assert.deepEqual(patch['data'], { ...DESIRED, ...Object.fromEntries(gone.map((name) => [name, null])) });
  },
);
const plane = await controlPlane();
const path = resourcePath(configMap({}));
const read = async (): Promise<KubeObject> => (await plane.get(configMap({}))) as KubeObject;
const patch = (desired: KubeObject, live: KubeObject): ReturnType<typeof plane.client.request> =>
  plane.client.request(
    'PATCH',
    `${path}?fieldManager=${MANAGER}`,
    plainPatch(desired, live, MANAGER),
    'application/merge-patch+json',
  );

test('created, applied, patched: each fixes what the other left', async () => {
  await plane.client.request(
    'POST',
    `/api/v1/namespaces/default/configmaps?fieldManager=${MANAGER}`,
    configMap({ x: '1', old: '1' }),
  );
  const first = await read();
  assert.deepEqual(drift(configMap({ x: '1', old: '1' }), first, MANAGER, 'written'), []);
  await plane.apply(configMap({ x: '2', older: '1' }), MANAGER);
  await plane.apply(configMap({ theirs: '1' }), 'somebody');
  assert.equal((await patch(configMap({ x: '3' }), await read())).status, 200);
  const last = await read();
  assert.deepEqual(last['data'], { x: '3', theirs: '1' });
  assert.equal(last.metadata.uid, first.metadata.uid);
  assert.deepEqual(drift(configMap({ x: '3' }), last, MANAGER, 'written'), []);
});

test('it never hits another object of the name, and never makes one', async () => {
  const live = await read();
  const other = { ...live, metadata: { ...live.metadata, uid: '00000000-0000-0000-0000-000000000000' } };
  assert.ok([409, 422].includes((await patch(configMap({ x: '4' }), other)).status));
  await plane.remove(configMap({}));
  assert.equal((await patch(configMap({ x: '4' }), live)).status, 404);
});
