/** Image references: hints about invalid ones, their text, and the patterns of matchImages. */

import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  matchesImage,
  matchImageFault,
  matchImageHint,
} from '../../runtime/core/docker-config/match-images.ts';
import {
  formatImageReference,
  imageHint,
  isShortName,
  parseImageReference,
} from '../../runtime/core/image-reference.ts';
import { isCanonical } from '../../runtime/core/mirrors/resolve.ts';
import { forAll } from '../support/for-all.ts';
import { type Case, table, test } from '../support/suite.ts';

// Hints about names of images that cannot be read.

const rows = [
  {
    name: 'docker://quay.io/a/b',
    hint: /must not have a scheme, user name or password: write "quay\.io\/a\/b"$/,
  },
  { name: 'https://quay.io/a/b', reason: 'copied from a browser', hint: /must not have a scheme/ },
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

/** Text between two separators, valid or almost valid. */
const part = fc.oneof(
  fc.constantFrom('docker.io', 'index.docker.io', 'library', 'localhost', 'a.io', 'a.io:5000', 'a--b.c-d.io'),
  fc.constantFrom('a__b', 'a___b', 'a..b', 'a-', '-a', 'A', '', 'latest', 'x_', 'a.b-c_d', '[::1]:5000'),
  fc.constantFrom('sha256', 'a'.repeat(64), 'A'.repeat(64), 'a'.repeat(63), 'b'.repeat(128), 'x'.repeat(250)),
  fc.stringMatching(/^[a-zA-Z0-9._-]{1,4}$/),
);

test('it takes exactly what the whole grammar gives back unchanged, so that its quick way in lets nothing else pass', () => {
  const text = fc
    .array(fc.tuple(part, fc.constantFrom('/', '/', '/', ':', '@', '.')), { minLength: 1, maxLength: 6 })
    .map((parts) =>
      parts
        .map(([word, mark]) => word + mark)
        .join('')
        .slice(0, -1),
    );
  let taken = 0;
  forAll({ numRuns: 5000 }, text, (reference) => {
    const parsed = parseImageReference(reference);
    const wanted =
      !reference.startsWith('[') && parsed.ok && formatImageReference(parsed.reference) === reference;
    assert.equal(isCanonical(reference), wanted, reference);
    if (wanted) taken += 1;
  });
  assert.ok(taken > 100, `only ${taken} of the texts are references`);
});

interface Hinted extends Case {
  readonly pattern: string;
  readonly hint: RegExp | undefined;
}

const HINTED: readonly Hinted[] = [
  { name: 'a host', pattern: 'quay.io', hint: undefined },
  { name: 'a star per label', pattern: '*.dkr.ecr.*.amazonaws.com', hint: undefined },
  { name: 'a host and a path', pattern: 'quay.io/team', hint: undefined },
  { name: 'a scheme', reason: 'it would be the host', pattern: 'https://quay.io', hint: /scheme/ },
  {
    name: 'an address with dots in brackets',
    reason: 'its labels are no globs',
    pattern: '[::1.2.3.4]',
    hint: /IPv6 address matches with a port only/,
  },
  {
    name: 'a star in the path',
    reason: 'taken literally',
    pattern: 'quay.io/*',
    hint: /wildcards work only in the host/,
  },
  { name: 'a lone star', reason: 'one label', pattern: '*', hint: /without a dot/ },
  { name: 'a star and a path', reason: 'one label too', pattern: '*/team', hint: /without a dot/ },
  { name: 'a host without a dot', reason: 'no star', pattern: 'localhost', hint: undefined },
  { name: 'a query', reason: 'cut off', pattern: 'quay.io/team?x', hint: /ignored/ },
  { name: 'a fragment', reason: 'cut off', pattern: 'quay.io#x', hint: /ignored/ },
];

table(test, HINTED, ({ pattern, hint }) => {
  if (hint === undefined) assert.equal(matchImageHint(pattern), undefined);
  else assert.match(matchImageHint(pattern) ?? '', hint);
});

test('a pattern that is no glob matches no image', () => {
  const pattern = '[::1.2.3.4]';
  assert.equal(matchImageFault(pattern), undefined, 'the kubelet takes it');
  assert.equal(matchesImage(pattern, 'a.b.c.d/app'), false);
});
