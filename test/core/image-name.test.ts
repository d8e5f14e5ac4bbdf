/** Hints about names of images that cannot be read. */
import assert from 'node:assert/strict';
import { imageHint, isShortName, parseImageReference } from '../../runtime/core/image-reference.ts';
import { table, test } from '../support/suite.ts';

const rows = [
  {
    name: 'docker://quay.io/a/b',
    hint: /no scheme, user name or password: write "quay\.io\/a\/b"$/,
  },
  { name: 'https://quay.io/a/b', reason: 'copied from a browser', hint: /no scheme/ },
  { name: 'quay.io/a/b:1@sha256:abc', reason: 'copied from a table that cuts', hint: /digest is cut off/ },
  { name: 'quay.io/a/b:', reason: 'a variable was empty', hint: /tag after ":" is missing/ },
  { name: 'quay.io//b', hint: /part of the path between/ },
  { name: 'quay.io/a/', hint: /ends with/ },
  { name: '', hint: /empty/ },
  { name: 'quay.io/a b', reason: 'a slip', hint: /blank/ },
  { name: 'quay.io:abc/a', reason: 'tag and path changed places', hint: /port is not a number/ },
  { name: 'bücher.example/a', reason: 'the kubelet knows ASCII only', hint: /punycode/ },
  { name: `a/b:${'x'.repeat(129)}`, reason: 'a branch became a tag', hint: /longer than 128/ },
];

table(test, rows, ({ name, hint }) => {
  assert.equal(parseImageReference(name).ok, false);
  assert.match(imageHint(name) ?? '', hint);
});

test('isShortName() agrees with what is expanded to Docker Hub', () => {
  for (const image of [
    'nginx',
    'a/b',
    'a/b/c:1',
    'localhost/a',
    'localhost:1/a',
    'r.io/a',
    'UP/a',
    '[::1]:5/a',
  ]) {
    const parsed = parseImageReference(image);
    assert.ok(parsed.ok, image);
    assert.equal(isShortName(image), parsed.reference.domain === 'docker.io', image);
  }
});
