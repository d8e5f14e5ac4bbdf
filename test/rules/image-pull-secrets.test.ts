import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  mergeImagePullSecrets,
  patchImagePullSecrets,
} from '../../runtime/rules/injection/image-pull-secrets.ts';
import { readSidecarSet } from '../../runtime/rules/injection/sidecar-set.ts';
import { injectSidecarSets } from '../../runtime/rules/injection/sidecar-set-injection.ts';
import { suite } from '../support/suite.ts';

const test = suite('imagePullSecrets');
const names = fc.array(fc.constantFrom('a', 'b', 'c', 'd', ''), { maxLength: 6 });
const references = (list: readonly string[]): { name: string }[] => list.map((name) => ({ name }));

test('mergeImagePullSecrets() is idempotent, keeps order, and holds each name once', () => {
  fc.assert(
    fc.property(names, names, (pod, injected) => {
      const { merged, added } = mergeImagePullSecrets(references(pod), injected);
      assert.deepEqual(mergeImagePullSecrets(references(merged), injected).merged, merged);
      assert.deepEqual(merged, [...new Set([...pod, ...injected])]);
      assert.deepEqual(merged.slice(merged.length - added.length), added);
    }),
  );
});

test('patchImagePullSecrets() sends nothing when the pod is right already', () => {
  const pod = references(['a', 'b']);
  assert.deepEqual(patchImagePullSecrets(pod, mergeImagePullSecrets(pod, ['b', 'a'])), []);
});

test('patchImagePullSecrets() says the list anew when something is added, or when a name stood twice', () => {
  const patched = (own: readonly string[], injected: readonly string[]): readonly string[] | undefined => {
    const pod = own.map((name) => ({ name }));
    const [patch] = patchImagePullSecrets(pod, mergeImagePullSecrets(pod, injected));
    return patch?.value.map(({ name }) => name ?? '');
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

const pod = { labels: { app: 'web' }, namespaceLabels: {}, imagePullSecrets: [] };
const set = (name: string, spec: object): ReturnType<typeof readSidecarSet> =>
  readSidecarSet({
    metadata: { name },
    spec: { selector: { matchLabels: { app: 'web' } }, imagePullSecrets: references([name]), ...spec },
  });

test('injectSidecarSets() gives the same order whatever order the sets come in', () => {
  const sets = ['d', 'b', 'a', 'c'].map((name) => set(name, { containers: [{}] }));
  fc.assert(
    fc.property(fc.shuffledSubarray(sets, { minLength: 4 }), (shuffled) => {
      const injection = injectSidecarSets(pod, shuffled, []);
      assert.ok(injection.outcome === 'injected');
      assert.deepEqual(injection.pullSecrets.merged, ['a', 'b', 'c', 'd']);
    }),
  );
});

test('injectSidecarSets() injects without containers only when asked to', () => {
  assert.equal(injectSidecarSets(pod, [set('a', {})], []).outcome, 'skipped');
  assert.equal(injectSidecarSets(pod, [set('a', {})], [], { withoutContainers: true }).outcome, 'injected');
});

const pinned = set('a', {
  containers: [{}],
  injectionStrategy: { revision: { customVersion: 'v1', policy: 'Partial' } },
  updateStrategy: { partition: '40%' },
});
const v1 = {
  name: 'a-1',
  sidecarSet: 'a',
  customVersion: 'v1',
  revision: 1,
  containers: 1,
  imagePullSecrets: ['old'],
};

test('injectSidecarSets() draws between the pinned and the current content', () => {
  const merged = (draw: number): readonly string[] => {
    const injection = injectSidecarSets(pod, [pinned], [v1], { draw: () => draw });
    assert.ok(injection.outcome === 'injected');
    return injection.pullSecrets.merged;
  };
  assert.deepEqual(merged(39.9), ['old']);
  assert.deepEqual(merged(40), ['a']);
});

test('injectSidecarSets() refuses a missing revision as upstream does, or falls back when told to', () => {
  const refused = injectSidecarSets(pod, [pinned], []);
  assert.ok(refused.outcome === 'failed' && refused.problem.includes('version v1'));
  assert.equal(injectSidecarSets(pod, [pinned], [], { missingRevision: 'current' }).outcome, 'injected');
});

test('readSidecarSet() is total', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (spec) => {
      const read = readSidecarSet({ metadata: { name: 'x' }, spec });
      assert.ok(['skipped', 'failed', 'injected'].includes(injectSidecarSets(pod, [read], []).outcome));
    }),
  );
});

test.run();
