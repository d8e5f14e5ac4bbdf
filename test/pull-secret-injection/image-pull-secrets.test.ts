import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  mergeImagePullSecrets,
  patchImagePullSecrets,
} from '../../runtime/pull-secret-injection/plan/plan.ts';
import { forAll } from '../support/for-all.ts';
import { test } from '../support/suite.ts';

const names = fc.array(fc.constantFrom('a', 'b', 'c', 'd', ''), { maxLength: 6 });
const references = (list: readonly string[]): { name: string }[] => list.map((name) => ({ name }));

test('mergeImagePullSecrets() is idempotent, keeps order, and holds each name once', () => {
  forAll({}, names, names, (pod, injected) => {
    const { merged, added } = mergeImagePullSecrets(references(pod), injected);
    assert.deepEqual(mergeImagePullSecrets(references(merged), injected).merged, merged);
    assert.deepEqual(merged, [...new Set([...pod, ...injected])]);
    assert.deepEqual(merged.slice(merged.length - added.length), added);
  });
});

test('patchImagePullSecrets() says the list anew when something is added, or when a name stood twice', () => {
  const patched = (own: readonly string[], injected: readonly string[]): readonly string[] | undefined => {
    const pod = own.map((name) => ({ name }));
    const [patch] = patchImagePullSecrets(pod, mergeImagePullSecrets(pod, injected));
    return (patch?.value as readonly { name?: string }[] | undefined)?.map(({ name }) => name ?? '');
  };
  assert.deepEqual(patched(['a'], ['b']), ['a', 'b']);
  assert.deepEqual(patched(['a', 'a'], []), ['a']);
  assert.deepEqual(patched(['a', 'a'], ['b']), ['a', 'b']);
  assert.equal(patched(['a'], ['a']), undefined);
});

test('patchImagePullSecrets() keeps fields that it does not know', () => {
  const pod = [{ name: 'a', future: 1 }, { name: 'a' }];
  assert.deepEqual(patchImagePullSecrets(pod, mergeImagePullSecrets(pod, ['b'])), [
    { op: 'add', path: '/spec/imagePullSecrets', value: [{ name: 'a', future: 1 }, { name: 'b' }] },
  ]);
});
