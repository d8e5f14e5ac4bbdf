/** What is read out of pods and templates. */
import assert from 'node:assert/strict';
import { imagesOf } from '../../runtime/diagnose/model/pull.ts';
import { test } from '../support/suite.ts';

test('gives every image that the kubelet pulls, each once', () => {
  const spec = {
    initContainers: [{ image: 'init' }, { image: 'both' }],
    containers: [{ image: 'both' }, { image: 'main' }, {}],
    ephemeralContainers: [{ image: 'debug' }],
    volumes: [{ name: 'a', image: { reference: 'quay.io/data/model:1' } }, { name: 'b', emptyDir: {} }, null],
  };
  assert.deepEqual(imagesOf(spec), ['init', 'both', 'quay.io/data/model:1', 'main', 'debug']);
  assert.deepEqual(imagesOf({ volumes: 'odd', containers: 7 }), []);
  assert.deepEqual(imagesOf(undefined), []);
});
