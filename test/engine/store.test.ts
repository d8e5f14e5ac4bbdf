/** The store's lists against a plain model: sorted by namespace and name, and what was given out never changes. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { ObjectStore } from '../../runtime/engine/store.ts';
import { forAll } from '../support/for-all.ts';
import { test } from '../support/suite.ts';

const KIND = { apiVersion: 'v1', kind: 'ConfigMap' };

// Names that sort differently with a separator between them than without one.
const NAMES = ['a', 'a-b', 'a.b', 'a0', 'b', 'z'] as const;

interface Step {
  readonly does: 'set' | 'delete' | 'list all' | 'list one';
  readonly namespace: string;
  readonly name: string;
}

const step = fc.record<Step>({
  does: fc.constantFrom('set', 'set', 'set', 'delete', 'list all', 'list one'),
  namespace: fc.constantFrom(...NAMES, ''),
  name: fc.constantFrom(...NAMES),
});

function objectOf({ namespace, name }: Step, at: number): KubeObject {
  const place = namespace === '' ? {} : { namespace };
  return { ...KIND, metadata: { name, ...place, resourceVersion: String(at) } };
}

function sorted(model: ReadonlyMap<string, KubeObject>): readonly KubeObject[] {
  const by = (a: string, b: string): number => (a < b ? -1 : a === b ? 0 : 1);
  return [...model.values()].sort(
    (a, b) =>
      by(a.metadata.namespace ?? '', b.metadata.namespace ?? '') || by(a.metadata.name, b.metadata.name),
  );
}

test('lists what was set and not deleted, in order, whenever it is asked', () => {
  forAll({ numRuns: 300 }, fc.array(step, { maxLength: 60 }), (steps) => {
    const store = new ObjectStore();
    const model = new Map<string, KubeObject>();
    const given: { readonly list: readonly KubeObject[]; readonly copy: readonly KubeObject[] }[] = [];
    for (const [at, one] of steps.entries()) {
      const { does, namespace, name } = one;
      const id = `${namespace} ${name}`;
      if (does === 'set') {
        store.set(objectOf(one, at));
        model.set(id, objectOf(one, at));
      } else if (does === 'delete') {
        store.delete({ ...KIND, name, ...(namespace === '' ? {} : { namespace }) });
        model.delete(id);
      } else {
        const wanted = does === 'list all' ? undefined : namespace;
        const list = store.list(KIND, wanted);
        const expected = sorted(model).filter(
          ({ metadata }) => wanted === undefined || (metadata.namespace ?? '') === wanted,
        );
        assert.deepEqual(list, expected);
        given.push({ list, copy: [...list] });
      }
    }
    for (const { list, copy } of given) assert.deepEqual(list, copy);
    assert.equal([...store].length, model.size);
  });
});

test('gives the same list until something in it changes', () => {
  const store = new ObjectStore();
  const at = (namespace: string): Step => ({ does: 'set', namespace, name: 'x' });
  store.set(objectOf(at('a'), 1));
  store.set(objectOf(at('b'), 1));
  const [all, ofA] = [store.list(KIND), store.list(KIND, 'a')];
  assert.equal(store.list(KIND), all);
  store.set(objectOf(at('b'), 2));
  assert.notEqual(store.list(KIND), all);
  assert.equal(store.list(KIND, 'a'), ofA);
});

test('forgets an owner with its last object', () => {
  const store = new ObjectStore();
  const owned = {
    ...KIND,
    metadata: {
      name: 'x',
      labels: { 'pullwright.dev/owner': 'demo' },
      annotations: { 'pullwright.dev/key': 'k' },
    },
  };
  store.set(owned);
  assert.deepEqual(store.owned('demo', 'k'), [owned]);
  store.delete({ ...KIND, name: 'x' });
  assert.deepEqual(store.owned('demo', 'k'), []);
});
