/** SharedClaims: replicas that each see a part of the hosted clusters, and one ConfigMap with optimistic concurrency. */
import assert from 'node:assert/strict';
import type { Cluster } from '../../runtime/controller/cluster.ts';
import { SharedClaims } from '../../runtime/controller/shared-claims.ts';
import { ApiError } from '../../runtime/kube/api-error.ts';
import { PullwrightError } from '../../runtime/rules/errors.ts';
import type { KubeObject } from '../../runtime/rules/kubernetes/object.ts';
import { suite } from '../support/suite.ts';

const test = suite('SharedClaims');

interface Server {
  readonly claims: () => SharedClaims;
  readonly data: () => unknown;
  readonly writes: () => number;
  mayWrite: boolean;
}

/** The management cluster of a few lines. Reads of several are answered before any of their writes. */
function server(given?: Readonly<Record<string, string>>): Server {
  const metadata = { name: 'pullwright-hosted-clusters', namespace: 'ns' };
  let stored: KubeObject | undefined;
  if (given !== undefined)
    stored = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { ...metadata, resourceVersion: '0' },
      data: given,
    };
  let version = 0;
  const save = (object: KubeObject): KubeObject => {
    version += 1;
    stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    return stored;
  };
  const conflict = new ApiError('Cannot update', {
    code: 'Conflict',
    status: 409,
    causes: [],
    disposition: 'retry',
  });
  const client = {
    get: async () => stored,
    apply: async (object: KubeObject) => save({ ...stored, ...object }),
    replace: async (object: KubeObject) => {
      if (object.metadata.resourceVersion !== stored?.metadata.resourceVersion) throw conflict;
      return save(object);
    },
  };
  const made: Server = {
    claims: () => new SharedClaims(cluster as unknown as Cluster, 'ns'),
    data: () => stored?.['data'],
    writes: () => version,
    mayWrite: true,
  };
  const cluster = {
    client,
    assertMayWrite: () => {
      if (!made.mayWrite) throw new PullwrightError('Cannot write', { code: 'NotLeader' });
    },
  };
  return made;
}

const all = (): boolean => true;

test('hold() is for the first, also where several ask at once; nobody has it in vain', async () => {
  const { claims, data } = server();
  const names = ['x/a', 'x/b', 'x/c'];
  const holders = await Promise.all(names.map((name) => claims().hold(name, 'uid-1', all)));
  assert.equal(new Set(holders).size, 1, holders.join());
  assert.ok(names.includes(holders[0] ?? ''));
  assert.deepEqual(data(), { 'uid-1': holders[0] });
  assert.deepEqual(
    await Promise.all(names.map((name, at) => claims().hold(name, `own-${at}`, all))),
    names,
    'different clusters at once hinder nobody',
  );
});

test('hold() takes what belongs to one that is gone, and writes nothing when it has it already', async () => {
  const { claims, data, writes } = server({ 'uid-1': 'x/gone' });
  assert.equal(await claims().hold('x/a', 'uid-1', (name) => name !== 'x/gone'), 'x/a');
  const before = writes();
  assert.equal(await claims().hold('x/a', 'uid-1', all), 'x/a');
  assert.equal(writes(), before);
  assert.deepEqual(data(), { 'uid-1': 'x/a' });
});

test('hold() fails where it cannot be written down: nobody is let in', async () => {
  const made = server();
  made.mayWrite = false;
  await assert.rejects(made.claims().hold('x/a', 'uid-1', all), { code: 'NotLeader' });
});

test('settle() takes back what its own had before, and what those had that are gone; others stay', async () => {
  const { claims, data } = server({
    old: 'x/mine',
    gone: 'x/gone',
    other: 'x/other',
    unopened: 'x/unopened',
  });
  await claims().settle(
    () => ({ new: 'x/mine', other: 'x/late' }),
    (name) => name !== 'x/gone',
  );
  assert.deepEqual(data(), { new: 'x/mine', other: 'x/other', unopened: 'x/unopened' });
});

test('settle() leaves what a name is about to open, and takes it back when the name went elsewhere', async () => {
  const { claims, data } = server({ old: 'x/mine' });
  const mine = claims();
  await mine.hold('x/mine', 'next', all);
  await mine.settle(() => ({ old: 'x/mine' }), all);
  assert.deepEqual(data(), { old: 'x/mine', next: 'x/mine' });
  await mine.settle(() => ({ next: 'x/mine' }), all);
  assert.deepEqual(data(), { next: 'x/mine' });
  await mine.hold('x/mine', 'never', all);
  await mine.hold('x/mine', 'last', all);
  await mine.settle(() => ({ last: 'x/mine' }), all);
  assert.deepEqual(data(), { last: 'x/mine' });
});

test('an address stands for a cluster as well as a UID', async () => {
  const { claims, data } = server();
  const address = 'https://api.example.com:6443/path';
  assert.equal(await claims().hold('x/a', address, all), 'x/a');
  assert.equal(await claims().hold('x/b', address, all), 'x/a');
  assert.match(Object.keys(data() as object).join(), /^address-[0-9a-f]{64}$/);
});

test.run();
